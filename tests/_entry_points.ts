// Every public entry point that takes arguments, with ones that are right.

import {
  bytes,
  f64,
  Fib,
  i32,
  json,
  NeighborTable,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  RouteCache,
  runReclaimer,
  Srcu,
  string,
  struct,
  top,
  u32,
} from "../mod.ts";

// deno-lint-ignore no-explicit-any -- garbage is passed for every parameter
type Any = any;

export const ROW = struct({
  n: u32,
  at: struct({ name: string, data: bytes, any: json() }),
});

/** A value of {@linkcode ROW}. */
export function row(n: number) {
  return { n, at: { name: `row ${n}`, data: Uint8Array.of(n), any: [n] } };
}

/** A domain with a structure of each kind, all of them filled. */
export class World implements Disposable {
  readonly rcu: Rcu;
  readonly number: RcuCell<number>;
  readonly any: RcuCell<unknown>;
  readonly rows: RcuMap<number, Any, Any>;
  readonly texts: RcuMap<string, unknown>;
  readonly blobs: RcuMap<Uint8Array, number>;
  readonly sorted: RcuSortedMap<number, string>;
  readonly words: RcuSortedMap<string, Uint8Array>;
  readonly fib: Fib;
  readonly neighbors: NeighborTable;
  readonly cache: RouteCache;
  readonly srcu: Srcu;
  /** Stands still, or entries would come and go between two looks. */
  readonly now = (): number => {
    this.onClock();
    return 1_700_000_000_000;
  };
  /** What the clock does when it is asked. */
  onClock = (): void => {};

  constructor(debug: boolean) {
    const rcu = Rcu.create({
      capacity: 2 ** 22,
      maxReaders: 4,
      stallTimeout: 500,
      debug,
    });
    this.rcu = rcu;
    this.number = RcuCell.open(rcu, "number", { value: u32, initial: 1 });
    this.any = RcuCell.open(rcu, "any", { value: json(), initial: [1] });
    this.rows = RcuMap.open(rcu, "rows", { key: u32, value: ROW });
    this.texts = RcuMap.open(rcu, "texts", { key: string, value: json() });
    this.blobs = RcuMap.open(rcu, "blobs", { key: bytes, value: f64 });
    this.sorted = RcuSortedMap.open(rcu, "sorted", { key: i32, value: string });
    this.words = RcuSortedMap.open(rcu, "words", { key: string, value: bytes });
    this.fib = Fib.open(rcu, "fib");
    const { now, fib } = this;
    this.neighbors = NeighborTable.open(rcu, "neighbors", { now });
    const { neighbors } = this;
    this.cache = RouteCache.open(rcu, "cache", { fib, neighbors, now });
    this.srcu = Srcu.open(rcu, "srcu");
    this.restore();
  }

  /** Fills every structure with the same entries as at first, and nothing else. */
  restore(): void {
    const { number, any, rows, texts, blobs, sorted, words } = this;
    const five = [0, 1, 2, 3, 4];
    number.set(1);
    any.set([1]);
    rows.replaceAll(five.map((n) => [n, row(n)]));
    texts.replaceAll(five.map((n) => [`text ${n}`, { n }]));
    blobs.replaceAll(five.map((n) => [Uint8Array.of(n), n / 2]));
    sorted.replaceAll(five.map((n) => [-n, `${n}`]));
    words.replaceAll(five.map((n) => ["w".repeat(n), Uint8Array.of(n)]));
    const { cache, fib, neighbors } = this;
    cache.flush();
    fib.load(five.map((n) => [
      `10.${n}.0.0/16`,
      { gateway: "10.0.0.1", interface: n },
    ]));
    // What the cache refers to stays until the grace period is over.
    this.rcu.barrierSync();
    for (const { address, interface: link } of neighbors) {
      neighbors.delete(address, link);
    }
    const linkAddress = "00:1b:21:3c:9d:f8";
    for (const n of five) {
      neighbors.set(n, n, { linkAddress, state: "permanent" });
      cache.lookup({ destination: `10.${n}.0.0` });
    }
  }

  /** All that can be found. */
  content(): unknown {
    return [
      this.number.get(),
      this.number.version,
      this.any.get(),
      this.any.version,
      [...this.rows],
      [...this.texts],
      [...this.blobs],
      [...this.sorted],
      [...this.words],
      [...this.fib],
      [...this.neighbors],
      this.cache.stats().entries,
    ];
  }

