// The route cache: what lookups in the forwarding table said last, by flow.

import { uncloneable } from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { show } from "../memory/_codec.ts";
import type { Reader } from "../readers/_reader.ts";
import * as reading from "../readers/_reader.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { hideFields } from "../structures/_hide.ts";
import { probeStack } from "../sync/_stack.ts";
import type { Fib } from "./fib.ts";
import { LARGEST_U32, toIpv4, toUnsigned } from "./_ipv4.ts";
import type { NeighborTable } from "./neighbor_table.ts";
import { TICK } from "./_route_clock.ts";
import {
  COLLECTED,
  COLLECTIONS,
  EQUILIBRIUM,
  EVICTIONS,
  EXPIRED,
  EXPIRY,
  FLUSHES,
  IGNORED,
  INSERTIONS,
  MISSED_GOALS,
  MISSES,
  NEIGHBOR_OVERFLOWS,
  OVERFLOWS,
  REPLACEMENTS,
  REVALIDATIONS,
  UNREACHABLE,
} from "./_route_layout.ts";
import { openRouteTable } from "./_route_open.ts";
import { type RouteResult, RouteResults } from "./_route_results.ts";
import type { RouteTable } from "./_route_table.ts";
import type { FreshRoute } from "./_route_writer.ts";

// A copy for the hot path, as in RcuMap.
const { LEAF_READ } = reading;

export type { RouteResult } from "./_route_results.ts";

/**
 * What a cache works with, and its limits. Whoever opens it first settles the
 * limits for all; a later `open` may leave them out. Times are rounded to 10 ms.
 *
 * @example A small cache
 * ```ts
 * import { Fib, NeighborTable, Rcu, RouteCache, type RouteCacheOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 *
 * const options: RouteCacheOptions = { fib, neighbors, gcThreshold: 1, maxSize: 2 };
 * const cache = RouteCache.open(rcu, "routes", options);
 * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
 * for (const destination of [0x0a000001, 0x0a000002, 0x0a000003]) {
 *   cache.lookup({ destination });
 * }
 * assertEquals(cache.stats().entries <= 2, true);
 * ```
 */
export interface RouteCacheOptions {
  /** The table whose routes are cached. */
  fib: Fib;
  /** The table in which next hops are entered. */
  neighbors: NeighborTable;
  /**
   * Chains, a power of two from 1 to 16,777,216, at 4 bytes each.
   *
   * @default {4096}
   */
  buckets?: number;
  /**
   * Entries beyond which an insertion collects first, from 0 to 1,073,741,824.
   *
   * @default {buckets}
   */
  gcThreshold?: number;
  /**
   * Entries at which nothing is inserted unless a collection makes room, from 1
   * to 1,073,741,824. An entry takes 64 bytes. As in the kernel, only an
   * insertion beyond `gcThreshold` looks at it: a limit is to be above that.
   *
   * @default {16 × buckets}
   */
  maxSize?: number;
  /**
   * Entries a chain beyond which an insertion evicts one, and a collection
   * takes the cache to be in danger; from 1 to 1,073,741,824.
   *
   * @default {8}
   */
  elasticity?: number;
  /**
   * Least time between two collections, in ms, from 0 to 2,147,483,647.
   *
   * @default {500}
   */
  gcMinInterval?: number;
  /**
   * Time between two rounds of the periodic expiry, in ms, from 0 (never) to
   * 2,147,483,647. There is no timer: the first insertion after that time does it.
   *
   * @default {60000}
   */
  gcInterval?: number;
  /**
   * Longest time for which an entry is kept unused, in ms, from 0 to
   * 2,147,483,647. Collections shorten it as they need to.
   *
   * @default {300000}
   */
  gcTimeout?: number;
  /**
   * Time between two renewals of the hash's secret, in ms, from 0 (never) to
   * 2,147,483,647. There is no timer: the first insertion after that time does it.
   *
   * @default {600000}
   */
  secretInterval?: number;
  /**
   * The clock, in ms; every thread must read the same one, as `Date.now` is.
   * For tests.
   *
   * @default {Date.now}
   */
  now?: () => number;
}

