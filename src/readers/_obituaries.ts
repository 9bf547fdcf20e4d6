// Which threads have died: a ring in shared memory, for those who want to hear of it.

import { acquire, isHeldBy, release } from "../sync/_mutex.ts";
import type { Address } from "../memory/arena.ts";
import { measureText, readText, writeText } from "../memory/_text.ts";
import { LINE } from "../memory/_size_classes.ts";

const LOCK = 0;
/** How many there have ever been, modulo 2³². Moves last; who waits for news sleeps on it. */
const COUNT = 1;
const ENTRIES = LINE;

// An entry.
const NUMBER = 0;
const LIFE = 1;
const READER = 2;
const LOST = 3;
const NAME = 4;
const ENTRY_WORDS = 2 * LINE;
/** The shortest ring. */
const SHORTEST = 64;
/** Characters of a name that are sure to fit. */
const NAME_LENGTH = 54;

/**
 * How many entries the ring has: who looks less often than every so many deaths misses some.
 * All threads may die at once, and as many again that come in their places before anybody looks.
 */
function lengthFor(maxReaders: number): number {
  // A power of two: numbers go round at 2³².
  let length = SHORTEST;
  while (length < 2 * maxReaders) length *= 2;
  return length;
}

/**
 * Words of the ring.
 *
 * @param maxReaders Most readers at a time.
 * @returns Its size.
 */
export function obituaryWords(maxReaders: number): number {
  return ENTRIES + lengthFor(maxReaders) * ENTRY_WORDS;
}

/** Longest wait for the ring's lock, in ms. */
const LOCK_TIMEOUT = 10_000;

/** What is known of a thread that has died. */
export interface Obituary {
  /** The life that has ended. */
  life: number;
  id: number;
  name: string;
  lostCallbacks: number;
}

/** The deaths in a domain. */
export class Obituaries {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #length: number;

  /**
   * @param words The domain's words.
   * @param base Where the ring lies.
   * @param maxReaders Most readers at a time.
   */
  constructor(words: Int32Array, base: Address, maxReaders: number) {
    this.#words = words;
    this.#base = base;
    this.#length = lengthFor(maxReaders);
  }

  /** How many there have been. */
  get count(): number {
    return Atomics.load(this.#words, this.#base + COUNT);
  }

  /**
   * Waits until there may be a further one. Keeps no process alive.
   *
   * @param seen How many the caller knows of.
   * @param timeout Longest wait in ms.
   */
  async next(seen: number, timeout: number): Promise<void> {
    // Pairs with: `add`.
    const sleep = Atomics.waitAsync(
      this.#words,
      this.#base + COUNT,
      seen,
      timeout,
    );
    if (sleep.async) await sleep.value;
  }

  #entry(number: number): Address {
    return this.#base + ENTRIES + (number & (this.#length - 1)) * ENTRY_WORDS;
  }

  /**
   * Adds one, unless it is there already.
   *
   * @param obituary The death.
   * @param owner Who adds it, as the holder of a lock.
   */
  add(obituary: Obituary, owner: number): void {
    const words = this.#words;
    const lock = this.#base + LOCK;
    if (
      !isHeldBy(words, lock, owner) &&
      !acquire(words, lock, owner, LOCK_TIMEOUT)
    ) return;
    const { count } = this;
    if (!this.#has(count, obituary.life)) {
      const entry = this.#entry(count);
      // Not to be read while it changes.
      Atomics.store(words, entry + NUMBER, count - 1);
      Atomics.store(words, entry + LIFE, obituary.life);
      Atomics.store(words, entry + READER, obituary.id);
      Atomics.store(words, entry + LOST, obituary.lostCallbacks);
      let { name } = obituary;
      if (measureText(name) > ENTRY_WORDS - NAME) {
        name = name.slice(0, NAME_LENGTH);
      }
      writeText(words, entry + NAME, name);
      Atomics.store(words, entry + NUMBER, count);
      // Pairs with: `since`.
      Atomics.store(words, this.#base + COUNT, (count + 1) | 0);
    }
    release(words, lock);
    Atomics.notify(words, this.#base + COUNT);
  }

  #has(count: number, life: number): boolean {
    for (let i = 1; i <= this.#length; i++) {
      const entry = this.#entry((count - i) | 0);
      if (Atomics.load(this.#words, entry + LIFE) === life) return true;
    }
    return false;
  }

  /**
   * The latest ones.
   *
   * @param seen How many the caller knows of.
   * @returns Those that have come since, as far as the ring goes back, and how many the caller knows of then.
   */
  since(seen: number): { news: Obituary[]; count: number } {
    const words = this.#words;
    const { count } = this;
    const news: Obituary[] = [];
    const first = Math.max((count - seen) | 0, 0) > this.#length
      ? (count - this.#length) | 0
      : seen;
    for (let number = first; number !== count; number = (number + 1) | 0) {
      const entry = this.#entry(number);
      if (Atomics.load(words, entry + NUMBER) !== number) continue;
      const obituary = {
        life: Atomics.load(words, entry + LIFE),
        id: Atomics.load(words, entry + READER),
        name: readText(words, entry + NAME),
        lostCallbacks: Atomics.load(words, entry + LOST),
      };
      // As many deaths later as the ring is long it is another one's.
      if (Atomics.load(words, entry + NUMBER) === number) news.push(obituary);
    }
    return { news, count };
  }
}
