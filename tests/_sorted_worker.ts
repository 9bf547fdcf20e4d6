// What workers do in the tests of RcuSortedMap.

import { Rcu } from "../mod.ts";
import { type Kind, valueOf } from "./_map_checks.ts";
import {
  openSorted,
  type SortedFound,
  sortedKey,
  SortedWatcher,
  type Task,
} from "./_sorted_checks.ts";
import { PATIENCE, serve } from "./_workers.ts";

function* rounds(stop: Int32Array): Generator<number> {
  const deadline = performance.now() + PATIENCE;
  for (let round = 0; Atomics.load(stop, 0) === 0; round++) {
    if (performance.now() > deadline) throw new Error("Never told to stop");
    yield round;
  }
}

/** The number in a value that counts. */
function count(kind: Kind, value: unknown): number {
  return kind === "u32"
    ? Number(value ?? 0)
    : (value as { n: number } | undefined)?.n ?? 0;
}

serve({
  /** Looks at everything until it is told to stop. */
  watch(
    task: Task & { stop: Int32Array; keys: number; every: number },
  ): SortedFound {
    using rcu = Rcu.attach(task.handle);
    const map = openSorted(rcu, task);
    const watcher = new SortedWatcher(map, task, task.keys, task.every);
    for (const round of rounds(task.stop)) {
      watcher.get();
      watcher.beside();
      watcher.walk(map, 0, task.keys);
      const from = (round * 37) % task.keys;
      watcher.range(from, Math.min(task.keys, from + 50));
      if (round === 0) Atomics.add(task.stop, 1, 1);
    }
    return watcher.found;
  },

  /** Inserts and deletes keys of its own, and increments ones that all writers share. */
  write(
    task: Task & { me: number; own: number; shared: number; times: number },
  ): void {
    using rcu = Rcu.attach(task.handle);
    const map = openSorted(rcu, task);
    const { key, kind, me, own, shared, times } = task;
    for (let round = 0; round < times; round++) {
      // Its keys lie between those of the other writers.
      for (let i = 0; i < own; i++) {
        const n = shared + i * 2 + me;
        map.set(sortedKey(key, n), valueOf(kind, n, round));
      }
      for (let n = 0; n < shared; n++) {
        map.update(sortedKey(key, n), (old) => {
          const next = count(kind, old) + 1;
          return kind === "u32" ? next : { n: next };
        });
      }
      for (let i = round & 1; i < own; i += 2) {
        const n = shared + i * 2 + me;
        if (!map.delete(sortedKey(key, n))) throw new Error(`${n} was lost`);
      }
    }
  },
});
