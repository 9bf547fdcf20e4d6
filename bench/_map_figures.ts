/** The figures of the map benchmark, each to be run in a fresh thread. */
import {
  bytes,
  f64,
  i32,
  json,
  Rcu,
  type RcuHandle,
  RcuMap,
  string,
  u32,
} from "../mod.ts";
import { dotted, type Keys } from "./_keys.ts";
import {
  deleteNumbers,
  deleteObjects,
  deleteRcuNumbers,
  deleteRcuObjects,
  objectReader,
  rcuObjectReader,
  readNumbers,
  readRcuNumbers,
  type Route,
  route,
  setDoubles,
  setNumbers,
  setObjects,
  setRcuDoubles,
  setRcuNumbers,
  setRcuObjects,
  setRcuStrings,
  setStrings,
} from "./_map_loops.ts";
import { BATCH, batch, DRAWS, ofDraws, warmed, windows } from "./_batches.ts";
import {
  consume,
  type Contender,
  effort,
  interleave,
  type Series,
} from "./_measure.ts";
import { seeded, shuffle, uniform, zipf } from "./_random.ts";
import { obey, paced, Peer } from "./_workers.ts";

const MODULE = import.meta.url;
/** Keys of the bars. */
export const KEYS = 10_000;
/** Names of the operations. */
export const OPERATIONS = [
  "get",
  "get, Zipf",
  "set",
  "delete",
  "insert",
] as const;

/** What RCU cost elsewhere while something was measured. */
export interface Costs {
  gracePeriods: number;
  invoked: number;
  /** The largest number of callbacks that waited in one thread. */
  peak: number;
  /** Bytes that waited for a grace period after the last update. */
  deferred: number;
}

function costs(rcu: Rcu): Costs {
  const { gracePeriods, callbacks, memory } = rcu.stats();
  return {
    gracePeriods: gracePeriods.completed,
    invoked: callbacks.invoked,
    peak: callbacks.peak,
    deferred: memory.deferred,
  };
}

/** What a figure comes to. */
export interface Figure {
  series: Series;
  costs: Costs;
  /** Updates a second that the updater achieved, where there was one. */
  rate: number;
}

const NUMBERS = { key: u32, value: u32 };
const DOUBLES = { key: u32, value: f64 };
const STRINGS = { key: u32, value: string };
const ROUTES = { key: string, value: json<Route>() };

/** Keys in the order in which they are looked up. */
function drawn(keys: Uint32Array, indexes: Uint32Array): Uint32Array {
  return indexes.map((i) => keys[i]);
}

// Updaters

/** Sets keys of a map at a rate, with the value that they have: task 1 u32, task 2 json. */
export function mapUpdater(
  { handle, keys, rate }: { handle: RcuHandle; keys: Keys; rate: number },
  control: Int32Array,
): void {
  using rcu = Rcu.attach(handle, { name: "updater" });
  const numbers = RcuMap.open(rcu, "numbers", NUMBERS);
  const routes = RcuMap.open(rcu, "routes", ROUTES);
  const names = Array.from(keys.address, dotted);
  const random = seeded(2);
  const step = (task: number) => {
    const i = Math.floor(random() * names.length);
    if (task === 1) numbers.set(keys.address[i], keys.asn[i]);
    else routes.set(names[i], route(names[i], keys.asn[i]));
  };
  obey(control, paced(control, rate, step), () => rcu.threadOffline());
}

function firstKeys({ address, asn }: Keys, count: number): Keys {
  return { address: address.slice(0, count), asn: asn.slice(0, count) };
}