/**
 * What is cached by. Words that are left out are 0.
 *
 * @example Two flows
 * ```ts
 * import { Fib, NeighborTable, Rcu, RouteCache, type RouteKey } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 *
 * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
 * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
 * const key: RouteKey = { destination: "10.0.0.1", source: "10.0.0.2" };
 * cache.lookup(key);
 * cache.lookup({ ...key, tos: 8 });
 * assertEquals(cache.stats().entries, 2);
 * ```
 */
export interface RouteKey {
  /** Where to: an IPv4 address, dotted or an unsigned integer. */
  destination: string | number;
  /**
   * Where from: an IPv4 address, dotted or an unsigned integer.
   *
   * @default {0}
   */
  source?: string | number;
  /**
   * The type of service, from 0 to 255.
   *
   * @default {0}
   */
  tos?: number;
  /**
   * The interface through which it came, from 0 to 4,294,967,295.
   *
   * @default {0}
   */
  interface?: number;
}

/**
 * A cached route that is held. Disposing of it a second time does nothing.
 *
 * @example Letting go
 * ```ts
 * import { Fib, NeighborTable, Rcu, RouteCache, type RouteHold } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 *
 * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
 * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
 * const hold: RouteHold | undefined = cache.hold({ destination: "10.0.0.1" });
 * assertEquals(hold?.result.nextHop, "10.0.0.1");
 * hold?.[Symbol.dispose]();
 * ```
 */
export interface RouteHold extends Disposable {
  /** The route. */
  readonly result: RouteResult;
}

/**
 * What a cache holds and has done. Counters are those of all threads, each
 * thread's part modulo 2³² but for `lookups`; other threads' latest 128 lookups
 * may be missing.
 *
 * @example The hit rate
 * ```ts
 * import { Fib, NeighborTable, Rcu, RouteCache, type RouteCacheStats } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 *
 * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
 * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
 * for (let i = 0; i < 4; i++) cache.lookup({ destination: "10.0.0.1" });
 * const { hits, lookups }: RouteCacheStats = cache.stats();
 * assertEquals(hits / lookups, 0.75);
 * ```
 */
export interface RouteCacheStats {
  /** Entries. */
  entries: number;
  /** Lookups: hits and misses. */
  lookups: number;
  /** Lookups that were answered from the cache. */
  hits: number;
  /** Lookups that had to ask the Fib: not cached, or its route had changed. */
  misses: number;
  /** Misses for which the Fib had no route. They are not cached. */
  unreachable: number;
  /** Hits that had to ask the Fib whether the route was still right. */
  revalidations: number;
  /** Entries inserted under a new key. */
  insertions: number;
  /** Entries inserted in place of one whose route had changed. */
  replacements: number;
  /** Entries evicted from a chain that was too long. */
  evictions: number;
  /** Collections asked for. */
  collections: number;
  /** Those that came too soon, or while another thread collected. */
  ignoredCollections: number;
  /** Rounds of a collection that freed less than their goal. */
  missedGoals: number;
  /** Entries that collections took. */
  collected: number;
  /** Entries that the periodic expiry took. */
  expired: number;
  /** Insertions that failed because the cache or the memory was full. */
  overflows: number;
  /** Insertions that failed because the neighbour table was full. */
  neighborOverflows: number;
  /** How often the cache was emptied. */
  flushes: number;
  /** Entries that the collector is content with. */
  equilibrium: number;
  /** How old an unused entry may be at the front of its chain for a collection, in ms. */
  expiry: number;
}

const UNCLONEABLE = uncloneable(
  "a RouteCache, which other threads open by its name",
);

