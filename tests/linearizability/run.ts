/** `deno task linearizability`: checks more histories than the test does, and says how many. */

import fc from "fast-check";
import { readCount, runCommand } from "../_command_line.ts";
import { withScenario, withThreads } from "./_explore.ts";
import { SCENARIOS } from "./_scenarios.ts";

/** Plans for each structure unless the command line says otherwise. */
const PLANS = 300;

const USAGE = `Checks histories of real threads, a line for each structure.

deno task linearizability [PLANS]

  PLANS   what threads do is drawn so often for each structure (default: ${PLANS}),
          and each time done in 100 rounds
  --help  this text

There are ${SCENARIOS.length} structures. A plan of all of them takes some seconds on two
cores, hence ${PLANS} of them half an hour or more.
The exit code is 0, 1 if there is a history that no order of its operations
explains, which is shown then, or 2 if the command line makes no sense.`;

/** Returns the exit code. */
async function run(plans: number): Promise<number> {
  const wrong: string[] = [];
  let all = 0;
  const longest = Math.max(...SCENARIOS.map(({ name }) => name.length));
  console.log(`${"".padEnd(longest)}     rounds  with a change meanwhile`);
  await withThreads(async (...workers) => {
    for (const scenario of SCENARIOS) {
      await withScenario(scenario, workers, async (explorer) => {
        const found = await explorer.explore({ plans });
        const { rounds, overlaps } = explorer;
        all += rounds;
        console.log(
          scenario.name.padEnd(longest) + `${rounds}`.padStart(11) +
            `${overlaps}`.padStart(24),
        );
        if (!found.failed) return;
        console.error(fc.defaultReportMessage(found));
        wrong.push(scenario.name);
      });
    }
  });
  console.log(
    wrong.length === 0
      ? `\nNothing was wrong: an order explains each of ${all} histories.`
      : `\nNo order explains a history of ${wrong.join("; ")}.`,
  );
  return wrong.length === 0 ? 0 : 1;
}

await runCommand(USAGE, () => readCount(Deno.args, "PLANS", PLANS), run);
