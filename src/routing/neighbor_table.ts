// Who is on the links: IPv4 address and interface to link address.

import { type OptionNames, uncloneable } from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import { show } from "../memory/_codec.ts";
import type { Address } from "../memory/arena.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { hideFields } from "../structures/_hide.ts";
import { openRoot, takeOptions } from "../structures/_open.ts";
import { probeStack } from "../sync/_stack.ts";
import { LARGEST_U32, toIpv4, toUnsigned } from "./_ipv4.ts";
import { FLUSH_PAUSE } from "./_neighbor_collector.ts";
import {
  BUCKET_MASK,
  CHAINS,
  COLLECTED,
  encodeLink,
  ENTRIES,
  FORCED,
  HEADER_WORDS,
  LAST_FLUSH,
  type Neighbor,
  type NeighborState,
  OVERFLOWS,
  SECRET,
  STALE_TIME,
  THRESHOLD_1,
  THRESHOLD_2,
  THRESHOLD_3,
  UNREFERENCED,
} from "./_neighbor_layout.ts";
import { NeighborStore } from "./_neighbor_store.ts";
import {
  checkAgreed,
  type SharedOption,
  writeOptions,
} from "./_route_agree.ts";
import { type Clock, TICK, ticksOf, toClock, toTicks } from "./_route_clock.ts";
import { drawSecret } from "./_route_hash.ts";

export type { Neighbor, NeighborState } from "./_neighbor_layout.ts";

/**
 * The internals behind an open table, for the route cache.
 *
 * @param table What the caller got as a table.
 * @param act What the caller was about to do, for the error.
 * @returns The internals.
 */
export let neighborsOf: (table: NeighborTable, act: string) => NeighborStore;

const OPTIONS: OptionNames<NeighborTableOptions> = {
  gcThreshold1: true,
  gcThreshold2: true,
  gcThreshold3: true,
  gcStaleTime: true,
  now: true,
};
const MOST = 2 ** 30;
const FEWEST_BUCKETS = 16;
const MOST_BUCKETS = 2 ** 20;
const LARGEST_INTERFACE = LARGEST_U32;

/**
 * When neighbours are collected. Whoever opens the table first settles it for
 * all; a later `open` may leave everything out. A threshold is at most the next
 * one: raise them from `gcThreshold3` downwards. Lowering one lowers the
 * defaults below it, raising one leaves the others where they are.
 *
 * @example A table that is always full
 * ```ts
 * import { NeighborTable, type NeighborTableOptions, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * // The other two follow: 1 and 1.
 * const options: NeighborTableOptions = { gcThreshold3: 1 };
 * const neighbors = NeighborTable.open(rcu, "neighbors", options);
 * neighbors.set("10.0.0.1", 2, { linkAddress: "00:1b:21:3c:9d:f8" });
 * neighbors.resolve("10.0.0.2", 2);
 * assertEquals(neighbors.size, 1);
 * ```
 */
export interface NeighborTableOptions {
  /**
   * Entries below which nothing is collected periodically, from 0 to
   * `gcThreshold2`.
   *
   * @default {128, or gcThreshold2 if that is less}
   */
  gcThreshold1?: number;
  /**
   * Entries from which a newcomer forces a collection if the last one was more
   * than 5 s ago, and down to which it collects; from 1 to `gcThreshold3`.
   *
   * @default {512, or gcThreshold3 if that is less}
   */
  gcThreshold2?: number;
  /**
   * Entries from which every newcomer forces a collection, and is turned away
   * if that frees nothing; from 1 to 1,073,741,824. The table's buckets are
   * laid out for it, up to 1,048,576 of them at 4 bytes.
   *
   * @default {1024}
   */
  gcThreshold3?: number;
  /**
   * How long an entry that nothing refers to stays without an update, for the
   * periodic collection, in ms, from 0 to 2,147,483,647, rounded to 10 ms.
   *
   * @default {60000}
   */
  gcStaleTime?: number;
  /**
   * The clock, in ms; every thread must read the same one, as `Date.now` is.
   * For tests.
   *
   * @default {Date.now}
   */
  now?: () => number;
}

/**
 * What to set of a neighbour.
 *
 * @example An address, and what is known of it
 * ```ts
 * import { NeighborTable, type NeighborUpdate, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * const update: NeighborUpdate = {
 *   linkAddress: "00-1B-21-3C-9D-F8",
 *   state: "permanent",
 * };
 * const neighbor = neighbors.set("10.0.0.1", 2, update);
 * assertEquals(neighbor?.linkAddress, "00:1b:21:3c:9d:f8");
 * ```
 */