/**
 * Routes by destination, source, type of service and interface, cached from a
 * {@linkcode Fib} for all threads of a domain: the route cache of the kernel
 * up to 3.5, read without locks, with the rules of its version 2.6.24 for
 * insertion, eviction and garbage collection.
 *
 * A lookup that hits takes no lock, never waits and allocates nothing. It
 * writes no shared memory but for an entry's time of last use, at most once in
 * 10 ms. A lookup that misses asks the Fib and inserts the answer, under the
 * lock of one chain; it may have to collect, or to wait for memory. Each entry refers to its next hop's entry in the
 * neighbour table, which it makes where there is none.
 *
 * Where there is no room — in the cache after a collection, in the neighbour
 * table after one retry, in memory — the insertion fails and is counted, and
 * the lookup answers all the same, from the Fib.
 *
 * A change of the Fib invalidates what was cached from it: a lookup that begins
 * after the change finds the new route, and a thread that has seen it, be it in the
 * Fib or here, finds no older one here. Entries whose own route has not changed
 * are found to be right by their next lookup, and stay.
 *
 * A cache pays where its working set fits and the Fib changes rarely. Whoever
 * can choose destinations can fill it: its size is bounded, its hit rate is not.
 *
 * @example Routing a packet
 * ```ts
 * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
 *
 * fib.insert("0.0.0.0/0", { gateway: "192.0.2.1", interface: 2 });
 * const key = { destination: "198.51.100.7", source: "10.0.0.5", tos: 0 };
 * assertEquals(cache.lookup(key)?.route.gateway, "192.0.2.1");
 *
 * fib.insert("198.51.100.0/24", { gateway: "192.0.2.9", interface: 2 });
 * assertEquals(cache.lookup(key)?.route.gateway, "192.0.2.9");
 * ```
 */
export class RouteCache {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _uncloneable: symbol;
  declare private readonly _membership: Membership;
  declare private readonly _reader: Reader;
  declare private readonly _table: RouteTable;
  declare private readonly _results: RouteResults;

  static {
    hideFields(this, () => "RouteCache");
  }

  private constructor(table: RouteTable) {
    this._uncloneable = UNCLONEABLE;
    this._membership = table.membership;
    this._reader = table.membership.reader;
    this._table = table;
    this._results = new RouteResults(table);
  }

  /**
   * Finds the cache of a name, or creates it.
   *
   * @param rcu The calling thread's membership.
   * @param name The cache's name, any string.
   * @param options What it works with, and its limits.
   * @returns The calling thread's view of the cache.
   * @throws {TypeError} If the name is taken by something else, an option
   * differs from what the cache was opened with first, or an argument is of the
   * wrong type.
   * @throws {RangeError} If an option is out of range.
   * @throws {RcuMemoryError} If the cache does not fit.
   *
   * @example Two threads, one cache
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using main = Rcu.create();
   * using worker = Rcu.attach(main.handle);
   * const [a, b] = [main, worker].map((rcu) =>
   *   RouteCache.open(rcu, "routes", {
   *     fib: Fib.open(rcu, "main"),
   *     neighbors: NeighborTable.open(rcu, "neighbors"),
   *   })
   * );
   * Fib.open(main, "main").insert("0.0.0.0/0", { gateway: null, interface: 1 });
   * a.lookup({ destination: "10.0.0.1" });
   * b.lookup({ destination: "10.0.0.1" });
   * assertEquals(b.stats().hits, 1);
   * ```
   */
  static open(rcu: Rcu, name: string, options: RouteCacheOptions): RouteCache {
    const membership = membershipOf(rcu, "open a route cache");
    return new RouteCache(openRouteTable(membership, name, options));
  }

  /**
   * Finds the route for a packet, and caches it.
   *
   * @param key What the packet says. An object that is used again spares an allocation.
   * @returns The route, frozen; `undefined` if the Fib has none.
   * @throws {RangeError} If a part of the key is malformed or out of range.
   * @throws {TypeError} If a part of the key is of the wrong type.
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example Unreachable
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cache = RouteCache.open(rcu, "routes", {
   *   fib: Fib.open(rcu, "main"),
   *   neighbors: NeighborTable.open(rcu, "neighbors"),
   * });
   * assertEquals(cache.lookup({ destination: "10.0.0.1" }), undefined);
   * ```
   */
  lookup(key: RouteKey): RouteResult | undefined {
    const act = "look up a route";
    checkKey(key, act);
    const { destination, source = 0, tos = 0, interface: link = 0 } = key;
    return this.lookupFields(
      toIpv4(destination, act, "destination"),
      toIpv4(source, act, "source"),
      toUnsigned(tos, 0, 255, act, "tos"),
      toUnsigned(link, 0, LARGEST_U32, act, "interface"),
    );
  }

