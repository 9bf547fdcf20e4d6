// Route records: one for each distinct route, shared by all prefixes that have it.

import type { Address } from "../memory/arena.ts";
import {
  BUCKET_MASK,
  BUCKETS,
  LOG_LENGTH,
  RECORDS,
  RECYCLED,
  RECYCLED_LOG,
} from "./_fib_trie.ts";
import type { RouteFields } from "./route.ts";

// A record. Readers see its fields, which never change, and whether it has references.
const FLAGS = 0;
const GATEWAY = 1;
const INTERFACE = 2;
const METRIC = 3;
const MTU = 4;
/** How many rules name it. */
const REFERENCES = 5;
/** The next record in its bucket. */
const NEXT = 6;

/** Words of a record. */
export const RECORD_WORDS = 8;
/** Buckets of an empty table. */
export const FEWEST_BUCKETS = 64;

/**
 * Reads a record's fields.
 *
 * @param words The arena's words.
 * @param record A record, in a read section or under the lock.
 * @returns Its fields.
 */
export function readRecord(words: Int32Array, record: Address): RouteFields {
  return {
    flags: words[record + FLAGS],
    gateway: words[record + GATEWAY],
    interface: words[record + INTERFACE],
    metric: words[record + METRIC],
    mtu: words[record + MTU],
  };
}

/**
 * Whether a record is one that an update will still recycle.
 *
 * @param words The arena's words.
 * @param record A record, in a read section or under the lock.
 * @returns `false` if it may have been recycled already.
 */
export function isInUse(words: Int32Array, record: Address): boolean {
  // Pairs with: the stores in `release` and `recycleAll`, which come before RECYCLED counts the record.
  return Atomics.load(words, record + REFERENCES) > 0;
}

/**
 * The records of a Fib by their fields: a chained hash table that writers
 * alone look at. It is kept in the Fib's words; whoever holds the lock, or has
 * the table for himself, works with the copy in this object and saves it.
 */
export class RecordTable {
  readonly #words: Int32Array;
  readonly #fib: Address;
  /** The block of buckets. */
  buckets: Address = 0;
  #mask = 0;
  /** How many records there are. */
  count = 0;

  constructor(words: Int32Array, fib: Address) {
    this.#words = words;
    this.#fib = fib;
  }

