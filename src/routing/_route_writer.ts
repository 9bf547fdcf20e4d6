// Putting routes into the cache: the rules of insertion.

import { RcuMemoryError } from "../memory/errors.ts";
import type { Address } from "../memory/arena.ts";
import { vouchUnder } from "./_fib_lookup.ts";
import { ticksSince } from "./_route_clock.ts";
import {
  DESTINATION,
  ELASTICITY,
  ENTRIES,
  ENTRY_WORDS,
  EVICTIONS,
  GC_THRESHOLD,
  GENERATION,
  INSERTIONS,
  INTERFACE,
  LAST_USE,
  NEIGHBOR,
  NEIGHBOR_OVERFLOWS,
  NEXT,
  OVERFLOWS,
  REFERENCES,
  REPLACEMENTS,
  ROUTE,
  sameKey,
  SECRET,
  SERIAL,
  SERIALS,
  SOURCE,
  TOS,
} from "./_route_layout.ts";
import { hasRoute, writeRoute } from "./_route_words.ts";
import type { RouteTable } from "./_route_table.ts";
import type { Route, RouteFields } from "./route.ts";
import { LEAF_READ } from "../readers/_reader.ts";

/** A route that the Fib has just given, and what the cache wants to know of it. */
export interface FreshRoute {
  /** The Fib's generation before it was asked. */
  generation: number;
  fields: RouteFields;
  /** The same, decoded. */
  route: Route;
  /** The next hop: the route's gateway, or the destination. */
  hop: number;
}

/**
 * The next hop of a route.
 *
 * @param route The route.
 * @param fields The same, taken apart.
 * @param destination What it was asked for.
 * @returns Its gateway, or the destination.
 */
export function hopOf(
  route: Route,
  fields: RouteFields,
  destination: number,
): number {
  return route.gateway === null ? destination : fields.gateway;
}

/** The inserting side of a route cache, in one thread. Numbers refer to the invariants of {@linkcode RouteTable}. */
export class RouteWriter {
  readonly #table: RouteTable;
  readonly #words: Int32Array;
  /** The serial of the entry that `insert` returned last. */
  serial = 0;

  constructor(table: RouteTable) {
    this.#table = table;
    this.#words = table.words;
  }

  /**
   * Asks the Fib.
   *
   * @param destination An address.
   * @returns The route, or `undefined` if there is none.
   */
  ask(destination: number): FreshRoute | undefined {
    const table = this.#table;
    const words = this.#words;
    const { reader } = table.membership;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    // Acquire: before the loads of the lookup (5), which are plain.
    const generation = Atomics.load(words, table.fib.generationAddress);
    const number = table.fib.lookupRoute(destination);
    if (number === 0) return undefined;
    const fields = table.fib.fieldsOf(number);
    const route = table.fib.routeAt(number)!;
    const hop = hopOf(route, fields, destination);
    return { generation, fields, route, hop };
  }

  /**
   * Caches a route. No lock is held.
   *
   * After the kernel: beyond `gcThreshold` entries a collection comes first,
   * and where it leaves the cache full, nothing is inserted. Where the neighbour
   * table is full too, the cache is collected once as if `elasticity` were 1 and
   * `gcMinInterval` 0, for it most likely holds the neighbours; if that does
   * not help, it is a neighbour-table overflow, and nothing is inserted.
   *
   * @param destination An address.
   * @param source An address.
   * @param tos The type of service.
   * @param link The interface of the key.
   * @param fresh The route.
   * @returns The entry, which may be gone as soon as this returns; 0 if there is no room.
   */
  insert(
    destination: number,
    source: number,
    tos: number,
    link: number,
    fresh: FreshRoute,
  ): Address {
    const table = this.#table;
    const words = this.#words;
    const now = table.lookAtClock();
    table.collector.maintain(now);
    if (
      table.entries > words[table.header + GC_THRESHOLD] &&
      !table.collector.collect(undefined, undefined, now)
    ) return 0;
    const neighbor = this.#bind(fresh, now);
    if (neighbor === 0) return 0;
    let entry: Address = 0;
    let cached: Address = 0;
    try {
      entry = this.#allocate();
      if (entry === 0) return 0;
      words[entry + DESTINATION] = destination;
      words[entry + SOURCE] = source;
      words[entry + INTERFACE] = link;
      words[entry + TOS] = tos;
      words[entry + GENERATION] = vouchUnder(fresh.generation);
      words[entry + SERIAL] = this.#drawSerial();
      words[entry + NEIGHBOR] = neighbor;
      words[entry + LAST_USE] = now;
      words[entry + REFERENCES] = 0;
      writeRoute(words, entry + ROUTE, fresh.fields);
      cached = this.#link(entry, fresh.fields, now);
      return cached;
    } finally {
      // Also where the chain had an entry that was as good.
      if (cached === 0 || cached !== entry) {
        table.neighbors.release(neighbor);
        if (entry !== 0) table.membership.heap.free(entry);
      }
    }
  }

