/** liburcu's table in a process of its own: building the program, and talking to it. */
import { type Mode, modeOfLiburcu } from "./_liburcu_loops.ts";

/** What a benchmark beside liburcu needs; each is asked for before it is used. */
const PERMISSIONS = ["run", "write"] as const;
const LIBRARIES = ["liburcu-qsbr", "liburcu-cds"];
const FLAGS = ["-O3", "-march=native", "-Wall", "-Wextra", "-pthread"];
/** Includes what the program includes, and calls something of both libraries. */
const PROBE = `
#include <urcu/urcu-qsbr.h>
#include <urcu/rculfhash.h>
int main(void)
{
	urcu_qsbr_register_thread();
	return cds_lfht_new_flavor(1, 1, 1, 0, &urcu_qsbr_flavor, NULL) == NULL;
}
`;
/** How long the program may take to answer, in ms. */
const PATIENCE = 60_000;

/** Why there is nothing to measure, and what to do about it. */
export class Missing {
  readonly what: string;

  constructor(what: string) {
    this.what = what;
  }

  toString(): string {
    return `it needs ${this.what}; to measure it: ` +
      "apt-get install -y gcc liburcu-dev && deno task bench:peers " +
      "(--allow-read --allow-run --allow-write)";
  }
}

/** The program, compiled. Disposing of it removes the file; processes run on. */
export class Program implements Disposable {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Compiles it, or says what is missing for that. */
  static async build(): Promise<Program | Missing> {
    const denied: string[] = [];
    for (const name of PERMISSIONS) {
      const { state, partial } = await Deno.permissions.query({ name });
      if (state !== "granted" || partial) denied.push(`--allow-${name}`);
    }
    if (denied.length > 0) return new Missing(denied.join(" and "));
    const program = new Program(Deno.makeTempDirSync({ prefix: "liburcu-" }));
    try {
      const missing = await program.#compile();
      if (missing === undefined) return program;
      program[Symbol.dispose]();
      return missing;
    } catch (error) {
      program[Symbol.dispose]();
      throw error;
    }
  }

  async #compile(): Promise<Missing | undefined> {
    const libraries = await libraryFlags();
    const probe = `${this.#directory}/probe.c`;
    Deno.writeTextFileSync(probe, PROBE);
    const compile = (source: string, output: string) =>
      run("cc", [...FLAGS, "-o", output, source, ...libraries]);
    const tried = await compile(probe, `${this.#directory}/probe`);
    if (tried === undefined) return new Missing("a C compiler (cc)");
    if (!tried.success) return new Missing("liburcu with its headers");
    const source = new URL("liburcu.c", import.meta.url).pathname;
    const compiled = await compile(decodeURIComponent(source), this.path);
    if (!compiled!.success) {
      throw new Error(`Cannot compile ${source}:\n${compiled!.errors}`);
    }
    return undefined;
  }

  /** The executable file. */
  get path(): string {
    return `${this.#directory}/liburcu`;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.#directory, { recursive: true });
  }
}

async function libraryFlags(): Promise<string[]> {
  const found = await run("pkg-config", ["--cflags", "--libs", ...LIBRARIES]);
  // The usual names, where pkg-config is not installed or does not know better.
  if (!found?.success) return ["-lurcu-qsbr", "-lurcu-cds"];
  return found.output.split(/\s+/).filter((flag) => flag !== "");
}

/** Runs a program to its end; undefined if there is none of that name. */
async function run(
  name: string,
  args: string[],
): Promise<{ success: boolean; output: string; errors: string } | undefined> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(name, { args })
      .output();
    const text = new TextDecoder();
    return {
      success,
      output: text.decode(stdout),
      errors: text.decode(stderr),
    };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** What both tables hold, and what is done to them. */
export interface Data {
  /** Distinct keys in random order. */
  keys: Uint32Array;
  /** Their values at the beginning. */
  values: Uint32Array;
  /** How many of them are there at the beginning. */
  first: number;
  /** Keys in the order in which they are looked up; a power of two of them. */
  lookups: Uint32Array;
  /** Keys in the order in which they are updated; a power of two of them. */
  updates: Uint32Array;
  /** What tells insertions from deletions where updates are both; not 0. */
  seed: number;
}

/** What lookups came to. */
export interface Looked {
  ns: number;
  lookups: number;
  hits: number;
  /** The sum of the values found, as a signed word. */
  sum: number;
}

/** What a reader beside an updater came to. */
export interface Ran extends Looked {
  /** How long the updater worked. */
  updateNs: number;
  updates: number;
  /** How many retired entries waited at most to be freed. */
  pending: number;
}

/** A process with a table. Idle but for when it is asked something. */
export class LiburcuTable implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #output: ReadableStreamDefaultReader<string>;
  #rest = "";
  #failed = false;

  private constructor(process: Deno.ChildProcess) {
    this.#process = process;
    this.#input = process.stdin.getWriter();
    this.#output = process.stdout.pipeThrough(new TextDecoderStream())
      .getReader();
  }

  /** Starts a process and fills its table. */
  static async start(
    path: string,
    mode: Mode,
    data: Data,
  ): Promise<LiburcuTable> {
    const { keys, values, first, lookups, updates, seed } = data;
    const table = new LiburcuTable(
      new Deno.Command(path, {
        args: [modeOfLiburcu(mode)],
        stdin: "piped",
        stdout: "piped",
        stderr: "inherit",
      }).spawn(),
    );
    try {
      const lengths = [keys.length, first, lookups.length, updates.length];
      for (
        const words of [[...lengths, seed], keys, values, lookups, updates]
      ) await table.#write(new Uint8Array(Uint32Array.from(words).buffer));
      await table.#answer();
      return table;
    } catch (error) {
      await table[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Makes the next lookups. */
  async look(count: number): Promise<Looked> {
    return looked(await this.#ask(`look ${count}`));
  }

  /** Makes the next updates. */
  async update(count: number): Promise<void> {
    await this.#ask(`update ${count}`);
  }

  /** Has the reader, and the updater if there is one, run for some ms. */
  async run(ms: number): Promise<Ran> {
    const numbers = await this.#ask(`run ${ms}`);
    const [updateNs, updates, pending] = numbers.slice(4);
    return { ...looked(numbers), updateNs, updates, pending };
  }

  /** Counts the entries. */
  async count(): Promise<number> {
    return (await this.#ask("count"))[0];
  }

  /** Ends the process, and checks that it has ended well. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A process that has died has said why.
    await this.#input.close().catch(() => {});
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), PATIENCE);
    const { success, code } = await this.#process.status;
    clearTimeout(timer);
    await this.#output.cancel();
    // Whoever waited for an answer knows already.
    if (!success && !this.#failed) {
      throw new Error(`liburcu's program has failed at its end: ${code}`);
    }
  }

  async #write(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#input.write(bytes);
  }

  async #ask(command: string): Promise<number[]> {
    await this.#write(new TextEncoder().encode(`${command}\n`));
    return (await this.#answer()).split(" ").map(Number);
  }

  /** The next line. */
  async #answer(): Promise<string> {
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), PATIENCE);
    try {
      while (true) {
        const end = this.#rest.indexOf("\n");
        if (end >= 0) {
          const line = this.#rest.slice(0, end);
          this.#rest = this.#rest.slice(end + 1);
          return line;
        }
        const { value, done } = await this.#output.read();
        if (done) {
          this.#failed = true;
          throw new Error("liburcu's program has ended: it has said why");
        }
        this.#rest += value;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

function looked([ns, lookups, hits, sum]: number[]): Looked {
  return { ns, lookups, hits, sum: sum | 0 };
}
