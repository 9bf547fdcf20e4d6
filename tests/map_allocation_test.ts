import { assert } from "@std/assert";
import { Rcu, RcuMap, u32 } from "../mod.ts";
import { withWorkers } from "./_workers.ts";

/** The heap's growth, in bytes, over each of ten million reads in ten parts. */
async function growth(allocates: boolean): Promise<number[]> {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  for (let n = 0; n < 1024; n++) map.set(n, n + 1);
  return await withWorkers(
    "_map_worker.ts",
    1,
    (worker) =>
      worker.call<number[]>("measureReads", {
        handle: rcu.handle,
        rounds: 10,
        each: 1_000_000,
        allocates,
      }),
  );
}

/** Parts in which the heap moved by more than a measurement itself allocates. */
function moved(parts: number[]): number {
  return parts.filter((bytes) => Math.abs(bytes) > 65_536).length;
}

Deno.test("ten million reads of numbers allocate nothing", async () => {
  const parts = await growth(false);
  // One part is left to a compilation or a collection that falls into it.
  assert(moved(parts) <= 1, `the heap grew by ${parts}`);
});

Deno.test("one object a read would be noticed", async () => {
  const parts = await growth(true);
  assert(moved(parts) >= 5, `the heap grew by ${parts}`);
});