  /** Memory for an entry; 0 where there is none, which is an overflow too. */
  #allocate(): Address {
    const table = this.#table;
    try {
      return table.membership.allocate(ENTRY_WORDS);
    } catch (error) {
      if (!(error instanceof RcuMemoryError)) throw error;
      table.counters.count(OVERFLOWS);
      return 0;
    }
  }

  /** Counts a reference to the next hop's neighbour; 0 if the neighbour table is full. */
  #bind(fresh: FreshRoute, now: number): Address {
    const table = this.#table;
    try {
      const { hop, fields: { interface: link } } = fresh;
      const neighbor = table.neighbors.hold(hop, link, now);
      if (neighbor !== 0) return neighbor;
      table.collector.collect(1, 0, now);
      const again = table.neighbors.hold(hop, link, now);
      if (again === 0) table.counters.count(NEIGHBOR_OVERFLOWS);
      return again;
    } catch (error) {
      if (!(error instanceof RcuMemoryError)) throw error;
      table.counters.count(OVERFLOWS);
      return 0;
    }
  }

  /** Links an entry into its chain; the one that is there already where that is as good. */
  #link(entry: Address, fields: RouteFields, now: number): Address {
    const table = this.#table;
    const words = this.#words;
    while (true) {
      const secret = Atomics.load(words, table.header + SECRET);
      const bucket = table.bucketUnder(
        secret,
        words[entry + DESTINATION],
        words[entry + SOURCE],
        words[entry + TOS],
        words[entry + INTERFACE],
      );
      table.discipline.lock(bucket);
      try {
        // Pairs with: the store in `renewSecret`. If it comes first, we start again; if we do, the
        // renewal finds our entry when it gets the lock.
        if (Atomics.load(words, table.header + SECRET) === secret) {
          const cached = this.#linkLocked(bucket, entry, fields, now);
          this.serial = words[cached + SERIAL];
          return cached;
        }
      } finally {
        table.discipline.unlock(bucket);
      }
    }
  }

  #linkLocked(
    bucket: number,
    entry: Address,
    fields: RouteFields,
    now: number,
  ): Address {
    const table = this.#table;
    const words = this.#words;
    const head = table.chains + bucket;
    let length = 0;
    let lowest = Infinity;
    let candidate = 0; // the word that leads to it
    for (let at = head; words[at] !== 0; at = words[at] + NEXT) {
      const other = words[at];
      if (sameKey(words, other, entry)) {
        const same = hasRoute(words, other + ROUTE, fields);
        return this.#meet(head, at, entry, same, now);
      }
      if (Atomics.load(words, other + REFERENCES) === 0) {
        const score = this.#score(other, now);
        if (score <= lowest) {
          lowest = score;
          candidate = at;
        }
      }
      length++;
    }
    if (candidate !== 0 && length > words[table.header + ELASTICITY]) {
      table.unlink(candidate, words[candidate]);
      table.counters.count(EVICTIONS);
    }
    this.#publish(head, entry);
    table.counters.count(INSERTIONS);
    return entry;
  }

  /** How much an entry is worth: the longer unused, the less. */
  #score(entry: Address, now: number): number {
    const age = ticksSince(now, Atomics.load(this.#words, entry + LAST_USE));
    return ~age & 0x3fff_ffff;
  }

  /** An entry meets one with the same key: the better one ends up at the front. */
  #meet(
    head: Address,
    at: Address,
    entry: Address,
    same: boolean,
    now: number,
  ): Address {
    const table = this.#table;
    const words = this.#words;
    const old = words[at];
    if (!same) {
      table.counters.count(REPLACEMENTS);
    } else if (
      at === head || table.discipline.movesInPlace ||
      Atomics.load(words, old + REFERENCES) !== 0
    ) {
      Atomics.store(words, old + GENERATION, words[entry + GENERATION]);
      Atomics.store(words, old + LAST_USE, now);
      // A held entry stays where it is: its holder would keep one that is no longer found.
      if (at !== head && table.discipline.movesInPlace) {
        words[at] = words[old + NEXT];
        words[old + NEXT] = words[head];
        words[head] = old;
      }
      return old;
    }
    this.#publish(head, entry); // first (3)
    table.unlink(at === head ? entry + NEXT : at, old);
    return entry;
  }

  #drawSerial(): number {
    const at = this.#table.header + SERIALS;
    let serial = 0;
    while (serial === 0) serial = (Atomics.add(this.#words, at, 1) + 1) | 0;
    return serial;
  }

  #publish(head: Address, entry: Address): void {
    const table = this.#table;
    const words = this.#words;
    words[entry + NEXT] = words[head];
    const { journal } = table.membership;
    journal.join(entry);
    // Publish (1). Pairs with: the dependent load of the head in `find`.
    journal.store(head, entry);
    journal.finish();
    Atomics.add(words, table.header + ENTRIES, 1);
  }
}
