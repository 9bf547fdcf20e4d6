// Finding, counting, recycling route records: for writers alone.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import type { StallReport } from "../grace_periods/stall_report.ts";
import { RcuMemoryError } from "../memory/errors.ts";
import { Reserve, reserveUnderLock } from "../structures/_reserve.ts";
import {
  CROWDED,
  IMPATIENT,
  type Patience,
  RouteNumbers,
  WAITS_IF_CROWDED,
  WAITS_IF_SHORT,
} from "./_fib_numbers.ts";
import {
  FIRST_NUMBER,
  hashRoute,
  NEXT,
  RECORD_WORDS,
  recordOf,
  REFERENCES,
  type RouteNumber,
} from "./_fib_record.ts";
import {
  BUCKET_MASK,
  BUCKETS,
  LOCK,
  LOG_LENGTH,
  RECORDS,
  RECYCLED,
  RECYCLED_LOG,
} from "./_fib_trie.ts";
import { hasRoute, readRoute, writeRoute } from "./_route_words.ts";
import type { RouteFields } from "./route.ts";

/** Buckets of the first hash table. */
const FEWEST_BUCKETS = 64;

/** How long an update waits for a period where that saves memory, and no longer, in ms. */
const CROWDED_WAIT = 10;

/**
 * The records of a Fib by their fields, in a chained hash table, each with a
 * number of {@linkcode RouteNumbers}.
 */
