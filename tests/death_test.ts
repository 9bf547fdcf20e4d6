// Every so many steps of every operation as the last one of its thread. `deno task death` tries all of them.

import { assert } from "@std/assert";
import { MAPS, OTHERS, SORTED_MAPS } from "./death/_scenarios.ts";
import { sweep } from "./death/_sweep.ts";

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