/** Beside an updater, `RcuMap<u32,u32>.get` and `Map<number,number>.get`. */
export async function getNumbers(
  { keys: all, rate, mixed, quick }: {
    keys: Keys;
    rate: number;
    mixed: boolean;
    quick: boolean;
  },
): Promise<Figure> {
  using rcu = Rcu.create({ name: "reader" });
  const keys = firstKeys(all, KEYS);
  const map = new Map<number, number>();
  const shared = RcuMap.open(rcu, "numbers", NUMBERS);
  for (const [i, key] of keys.address.entries()) {
    map.set(key, keys.asn[i]);
    shared.set(key, keys.asn[i]);
  }
  if (mixed) useOtherMaps(rcu, keys);
  const random = seeded(3);
  const even = drawn(keys.address, uniform(DRAWS, KEYS, random));
  const skewed = drawn(keys.address, zipf(DRAWS, KEYS, random));
  await using peer = await Peer.start(MODULE, "mapUpdater", {
    handle: rcu.handle,
    keys,
    rate,
  });
  peer.select(1);
  const start = performance.now();
  const series = await interleave([
    warmed("Map", (round) => readNumbers(map, even, ...ofDraws(round))),
    warmed(
      "RcuMap",
      (round) => readRcuNumbers(shared, even, ...ofDraws(round)),
    ),
    warmed("Map, Zipf", (round) => readNumbers(map, skewed, ...ofDraws(round))),
    warmed(
      "RcuMap, Zipf",
      (round) => readRcuNumbers(shared, skewed, ...ofDraws(round)),
    ),
  ], effort({ rounds: 201, warmUp: 120 }, quick));
  const achieved = peer.count * 1000 / (performance.now() - start);
  return { series, costs: costs(rcu), rate: achieved };
}

/** Lets the engine see maps of other types, as a program that has several does. */
function useOtherMaps(rcu: Rcu, keys: Keys): void {
  const names = Array.from(keys.address, dotted);
  const routes = RcuMap.open(rcu, "m1", ROUTES);
  const doubles = RcuMap.open(rcu, "m2", DOUBLES);
  const strings = RcuMap.open(rcu, "m3", { key: i32, value: string });
  const fractions = RcuMap.open(rcu, "m4", { key: f64, value: u32 });
  const blobs = RcuMap.open(rcu, "m5", { key: bytes, value: i32 });
  const encoder = new TextEncoder();
  let sum = 0;
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 1000; i++) {
      const key = keys.address[i];
      routes.set(names[i], route(names[i], i));
      sum += routes.get(names[i])!.asn;
      sum += doubles.set(key, i / 2).get(key)!;
      sum += strings.set(i, names[i]).get(i)!.length;
      sum += fractions.set(i / 2, key).get(i / 2)!;
      const blob = encoder.encode(names[i]);
      sum += blobs.set(blob, i).get(blob)!;
    }
  }
  consume(sum);
}

/** `RcuMap<string,json>.get` and `Map<string,object>.get`, values unchanged; then beside updaters. */
export async function getRoutes(
  { keys: all, rates, quick }: {
    keys: Keys;
    rates: number[];
    quick: boolean;
  },
): Promise<Figure[]> {
  using rcu = Rcu.create({ name: "reader" });
  const keys = firstKeys(all, KEYS);
  const names = Array.from(keys.address, dotted);
  const map = new Map<string, Route>();
  const shared = RcuMap.open(rcu, "routes", ROUTES);
  for (const [i, name] of names.entries()) {
    map.set(name, route(name, keys.asn[i]));
    shared.set(name, route(name, keys.asn[i]));
  }
  const random = seeded(4);
  const draws = uniform(DRAWS, KEYS, random);
  const drawnAddresses = drawn(keys.address, draws);
  const even = Array.from(draws, (i) => names[i]);
  const skewed = Array.from(zipf(DRAWS, KEYS, random), (i) => names[i]);
  const readMap = objectReader(map);
  const readShared = rcuObjectReader(shared);
  const contenders = [
    warmed("Map", (round) => readMap(even, ...ofDraws(round))),
    warmed(
      "RcuMap",
      (round) => readShared(even, ...ofDraws(round)),
    ),
    warmed("Map, Zipf", (round) => readMap(skewed, ...ofDraws(round))),
    warmed(
      "RcuMap, Zipf",
      (round) => readShared(skewed, ...ofDraws(round)),
    ),
  ];
  const figures: Figure[] = [{
    series: await interleave(
      contenders,
      effort({ rounds: 161, warmUp: 120, budget: 4000 }, quick),
    ),
    costs: costs(rcu),
    rate: 0,
  }];
  for (const rate of rates) {
    await rcu.barrier();
    const before = costs(rcu);
    await using peer = await Peer.start(MODULE, "mapUpdater", {
      handle: rcu.handle,
      keys,
      rate,
    });
    peer.select(2);
    const start = performance.now();
    const series = await interleave(
      contenders,
      effort({ rounds: 101, warmUp: 20, budget: 2000 }, quick),
    );
    const achieved = peer.count * 1000 / (performance.now() - start);
    const after = costs(rcu);
    after.gracePeriods -= before.gracePeriods;
    after.invoked -= before.invoked;
    figures.push({ series, costs: after, rate: achieved });
  }
  // Strings that come from elsewhere, as a parser makes them: not the ones that were stored.
  let fresh: string[] = [];
  const before = () => {
    fresh = Array.from(drawnAddresses, dotted);
  };
  const series = await interleave([
    {
      ...batch("Map", (round) => readMap(fresh, ...ofDraws(round))),
      before,
    },
    {
      ...batch(
        "RcuMap",
        (round) => readShared(fresh, ...ofDraws(round)),
      ),
      before,
    },
  ], effort({ rounds: 21 }, quick));
  figures.push({ series, costs: costs(rcu), rate: 0 });
  return figures;
}