export class RouteRecords {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;
  readonly #reserve: Reserve;
  readonly #numbers: RouteNumbers;

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
    this.#reserve = new Reserve(m.heap);
    this.#numbers = new RouteNumbers(m, fib);
  }

  /** Gives a new Fib its first records and buckets. Nobody else knows it. */
  initialize(): void {
    const buckets = this.#m.allocate(FEWEST_BUCKETS);
    try {
      const size = RECORD_WORDS * FIRST_NUMBER;
      this.#numbers.initialize(this.#m.allocate(size));
    } catch (error) {
      this.#m.heap.free(buckets);
      throw error;
    }
    this.#rehash(buckets, FEWEST_BUCKETS);
  }

  /** Frees what a Fib that nobody has used got from {@linkcode initialize}. */
  dispose(): void {
    const words = this.#words;
    this.#m.heap.free(words[this.#fib + BUCKETS]);
    this.#m.heap.free(this.#numbers.firstChunk);
  }

  /**
   * The number of a route, with one reference more. No lock is held.
   *
   * Where most numbers wait for a grace period, as beside a reader that does not
   * pass, it waits for that a moment before it makes new ones; where
   * there is no memory for those, it waits as long as any allocation does.
   *
   * @param fields The route.
   * @returns Its number, to be given to a rule or to {@linkcode drop}.
   */
  hold(fields: RouteFields): RouteNumber {
    const m = this.#m;
    const reserve = this.#reserve;
    let patience: Patience = m.reader.depth === 0
      ? WAITS_IF_CROWDED
      : IMPATIENT;
    let deadline = 0;
    let stalled: StallReport | undefined;
    let cookie = 0 as GracePeriodCookie;
    const act = () => {
      const found = this.#find(fields);
      if (found !== 0) {
        this.acquire(found);
        return found;
      }
      const made = this.#make(fields, patience);
      if (made < 0) cookie = this.#numbers.cookie;
      return made;
    };
    while (true) {
      let number: number;
      try {
        number = reserveUnderLock(m, this.#fib + LOCK, reserve, act);
      } catch (error) {
        if (stalled === undefined) throw error;
        throw blame(error, stalled);
      }
      if (number > 0) return number;
      if (number === CROWDED) {
        this.#numbers.wait(cookie, CROWDED_WAIT);
        patience = WAITS_IF_SHORT;
        continue;
      }
      const now = performance.now();
      if (deadline === 0) deadline = now + m.stallTimeout;
      if (now < deadline && this.#numbers.wait(cookie, deadline - now)) {
        continue;
      }
      patience = IMPATIENT;
      stalled = m.stallReport(m.stallTimeout);
    }
  }

  /**
   * Gives memory back that was for many more routes. The lock is held.
   *
   * @returns Whether more can be given back after a grace period.
   */
  tidy(): boolean {
    const words = this.#words;
    const buckets = words[this.#fib + BUCKET_MASK] + 1;
    const wanted = 2 * words[this.#fib + RECORDS];
    if (buckets > FEWEST_BUCKETS && buckets > 4 * wanted) {
      let size = FEWEST_BUCKETS;
      while (size < wanted) size *= 2;
      const block = this.#m.heap.tryAllocate(size);
      if (block !== 0) {
        this.#m.heap.makePublic(block);
        this.#rehash(block, size);
      }
    }
    return this.#numbers.trim();
  }

  /** Gives memory back after many routes have gone, and waits a moment for what readers may hold of it. No lock is held. */
  settle(): void {
    const m = this.#m;
    // What waits, and what comes after that.
    for (let rounds = 2; rounds >= 0; rounds--) {
      let cookie: GracePeriodCookie;
      // Whoever has the lock tidies up after this thread.
      if (!m.tryLock(this.#fib + LOCK)) return;
      try {
        if (!this.tidy() || rounds === 0 || m.reader.depth !== 0) return;
        cookie = this.#numbers.cookie;
      } finally {
        m.unlock(this.#fib + LOCK);
      }
      if (!this.#numbers.wait(cookie, CROWDED_WAIT)) return;
    }
  }

  /**
   * Gives references back. No lock is held.
   *
   * @param numbers What {@linkcode hold} returned.
   */
  drop(numbers: Iterable<RouteNumber>): void {
    const m = this.#m;
    m.lockToCleanUp(this.#fib + LOCK);
    try {
      for (const number of numbers) this.release(number);
    } finally {
      m.unlock(this.#fib + LOCK);
    }
  }

  /**
   * Gives references back after an error, also where the membership has ended, and
   * the memory for them. That error is what the caller has to hear of: if the lock
   * cannot be had, because a thread that is stuck holds it and nobody can
   * update the table, they stay counted.
   *
   * @param numbers What {@linkcode hold} returned.
   */
  abandon(numbers: Iterable<RouteNumber>): void {
    try {
      this.drop(numbers);
      if (!this.#m.closed) this.settle();
    } catch {
      // As said above.
    }
  }

  /**
   * Counts one reference more. The lock is held.
   *
   * @param number A number in use.
   */
  acquire(number: RouteNumber): void {
    Atomics.add(this.#words, this.#at(number) + REFERENCES, 1);
  }

  /**
   * Counts one reference less; the last one recycles the record. The lock is
   * held, and what named it has been unlinked.
   *
   * @param number A number in use.
   */
  release(number: RouteNumber): void {
    // Pairs with: `isInUse`.
    const left = Atomics.sub(this.#words, this.#at(number) + REFERENCES, 1);
    if (left === 1) this.#recycle(number);
  }

  #at(number: RouteNumber): Address {
    return recordOf(this.#words, this.#fib, number);
  }

  #find(fields: RouteFields): RouteNumber {
    const words = this.#words;
    let number = words[this.#bucketOf(fields)];
    while (number !== 0) {
      const record = this.#at(number);
      if (hasRoute(words, record, fields)) return number;
      number = words[record + NEXT];
    }
    return 0;
  }

  #bucketOf(fields: RouteFields): Address {
    const words = this.#words;
    const mask = words[this.#fib + BUCKET_MASK];
    return words[this.#fib + BUCKETS] + (hashRoute(fields) & mask);
  }

  /** Makes a record with one reference; or says for what to wait. */
  #make(fields: RouteFields, patience: Patience): number {
    const words = this.#words;
    const number = this.#numbers.take(this.#reserve, patience);
    if (number < 0) return number;
    const size = this.#wantedBuckets();
    // Chains that are too long are no reason to fail.
    const buckets = size > 0 ? this.#reserve.tryTake(size) : 0;
    // From here on nothing can fail.
    this.#reserve.commit(this.#m.journal);
    this.#m.journal.finish();
    if (buckets !== 0) this.#rehash(buckets, size);
    this.#numbers.use(number);
    const record = this.#at(number);
    writeRoute(words, record, fields);
    this.#push(number, record);
    words[this.#fib + RECORDS]++;
    this.acquire(number);
    return number;
  }

  /** Takes a record without references out, and tells the threads that may have decoded it. */
  #recycle(number: RouteNumber): void {
    const words = this.#words;
    const fib = this.#fib;
    const record = this.#at(number);
    let link = this.#bucketOf(readRoute(words, record));
    while (words[link] !== number) link = this.#at(words[link]) + NEXT;
    words[link] = words[record + NEXT];
    words[fib + RECORDS]--;
    this.#numbers.collect(number);
    const recycled = Atomics.load(words, fib + RECYCLED);
    const place = fib + RECYCLED_LOG + (recycled & (LOG_LENGTH - 1));
    // Pairs with: the loads in `RouteDecoder.search`: of the log first, then of the count again.
    Atomics.store(words, place, number);
    Atomics.store(words, fib + RECYCLED, (recycled + 1) | 0);
  }

  /** The words that the next larger block of buckets needs, or 0 if there is room. */
  #wantedBuckets(): number {
    const words = this.#words;
    const buckets = words[this.#fib + BUCKET_MASK] + 1;
    return words[this.#fib + RECORDS] < buckets ? 0 : 2 * buckets;
  }

  #rehash(buckets: Address, size: number): void {
    const words = this.#words;
    const fib = this.#fib;
    const old = words[fib + BUCKETS];
    const end = old === 0 ? 0 : old + words[fib + BUCKET_MASK] + 1;
    words.fill(0, buckets, buckets + size);
    words[fib + BUCKETS] = buckets;
    words[fib + BUCKET_MASK] = size - 1;
    for (let bucket = old; bucket < end; bucket++) {
      for (let number = words[bucket]; number !== 0;) {
        const record = this.#at(number);
        const next = words[record + NEXT];
        this.#push(number, record);
        number = next;
      }
    }
    // Nobody but writers looks at it: no grace period.
    if (old !== 0) this.#m.heap.free(old);
  }

  #push(number: RouteNumber, record: Address): void {
    const words = this.#words;
    const bucket = this.#bucketOf(readRoute(words, record));
    words[record + NEXT] = words[bucket];
    words[bucket] = number;
  }
}

/** Says in an error that memory is short which readers keep numbers from being used again. */
function blame(error: unknown, stalled: StallReport): unknown {
  if (!(error instanceof RcuMemoryError) || stalled.readers.length === 0) {
    return error;
  }
  const { requested, available, deferred } = error;
  const readers = stalled.readers.map(({ id, name }) =>
    name === "" ? `reader ${id}` : `reader ${id} ("${name}")`
  );
  return new RcuMemoryError(
    `Cannot allocate ${requested} bytes for routes as they must fit into the arena: ` +
      `${available} bytes are free in all, and earlier routes wait for a grace period; ` +
      `${readers.join(", ")} holds the grace period up`,
    { requested, available, deferred },
  );
}