export interface NeighborUpdate {
  /**
   * The link address, six pairs of hexadecimal digits between colons or
   * hyphens, or `null` for none.
   *
   * @default {what it is}
   */
  linkAddress?: string | null;
  /**
   * How far that is known.
   *
   * @default {"reachable" with a link address, "incomplete" without}
   */
  state?: NeighborState;
}

/**
 * What a table holds and has done. Counters are those of all threads, modulo 2³².
 *
 * @example Counting entries
 * ```ts
 * import { NeighborTable, type NeighborTableStats, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * neighbors.resolve("10.0.0.1", 2);
 * const stats: NeighborTableStats = neighbors.stats();
 * assertEquals([stats.entries, stats.referenced], [1, 0]);
 * ```
 */
export interface NeighborTableStats {
  /** Entries. */
  entries: number;
  /** Entries that something refers to: routes of a cache. */
  referenced: number;
  /** Newcomers that were turned away. */
  overflows: number;
  /** Collections that a newcomer forced. */
  forcedCollections: number;
  /** Entries that collections took out. */
  collected: number;
}

/**
 * The neighbours that routes lead to, shared by all threads of a domain: IPv4
 * address and interface to link address, read without locks.
 *
 * The table is bounded by three thresholds, as the kernel's is. Entries that a
 * {@linkcode RouteCache} refers to are never collected.
 *
 * @example Resolving a next hop
 * ```ts
 * import { NeighborTable, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * neighbors.set("10.0.0.1", 2, { linkAddress: "00:1b:21:3c:9d:f8" });
 * assertEquals(neighbors.lookup("10.0.0.1", 2), {
 *   address: "10.0.0.1",
 *   interface: 2,
 *   linkAddress: "00:1b:21:3c:9d:f8",
 *   state: "reachable",
 * });
 * ```
 */
export class NeighborTable implements Iterable<Neighbor> {
  private readonly _uncloneable = uncloneable(
    "a NeighborTable, which other threads open by its name",
  );
  readonly #membership: Membership;
  readonly #store: NeighborStore;

