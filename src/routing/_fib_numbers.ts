// Which route numbers may be used, and the blocks in which their records lie: for writers alone.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import { type Reserve, Shortage } from "../structures/_reserve.ts";
import {
  FIRST_NUMBER,
  NEXT,
  RECORD_WORDS,
  recordOf,
  type RouteNumber,
} from "./_fib_record.ts";
import {
  BUSY,
  CHUNKS,
  COLLECTING,
  COOKIE,
  FRESH,
  RECORDS,
  UNUSED,
  USED,
  WAITING,
} from "./_fib_trie.ts";

/** What {@linkcode RouteNumbers.take} returns where most numbers wait for a period. */
export const CROWDED = -1;
/** What it returns where numbers wait for a period, and there is no memory for others. */
export const SHORT = -2;

/** For which of these a caller waits before it asks for new numbers. */
export type Patience = 0 | 1 | 2;
/** For neither. */
export const IMPATIENT = 0;
/** For {@linkcode SHORT}. */
export const WAITS_IF_SHORT = 1;
/** For both. */
export const WAITS_IF_CROWDED = 2;

/** A chunk is given back if the numbers below it are this many times as many as the routes. */
const SPARE = 4;

const FIRST_CHUNK = 31 - Math.clz32(FIRST_NUMBER);

/**
 * The route numbers of a Fib. All but {@linkcode RouteNumbers.wait} is called under the lock.
 *
 * A number is used again only after a grace period, like memory:
 *
 * 1. What is recycled is collected in a list. Once the list before it is gone,
 *    the list as a whole becomes the one that waits, and gets a cookie *after*
 *    the last of its numbers was recycled; when that period has ended, its
 *    numbers are unused.
 * 2. Recycling comes after the store that unlinked the last rule with the
 *    number, so no section that begins after the period finds it in a cell.
 * 3. The numbers from 2ᶜ on share a chunk of records. Unused numbers are listed
 *    by chunk, and the lowest chunk's are used first, so that the highest one
 *    falls out of use. BUSY counts a chunk's numbers that are in use or wait. When
 *    it is 0 for the highest one, no section has a number of it, by (2), so the
 *    chunk can be freed at once; its numbers are then as good as never used.
 */
