/** `deno task litmus`: looks for outcomes that memory must not show, longer than the test does. */

import { readCount, runCommand } from "../_command_line.ts";
import { PATTERNS } from "./_patterns.ts";
import { runPatterns } from "./_run.ts";
import { table } from "./_table.ts";
import { verdict } from "./_verdict.ts";

/** Rounds of each pattern unless the command line says otherwise. */
const ROUNDS = 5_000;

const USAGE = `Looks for outcomes that memory must not show, on this machine.

deno task litmus [ROUNDS]

  ROUNDS  rounds of 1024 instances for each pattern (default: ${ROUNDS})
  --help  this text

The exit code is 0, 1 if there was one, or 2 if the command line makes no sense.
It is also 1 if plain accesses showed nothing on x86-64, which is known to
reorder them: then the threads have not met, and the rest says nothing either.`;

/** Returns the exit code. */
async function run(rounds: number): Promise<number> {
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
  return fails ? 1 : 0;
}

await runCommand(USAGE, () => readCount(Deno.args, "ROUNDS", ROUNDS), run);