/** `set` of keys that exist, with values in the entry and in blocks that are reclaimed. */
export async function setExisting(
  { keys: all, quick }: { keys: Keys; quick: boolean },
): Promise<Record<"u32" | "f64" | "string", Figure>> {
  const keys = firstKeys(all, KEYS);
  const random = seeded(5);
  const even = drawn(keys.address, uniform(DRAWS, KEYS, random));
  const texts = Array.from(even, dotted);
  const numbers = new Map<number, number>();
  const doubles = new Map<number, number>();
  const strings = new Map<number, string>();
  setNumbers(numbers, keys.address, 0, KEYS);
  setDoubles(doubles, keys.address, 0, KEYS);
  for (const key of keys.address) strings.set(key, dotted(key));
  const compare = async (
    privately: () => number,
    fill: (rcu: Rcu) => () => number,
  ): Promise<Figure> => {
    using rcu = Rcu.create({ name: "writer", capacity: 64 * 2 ** 20 });
    const set = fill(rcu);
    const series = await interleave([
      batch("Map", privately),
      batch("RcuMap", () => {
        const result = set();
        // What was replaced is free again when the clock stops.
        rcu.barrierSync();
        return result;
      }),
    ], effort({ rounds: 81, warmUp: 40, budget: 1500 }, quick));
    set();
    return { series, costs: costs(rcu), rate: 0 };
  };
  return {
    u32: await compare(() => setNumbers(numbers, even, 0, BATCH), (rcu) => {
      const map = RcuMap.open(rcu, "numbers", NUMBERS);
      setRcuNumbers(map, keys.address, 0, KEYS);
      return () => setRcuNumbers(map, even, 0, BATCH);
    }),
    f64: await compare(() => setDoubles(doubles, even, 0, BATCH), (rcu) => {
      const map = RcuMap.open(rcu, "doubles", DOUBLES);
      setRcuDoubles(map, keys.address, 0, KEYS);
      return () => setRcuDoubles(map, even, 0, BATCH);
    }),
    string: await compare(
      () => setStrings(strings, even, texts, 0, BATCH),
      (rcu) => {
        const map = RcuMap.open(rcu, "strings", STRINGS);
        for (const key of keys.address) map.set(key, dotted(key));
        return () => setRcuStrings(map, even, texts, 0, BATCH);
      },
    ),
  };
}

/** Loading entries from empty. */
export interface LoadFigures {
  /** Nanoseconds an entry. */
  series: Series;
  /** Bytes an entry, of live blocks and of what the library needs for them. */
  bytes: number;
  /** The same at its highest, while the last, doubled table still waited for a grace period. */
  costs: Costs;
}

