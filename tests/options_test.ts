// What callers pass as options is read once, and what is odd about it is refused or does no harm.

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  Fib,
  NeighborTable,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  RouteCache,
  runReclaimer,
  Srcu,
  string,
  top,
  u32,
} from "../mod.ts";

function domain(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
}

/** Options, objects in them included, that count how often each is read. */
function counted<T extends object>(
  options: T,
  reads: Map<string, number>,
  path = "",
): T {
  const copy = {};
  for (const [name, value] of Object.entries(options)) {
    const at = path + name;
    const isPlain = value?.constructor === Object;
    Object.defineProperty(copy, name, {
      enumerable: true,
      get() {
        reads.set(at, (reads.get(at) ?? 0) + 1);
        return isPlain ? counted(value, reads, `${at}.`) : value;
      },
    });
  }
  return copy as T;
}

Deno.test("each option is read once, wherever options are passed", async () => {
  using rcu = domain();
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors");
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const { signal } = new AbortController();
  const create = {
    capacity: 2 ** 22,
    maxReaders: 8,
    detector: { type: "tree", fanout: 4 } as const,
    callbacks: { mode: "throttled", maxBatch: 8, plugTicks: 1 } as const,
    reclaimer: "none" as const,
    highWater: 100,
    stallTimeout: 5_000,
    debug: false,
    name: "counted",
  };
  const thresholds = { gcThreshold1: 1, gcThreshold2: 2, gcThreshold3: 3 };
  const routes = { gcThreshold: 9, maxSize: 99, elasticity: 3, gcTimeout: 9 };
  const acts: [object, (options: never) => unknown][] = [
    [create, (o) => Rcu.create(o).close()],
    [
      { name: "n", reclaimer: "none" },
      (o) => Rcu.attach(rcu.handle, o).close(),
    ],
    [
      { ...create, timeout: 60_000, signal },
      async (o) => (await Rcu.connect("counted", o)).close(),
    ],
    [{ value: u32, initial: 1 }, (o) => RcuCell.open(rcu, "c2", o)],
    [{ key: u32, value: u32, capacity: 9 }, (o) => RcuMap.open(rcu, "m2", o)],
    [{ key: u32, value: u32 }, (o) => RcuSortedMap.open(rcu, "s2", o)],
    [
      { ...thresholds, gcStaleTime: 50, now: () => 1 },
      (o) => NeighborTable.open(rcu, "n2", o),
    ],
    [
      { fib, neighbors, buckets: 16, now: () => 1, ...routes },
      (o) => RouteCache.open(rcu, "r2", o),
    ],
    [{ expedited: true, signal }, (o) => rcu.synchronize(o)],
    [{ expedited: true, timeout: 60_000 }, (o) => rcu.synchronizeSync(o)],
    [{ signal }, (o) => rcu.barrier(o)],
    [{ signal }, (o) => Srcu.open(rcu, "srcu").synchronize(o)],
    [
      { since: cell.version + 1, signal, keepAlive: true },
      (o) => cell.waitForChange(o),
    ],
    [{ signal, keepAlive: true }, (o) => map.changes(o).return?.()],
    [{ signal, interval: 1_000 }, (o) => top(rcu, o).return()],
    [
      { signal: AbortSignal.abort(), name: "r" },
      (o) => {
        using offloaded = Rcu.create({
          capacity: 2 ** 22,
          callbacks: { mode: "offloaded" },
          reclaimer: "none",
        });
        return runReclaimer(offloaded.handle, o);
      },
    ],
  ];
  for (const [options, act] of acts) {
    const reads = new Map<string, number>();
    await act(counted(options, reads) as never);
    const names = Object.keys(options);
    assertEquals(names.filter((name) => !reads.has(name)), [], `${act}`);
    assertEquals([...reads].filter(([, n]) => n !== 1), [], `${act}`);
  }
});

Deno.test("what answers differently the second time makes no structure of another type than it says", () => {
  using rcu = domain();
  const flip = <T>(...answers: T[]) => () =>
    answers.length > 1 ? answers.shift() : answers[0];
  for (const answers of [[u32, string], [u32, u32, string]]) {
    const name = `${answers.length}`;
    const value = { get: flip(...answers as never[]), enumerable: true };
    const odd = Object.defineProperty({ initial: 5 }, "value", value);
    assertEquals(RcuCell.open(rcu, name, odd as never).get(), 5);
    assertEquals(RcuCell.open(rcu, name, { value: u32 }).get(), 5);
    for (const Kind of [RcuMap, RcuSortedMap]) {
      const get = flip(...answers as never[]);
      const options = Object.defineProperty({ key: u32 }, "value", {
        get,
        enumerable: true,
      });
      const map = Kind.open(rcu, Kind.name + name, options as never);
      map.set(1 as never, 7 as never);
      const same = Kind.open(rcu, Kind.name + name, { key: u32, value: u32 });
      assertEquals([map.get(1 as never), same.get(1)], [7 as never, 7]);
    }
  }
});

