// Every so many steps of every operation as the last one of its thread. `deno task death` tries all of them.

import { assert, assertEquals } from "@std/assert";
import { Rcu } from "../mod.ts";
import { bury, inOneTurn } from "./death/_doom.ts";
import { FAULTS } from "./death/_faults.ts";
import { scenarioOf, SCENARIOS } from "./death/_scenarios.ts";
import { sweep } from "./death/_sweep.ts";
import { until, withWorkers } from "./_workers.ts";

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

Deno.test("whoever listens hears of every thread of a full domain that dies at once, and of those in their places", async () => {
  const maxReaders = 100;
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders });
  const names = Array.from({ length: 2 * (maxReaders - 1) }, (_, i) => `${i}`);
  const lost: string[] = [];
  rcu.addEventListener("readerlost", ({ name }) => lost.push(name));
  // Neither waits for anything, so that nobody looks in between.
  for (
    const half of [names.slice(0, maxReaders - 1), names.slice(maxReaders - 1)]
  ) {
    inOneTurn(() => {
      for (const name of half) Rcu.attach(rcu.handle, { name });
    });
    bury(rcu.memory.words, rcu.readerId);
  }
  await until("the events", () => lost.length >= names.length);
  assertEquals(lost, names);
});
