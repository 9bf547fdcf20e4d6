// Programs in processes of their own, with the permissions that they name and no others.

import { PATIENCE } from "./_workers.ts";

/** How a program ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A signal that ends a process which does not end by itself. */
function patience(): AbortSignal {
  return AbortSignal.timeout(PATIENCE);
}

/**
 * Runs a program until it ends.
 *
 * @param program The command.
 * @param args Its arguments.
 * @param options Its working directory and environment.
 * @returns How it ended.
 */
export async function run(
  program: string | URL,
  args: string[],
  options: Pick<Deno.CommandOptions, "cwd" | "env"> = {},
): Promise<Ended> {
  const command = new Deno.Command(program, {
    args,
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: patience(),
    ...options,
  });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return {
    code,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}

/**
 * Runs Deno until it ends.
 *
 * @param args Its arguments.
 * @param options Its working directory and environment.
 * @returns How it ended.
 */
export function runDeno(
  args: string[],
  options: Pick<Deno.CommandOptions, "cwd" | "env"> = {},
): Promise<Ended> {
  return run(Deno.execPath(), args, options);
}

/** A port of the loopback interface that nobody listens on. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** A server that runs until it is disposed of. */
export class Server implements AsyncDisposable {
  readonly url: string;
  readonly #child: Deno.ChildProcess;
  #log = "";
  readonly #read: Promise<void>;

  private constructor(url: string, child: Deno.ChildProcess) {
    this.url = url;
    this.#child = child;
    this.#read = (async () => {
      for await (
        const text of child.stderr.pipeThrough(new TextDecoderStream())
      ) this.#log += text;
    })();
  }

  /**
   * Starts `deno serve`, and waits until it answers.
   *
   * @param module The module to serve.
   * @param threads How many threads.
   * @param flags Further arguments.
   * @returns The server.
   */
  static async start(
    module: string,
    threads: number,
    flags: string[] = [],
  ): Promise<Server> {
    const port = freePort();
    const child = new Deno.Command(Deno.execPath(), {
      args: ["serve", "--parallel", "--host=127.0.0.1", `--port=${port}`]
        .concat(flags, module),
      env: { DENO_JOBS: String(threads), NO_COLOR: "1" },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const server = new Server(`http://127.0.0.1:${port}`, child);
    await server.#answers();
    return server;
  }

  async #answers(): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    while (true) {
      try {
        await (await fetch(this.url)).body?.cancel();
        return;
      } catch (error) {
        if (performance.now() > deadline) {
          await this[Symbol.asyncDispose]();
          throw new Error(`The server does not answer: ${this.#log}`, {
            cause: error,
          });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** What it has printed. */
  get log(): string {
    return this.#log;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#child.status;
    await this.#read;
  }
}

/**
 * Serves this package over HTTP on the loopback interface, and programs beside it.
 *
 * @param programs The text of each, by its path.
 * @param use What to do meanwhile; gets the URL.
 * @returns What it returned.
 */
export async function withPackage<R>(
  programs: Record<string, string>,
  use: (url: string) => Promise<R>,
): Promise<R> {
  const root = new URL("../", import.meta.url);
  // A port may come again, and Deno keeps what it has loaded, by its URL.
  const folder = `/${crypto.randomUUID()}/`;
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      const path = new URL(request.url).pathname.replace(folder, "");
      const headers = { "content-type": "application/typescript" };
      const program = programs[path];
      if (program !== undefined) return new Response(program, { headers });
      // What is published, and nothing else.
      if (!/^(mod\.ts|src\/[\w/.]+\.ts)$/.test(path)) {
        return new Response("not found", { status: 404 });
      }
      const text = await Deno.readTextFile(new URL(path, root));
      return new Response(text, { headers });
    },
  );
  return await use(
    `http://127.0.0.1:${server.addr.port}${folder.slice(0, -1)}`,
  );
}