export async function load(
  { keys, count, quick }: { keys: Keys; count: number; quick: boolean },
): Promise<LoadFigures> {
  const address = keys.address.slice(0, count);
  let bytes = 0;
  let spent: Costs | undefined;
  const series = await interleave([
    {
      name: "Map",
      operations: count,
      run: () => setNumbers(new Map(), address, 0, count),
    },
    {
      name: "RcuMap",
      operations: count,
      run: () => {
        using rcu = Rcu.create();
        const before = rcu.memory.audit();
        const map = RcuMap.open(rcu, "numbers", NUMBERS);
        setRcuNumbers(map, address, 0, count);
        return before.live + before.overhead;
      },
    },
  ], effort({ rounds: 5, warmUp: 1, budget: 6000 }, quick));
  {
    using rcu = Rcu.create();
    const before = rcu.memory.audit();
    const map = RcuMap.open(rcu, "numbers", NUMBERS);
    setRcuNumbers(map, address, 0, count);
    spent = costs(rcu);
    await rcu.barrier();
    const after = rcu.memory.audit();
    bytes = (after.live + after.overhead - before.live - before.overhead) /
      map.size;
  }
  return { series, bytes, costs: spent };
}

/** What the heap did while numbers were read. */
export interface HeapFigures {
  /** Bytes allocated by a read, collected or not. */
  map: number;
  rcuMap: number;
  /** Growth of the heap over all reads of the RcuMap, in bytes. */
  growth: number;
  /** The same over a tenth of them. */
  growthOfTenth: number;
}

/** Reads millions of numbers, `offset` or larger, and watches the heap. */
export function heap(
  { keys: all, reads, offset }: { keys: Keys; reads: number; offset: number },
): HeapFigures {
  using rcu = Rcu.create();
  const keys = firstKeys(all, KEYS);
  const map = new Map<number, number>();
  const shared = RcuMap.open(rcu, "numbers", NUMBERS);
  for (const [i, key] of keys.address.entries()) {
    map.set(key, keys.asn[i] + offset);
    shared.set(key, keys.asn[i] + offset);
  }
  const STEP = 10_000;
  const even = drawn(keys.address, uniform(STEP, KEYS, seeded(6)));
  const readMap = () => consume(readNumbers(map, even, 0, STEP));
  const readShared = () => consume(readRcuNumbers(shared, even, 0, STEP));
  const steps = reads / STEP;
  for (let i = 0; i < 500; i++) {
    readMap();
    readShared();
  }
  // What looking itself allocates.
  const looking = allocated(() => {}, steps).bytes;
  const growthOfTenth = allocated(readShared, steps / 10).growth;
  const { bytes, growth } = allocated(readShared, steps);
  return {
    map: Math.max(0, allocated(readMap, steps).bytes - looking) / reads,
    rcuMap: Math.max(0, bytes - looking) / reads,
    growth,
    growthOfTenth,
  };
}

/** What `steps` calls allocate, in spite of collections, and what is left of it. */
function allocated(
  step: () => void,
  steps: number,
): { bytes: number; growth: number } {
  const { heapUsed: first } = Deno.memoryUsage();
  let bytes = 0;
  let last = first;
  for (let i = 0; i < steps; i++) {
    step();
    const { heapUsed } = Deno.memoryUsage();
    if (heapUsed > last) bytes += heapUsed - last;
    last = heapUsed;
  }
  return { bytes, growth: last - first };
}

// The operations, by kind of key and number of entries

interface Pair {
  /** Reads, sets and deletes the keys of a window of those drawn or of a permutation. */
  get: (drawing: "even" | "skewed", from: number, to: number) => number;
  set: (from: number, to: number) => number;
  delete: (from: number, to: number) => number;
}

