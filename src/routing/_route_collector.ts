// Which cached routes go, and when.

import type { Address } from "../memory/arena.ts";
import { ticksOf, ticksSince } from "./_route_clock.ts";
import {
  BUCKETS,
  COLLECTED,
  COLLECTIONS,
  COLLECTOR_LOCK,
  ELASTICITY,
  EQUILIBRIUM,
  EXPIRATION_ROVER,
  EXPIRED,
  EXPIRY,
  GC_INTERVAL,
  GC_MIN_INTERVAL,
  GC_THRESHOLD,
  GC_TIMEOUT,
  IGNORED,
  LAST_COLLECTION,
  LAST_EXPIRATION,
  LAST_SECRET,
  LAST_USE,
  MAX_SIZE,
  MISSED_GOALS,
  NEXT,
  OVERFLOWS,
  REFERENCES,
  ROVER,
  SECRET_INTERVAL,
} from "./_route_layout.ts";
import type { RouteTable } from "./_route_table.ts";

/**
 * The garbage collection of the 2.6.24 route cache. All counts are of entries
 * in the chains, all times in ticks.
 *
 * 1. A collection within `gcMinInterval` of the last one is ignored, unless
 *    the cache is full (`maxSize`).
 * 2. Its goal is what there is beyond `elasticity` entries a bucket. If that is
 *    more than nothing the cache is in danger: the goal is half of it, a bucket's
 *    worth (`buckets`) at least, and what it would leave is the new
 *    *equilibrium*. Otherwise the goal is what there is beyond the equilibrium,
 *    which is `gcThreshold` at least; and if that is more than nothing, the
 *    equilibrium first grows by half of it, `buckets` at most. Where nothing
 *    is to be done, the equilibrium shrinks to what there is.
 * 3. A collection goes through the chains from where the last one stopped, once
 *    around at most, until the goal is met. In each chain the first entry may be
 *    as old as the *expiry* says; whenever one is kept, the next may only be
 *    half as old, because the front of a chain is where the useful ones are.
 * 4. An entry goes if nothing holds it and it is older than that, or has
 *    expired: the Fib has another route for its destination by now.
 * 5. If the goal is missed the expiry is halved; and the collection goes around
 *    again while the cache is full, until the expiry was 0. If it is full even
 *    then, that is an overflow, and the insertion that wanted room fails.
 * 6. If the goal is met the expiry grows by `gcMinInterval` up to `gcTimeout`;
 *    at once to that if fewer than `gcThreshold` entries are left.
 * 7. Every `gcInterval`, as many chains as make all of them in a `gcTimeout` are
 *    gone through by (3) and (4) with `gcTimeout` as the expiry.
 *
 * One thread collects at a time. Another one that comes meanwhile goes without,
 * unless the cache is full.
 */
export class RouteCollector {
  readonly #table: RouteTable;
  readonly #words: Int32Array;
  readonly #header: Address;

  constructor(table: RouteTable) {
    this.#table = table;
    this.#words = table.words;
    this.#header = table.header;
  }

  /**
   * The collection. No lock is held.
   *
   * @param elasticity How many entries a bucket are not yet dangerous.
   * @param minInterval Ticks since the last one.
   * @param now The time, in ticks.
   * @returns Whether there is room for one entry more; otherwise the overflow has been counted.
   */
  collect(
    elasticity: number = this.#words[this.#header + ELASTICITY],
    minInterval: number = this.#words[this.#header + GC_MIN_INTERVAL],
    now: number = ticksOf(this.#table.clock),
  ): boolean {
    const { membership, counters } = this.#table;
    const words = this.#words;
    const lock = this.#header + COLLECTOR_LOCK;
    counters.count(COLLECTIONS);
    if (this.#isTooSoon(now, minInterval)) {
      counters.count(IGNORED);
      return true;
    }
    if (!membership.tryLock(lock)) {
      if (this.#entries < words[this.#header + MAX_SIZE]) {
        counters.count(IGNORED);
        return true;
      }
      membership.lock(lock);
    }
    let room: boolean;
    try {
      room = this.#collectLocked(now, elasticity, minInterval);
    } finally {
      membership.unlock(lock);
    }
    if (!room) counters.count(OVERFLOWS);
    return room;
  }

  get #entries(): number {
    return this.#table.entries;
  }

  #isTooSoon(now: number, minInterval: number): boolean {
    const last = Atomics.load(this.#words, this.#header + LAST_COLLECTION);
    return ticksSince(now, last) < minInterval &&
      this.#entries < this.#words[this.#header + MAX_SIZE];
  }