  /** Uses every structure as it is meant to be used: throws if anything is in the way. */
  use(): void {
    const { rcu, rows, texts, blobs, sorted, words, fib, neighbors } = this;
    rcu.synchronizeSync();
    this.number.update((n) => (n + 1) >>> 0);
    this.any.set([1]);
    rows.set(1000, row(1000)).delete(1000);
    texts.set("used", 1).delete("used");
    blobs.set(Uint8Array.of(9, 9), 1).delete(Uint8Array.of(9, 9));
    sorted.set(1000, "used").delete(1000);
    words.set("used", new Uint8Array(1)).delete("used");
    fib.insert("192.0.2.0/24", { gateway: null, interface: 1 });
    fib.delete("192.0.2.0/24");
    neighbors.set("192.0.2.1", 1, {});
    neighbors.delete("192.0.2.1", 1);
    this.cache.lookup({ destination: "10.1.0.0" });
    rcu.memory.free(rcu.memory.allocate(3));
    rcu.barrierSync();
  }

  [Symbol.dispose](): void {
    this.rcu.close();
  }
}

/** An entry point: what it is called, arguments that are right, and the call. */
export interface EntryPoint {
  readonly name: string;
  readonly args: (world: World) => unknown[];
  readonly call: (world: World, ...args: Any[]) => unknown;
}

type Row = [
  name: string,
  args: (world: World) => unknown[],
  call: (world: World, ...args: Any[]) => unknown,
];

const route = { gateway: "10.0.0.1", interface: 1, metric: 2, mtu: 1400 };