export class RouteNumbers {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
  }

  /**
   * Gives a new Fib its first records.
   *
   * @param block Room for {@linkcode FIRST_NUMBER} of them.
   */
  initialize(block: Address): void {
    this.#words[this.#fib + FRESH] = FIRST_NUMBER;
    this.#addChunk(FIRST_CHUNK, block);
  }

  /** The first records' block. */
  get firstChunk(): Address {
    return this.#words[this.#fib + CHUNKS + FIRST_CHUNK];
  }

  /**
   * Finds a number to use.
   *
   * @param reserve Where the block of new ones comes from.
   * @param patience For what the caller would rather wait.
   * @returns A number, to be given to {@linkcode RouteNumbers.use}; {@linkcode CROWDED} or {@linkcode SHORT} if it is better to {@linkcode RouteNumbers.wait}.
   */
  take(
    reserve: Reserve,
    patience: Patience,
  ): RouteNumber | typeof CROWDED | typeof SHORT {
    const words = this.#words;
    const fib = this.#fib;
    let unused = this.#lowestUnused();
    if (unused === 0) {
      this.#sort();
      unused = this.#lowestUnused();
    }
    if (unused !== 0) return unused;
    const fresh = words[fib + FRESH];
    const chunk = chunkOf(fresh);
    if (words[fib + CHUNKS + chunk] !== 0) return fresh;
    // All that are not in use.
    const waiting = fresh - FIRST_NUMBER - words[fib + RECORDS];
    if (
      patience === WAITS_IF_CROWDED && 2 * waiting >= fresh - FIRST_NUMBER
    ) return CROWDED;
    const size = RECORD_WORDS * fresh;
    const block = reserve.tryTake(size);
    if (block !== 0) {
      this.#addChunk(chunk, block);
      return fresh;
    }
    if (patience !== IMPATIENT && waiting > 0) return SHORT;
    throw new Shortage(size);
  }

  /**
   * Puts a number into use.
   *
   * @param number What {@linkcode RouteNumbers.take} has just returned.
   */
  use(number: RouteNumber): void {
    const words = this.#words;
    const fib = this.#fib;
    const chunk = chunkOf(number);
    if (number === words[fib + FRESH]) {
      // Pairs with: the load in RouteDecoder, for which any recent value will do.
      Atomics.store(words, fib + FRESH, number + 1);
    } else {
      words[fib + UNUSED + chunk] = words[this.#at(number) + NEXT];
    }
    words[fib + USED + chunk]++;
    words[fib + BUSY + chunk]++;
  }

  /**
   * Collects a number that no rule has any more.
   *
   * @param number The number.
   */
  collect(number: RouteNumber): void {
    const words = this.#words;
    const fib = this.#fib;
    words[this.#at(number) + NEXT] = words[fib + COLLECTING];
    words[fib + COLLECTING] = number;
    words[fib + USED + chunkOf(number)]--;
  }

  /**
   * Frees the highest chunks, if they are many more than the routes need, and
   * nobody can have a number of them (3).
   *
   * @returns Whether there is one that a later period will let go.
   */
  trim(): boolean {
    const words = this.#words;
    const fib = this.#fib;
    let sorted = false;
    while (true) {
      const chunk = chunkOf(words[fib + FRESH] - 1);
      const first = 1 << chunk;
      if (
        chunk === FIRST_CHUNK || words[fib + USED + chunk] !== 0 ||
        SPARE * words[fib + RECORDS] > first - FIRST_NUMBER
      ) return false;
      if (words[fib + BUSY + chunk] === 0) {
        const block = words[fib + CHUNKS + chunk];
        words[fib + UNUSED + chunk] = 0;
        Atomics.store(words, fib + CHUNKS + chunk, 0);
        Atomics.store(words, fib + FRESH, first);
        this.#m.heap.free(block);
      } else {
        if (sorted) return true;
        this.#sort();
        sorted = true;
      }
    }
  }

  /**
   * Waits for the period after which numbers may be used again. No lock is
   * held, and the thread is in no section.
   *
   * @param cookie What {@linkcode RouteNumbers.cookie} was under the lock.
   * @param timeout Longest wait in ms.
   * @returns Whether it has ended.
   */
  wait(cookie: GracePeriodCookie, timeout: number): boolean {
    this.#m.reader.goOffline();
    return this.#m.periods.wait(cookie, timeout, true);
  }

  /** The period that the waiting numbers wait for. */
  get cookie(): GracePeriodCookie {
    const words = this.#words;
    const fib = this.#fib;
    return words[fib + COOKIE + 1] * 2 ** 32 +
      (words[fib + COOKIE] >>> 0) as GracePeriodCookie;
  }

  #at(number: RouteNumber): Address {
    return recordOf(this.#words, this.#fib, number);
  }

  #lowestUnused(): RouteNumber {
    const words = this.#words;
    const fib = this.#fib;
    const last = chunkOf(words[fib + FRESH] - 1);
    for (let chunk = FIRST_CHUNK; chunk <= last; chunk++) {
      const number = words[fib + UNUSED + chunk];
      if (number !== 0) return number;
    }
    return 0;
  }

  /** Adds as many records as there are numbers below the first of them. */
  #addChunk(chunk: number, block: Address): void {
    this.#words.fill(0, block, block + RECORD_WORDS * (1 << chunk));
    // Before a cell gets a number that lies in it. Pairs with: the load in `recordOf`.
    Atomics.store(this.#words, this.#fib + CHUNKS + chunk, block);
  }

  /** Looks whether what has been recycled may be used again (1). */
  #sort(): void {
    const words = this.#words;
    const fib = this.#fib;
    const { periods } = this.#m;
    if (words[fib + WAITING] !== 0) {
      if (!periods.poll(this.cookie)) return;
      this.#unuse(words[fib + WAITING]);
    }
    words[fib + WAITING] = words[fib + COLLECTING];
    words[fib + COLLECTING] = 0;
    if (words[fib + WAITING] === 0) return;
    const cookie = periods.start();
    words[fib + COOKIE] = cookie | 0;
    words[fib + COOKIE + 1] = Math.floor(cookie / 2 ** 32);
    // Where nobody is reading, that period ends here.
    if (!periods.poll(cookie)) return;
    this.#unuse(words[fib + WAITING]);
    words[fib + WAITING] = 0;
  }

  /** Lists numbers by chunk whose period has ended. */
  #unuse(number: RouteNumber): void {
    const words = this.#words;
    const fib = this.#fib;
    while (number !== 0) {
      const chunk = chunkOf(number);
      const at = this.#at(number) + NEXT;
      const next = words[at];
      words[at] = words[fib + UNUSED + chunk];
      words[fib + UNUSED + chunk] = number;
      words[fib + BUSY + chunk]--;
      number = next;
    }
  }
}

/** In which chunk the record of a number lies: the logarithm of the first number in it. */
function chunkOf(number: RouteNumber): number {
  return 31 - Math.clz32(number);
}