  #collectLocked(
    now: number,
    elasticity: number,
    minInterval: number,
  ): boolean {
    const words = this.#words;
    const header = this.#header;
    const maxSize = words[header + MAX_SIZE];
    let goal = this.#setGoal(elasticity);
    const last = Atomics.load(words, header + LAST_COLLECTION);
    if (ticksSince(now, last) >= minInterval) {
      Atomics.store(words, header + LAST_COLLECTION, now);
    }
    if (goal <= 0) {
      this.#addToEquilibrium(goal);
      this.#relax(minInterval);
      return true;
    }
    while (true) {
      const expiry = words[header + EXPIRY];
      goal -= this.#goAround(goal, expiry, now);
      if (goal <= 0) {
        this.#relax(minInterval);
        return true;
      }
      this.#table.counters.count(MISSED_GOALS);
      if (expiry === 0) break;
      Atomics.store(words, header + EXPIRY, expiry >> 1);
      if (this.#entries < maxSize) return true;
    }
    return this.#entries < maxSize;
  }

  /** The goal (2). */
  #setGoal(elasticity: number): number {
    const words = this.#words;
    const header = this.#header;
    const buckets = words[header + BUCKETS];
    const entries = this.#entries;
    const excess = entries - elasticity * buckets;
    if (excess > 0) {
      const goal = Math.max(excess >> 1, buckets);
      Atomics.store(words, header + EQUILIBRIUM, entries - goal);
      return goal;
    }
    const threshold = words[header + GC_THRESHOLD];
    if (words[header + EQUILIBRIUM] < threshold) {
      Atomics.store(words, header + EQUILIBRIUM, threshold);
    }
    const goal = entries - words[header + EQUILIBRIUM];
    if (goal <= 0) return goal;
    this.#addToEquilibrium(Math.min(goal >> 1, buckets));
    return entries - words[header + EQUILIBRIUM];
  }

  #addToEquilibrium(change: number): void {
    const at = this.#header + EQUILIBRIUM;
    Atomics.store(this.#words, at, this.#words[at] + change);
  }

  /** The expiry after a goal that was met (6). */
  #relax(minInterval: number): void {
    const words = this.#words;
    const header = this.#header;
    const longest = words[header + GC_TIMEOUT];
    const expiry = words[header + EXPIRY] + minInterval;
    const reset = expiry > longest ||
      this.#entries < words[header + GC_THRESHOLD];
    Atomics.store(words, header + EXPIRY, reset ? longest : expiry);
  }

  /** Goes through the chains once, or until the goal is met (3). */
  #goAround(goal: number, expiry: number, now: number): number {
    const words = this.#words;
    const header = this.#header;
    const mask = words[header + BUCKETS] - 1;
    let bucket = words[header + ROVER];
    let freed = 0;
    for (let left = mask; left >= 0 && freed < goal; left--) {
      bucket = (bucket + 1) & mask;
      freed += this.#pruneChain(bucket, expiry, now);
    }
    words[header + ROVER] = bucket;
    this.#table.counters.count(COLLECTED, freed);
    return freed;
  }

  /** Takes out of a chain what may go; the expiry is halved with each entry kept. */
  #pruneChain(bucket: number, expiry: number, now: number): number {
    const table = this.#table;
    const words = this.#words;
    let at = table.chains + bucket;
    if (Atomics.load(words, at) === 0) return 0;
    let freed = 0;
    table.discipline.lock(bucket);
    try {
      for (let entry = words[at]; entry !== 0; entry = words[at]) {
        if (this.#mayGo(entry, expiry, now)) {
          table.unlink(at, entry);
          freed++;
        } else {
          expiry >>= 1;
          at = entry + NEXT;
        }
      }
    } finally {
      table.discipline.unlock(bucket);
    }
    return freed;
  }

  /** Whether an entry may go (4). */
  #mayGo(entry: Address, expiry: number, now: number): boolean {
    const words = this.#words;
    if (Atomics.load(words, entry + REFERENCES) !== 0) return false;
    const age = ticksSince(now, Atomics.load(words, entry + LAST_USE));
    return age > expiry || this.#table.isOutdated(entry);
  }

  // What is due now and then

  /**
   * Does what is due: the periodic part (7), and the renewal of the secret. No
   * lock is held.
   *
   * @param now The time, in ticks.
   */
  maintain(now: number): void {
    const words = this.#words;
    const header = this.#header;
    if (this.#isDue(LAST_SECRET, words[header + SECRET_INTERVAL], now)) {
      this.#table.renewSecret(now);
    }
    if (this.#isDue(LAST_EXPIRATION, words[header + GC_INTERVAL], now)) {
      this.expire(now);
    }
  }

  /** Whether it is time; `true` for one of the threads that ask. */
  #isDue(at: number, interval: number, now: number): boolean {
    const words = this.#words;
    const last = Atomics.load(words, this.#header + at);
    return ticksSince(now, last) >= interval && interval > 0 &&
      Atomics.compareExchange(words, this.#header + at, last, now) === last;
  }

  /**
   * The periodic part (7). No lock is held.
   *
   * @param now The time, in ticks.
   * @returns How many entries went.
   */
  expire(now: number): number {
    const words = this.#words;
    const header = this.#header;
    const buckets = words[header + BUCKETS];
    const timeout = words[header + GC_TIMEOUT];
    const share = buckets * words[header + GC_INTERVAL] / Math.max(timeout, 1);
    let bucket = Atomics.load(words, header + EXPIRATION_ROVER);
    let freed = 0;
    for (let left = Math.min(Math.floor(share), buckets); left > 0; left--) {
      bucket = (bucket + 1) & (buckets - 1);
      freed += this.#pruneChain(bucket, timeout, now);
    }
    Atomics.store(words, header + EXPIRATION_ROVER, bucket);
    this.#table.counters.count(EXPIRED, freed);
    return freed;
  }
}
