/**
 * Prints the `--import-map` option with which the suite runs: none where the
 * `@std` packages of deno.json can be had, the offline map where they can't.
 *
 * The adapters of the offline map live below `tests/`, not in a dotted folder,
 * so that formatter, linter and type checker see them like any other source.
 *
 * Deno itself is asked, by importing every module that the offline map stands
 * in for: so a registry, a mirror and a warm cache all count, and a half-warm
 * cache (one package there, another not) does not. The answer isn't kept: it
 * takes milliseconds when the network answers, and may differ next time.
 */
import offline from "./offline.json" with { type: "json" };

/** How long an unanswered request may hold up a task, in milliseconds. */
const PATIENCE = 4000;

/** Resolves if a module can be imported, rejects if it can't. */
export type Probe = (specifier: string) => Promise<unknown>;

/** Tells whether `probe` gets every one of `specifiers` within `patience` ms. */
export async function isReachable(
  specifiers: string[],
  probe: Probe,
  patience: number,
): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), patience);
  });
  const all = Promise.all(specifiers.map((specifier) => probe(specifier)));
  try {
    return await Promise.race([all.then(() => true, () => false), late]);
  } finally {
    clearTimeout(timer);
  }
}

if (import.meta.main) {
  const specifiers = Object.keys(offline.imports)
    .filter((specifier) => specifier.startsWith("@std/"));
  const reachable = await isReachable(
    specifiers,
    (specifier) => import(specifier),
    PATIENCE,
  );
  if (reachable) {
    console.error("@std: the packages of deno.json");
  } else {
    console.error("@std: tests/_std/offline.json, as JSR cannot be reached");
    console.log("--import-map=tests/_std/offline.json");
  }
  // A request still under way would keep the process alive.
  Deno.exit();
}
