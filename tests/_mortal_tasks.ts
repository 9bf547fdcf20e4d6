// What mortal threads do: each joins, and returns the act in which it dies.

import { json, Rcu, RcuCell, type RcuHandle, RcuMap, string } from "../mod.ts";
import { RcuSortedMap, u32 } from "../mod.ts";
import { tell } from "./_workers.ts";
import { membershipOf } from "../src/rcu.ts";
import { MAPS, SORTED_MAPS } from "./death/_map_scenarios.ts";

type Act = () => unknown;

/** Keys of {@linkcode roundsMap}. */
export const KEYS = 40;

/** Opens the map that rounds of updates go through. */
export function roundsMap(rcu: Rcu): RcuMap<string, { round: number }> {
  const value = json<{ round: number }>();
  return RcuMap.open(rcu, "rounds", { key: string, value });
}

/** As {@linkcode roundsMap}, in order. */
export function sortedRounds(rcu: Rcu): RcuSortedMap<number, number> {
  return RcuSortedMap.open(rcu, "sorted", { key: u32, value: u32 });
}

/** What the zombie reads. */
const CANARY = "canary ".repeat(20);

/** Opens the cell that the zombie reads. */
export function canaryCell(rcu: Rcu): RcuCell<string> {
  return RcuCell.open(rcu, "canary", { value: string, initial: CANARY });
}

function join(handle: RcuHandle): Rcu {
  return Rcu.attach(handle, { name: "mortal" });
}

/** Rounds of updates: in each, every key gets the next number. Every third round the sorted map is emptied key by key. */
function round(rcu: Rcu, n: number): void {
  const map = roundsMap(rcu);
  const sorted = sortedRounds(rcu);
  for (let i = 0; i < KEYS; i++) {
    map.set(`key ${i}`, { round: n });
    if (n % 3 === 0) sorted.delete(i);
    else sorted.set(i, n);
  }
  rcu.callRcu(() => {});
}

export const tasks: Record<
  string,
  (handle: RcuHandle, state: Int32Array) => Act
> = {
  /** Returns to the event loop between two rounds. */
  turns(handle) {
    const rcu = join(handle);
    return async () => {
      for (let n = 1;; n++) {
        round(rcu, n);
        await new Promise((resolve) => setTimeout(resolve));
      }
    };
  },
  /** Never returns to the event loop. */
  rounds(handle) {
    const rcu = join(handle);
    return () => {
      for (let n = 1;; n++) round(rcu, n);
    };
  },
  idle(handle) {
    const rcu = join(handle);
    rcu.callRcu(() => {});
    rcu.callRcu(() => {});
    rcu.deferFree(rcu.memory.allocate(4));
    return () => {};
  },
  /** Holds a section open, for ever. */
  section(handle) {
    const rcu = join(handle);
    return () => void rcu.readLock();
  },
  /** Holds the lock of a cell's writers, for ever. */
  lock(handle) {
    const rcu = join(handle);
    const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 0 });
    // deno-lint-ignore no-explicit-any
    const at = (cell as any)._cell + 3;
    return () => {
      membershipOf(rcu, "test").lock(at);
      while (true) Atomics.load(rcu.memory.words, at);
    };
  },
  /** Reads one version of a cell for 0.4 s, in one section that it never leaves. */
  zombie(handle, state) {
    const rcu = join(handle);
    rcu.addEventListener("error", (event) => event.preventDefault());
    const cell = canaryCell(rcu);
    const { words } = rcu.memory;
    return () => {
      rcu.readLock();
      // deno-lint-ignore no-explicit-any
      const block = words[(cell as any)._cell];
      tell(state, 1);
      const end = performance.now() + 400;
      const before = words.slice(block, block + 40).join();
      let same = true;
      while (performance.now() < end) {
        same &&= words.slice(block, block + 40).join() === before;
      }
      if (!same) throw new Error("The zombie saw memory that was reused");
    };
  },
  throws(handle) {
    const rcu = join(handle);
    const map = roundsMap(rcu);
    return () => {
      map.set("key 0", { round: 0 });
      throw new Error("nobody catches this");
    };
  },
};

for (const scenario of [...MAPS, ...SORTED_MAPS]) {
  tasks[scenario.name] = (handle) => scenario.act(join(handle), () => {});
}