  /**
   * As {@linkcode RouteCache.lookup}, for hot loops: nothing is checked. What
   * counts of each argument is `argument | 0`: the low 32 bits of a number, and 0 for
   * `NaN`, `undefined`, or an address in dotted form. Addresses from 128.0.0.0
   * on had better be passed as signed integers (`address | 0`): V8 may have to
   * allocate larger ones.
   *
   * @param destination Where to; 32 bits, signed or unsigned.
   * @param source Where from, or 0; 32 bits, signed or unsigned.
   * @param tos The type of service, from 0 to 255, or 0. Not checked.
   * @param interface_ The interface through which it came, or 0; 32 bits,
   * signed or unsigned.
   * @returns The route, frozen; `undefined` if the Fib has none.
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example Addresses as numbers
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals, assertStrictEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   *
   * const first = cache.lookupFields(0x0a000001, 0, 0, 0);
   * assertEquals(first?.nextHop, "10.0.0.1");
   * assertStrictEquals(cache.lookupFields(0x0a000001, 0, 0, 0), first);
   * ```
   */
  lookupFields(
    destination: number,
    source: number,
    tos: number,
    interface_: number,
  ): RouteResult | undefined {
    // First: what is no number may run code of its own when it is made one.
    destination |= 0;
    source |= 0;
    tos |= 0;
    interface_ |= 0;
    const reader = this._reader;
    const table = this._table;
    table.countLookup();
    if ((reader.budget -= LEAF_READ) < 0) {
      table.lookAtClock();
      reader.refill();
    }
    const bucket = table.bucketOf(destination, source, tos, interface_);
    const entry = table.find(bucket, destination, source, tos, interface_);
    if (entry === 0) return this.#miss(destination, source, tos, interface_);
    const result = this._results.at(entry);
    return result;
  }