  static {
    neighborsOf = (table, act) => {
      if (!(#store in Object(table))) {
        throw new TypeError(
          `Cannot ${act} as neighbors must be a NeighborTable: received ${
            show(table)
          }`,
        );
      }
      return table.#store;
    };
    hideFields(this, (table) => `NeighborTable(${table.size})`);
  }

  private constructor(store: NeighborStore) {
    this.#membership = store.membership;
    this.#store = store;
  }

  /**
   * Finds the table of a name, or creates it.
   *
   * @param rcu The calling thread's membership.
   * @param name The table's name, any string.
   * @param options When entries are collected.
   * @returns The calling thread's view of the table.
   * @throws {TypeError} If the name is taken by something else, an option
   * differs from what the table was opened with first, or an argument is of
   * the wrong type.
   * @throws {RangeError} If an option is out of range.
   * @throws {RcuMemoryError} If the table does not fit.
   *
   * @example A large one
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors", {
   *   gcThreshold3: 100_000,
   * });
   * assertEquals(neighbors.size, 0);
   * ```
   */
  static open(
    rcu: Rcu,
    name: string,
    options: NeighborTableOptions = {},
  ): NeighborTable {
    const membership = membershipOf(rcu, "open a neighbor table");
    const must = "be those of a neighbor table";
    const taken = takeOptions(options, must, OPTIONS);
    const shared = sharedOptions(taken);
    const clock = toClock(taken.now, "open a neighbor table");
    probeStack();
    const { words, heap } = membership;
    const header = openRoot(
      membership,
      name,
      "neighbors",
      () => makeTable(membership, shared, clock),
      (made) => {
        heap.free(words[made + CHAINS]);
        heap.free(made);
      },
    );
    checkAgreed(words, header, shared, name);
    return new NeighborTable(new NeighborStore(membership, header, clock));
  }

  /**
   * Looks a neighbour up.
   *
   * @param address Its IPv4 address, dotted or an unsigned integer.
   * @param interface_ The interface behind which it is, from 0 to 4,294,967,295.
   * @returns What is known of it, frozen; `undefined` if it is not there.
   * @throws {RangeError} If the address or the interface is out of range.
   * @throws {TypeError} If either is of the wrong type.
   * @throws {Error} If the membership is closed.
   *
   * @example A miss
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * assertEquals(neighbors.lookup("10.0.0.1", 2), undefined);
   * ```
   */
  lookup(address: string | number, interface_: number): Neighbor | undefined {
    const act = "look up a neighbor";
    const ip = toIpv4(address, act, "address");
    const link = toInterface(interface_, act);
    return this.#store.peek(ip, link);
  }

  /**
   * Looks a neighbour up, and enters it as incomplete if it is not there.
   *
   * @param address Its IPv4 address, dotted or an unsigned integer.
   * @param interface_ The interface behind which it is, from 0 to 4,294,967,295.
   * @returns What is known of it, frozen; `undefined` if the table is full and
   * nothing could be collected, which counts as an overflow.
   * @throws {RangeError} If the address or the interface is out of range.
   * @throws {TypeError} If either is of the wrong type.
   * @throws {RcuMemoryError} If the entry does not fit into the arena.
   * @throws {Error} If the membership is closed.
   *
   * @example A newcomer
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * assertEquals(neighbors.resolve(0x0a000001, 2)?.state, "incomplete");
   * assertEquals(neighbors.size, 1);
   * ```
   */
  resolve(address: string | number, interface_: number): Neighbor | undefined {
    const act = "resolve a neighbor";
    this.#membership.assertOpen(act);
    const ip = toIpv4(address, act, "address");
    const link = toInterface(interface_, act);
    return this.#withEntry(ip, link, undefined, act);
  }

  /**
   * Sets what is known of a neighbour, and enters it if it is not there.
   * Counts as an update even where nothing changes.
   *
   * @param address Its IPv4 address, dotted or an unsigned integer.
   * @param interface_ The interface behind which it is, from 0 to 4,294,967,295.
   * @param update The link address and the state.
   * @returns What is known of it now; `undefined` as for {@linkcode resolve}.
   * @throws {RangeError} If the address, the interface or the link address is malformed.
   * @throws {TypeError} If an argument is of the wrong type, or the state asks
   * for a link address and there is none.
   * @throws {RcuMemoryError} If it does not fit into the arena.
   * @throws {Error} If the membership is closed.
   *
   * @example An answer, and then silence
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * neighbors.set("10.0.0.1", 2, { linkAddress: "00:1b:21:3c:9d:f8" });
   * neighbors.set("10.0.0.1", 2, { state: "stale" });
   * assertEquals(
   *   neighbors.lookup("10.0.0.1", 2)?.linkAddress,
   *   "00:1b:21:3c:9d:f8",
   * );
   * ```
   */
  set(
    address: string | number,
    interface_: number,
    update: NeighborUpdate,
  ): Neighbor | undefined {
    const act = "set a neighbor";
    this.#membership.assertOpen(act);
    const ip = toIpv4(address, act, "address");
    const link = toInterface(interface_, act);
    if (typeof update !== "object" || update === null) {
      throw new TypeError(
        `Cannot ${act} as the update must be an object: received ${
          show(update)
        }`,
      );
    }
    const { linkAddress, state } = update;
    // Bad arguments are found before an entry is made for them.
    const known = this.#store.peek(ip, link)?.linkAddress ?? null;
    encodeLink(
      { high: 0, low: 0 },
      linkAddress === undefined ? known : linkAddress,
      state,
      act,
    );
    return this.#withEntry(ip, link, [linkAddress, state], act);
  }

  #withEntry(
    ip: number,
    link: number,
    update:
      | [NeighborUpdate["linkAddress"], NeighborUpdate["state"]]
      | undefined,
    act: string,
  ): Neighbor | undefined {
    probeStack();
    const store = this.#store;
    const node = store.hold(ip, link, ticksOf(store.clock));
    let neighbor: Neighbor | undefined;
    if (node !== 0) {
      try {
        if (update !== undefined) {
          store.update(node, ...update, act);
        }
        neighbor = store.readHeld(node);
      } finally {
        store.release(node);
      }
    }
    this.#membership.afterUpdate();
    return neighbor;
  }

  /**
   * Takes a neighbour out. One that a cached route refers to becomes "failed"
   * instead, loses its link address, and goes with a later collection.
   *
   * @param address Its IPv4 address, dotted or an unsigned integer.
   * @param interface_ The interface behind which it is, from 0 to 4,294,967,295.
   * @returns Whether it was there.
   * @throws {RangeError} If the address or the interface is out of range.
   * @throws {TypeError} If either is of the wrong type.
   * @throws {RcuMemoryError} If there is no room to mark it.
   * @throws {Error} If the membership is closed.
   *
   * @example Gone
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * neighbors.resolve("10.0.0.1", 2);
   * assertEquals(neighbors.delete("10.0.0.1", 2), true);
   * assertEquals(neighbors.delete("10.0.0.1", 2), false);
   * ```
   */
  delete(address: string | number, interface_: number): boolean {
    const act = "delete a neighbor";
    this.#membership.assertOpen(act);
    const ip = toIpv4(address, act, "address");
    const link = toInterface(interface_, act);
    probeStack();
    const deleted = this.#store.remove(ip, link);
    this.#membership.afterUpdate();
    return deleted;
  }

