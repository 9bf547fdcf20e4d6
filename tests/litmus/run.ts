/** `deno task litmus`: looks for outcomes that memory must not show, longer than the test does. */

import { PATTERNS } from "./_patterns.ts";
import { runPatterns } from "./_run.ts";
import { table } from "./_table.ts";
import { verdict } from "./_verdict.ts";

const USAGE = `Looks for outcomes that memory must not show, on this machine.

deno task litmus [ROUNDS]

  ROUNDS  rounds of 1024 instances for each pattern (default: 5000)

The exit code is 1 if there was one, or if plain accesses showed nothing on
x86-64, which is known to reorder them: then the threads have not met, and the
rest says nothing either.`;

/** How many rounds the command line asks for; `undefined` if it makes no sense. */
function roundsOf(args: string[]): number | undefined {
  if (args.length === 0) return 5000;
  const rounds = Number(args[0]);
  return args.length === 1 && Number.isSafeInteger(rounds) && rounds > 0
    ? rounds
    : undefined;
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
    `${
      table(results)
    }\n\n${Deno.build.arch}, ${processors} processors. ${text}`,
  );
  if (PATTERNS.some(({ sees }) => sees.length > processors)) {
    console.log(
      "Patterns of more threads than processors hardly ran side by side.",
    );
  }
  if (fails) Deno.exitCode = 1;
}
