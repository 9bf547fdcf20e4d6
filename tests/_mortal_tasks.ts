// What mortal threads do: each joins, and returns the act in which it dies.

import {
  json,
  Rcu,
  RcuCell,
  type RcuHandle,
  RcuMap,
  RcuSortedMap,
  string,
  u32,
} from "../mod.ts";
import { tell } from "./_workers.ts";
import { membershipOf } from "../src/rcu.ts";
import { MAPS, SORTED_MAPS } from "./death/_map_scenarios.ts";
import { doRound } from "./death/_rounds.ts";

type Act = () => unknown;

/** What the zombie reads. */
const CANARY = "canary ".repeat(20);

/** Opens the cell that the zombie reads. */
export function canaryCell(rcu: Rcu): RcuCell<string> {
  return RcuCell.open(rcu, "canary", { value: string, initial: CANARY });
}

function join(handle: RcuHandle): Rcu {
  return Rcu.attach(handle, { name: "mortal" });
}

/** Opens a map in whose updates their callers' code throws. */
export function throwingMap(rcu: Rcu): RcuMap<string, unknown> {
  return RcuMap.open(rcu, "throws", { key: string, value: json<unknown>() });
}

/** What is waited for: changes it, and waits for a change of it. */
export interface Watched {
  change(): void;
  /** Whether it is as {@linkcode Watched.change} leaves it. */
  changed(): boolean;
  wait(signal: AbortSignal): Promise<unknown>;
}

/** Opens what one thread waits for and another one changes. */
export const WATCHED: Record<string, (rcu: Rcu) => Watched> = {
  "a cell"(rcu) {
    const cell = RcuCell.open(rcu, "watched", { value: u32, initial: 0 });
    return {
      change: () => cell.set(1),
      changed: () => cell.get() === 1,
      wait: (signal) => cell.waitForChange({ since: 0, signal }),
    };
  },
  "a map": (rcu) =>
    watchedMap(RcuMap.open(rcu, "watched", { key: u32, value: u32 })),
  "a sorted map": (rcu) =>
    watchedMap(RcuSortedMap.open(rcu, "watched", { key: u32, value: u32 })),
};

function watchedMap(
  map: RcuMap<number, number> | RcuSortedMap<number, number>,
): Watched {
  return {
    change: () => void map.set(1, 1),
    changed: () => map.get(1) === 1,
    wait: (signal) => map.changes({ signal }).next(),
  };
}

function fail(): never {
  throw new Error("nobody catches this");
}

/** Where code of a caller's is called, and may throw what nobody catches. */
const THROWS: Record<string, (rcu: Rcu) => void> = {
  "a value that is encoded": (rcu) =>
    void throwingMap(rcu).set("key", { toJSON: fail }),
  "the function of update()": (rcu) =>
    void throwingMap(rcu).update("key", fail),
  "the function of getOrInsertComputed()": (rcu) =>
    void throwingMap(rcu).getOrInsertComputed("another", fail),
  "the entries of replaceAll()": (rcu) =>
    throwingMap(rcu).replaceAll(
      (function* (): Generator<[string, unknown]> {
        yield ["key", 1];
        fail();
      })(),
    ),
  "an iteration": (rcu) => throwingMap(rcu).forEach(fail),
  "a section": (rcu) => rcu.read(fail),
  "an explicit section": (rcu) => {
    rcu.readLock();
    fail();
  },
  "what follows allocations": (rcu) => {
    for (let i = 0; i < 50; i++) membershipOf(rcu, "test").allocate(5 + i);
    fail();
  },
  "what follows callbacks": (rcu) => {
    for (let i = 0; i < 50; i++) rcu.deferFree(rcu.memory.allocate(5 + i));
    fail();
  },
};

/** The names of the tasks that throw. */
export const THROWING: readonly string[] = Object.keys(THROWS);

export const tasks: Record<
  string,
  (handle: RcuHandle, state: Int32Array) => Act
> = {
  /** Returns to the event loop between two rounds. */
  turns(handle) {
    const rcu = join(handle);
    return async () => {
      for (let n = 1;; n++) {
        doRound(rcu, n);
        await new Promise((resolve) => setTimeout(resolve));
      }
    };
  },
  /** Never returns to the event loop. */
  rounds(handle) {
    const rcu = join(handle);
    return () => {
      for (let n = 1;; n++) doRound(rcu, n);
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
  /** Enqueues closures and frees, and never has the turn in which they would be done. */
  queues(handle) {
    const rcu = join(handle);
    return () => {
      for (let i = 0; i < 7; i++) rcu.callRcu(() => {});
      for (let i = 0; i < 5; i++) rcu.deferFree(rcu.memory.allocate(4));
      while (true) Atomics.load(rcu.memory.words, 0);
    };
  },
};

for (const scenario of [...MAPS, ...SORTED_MAPS]) {
  tasks[scenario.name] = (handle) => scenario.act(join(handle), () => {});
}

for (const [where, act] of Object.entries(THROWS)) {
  tasks[where] = (handle) => {
    const rcu = join(handle);
    return () => act(rcu);
  };
}

for (const [what, open] of Object.entries(WATCHED)) {
  tasks[`a change of ${what}`] = (handle) => {
    const watched = open(join(handle));
    return () => watched.change();
  };
}