const ROWS: Row[] = [
  ["Rcu.create", () => [{
    capacity: 2 ** 22,
    maxReaders: 2,
    detector: { type: "tree", fanout: 4 },
    callbacks: { mode: "throttled", maxBatch: 1, plugTicks: 1 },
    reclaimer: "none",
    highWater: 10,
    stallTimeout: 100,
    debug: false,
    name: "n",
  }], (_, options) => Rcu.create(options).close()],
  [
    "Rcu.attach",
    ({ rcu }) => [{ ...rcu.handle }, { name: "n", reclaimer: "none" }],
    (_, handle, options) => Rcu.attach(handle, options).close(),
  ],
  ["rcu.read", () => [() => 1], ({ rcu }, section) => rcu.read(section)],
  [
    "rcu.synchronize",
    () => [{ expedited: true, signal: new AbortController().signal }],
    ({ rcu }, options) => rcu.synchronize(options),
  ],
  [
    "rcu.synchronizeSync",
    () => [{ expedited: true, timeout: 50 }],
    ({ rcu }, options) => rcu.synchronizeSync(options),
  ],
  [
    "rcu.barrier",
    () => [{ signal: new AbortController().signal }],
    ({ rcu }, options) => rcu.barrier(options),
  ],
  [
    "rcu.poll",
    ({ rcu }) => [rcu.startPoll()],
    ({ rcu }, cookie) => rcu.poll(cookie),
  ],
  [
    "rcu.callRcu",
    () => [() => {}],
    ({ rcu }, callback) => rcu.callRcu(callback),
  ],
  [
    "rcu.memory.allocate",
    () => [4],
    ({ rcu: { memory } }, size) => memory.free(memory.allocate(size)),
  ],
  ["rcu.memory.free", () => [0], ({ rcu }, at) => rcu.memory.free(at)],
  ["rcu.deferFree", () => [0], ({ rcu }, at) => rcu.deferFree(at)],
  [
    "runReclaimer",
    ({ rcu }) => [
      { ...rcu.handle },
      { signal: new AbortController().signal, name: "n" },
    ],
    (_, handle, options) => runReclaimer(handle, options),
  ],
  [
    "top",
    ({ rcu }) => [rcu, {
      interval: 10,
      signal: new AbortController().signal,
    }],
    async (_, rcu, options) => {
      const tables = top(rcu, options);
      await tables.next();
      await tables.return();
    },
  ],
  [
    "struct",
    () => [{ a: u32, b: struct({ c: bytes }) }],
    (_, fields) => struct(fields),
  ],
  [
    "RcuCell.open",
    ({ rcu }) => [rcu, "number", { value: u32, initial: 1 }],
    (_, rcu, name, options) => RcuCell.open(rcu, name, options),
  ],
  ["RcuCell.set", () => [1], ({ number }, value) => number.set(value)],
  ["RcuCell.set (json)", () => [{ a: 1 }], ({ any }, value) => any.set(value)],
  ["RcuCell.update", () => [() => 1], ({ number }, fn) => number.update(fn)],
  ["RcuCell.update (json)", () => [() => [1]], ({ any }, fn) => any.update(fn)],
  [
    "RcuCell.waitForChange",
    () => [{ since: 0, signal: new AbortController().signal }],
    async ({ number }, options) => {
      // A wait does not keep the program alive.
      const alive = setInterval(() => {}, 1000);
      let refused = false;
      const waits = number.waitForChange(options).catch((error) => {
        refused = true;
        throw error;
      });
      let later: ReturnType<typeof setTimeout> | undefined;
      try {
        const turn = new Promise((next) => later = setTimeout(next));
        await Promise.race([waits, turn]);
        if (!refused) number.set(number.get());
        await waits;
      } finally {
        clearTimeout(later);
        clearInterval(alive);
      }
    },
  ],
  [
    "RcuMap.open",
    ({ rcu }) => [rcu, "rows", { key: u32, value: ROW, capacity: 10 }],
    (_, rcu, name, options) => RcuMap.open(rcu, name, options),
  ],
  ["RcuMap.get (u32)", () => [1], ({ rows }, key) => rows.get(key)],
  ["RcuMap.get (string)", () => ["a"], ({ texts }, key) => texts.get(key)],
  [
    "RcuMap.getUtf8",
    () => [Uint8Array.of(0x61)],
    ({ texts }, key) => texts.getUtf8(key),
  ],
  ["RcuMap.has", () => [Uint8Array.of(1)], ({ blobs }, key) => blobs.has(key)],
  [
    "RcuMap.view",
    () => [1],
    ({ rcu, rows }, key) => rcu.read(() => void rows.view(key)),
  ],
  [
    "RcuMap.set (struct)",
    () => [1, row(1)],
    ({ rows }, key, value) => rows.set(key, value),
  ],
  [
    "RcuMap.set (json)",
    () => ["a", { a: [1] }],
    ({ texts }, key, value) => texts.set(key, value),
  ],
  [
    "RcuMap.set (bytes)",
    () => [Uint8Array.of(1), 1],
    ({ blobs }, key, value) => blobs.set(key, value),
  ],
  ["RcuMap.delete", () => [1], ({ rows }, key) => rows.delete(key)],
  [
    "RcuMap.getOrInsert",
    () => [9, row(9)],
    ({ rows }, key, value) => rows.getOrInsert(key, value),
  ],
  [
    "RcuMap.getOrInsertComputed",
    () => ["new", () => 1],
    ({ texts }, key, compute) => texts.getOrInsertComputed(key, compute),
  ],
  [
    "RcuMap.update",
    () => [1, () => row(2)],
    ({ rows }, key, fn) => rows.update(key, fn),
  ],
  [
    "RcuMap.replaceAll",
    () => [[[1, row(1)], [2, row(2)]]],
    ({ rows }, entries) => rows.replaceAll(entries),
  ],
  ["RcuMap.forEach", () => [() => {}], ({ rows }, fn) => rows.forEach(fn)],
  [
    "RcuMap.changes",
    () => [{ signal: new AbortController().signal, keepAlive: true }],
    ({ rows }, options) => rows.changes(options).return?.(),
  ],
  [
    "RcuSortedMap.open",
    ({ rcu }) => [rcu, "sorted", { key: i32, value: string }],
    (_, rcu, name, options) => RcuSortedMap.open(rcu, name, options),
  ],
  ["RcuSortedMap.get", () => [1], ({ sorted }, key) => sorted.get(key)],
  ["RcuSortedMap.has", () => ["w"], ({ words }, key) => words.has(key)],
  ["RcuSortedMap.floor", () => [1], ({ sorted }, key) => sorted.floor(key)],
  ["RcuSortedMap.ceiling", () => ["w"], ({ words }, key) => words.ceiling(key)],
  [
    "RcuSortedMap.range",
    () => [-3, 3],
    ({ sorted }, from, to) => [...sorted.range(from, to)],
  ],
  [
    "RcuSortedMap.view",
    () => ["w"],
    ({ rcu, words }, key) => rcu.read(() => void words.view(key)),
  ],
  [
    "RcuSortedMap.set",
    () => [1, "a"],
    ({ sorted }, key, value) => sorted.set(key, value),
  ],
  ["RcuSortedMap.delete", () => [-1], ({ sorted }, key) => sorted.delete(key)],
  [
    "RcuSortedMap.getOrInsert",
    () => ["new", new Uint8Array(3)],
    ({ words }, key, value) => words.getOrInsert(key, value),
  ],
  [
    "RcuSortedMap.getOrInsertComputed",
    () => [77, () => "a"],
    ({ sorted }, key, compute) => sorted.getOrInsertComputed(key, compute),
  ],
  [
    "RcuSortedMap.update",
    () => [1, () => "b"],
    ({ sorted }, key, fn) => sorted.update(key, fn),
  ],
  [
    "RcuSortedMap.replaceAll",
    () => [[["a", new Uint8Array(3)], ["b", new Uint8Array(0)]]],
    ({ words }, entries) => words.replaceAll(entries),
  ],
  [
    "RcuSortedMap.forEach",
    () => [() => {}],
    ({ words }, fn) => words.forEach(fn),
  ],
  [
    "RcuSortedMap.changes",
    () => [{ signal: new AbortController().signal, keepAlive: true }],
    ({ words }, options) => words.changes(options).return?.(),
  ],
  [
    "Srcu.open",
    ({ rcu }) => [rcu, "srcu"],
    (_, rcu, name) => Srcu.open(rcu, name),
  ],
  [
    "Srcu.synchronize",
    () => [{ signal: new AbortController().signal }],
    ({ srcu }, options) => srcu.synchronize(options),
  ],
  [
    "Fib.open",
    ({ rcu }) => [rcu, "fib"],
    (_, rcu, name) => Fib.open(rcu, name),
  ],
  [
    "Fib.insert",
    () => ["10.0.0.0/8", route],
    ({ fib }, prefix, route) => fib.insert(prefix, route),
  ],
  [
    "Fib.insert (numbers)",
    () => [{ address: 0, length: 4 }, route],
    ({ fib }, prefix, route) => fib.insert(prefix, route),
  ],
  [
    "Fib.delete",
    () => ["10.1.0.0/16"],
    ({ fib }, prefix) => fib.delete(prefix),
  ],
  ["Fib.lookup", () => ["10.1.0.0"], ({ fib }, address) => fib.lookup(address)],
  ["Fib.get", () => ["10.1.0.0/16"], ({ fib }, prefix) => fib.get(prefix)],
  [
    "Fib.load",
    () => [[["10.0.0.0/8", route], [{ address: 0, length: 0 }, route]]],
    ({ fib }, entries) => fib.load(entries),
  ],
  [
    "NeighborTable.open",
    ({ rcu, now }) => [rcu, "neighbors", {
      gcThreshold1: 128,
      gcThreshold2: 512,
      gcThreshold3: 1024,
      gcStaleTime: 60_000,
      now,
    }],
    (_, rcu, name, options) => NeighborTable.open(rcu, name, options),
  ],
  [
    "NeighborTable.lookup",
    () => ["10.0.0.1", 1],
    ({ neighbors }, address, link) => neighbors.lookup(address, link),
  ],
  [
    "NeighborTable.resolve",
    () => [7, 1],
    ({ neighbors }, address, link) => neighbors.resolve(address, link),
  ],
  [
    "NeighborTable.set",
    () => [1, 1, { linkAddress: "00:1b:21:3c:9d:f8", state: "stale" }],
    ({ neighbors }, address, link, update) =>
      neighbors.set(address, link, update),
  ],
  [
    "NeighborTable.delete",
    () => [1, 1],
    ({ neighbors }, address, link) => neighbors.delete(address, link),
  ],
  [
    "RouteCache.open",
    ({ rcu, fib, neighbors, now }) => [rcu, "cache", {
      fib,
      neighbors,
      buckets: 4096,
      gcThreshold: 4096,
      maxSize: 65536,
      elasticity: 8,
      gcMinInterval: 500,
      gcInterval: 60_000,
      gcTimeout: 300_000,
      secretInterval: 600_000,
      now,
    }],
    (_, rcu, name, options) => RouteCache.open(rcu, name, options),
  ],
  [
    "RouteCache.lookup",
    () => [{ destination: "10.1.0.0", source: 1, tos: 1, interface: 1 }],
    ({ cache }, key) => cache.lookup(key),
  ],
  [
    "RouteCache.lookupFields",
    () => [0x0a010000, 0, 0, 0],
    ({ cache }, ...fields) =>
      cache.lookupFields(fields[0], fields[1], fields[2], fields[3]),
  ],
  [
    "RouteCache.hold",
    () => [{ destination: "10.1.0.0", source: 1, tos: 1, interface: 1 }],
    ({ cache }, key) => cache.hold(key)?.[Symbol.dispose](),
  ],
];

/** Every public entry point that takes arguments, but for {@linkcode EXCEPTIONS}. */
export const ENTRY_POINTS: readonly EntryPoint[] = ROWS.map(
  ([name, args, call]) => ({ name, args, call }),
);

/** Public entry points that take arguments and are not in the list, and why. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  "Rcu.connect": "starts a worker each time: connect_test.ts",
  "rcu.dereference": "checks with debug only: debug_test.ts",
  "rcu.assignPointer": "checks with debug only: debug_test.ts",
  "rcu.addEventListener": "the check is EventTarget's",
  "rcu.removeEventListener": "the check is EventTarget's",
  "new RcuMemoryError": "made by the package",
  "new RcuStallError": "made by the package",
  "new ReaderLostEvent": "made by the package; the check is Event's",
  "new StallEvent": "made by the package; the check is Event's",
};
