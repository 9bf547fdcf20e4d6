// Running the smoke test in other runtimes than Deno.

import module from "node:module";
import { type Ended, run } from "../_processes.ts";
import { PATIENCE } from "../_workers.ts";

/** The first one that takes types out of modules without being asked to. */
const LEAST_NODE: readonly [number, number] = [22, 18];

const ROOT = new URL("../../", import.meta.url);

/** A command that cannot be run is not there. */
async function output(
  command: string,
  args: string[],
): Promise<Ended | undefined> {
  try {
    return await run(command, args);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/**
 * Whether a Node.js that is new enough is there.
 *
 * @param command What starts it, with its first arguments.
 * @returns Its version, or `undefined`.
 */
export async function nodeVersion(
  command: readonly string[],
): Promise<string | undefined> {
  const [program, ...args] = command;
  const version = (await output(program, [...args, "--version"]))?.stdout
    .trim();
  const [, major, minor] = version?.match(/^v(\d+)\.(\d+)/)?.map(Number) ?? [];
  if (major === undefined) return undefined;
  const [least, leastMinor] = LEAST_NODE;
  return major > least || (major === least && minor >= leastMinor)
    ? version
    : undefined;
}

/**
 * Runs the smoke test in Node.js.
 *
 * @param command What starts it.
 * @returns What was seen.
 */
export async function runInNode(command: readonly string[]): Promise<string[]> {
  const [program, ...args] = command;
  const script = new URL("./node.js", import.meta.url).pathname;
  const ended = await output(program, [...args, "--no-warnings", script]);
  if (ended === undefined || ended.code !== 0) {
    throw new Error(`Node.js failed: ${ended?.stderr}`);
  }
  return JSON.parse(ended.stdout);
}

/**
 * Finds Chromium.
 *
 * @returns The command, or `undefined`.
 */
export async function findChromium(): Promise<string | undefined> {
  for (const command of ["chromium", "chromium-browser", "google-chrome"]) {
    if (await output(command, ["--version"]) !== undefined) return command;
  }
  return undefined;
}

/**
 * Runs the smoke test in a cross-origin isolated page. The modules are served as
 * they are but for their types.
 *
 * @param chromium The command.
 * @returns What was seen.
 */
export async function runInChromium(chromium: string): Promise<string[]> {
  const { promise: result, resolve } = Promise.withResolvers<string[]>();
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/result") {
        resolve(await request.json());
        return new Response();
      }
      return await serve(pathname);
    },
  );
  const page = `http://127.0.0.1:${server.addr.port}/page`;
  const browser = new Deno.Command(chromium, {
    args: [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--no-first-run",
      page,
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const timer = setTimeout(
    () => resolve(["the page did not answer"]),
    PATIENCE,
  );
  try {
    return await result;
  } finally {
    clearTimeout(timer);
    browser.kill("SIGKILL");
    await browser.status;
  }
}

async function serve(pathname: string): Promise<Response> {
  const headers = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
  };
  if (pathname === "/page") {
    const html =
      `<!doctype html><script type="module" src="/tests/runtimes/page.js"></script>`;
    return new Response(html, {
      headers: { ...headers, "content-type": "text/html" },
    });
  }
  if (!/^\/(mod\.ts|(src|tests\/runtimes)\/[\w/]+\.(ts|js))$/.test(pathname)) {
    return new Response("not found", { status: 404, headers });
  }
  const text = await Deno.readTextFile(new URL(`.${pathname}`, ROOT));
  const { stripTypeScriptTypes } = module as unknown as {
    stripTypeScriptTypes(text: string): string;
  };
  return new Response(
    pathname.endsWith(".ts") ? stripTypeScriptTypes(text) : text,
    { headers: { ...headers, "content-type": "text/javascript" } },
  );
}
