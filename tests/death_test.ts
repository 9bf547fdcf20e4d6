// Every so many steps of every operation as the last one of its thread. `deno task death` tries all of them.

import { assert, assertEquals } from "@std/assert";
import { Rcu } from "../mod.ts";
import { MAPS, OTHERS, SORTED_MAPS } from "./death/_scenarios.ts";
import { bury, inOneTurn } from "./death/_doom.ts";
import { sweep } from "./death/_sweep.ts";
import { until } from "./_workers.ts";

for (const scenario of [...OTHERS, ...MAPS, ...SORTED_MAPS]) {
  Deno.test(`a thread may die at any step of this: ${scenario.name}`, () => {
    assert(sweep(scenario, { tries: 12 }) > 0);
  });
}

Deno.test("who buries may die of it, and the next one buries both", () => {
  for (const scenario of [OTHERS[0], OTHERS[5], MAPS[9], SORTED_MAPS[8]]) {
    assert(sweep(scenario, { tries: 4, buriers: 5 }) > 0);
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
