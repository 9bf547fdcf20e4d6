/** `deno task linearizability`: checks more histories than the test does, and says how many. */

import fc from "fast-check";
import { withScenario, withThreads } from "./_explore.ts";
import { SCENARIOS } from "./_scenarios.ts";

const USAGE = `Checks histories of real threads, a line for each structure.

deno task linearizability [PLANS]

  PLANS  what threads do is drawn so often for each structure (default: 300)

The exit code is 1 if there is a history that no order of its operations
explains; then it is shown.`;

/** How many plans the command line asks for; `undefined` if it makes no sense. */
function plansOf(args: string[]): number | undefined {
  if (args.length === 0) return 300;
  const plans = Number(args[0]);
  return args.length === 1 && Number.isSafeInteger(plans) && plans > 0
    ? plans
    : undefined;
}

async function run(plans: number): Promise<void> {
  const longest = Math.max(...SCENARIOS.map(({ name }) => name.length));
  console.log(`${"".padEnd(longest)}     rounds  with a change meanwhile`);
  await withThreads(async (...workers) => {
    for (const scenario of SCENARIOS) {
      await withScenario(scenario, workers, async (explorer) => {
        const found = await explorer.explore({ plans });
        const { rounds, overlaps } = explorer;
        console.log(
          scenario.name.padEnd(longest) + `${rounds}`.padStart(11) +
            `${overlaps}`.padStart(24),
        );
        if (!found.failed) return;
        console.error(fc.defaultReportMessage(found));
        Deno.exitCode = 1;
      });
    }
  });
}

const plans = plansOf(Deno.args);
if (plans === undefined) {
  console.error(USAGE);
  Deno.exitCode = 2;
} else await run(plans);