  /** Takes the state from the Fib's words. The lock is held. */
  open(): void {
    const words = this.#words;
    this.buckets = words[this.#fib + BUCKETS];
    this.#mask = words[this.#fib + BUCKET_MASK];
    this.count = words[this.#fib + RECORDS];
  }

  /** Writes the state back. The lock is held. */
  save(): void {
    const words = this.#words;
    words[this.#fib + BUCKETS] = this.buckets;
    words[this.#fib + BUCKET_MASK] = this.#mask;
    // Pairs with: the load in RouteDecoder, for which any recent value will do.
    Atomics.store(words, this.#fib + RECORDS, this.count);
  }

  /** The words that the next larger block of buckets needs, or 0 if there is room. */
  get wanted(): number {
    return this.count <= this.#mask ? 0 : 2 * (this.#mask + 1);
  }

  /**
   * Finds a record.
   *
   * @param fields A route's fields.
   * @returns The record, or 0.
   */
  find(fields: RouteFields): Address {
    const words = this.#words;
    let record = words[this.buckets + (hash(fields) & this.#mask)];
    while (record !== 0) {
      if (
        words[record + INTERFACE] === fields.interface &&
        words[record + GATEWAY] === fields.gateway &&
        words[record + METRIC] === fields.metric &&
        words[record + MTU] === fields.mtu &&
        words[record + FLAGS] === fields.flags
      ) return record;
      record = words[record + NEXT];
    }
    return 0;
  }

  /**
   * Makes a record of a block, for no rule as yet.
   *
   * @param record A block of {@linkcode RECORD_WORDS}.
   * @param fields What it holds.
   */
  fill(record: Address, fields: RouteFields): void {
    const words = this.#words;
    words[record + FLAGS] = fields.flags;
    words[record + GATEWAY] = fields.gateway;
    words[record + INTERFACE] = fields.interface;
    words[record + METRIC] = fields.metric;
    words[record + MTU] = fields.mtu;
    words[record + REFERENCES] = 0;
    words[record + NEXT] = 0;
  }

  /**
   * Counts one more rule of a record.
   *
   * @param record The record.
   */
  acquire(record: Address): void {
    Atomics.add(this.#words, record + REFERENCES, 1);
  }

  /**
   * Counts one rule less.
   *
   * @param record The record.
   * @returns Whether it was the last one.
   */
  release(record: Address): boolean {
    // Pairs with: `isInUse`.
    return Atomics.sub(this.#words, record + REFERENCES, 1) === 1;
  }

  /**
   * Takes a record without references out, and tells the threads that may have decoded it. After
   * that it may be retired.
   *
   * @param record The record.
   */
  recycle(record: Address): void {
    const words = this.#words;
    const fib = this.#fib;
    this.unlink(record);
    const recycled = Atomics.load(words, fib + RECYCLED);
    const place = fib + RECYCLED_LOG + (recycled & (LOG_LENGTH - 1));
    // Pairs with: the loads in `RouteDecoder.#search`: of the log first, then of the count again.
    Atomics.store(words, place, record);
    Atomics.store(words, fib + RECYCLED, (recycled + 1) | 0);
  }

  /** Tells all threads that no record of this table is used any more. */
  recycleAll(): void {
    const words = this.#words;
    // Pairs with: `isInUse`.
    this.forEach((record) => Atomics.store(words, record + REFERENCES, 0));
    // More than the log holds. Pairs with: `RouteDecoder.#search`.
    Atomics.add(words, this.#fib + RECYCLED, LOG_LENGTH);
  }

  /** Takes out and returns the records that no rule names. Nobody has seen them. */
  takeUnused(): Address[] {
    const unused: Address[] = [];
    this.forEach((record) => {
      if (this.#words[record + REFERENCES] === 0) unused.push(record);
    });
    for (const record of unused) this.unlink(record);
    return unused;
  }

  /**
   * Puts a record into its bucket.
   *
   * @param record A record that is in none.
   */
  link(record: Address): void {
    this.#push(record);
    this.count++;
  }

  /**
   * Takes a record out of its bucket.
   *
   * @param record The record.
   */
  unlink(record: Address): void {
    const words = this.#words;
    let link = this.#bucketOf(record);
    while (words[link] !== record) link = words[link] + NEXT;
    words[link] = words[record + NEXT];
    this.count--;
  }

  /**
   * Gives the table its first block of buckets, or a larger one.
   *
   * @param buckets The block.
   * @param size Its words, a power of two.
   */
  rehash(buckets: Address, size: number): void {
    const records: Address[] = [];
    this.forEach((record) => records.push(record));
    this.#words.fill(0, buckets, buckets + size);
    this.buckets = buckets;
    this.#mask = size - 1;
    for (const record of records) this.#push(record);
  }

  /**
   * Visits every record.
   *
   * @param visit May free the record.
   */
  forEach(visit: (record: Address) => void): void {
    if (this.buckets === 0) return;
    const words = this.#words;
    for (let i = 0; i <= this.#mask; i++) {
      let record = words[this.buckets + i];
      while (record !== 0) {
        const next = words[record + NEXT];
        visit(record);
        record = next;
      }
    }
  }

  #push(record: Address): void {
    const words = this.#words;
    const bucket = this.#bucketOf(record);
    words[record + NEXT] = words[bucket];
    words[bucket] = record;
  }

  #bucketOf(record: Address): Address {
    const fields = readRecord(this.#words, record);
    return this.buckets + (hash(fields) & this.#mask);
  }
}

function hash(fields: RouteFields): number {
  let h = Math.imul(fields.gateway, 0x9e3779b1);
  h = Math.imul((h ^ (h >>> 15)) + fields.interface, 0x85ebca77);
  h = Math.imul((h ^ (h >>> 13)) + fields.metric, 0xc2b2ae3d);
  h = Math.imul((h ^ (h >>> 16)) + fields.mtu + fields.flags, 0x27d4eb2f);
  return h ^ (h >>> 15);
}
