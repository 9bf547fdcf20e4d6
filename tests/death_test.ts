// Every so many steps of every operation as the last one of its thread. `deno task death` tries all of them.

import { assert } from "@std/assert";
import { FAULTS } from "./death/_faults.ts";
import { scenarioOf, SCENARIOS } from "./death/_scenarios.ts";
import { sweep } from "./death/_sweep.ts";
import { withWorkers } from "./_workers.ts";

/** Where lists of blocks change hands: what a burial does about that, nothing else looks at. */
const DENSE = new Set([
  "a thread leaves beside a reader",
  "blocks are handed over",
  "what was handed over is taken back",
]);

for (const scenario of SCENARIOS) {
  Deno.test(`a thread may die at any step of this: ${scenario.name}`, () => {
    const tries = DENSE.has(scenario.name) ? Infinity : 12;
    assert(sweep(scenario, { tries }) > 0);
  });
}

Deno.test("who buries may die of it, and the next one buries both", () => {
  for (
    const name of [
      "a cell of strings is set",
      "what was handed over is taken back",
      "a thread leaves, tree",
      "string to json: replaceAll()",
      "string to json: insertions until the table grows",
      "sorted string to json: deletions",
    ]
  ) {
    assert(sweep(scenarioOf(name), { tries: 4, buriers: 5 }) > 0);
  }
});

Deno.test("an error may end a thread in the middle of an update", () => {
  for (
    const name of [
      "a cell of strings is set",
      "string to json: insertions until the table grows",
      "sorted string to json: insertions",
    ]
  ) {
    assert(sweep(scenarioOf(name), { tries: 12, unwinds: true }) > 0);
  }
});

Deno.test("a sweep finds each of the planted faults", async () => {
  for (const fault of Object.keys(FAULTS)) {
    await withWorkers("_sweep_worker.ts", 1, async (worker) => {
      const found = await worker.call<string | undefined>("find", fault);
      assert(found !== undefined, `nobody notices ${fault}`);
    });
  }
});