  /**
   * The periodic collection: takes out what nothing refers to, is not
   * permanent, and has failed or was not updated for `gcStaleTime`. Does
   * nothing below `gcThreshold1` entries. Call it every half minute or so.
   *
   * @returns How many entries went.
   * @throws {Error} If the membership is closed.
   *
   * @example Too few to bother
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * neighbors.set("10.0.0.1", 2, { state: "failed" });
   * assertEquals(neighbors.collect(), 0);
   * ```
   */
  collect(): number {
    this.#membership.assertOpen("collect neighbors");
    probeStack();
    const freed = this.#store.collector.collect(ticksOf(this.#store.clock));
    this.#membership.afterUpdate();
    return freed;
  }

  /**
   * How many entries there are; those included that are being entered.
   *
   * @example Counting
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * neighbors.resolve("10.0.0.1", 2);
   * neighbors.resolve("10.0.0.1", 3);
   * assertEquals(neighbors.size, 2);
   * ```
   */
  get size(): number {
    return Atomics.load(this.#membership.words, this.#store.header + ENTRIES);
  }

  /**
   * Every neighbour, in no order. Weakly consistent: entries that are there
   * all the time are shown, others may be.
   *
   * @returns An iterator over what is known of each.
   * @throws {Error} If the membership is closed.
   *
   * @example All of them
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * neighbors.resolve("10.0.0.1", 2);
   * assertEquals([...neighbors].map(({ address }) => address), ["10.0.0.1"]);
   * ```
   */
  [Symbol.iterator](): ArrayIterator<Neighbor> {
    return this.#store.readAll().values();
  }

  /**
   * What the table holds and has done.
   *
   * @returns Counters.
   *
   * @example Nothing yet
   * ```ts
   * import { NeighborTable, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const neighbors = NeighborTable.open(rcu, "neighbors");
   * assertEquals(neighbors.stats().overflows, 0);
   * ```
   */
  stats(): NeighborTableStats {
    const { words } = this.#membership;
    const { header } = this.#store;
    const unreferenced = Atomics.load(words, header + UNREFERENCED);
    const entries = this.size;
    return {
      entries,
      referenced: Math.max(0, entries - unreferenced),
      overflows: Atomics.load(words, header + OVERFLOWS) >>> 0,
      forcedCollections: Atomics.load(words, header + FORCED) >>> 0,
      collected: Atomics.load(words, header + COLLECTED) >>> 0,
    };
  }
}

function toInterface(value: number, act: string): number {
  return toUnsigned(value, 0, LARGEST_INTERFACE, act, "interface");
}

function sharedOptions(options: NeighborTableOptions): SharedOption[] {
  const act = "open a neighbor table";
  const threshold = (
    what: "gcThreshold1" | "gcThreshold2" | "gcThreshold3",
    least: number,
    most: number,
    usual: number,
    above?: keyof NeighborTableOptions,
  ) =>
    toUnsigned(
      options[what] ?? Math.min(usual, most),
      least,
      most,
      act,
      what,
      above === undefined ? undefined : `${above} (${most})`,
    );
  const third = threshold("gcThreshold3", 1, MOST, 1024);
  const second = threshold("gcThreshold2", 1, third, 512, "gcThreshold3");
  const first = threshold("gcThreshold1", 0, second, 128, "gcThreshold2");
  const stale = toTicks(options.gcStaleTime ?? 60_000, act, "gcStaleTime");
  const option = (
    name: keyof NeighborTableOptions,
    at: number,
    word: number,
    unit: number,
  ) => ({ name, at, word, given: options[name] !== undefined, unit });
  return [
    option("gcThreshold1", THRESHOLD_1, first, 1),
    option("gcThreshold2", THRESHOLD_2, second, 1),
    option("gcThreshold3", THRESHOLD_3, third, 1),
    option("gcStaleTime", STALE_TIME, stale, TICK),
  ];
}

function makeTable(
  membership: Membership,
  options: SharedOption[],
  clock: Clock,
): Address {
  const { words, heap } = membership;
  const header = membership.allocate(HEADER_WORDS);
  words.fill(0, header, header + HEADER_WORDS);
  writeOptions(words, header, options);
  let buckets = FEWEST_BUCKETS;
  const wanted = Math.min(words[header + THRESHOLD_3], MOST_BUCKETS);
  while (buckets < wanted) buckets *= 2;
  try {
    words[header + CHAINS] = membership.allocate(buckets);
  } catch (error) {
    heap.free(header);
    throw error;
  }
  words.fill(0, words[header + CHAINS], words[header + CHAINS] + buckets);
  words[header + BUCKET_MASK] = buckets - 1;
  words[header + SECRET] = drawSecret();
  // Long enough ago: the first collection need not wait.
  words[header + LAST_FLUSH] = (ticksOf(clock) - FLUSH_PAUSE - 1) | 0;
  return header;
}