/** All operations of both maps at one size. */
export async function operations(
  { keys: all, kind, count, rounds, quick }: {
    keys: Keys;
    kind: "u32" | "string";
    count: number;
    rounds: number;
    quick: boolean;
  },
): Promise<Figure> {
  using rcu = Rcu.create({ name: "only", capacity: 2 ** 29 });
  const keys = firstKeys(all, count);
  const random = seeded(7);
  // Strings take longer.
  const drawBatch = kind === "u32" ? 2 * BATCH : BATCH;
  const keyBatch = Math.min(drawBatch, count);
  const draws = Math.max(DRAWS, Math.min(count, 2 ** 19));
  const even = uniform(draws, count, random);
  const skewed = zipf(draws, count, random);
  const order = shuffle(
    Uint32Array.from({ length: count }, (_, i) => i),
    random,
  );
  const [privately, shared] = kind === "u32"
    ? numberMaps(rcu, keys, { even, skewed, order })
    : routeMaps(rcu, keys, { even, skewed, order });
  const ofDraws = windows(draws, drawBatch);
  const ofKeys = windows(count, keyBatch);
  const gets = (name: string, map: Pair): Contender[] => [
    {
      name: `get ${name}`,
      operations: drawBatch,
      run: (round) => map.get("even", ...ofDraws(round)),
    },
    {
      name: `get, Zipf ${name}`,
      operations: drawBatch,
      run: (round) => map.get("skewed", ...ofDraws(round)),
    },
  ];
  const writes = (
    name: string,
    map: Pair,
    settle: () => void,
  ): Contender[] => {
    const settled = (result: number) => {
      settle();
      return result;
    };
    return [
      {
        name: `set ${name}`,
        operations: keyBatch,
        run: (round) => settled(map.set(...ofKeys(round))),
      },
      {
        name: `delete ${name}`,
        operations: keyBatch,
        run: (round) => settled(map.delete(...ofKeys(round))),
        after: (round) => settled(map.set(...ofKeys(round))),
      },
      {
        name: `insert ${name}`,
        operations: keyBatch,
        before: (round) => settled(map.delete(...ofKeys(round))),
        run: (round) => settled(map.set(...ofKeys(round))),
      },
    ];
  };
  // First the reads, while nothing changes, as in a program that mostly reads.
  const series = await interleave(
    [...gets("Map", privately), ...gets("RcuMap", shared)],
    effort({ rounds: rounds * 2, warmUp: 10 }, quick),
  );
  const rest = await interleave([
    ...writes("Map", privately, () => {}),
    ...writes("RcuMap", shared, () => rcu.barrierSync()),
  ], effort({ rounds, warmUp: 3 }, quick));
  return { series: { ...series, ...rest }, costs: costs(rcu), rate: 0 };
}

interface Orders {
  even: Uint32Array;
  skewed: Uint32Array;
  order: Uint32Array;
}

function numberMaps(rcu: Rcu, keys: Keys, orders: Orders): [Pair, Pair] {
  const map = new Map<number, number>();
  const shared = RcuMap.open(rcu, "numbers", NUMBERS);
  const gets = {
    even: drawn(keys.address, orders.even),
    skewed: drawn(keys.address, orders.skewed),
  };
  const order = drawn(keys.address, orders.order);
  setNumbers(map, keys.address, 0, keys.address.length);
  setRcuNumbers(shared, keys.address, 0, keys.address.length);
  return [{
    get: (drawing, from, to) => readNumbers(map, gets[drawing], from, to),
    set: (from, to) => setNumbers(map, order, from, to),
    delete: (from, to) => deleteNumbers(map, order, from, to),
  }, {
    get: (drawing, from, to) => readRcuNumbers(shared, gets[drawing], from, to),
    set: (from, to) => setRcuNumbers(shared, order, from, to),
    delete: (from, to) => deleteRcuNumbers(shared, order, from, to),
  }];
}

function routeMaps(rcu: Rcu, keys: Keys, orders: Orders): [Pair, Pair] {
  const map = new Map<string, Route>();
  const shared = RcuMap.open(rcu, "routes", ROUTES);
  const names = Array.from(keys.address, dotted);
  const pick = (indexes: Uint32Array) => Array.from(indexes, (i) => names[i]);
  const gets = { even: pick(orders.even), skewed: pick(orders.skewed) };
  const order = pick(orders.order);
  setObjects(map, names, 0, names.length);
  setRcuObjects(shared, names, 0, names.length);
  const readMap = objectReader(map);
  const readShared = rcuObjectReader(shared);
  return [{
    get: (drawing, from, to) => readMap(gets[drawing], from, to),
    set: (from, to) => setObjects(map, order, from, to),
    delete: (from, to) => deleteObjects(map, order, from, to),
  }, {
    get: (drawing, from, to) => readShared(gets[drawing], from, to),
    set: (from, to) => setRcuObjects(shared, order, from, to),
    delete: (from, to) => deleteRcuObjects(shared, order, from, to),
  }];
}