Deno.test("a size that is none, or larger than what comes, does replaceAll() no harm", () => {
  using rcu = Rcu.create({ capacity: 2 ** 21 });
  const entries: [number, number][] = [[1, 2], [3, 4]];
  const sizes = [NaN, -1, 2.5, "5", 1n, null, {}, Symbol("s"), Infinity];
  for (const size of [...sizes, 2 ** 40, 2 ** 53 - 1, 2 ** 18]) {
    class Odd extends Map<number, number> {
      override get size(): number {
        return size as number;
      }
    }
    const lying = new Proxy(entries, {
      get: (target, name) =>
        name === "length"
          ? size
          : name === Symbol.iterator
          ? () => target[Symbol.iterator]()
          : Reflect.get(target, name),
    });
    for (const odd of [new Odd(entries), lying]) {
      const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
      map.replaceAll(odd);
      assertEquals([...map].sort(), entries);
      // There is room for more than what was said to come.
      map.replaceAll(Array.from({ length: 5_000 }, (_, i) => [i, i]));
      assertEquals(map.size, 5_000);
      map.clear();
    }
  }
  const none = Object.create(Map.prototype);
  none[Symbol.iterator] = () => entries[Symbol.iterator]();
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  map.replaceAll(none);
  assertEquals(map.size, 2);
});

Deno.test("what only looks like a signal is refused", async () => {
  using rcu = domain();
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const signal: AbortSignal = Object.create(AbortSignal.prototype);
  const acts: (() => unknown)[] = [
    () => rcu.synchronize({ signal }),
    () => rcu.barrier({ signal }),
    () => cell.waitForChange({ signal }),
    () => map.changes({ signal }),
    () => Srcu.open(rcu, "srcu").synchronize({ signal }),
    () => Rcu.connect("fake", { signal }),
    () => top(rcu, { signal }),
    () => runReclaimer(rcu.handle, { signal }),
  ];
  for (const act of acts) {
    await assertRejects(
      async () => await act(),
      TypeError,
      "as the signal must be an AbortSignal: received an object of type",
    );
  }
});

Deno.test("a wait whose signal throws when it is listened to leaves nothing behind", async () => {
  const rcu = domain();
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const { signal } = new AbortController();
  Object.assign(signal, {
    addEventListener() {
      throw new RangeError("mine");
    },
  });
  const waits: (() => Promise<unknown>)[] = [
    // A timer would be left, and a rejection that nobody hears of.
    () => cell.waitForChange({ signal, keepAlive: true }),
    () => rcu.synchronize({ signal }),
    () => rcu.barrier({ signal }),
    () => Srcu.open(rcu, "srcu").synchronize({ signal }),
  ];
  for (const wait of waits) await assertRejects(wait, RangeError, "mine");
  rcu.close();
  await new Promise((resolve) => setTimeout(resolve));
});

Deno.test("a wait whose signal throws when it is listened to no more leaves nothing behind", async () => {
  const rcu = domain();
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const { signal } = new AbortController();
  Object.assign(signal, {
    removeEventListener() {
      throw new RangeError("mine");
    },
  });
  const wait = cell.waitForChange({ signal, keepAlive: true });
  cell.set(2);
  await assertRejects(() => wait, RangeError, "mine");
  rcu.close();
  await new Promise((resolve) => setTimeout(resolve));
});

Deno.test("an option of the wrong type is a TypeError, a number out of range a RangeError", async () => {
  using rcu = domain();
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const acts: ((bad: never) => unknown)[] = [
    (capacity) => Rcu.create({ capacity }),
    (maxReaders) => Rcu.create({ maxReaders }),
    (highWater) => Rcu.create({ highWater }),
    (stallTimeout) => Rcu.create({ stallTimeout }),
    (fanout) => Rcu.create({ detector: { type: "tree", fanout } }),
    (maxBatch) => Rcu.create({ callbacks: { mode: "throttled", maxBatch } }),
    (plugTicks) => Rcu.create({ callbacks: { mode: "throttled", plugTicks } }),
    (delay) => Rcu.create({ callbacks: { mode: "offloaded", delay } }),
    (timeout) => Rcu.connect("wrong", { timeout }),
    (capacity) => Rcu.connect("wrong", { capacity }),
    (timeout) => rcu.synchronizeSync({ timeout }),
    (since) => cell.waitForChange({ since }),
    (interval) => top(rcu, { interval }),
    (capacity) => RcuMap.open(rcu, "m", { key: u32, value: u32, capacity }),
  ];
  for (const act of acts) {
    const refuses = (bad: unknown, type: ErrorConstructor) =>
      assertRejects(async () => await act(bad as never), type, "received ");
    for (const bad of ["4MB", 4n, {}, null, true]) {
      await refuses(bad, TypeError);
    }
    await refuses(NaN, RangeError);
    // A version may be any integer.
    if (!`${act}`.includes("since")) await refuses(-1, RangeError);
  }
  for (const expedited of ["no", 1, null] as never[]) {
    const must = "as expedited must be a boolean: received ";
    assertThrows(() => rcu.synchronizeSync({ expedited }), TypeError, must);
    await assertRejects(() => rcu.synchronize({ expedited }), TypeError, must);
  }
  assertEquals(rcu.stats().gracePeriods.expedited, 0);
});
