/** What the route-cache benchmark runs in: a Fib, and for each contender a cache. */
import { Rcu, type RcuHandle } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import {
  NeighborTable,
  type NeighborTableOptions,
} from "../src/routing/neighbor_table.ts";
import {
  RouteCache,
  type RouteCacheOptions,
} from "../src/routing/route_cache.ts";
import type { Route } from "../src/routing/route.ts";
import { type AsnPrefixes, asnRanges, toPrefixes } from "./_data.ts";
import { PAIR, UNLOCKED } from "./_route_locks.ts";
import { drawTraffic, type Traffic } from "./_route_traffic.ts";

/** A configuration. */
export interface Setting {
  name: string;
  neighbors: NeighborTableOptions;
  cache: { buckets: number } & Omit<RouteCacheOptions, "fib" | "neighbors">;
  /** How many destinations the flows draw from. */
  population: number;
  /** Nobody's figures are about it: it stands beside the others for comparison. */
  comparison?: true;
}

// Every destination is on the link, and so a neighbour of its own: that is what made the neighbour
// table overflow in 2002.
const OVERFLOWING = {
  gcThreshold1: 128,
  gcThreshold2: 512,
  gcThreshold3: 1024,
};
const ROOMY = { gcThreshold3: 1_048_576 };
/** What the 2.4 and 2.5 kernels lay out on a machine with 4 GiB. */
const BUCKETS = 32_768;
const CACHE = { buckets: BUCKETS, gcInterval: 60_000 };
// The working set of a router is what it sends to in the time for which it keeps a route: here one
// that a processor's second cache holds.
const POPULATION = 4096;

/** How fast time flies where everything is to be turned over, and in it a thousandth. */
const HASTE = 1000;

export const SETTINGS: readonly Setting[] = [
  {
    // What the neighbour table has no room for is not cached either: every fifth packet or so
    // asks the Fib, whatever the contender. What is cached stays, as in the kernel.
    name: "neighbour table overflows (128/512/1,024)",
    neighbors: OVERFLOWING,
    cache: CACHE,
    population: POPULATION,
  },
  {
    // A full neighbour table has the cache collected, which frees as many entries as there are
    // beyond one a bucket: so there are fewer buckets. And entries that were used in this tick
    // stay, neighbours that are younger than 5 s too; the packets that 2002 saw in that time
    // pass by in a thousandth of it. (2.5.3 took any neighbour that nothing referred to.)
    name: "the same, all turned over: 256 buckets, time × 1,000",
    neighbors: { ...OVERFLOWING, now: () => Date.now() * HASTE },
    cache: {
      buckets: 256,
      gcInterval: 60_000,
      secretInterval: 0,
      now: () => Date.now() * HASTE,
    },
    population: POPULATION,
    comparison: true,
  },
  {
    name: "gc_thresh3 = 1,048,576, interval 60 s",
    neighbors: ROOMY,
    cache: CACHE,
    population: POPULATION,
  },
];

/** Contenders that share a table between their workers, in this order. */
export const RCU = 0;
export const RW_LOCK = 1;
export const MUTEX = 2;
/** And the one that shares nothing. */
export const PRIVATE = 3;
/** The base without its references, on the base's tables. */
export const BARE_LOCK = 4;
export const CONTENDERS: readonly string[] = [
  "RCU: RouteCache.lookupFields",
  "base: reader-writer lock a chain",
  "one mutex",
  "a private Map for each worker",
  "the base without references",
];

/** What a thread needs to take part in a setting. */
export interface World {
  handle: RcuHandle;
  setting: number;
  traffic: Traffic;
  /** What lies beside the chains of the base. */
  pairs: number;
  mutex: number;
  steps: Int32Array;
}

const LINE = 16;

/** Interfaces of the router. */
const INTERFACES = 8;

/** The route to a system: on the link, so that each destination is a neighbour. */
export function routeTo(asn: number, mtu: number): Route {
  return { gateway: null, interface: 1 + asn % INTERFACES, metric: asn, mtu };
}
export const MTU = 1500;

/** A contender's tables, as this thread sees them. */
export function openTables(rcu: Rcu, setting: number, contender: number) {
  const { neighbors, cache } = SETTINGS[setting];
  const name = `${setting} ${contender}`;
  const options = {
    fib: Fib.open(rcu, "fib"),
    neighbors: NeighborTable.open(rcu, `neighbors ${name}`, neighbors),
    ...cache,
  };
  return { name: `routes ${name}`, options };
}

/** The Fib's prefixes, and what has become of it since it was loaded. */
export interface LoadedFib {
  prefixes: AsnPrefixes;
  /** How many steps updaters have made: a new one goes on where the last one stopped. */
  steps: Int32Array;
  /** What has been drawn already, by the size of the population. */
  traffic: Map<number, Traffic>;
}

/** Reads all prefixes and loads them into the Fib. */
export async function loadFib(
  rcu: Rcu,
  onStep: (doing: string) => void,
): Promise<LoadedFib> {
  onStep("reading the prefixes of @ip-location-db/asn");
  const prefixes = toPrefixes(await asnRanges());
  onStep(`loading ${prefixes.address.length.toLocaleString("en")} prefixes`);
  return fillFib(rcu, { prefixes, traffic: new Map() });
}

/** Loads prefixes that have been read. */
export function fillFib(
  rcu: Rcu,
  { prefixes, traffic }: Pick<LoadedFib, "prefixes" | "traffic">,
): LoadedFib {
  Fib.open(rcu, "fib").load(entriesOf(prefixes));
  rcu.threadOffline();
  const steps = new Int32Array(new SharedArrayBuffer(4));
  return { prefixes, steps, traffic };
}

function* entriesOf(
  { address, length, asn }: AsnPrefixes,
): Generator<[{ address: number; length: number }, Route]> {
  for (let i = 0; i < address.length; i++) {
    const prefix = { address: address[i], length: length[i] };
    yield [prefix, routeTo(asn[i], MTU)];
  }
}

/** Makes the caches of a setting. */
export function makeWorld(
  rcu: Rcu,
  { prefixes, steps, traffic: drawn }: LoadedFib,
  setting: number,
): World {
  const { cache, population } = SETTINGS[setting];
  const { words } = rcu.memory;
  for (const contender of [RCU, RW_LOCK, MUTEX]) {
    const { name, options } = openTables(rcu, setting, contender);
    RouteCache.open(rcu, name, options);
  }
  const size = PAIR * cache.buckets;
  const pairs = rcu.memory.allocate(size);
  for (let i = 0; i < size; i += PAIR) {
    words[pairs + i] = 0;
    words[pairs + i + 1] = UNLOCKED;
  }
  const mutex = rcu.memory.allocate(LINE);
  words.fill(0, mutex, mutex + LINE);
  membershipOf(rcu, "measure").heap.flush();
  rcu.threadOffline();
  const traffic = drawn.get(population) ?? drawTraffic(prefixes, population);
  drawn.set(population, traffic);
  return {
    handle: rcu.handle,
    setting,
    traffic,
    pairs,
    mutex,
    steps,
  };
}