  #miss(
    destination: number,
    source: number,
    tos: number,
    link: number,
  ): RouteResult | undefined {
    probeStack();
    const fresh = this.#ask(destination);
    if (fresh === undefined) return undefined;
    const { writer } = this._table;
    const entry = writer.insert(destination, source, tos, link, fresh);
    const result = this._results.of(fresh, entry, writer.serial);
    this._membership.afterUpdate();
    return result;
  }

  /** Asks the Fib, and counts that. */
  #ask(destination: number): FreshRoute | undefined {
    const { counters, writer } = this._table;
    // Written down together, so that misses are never more than lookups.
    this._table.reportLookups();
    counters.count(MISSES);
    const fresh = writer.ask(destination);
    if (fresh === undefined) counters.count(UNREACHABLE);
    return fresh;
  }

  /**
   * Finds the route for a packet as {@linkcode RouteCache.lookup} does, and
   * holds the entry: neither eviction nor collection takes it while it is held.
   * Emptying the cache does, and so does a change of its route; the hold then
   * keeps the old route.
   *
   * @param key What the packet says.
   * @returns The hold, to be disposed of by this thread; `undefined` if the
   * Fib has no route, or the cache no room for it.
   * @throws {RangeError} If a part of the key is malformed or out of range.
   * @throws {TypeError} If a part of the key is of the wrong type.
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example A connection's route
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   * {
   *   using hold = cache.hold({ destination: "10.0.0.1" });
   *   assertEquals(hold?.result.route.interface, 1);
   * }
   * ```
   */
  hold(key: RouteKey): RouteHold | undefined {
    const reader = this._reader;
    const table = this._table;
    const act = "hold a route";
    checkKey(key, act);
    const { destination: to, source: from = 0 } = key;
    const destination = toIpv4(to, act, "destination");
    const source = toIpv4(from, act, "source");
    const tos = toUnsigned(key.tos ?? 0, 0, 255, act, "tos");
    const link = toUnsigned(
      key.interface ?? 0,
      0,
      LARGEST_U32,
      act,
      "interface",
    );
    probeStack();
    while (true) {
      table.countLookup();
      if ((reader.budget -= LEAF_READ) < 0) {
        table.lookAtClock();
        reader.refill();
      }
      const bucket = table.bucketOf(destination, source, tos, link);
      const entry = table.find(bucket, destination, source, tos, link);
      if (entry !== 0) {
        const result = this._results.at(entry);
        if (table.tryHold(entry)) return this.#holdOf(entry, result);
      }
      const fresh = this.#ask(destination);
      if (fresh === undefined) return undefined;
      const made = table.writer.insert(destination, source, tos, link, fresh);
      this._membership.afterUpdate();
      if (made === 0) return undefined;
      // It is there now, unless another thread was fast at taking it out again.
    }
  }

  #holdOf(entry: Address, result: RouteResult): RouteHold {
    let held = true;
    return {
      result,
      [Symbol.dispose]: () => {
        if (!held) return;
        probeStack();
        held = false;
        this._table.letGo(entry);
        this._membership.afterUpdate();
      },
    };
  }

  /**
   * Empties the cache, held entries included. What other threads insert
   * meanwhile may stay.
   *
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example Starting afresh
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   * cache.lookup({ destination: "10.0.0.1" });
   * cache.flush();
   * assertEquals(cache.stats().entries, 0);
   * ```
   */
  flush(): void {
    this._membership.assertOpen("flush a route cache");
    probeStack();
    this._table.flush();
  }

  /**
   * Draws a new secret for the hash, so that whoever has found keys that meet
   * in one chain has to begin again; empties the cache.
   *
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example After an attack
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cache = RouteCache.open(rcu, "routes", {
   *   fib: Fib.open(rcu, "main"),
   *   neighbors: NeighborTable.open(rcu, "neighbors"),
   * });
   * cache.renewSecret();
   * assertEquals(cache.stats().flushes, 1);
   * ```
   */
  renewSecret(): void {
    this._membership.assertOpen("renew a secret");
    probeStack();
    this._table.renewSecret();
  }

  /**
   * Collects garbage, as an insertion beyond `gcThreshold` does: not within
   * `gcMinInterval` of the last time unless the cache is full, and only what
   * there is beyond an equilibrium that the cache finds for itself.
   *
   * @returns How many entries went.
   * @throws {RcuStallError} If another thread does not give a lock back.
   * @throws {Error} If the membership is closed.
   *
   * @example Nothing to do
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cache = RouteCache.open(rcu, "routes", {
   *   fib: Fib.open(rcu, "main"),
   *   neighbors: NeighborTable.open(rcu, "neighbors"),
   * });
   * assertEquals(cache.collect(), 0);
   * ```
   */
  collect(): number {
    this._membership.assertOpen("collect routes");
    probeStack();
    const { collector, counters } = this._table;
    const before = counters.own(COLLECTED);
    collector.collect();
    const freed = (counters.own(COLLECTED) - before) | 0;
    this._membership.afterUpdate();
    return freed;
  }

  /**
   * What the cache holds and has done.
   *
   * @returns Counters.
   * @throws {Error} If the membership is closed.
   *
   * @example A hit and a miss
   * ```ts
   * import { Fib, NeighborTable, Rcu, RouteCache } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   * cache.lookup({ destination: "10.0.0.1" });
   * cache.lookup({ destination: "10.0.0.1" });
   * const { hits, misses } = cache.stats();
   * assertEquals([hits, misses], [1, 1]);
   * ```
   */
  stats(): RouteCacheStats {
    this._membership.assertOpen("take statistics");
    const table = this._table;
    const { counters, header, words } = table;
    table.reportLookups();
    const misses = counters.total(MISSES);
    const lookups = counters.totalLookups();
    return {
      entries: table.entries,
      lookups,
      hits: lookups - misses,
      misses,
      unreachable: counters.total(UNREACHABLE),
      revalidations: counters.total(REVALIDATIONS),
      insertions: counters.total(INSERTIONS),
      replacements: counters.total(REPLACEMENTS),
      evictions: counters.total(EVICTIONS),
      collections: counters.total(COLLECTIONS),
      ignoredCollections: counters.total(IGNORED),
      missedGoals: counters.total(MISSED_GOALS),
      collected: counters.total(COLLECTED),
      expired: counters.total(EXPIRED),
      overflows: counters.total(OVERFLOWS),
      neighborOverflows: counters.total(NEIGHBOR_OVERFLOWS),
      flushes: counters.total(FLUSHES),
      equilibrium: Atomics.load(words, header + EQUILIBRIUM),
      expiry: Atomics.load(words, header + EXPIRY) * TICK,
    };
  }
}

function checkKey(key: RouteKey, act: string): void {
  if (typeof key !== "object" || key === null) {
    throw new TypeError(
      `Cannot ${act} as its key must be an object: received ${show(key)}`,
    );
  }
}
