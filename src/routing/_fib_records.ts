// Finding, counting, recycling route records: for writers alone.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import { Reserve, reserveUnderLock } from "../structures/_reserve.ts";
import {
  FIRST_NUMBER,
  hashRoute,
  NEXT,
  readRecord,
  RECORD_WORDS,
  recordHas,
  recordOf,
  REFERENCES,
  type RouteNumber,
  writeRecord,
} from "./_fib_record.ts";
import {
  BUCKET_MASK,
  BUCKETS,
  CHUNKS,
  COLLECTING,
  COOKIE,
  FRESH,
  LOCK,
  LOG_LENGTH,
  RECORDS,
  RECYCLED,
  RECYCLED_LOG,
  UNUSED,
  WAITING,
} from "./_fib_trie.ts";
import type { RouteFields } from "./route.ts";

/** Buckets of the first hash table. */
const FEWEST_BUCKETS = 64;

/**
 * The records of a Fib by their fields, in a chained hash table.
 *
 * A number is used again only after a grace period, like memory:
 *
 * 1. What is recycled is collected in a list. Once the list before it is gone,
 *    the list as a whole becomes the one that waits, and gets a cookie *after*
 *    the last of its numbers was recycled; when that period has ended, its
 *    numbers are unused.
 * 2. Recycling comes after the store that unlinked the last rule with the
 *    number, so no section that begins after the period finds it in a cell.
 */
export class RouteRecords {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;
  readonly #reserve: Reserve;

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
    this.#reserve = new Reserve(m.heap);
  }

  /** Gives a new Fib its first records and buckets. Nobody else knows it. */
  initialize(): void {
    const words = this.#words;
    const fib = this.#fib;
    words[fib + FRESH] = FIRST_NUMBER;
    const buckets = this.#m.allocate(FEWEST_BUCKETS);
    try {
      const size = RECORD_WORDS * FIRST_NUMBER;
      this.#addChunk(FIRST_NUMBER, this.#m.allocate(size));
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
    this.#m.heap.free(words[this.#chunkOf(FIRST_NUMBER)]);
  }

  /**
   * The number of a route, with one reference more. No lock is held.
   *
   * @param fields The route.
   * @returns Its number, to be given to a rule or to {@linkcode drop}.
   */
  hold(fields: RouteFields): RouteNumber {
    const reserve = this.#reserve;
    return reserveUnderLock(this.#m, this.#fib + LOCK, reserve, () => {
      const number = this.#find(fields) || this.#make(fields);
      this.acquire(number);
      return number;
    });
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
   * Gives references back after an error, also where the membership has ended. That error
   * is what the caller has to hear of: if the lock cannot be had, because a thread
   * that is stuck holds it and nobody can update the table, they stay counted.
   *
   * @param numbers What {@linkcode hold} returned.
   */
  abandon(numbers: Iterable<RouteNumber>): void {
    try {
      this.drop(numbers);
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
      if (recordHas(words, record, fields)) return number;
      number = words[record + NEXT];
    }
    return 0;
  }

  #bucketOf(fields: RouteFields): Address {
    const words = this.#words;
    const mask = words[this.#fib + BUCKET_MASK];
    return words[this.#fib + BUCKETS] + (hashRoute(fields) & mask);
  }

  /** Makes a record for no rule as yet. */
  #make(fields: RouteFields): RouteNumber {
    const words = this.#words;
    const fib = this.#fib;
    const size = this.#wantedBuckets();
    const buckets = size > 0 ? this.#reserve.take(size) : 0;
    this.#sortUnused();
    const unused = words[fib + UNUSED];
    const number = unused !== 0 ? unused : this.#fresh();
    // From here on nothing can fail.
    this.#reserve.commit();
    if (buckets !== 0) this.#rehash(buckets, size);
    // Pairs with: the load in RouteDecoder, for which any recent value will do.
    if (unused === 0) Atomics.store(words, fib + FRESH, number + 1);
    else words[fib + UNUSED] = words[this.#at(number) + NEXT];
    const record = this.#at(number);
    writeRecord(words, record, fields);
    this.#push(number, record);
    words[fib + RECORDS]++;
    return number;
  }

  /** The lowest number that was never used. */
  #fresh(): RouteNumber {
    const number = this.#words[this.#fib + FRESH];
    if (this.#words[this.#chunkOf(number)] === 0) {
      this.#addChunk(number, this.#reserve.take(RECORD_WORDS * number));
    }
    return number;
  }

  /** Where it says in which block the record of a number lies. */
  #chunkOf(number: RouteNumber): Address {
    return this.#fib + CHUNKS + 31 - Math.clz32(number);
  }

  /** Adds as many records as there are numbers below the first of them. */
  #addChunk(first: RouteNumber, block: Address): void {
    this.#words.fill(0, block, block + RECORD_WORDS * first);
    // Before a cell gets a number that lies in it. Pairs with: the load in `recordOf`.
    Atomics.store(this.#words, this.#chunkOf(first), block);
  }

  /** Looks whether what has been recycled may be used again (1). */
  #sortUnused(): void {
    const words = this.#words;
    const fib = this.#fib;
    const { periods } = this.#m;
    if (words[fib + UNUSED] !== 0) return;
    if (words[fib + WAITING] !== 0) {
      const cookie = words[fib + COOKIE + 1] * 2 ** 32 +
        (words[fib + COOKIE] >>> 0);
      if (!periods.poll(cookie as GracePeriodCookie)) return;
      words[fib + UNUSED] = words[fib + WAITING];
    }
    words[fib + WAITING] = words[fib + COLLECTING];
    words[fib + COLLECTING] = 0;
    if (words[fib + WAITING] === 0) return;
    const cookie = periods.start();
    words[fib + COOKIE] = cookie | 0;
    words[fib + COOKIE + 1] = Math.floor(cookie / 2 ** 32);
  }

  /** Takes a record without references out, and tells the threads that may have decoded it. */
  #recycle(number: RouteNumber): void {
    const words = this.#words;
    const fib = this.#fib;
    const record = this.#at(number);
    let link = this.#bucketOf(readRecord(words, record));
    while (words[link] !== number) link = this.#at(words[link]) + NEXT;
    words[link] = words[record + NEXT];
    words[record + NEXT] = words[fib + COLLECTING];
    words[fib + COLLECTING] = number;
    words[fib + RECORDS]--;
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
    const bucket = this.#bucketOf(readRecord(words, record));
    words[record + NEXT] = words[bucket];
    words[bucket] = number;
  }
}
