/** `deno task litmus`: looks for outcomes that memory must not show, longer than the test does. */

import { PATTERNS } from "./_patterns.ts";
import { runPatterns } from "./_run.ts";
import { table } from "./_table.ts";
import { verdict } from "./_verdict.ts";

const USAGE = `Looks for outcomes that memory must not show, on this machine.

deno task litmus [ROUNDS]

  ROUNDS  rounds of 1024 instances for each pattern (default: 1000)

The exit code is 1 if there was one, or if plain accesses showed nothing on
x86-64, which is known to reorder them: then the threads have not met, and the
rest says nothing either.`;

/** How many rounds the command line asks for; `undefined` if it makes no sense. */
function roundsOf(args: string[]): number | undefined {
  if (args.length === 0) return 1000;
  const rounds = Number(args[0]);
  return args.length === 1 && Number.isSafeInteger(rounds) && rounds > 0
    ? rounds
    : undefined;
}

const rounds = Number(args[0]);
  return args.length === 1 && Number.isSafeInteger(rounds) && rounds > 0
    ? rounds
    : undefined;
}

function verdict(results: Counts[]): { text: string; fails: boolean } {
  const broken = results.filter((counts) =>
    counts.pattern.weak === "never" && weakIn(counts) > 0
  );
  if (broken.length > 0) {
    const names = broken.map(({ pattern }) => pattern.name).join("; ");
    return { text: `Seen, and must never be: ${names}`, fails: true };
  }
  const control = results.find(({ pattern }) => pattern.name === CONTROL)!;
  const shown = weakIn(control);
  const text = `Nothing seen that must never be. ${CONTROL}: ${shown} seen, ` +
    (shown > 0
      ? "so the threads met closely enough to see a store that is late."
      : "so the threads may not have met closely enough to see anything.");
  return { text, fails: shown === 0 && REORDERS };
}

const rounds = roundsOf(Deno.args);
if (rounds === undefined) {
  console.error(USAGE);
  Deno.exitCode = 2;
} else {
  const results = await runPatterns(
    PATTERNS,
    rounds,
    ({ pattern }) => console.error(`${pattern.name} ...`),
  );
  const { text, fails } = verdict(results, Deno.build.arch);
  const processors = navigator.hardwareConcurrency;
  console.log(
    `${table(results)}\n\n${Deno.build.arch}, ${processors} processors. ${text}`,
  );
  if (fails) Deno.exitCode = 1;
}
