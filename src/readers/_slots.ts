// The table of readers: who is registered, and what each one announced last.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";

// A record is two lines. The first holds the slot alone: its thread writes it, whoever wants a
// grace period reads it. The second is written when a thread joins or leaves.
/** 0 while offline; else the grace-period sequence that the thread last observed. */
const SLOT = 0;
const STATUS = LINE;
const GENERATION = LINE + 1;
const NAME = LINE + 2;
/** A word that nobody notifies: sleeping on it is a nap of a fraction of a millisecond. */
const NAP = LINE + 3;
/** The life of whoever buries the thread that has the record. */
const BURIER = LINE + 4;
const RECORD_WORDS = 2 * LINE;

// STATUS is 0 while the record is vacant. Otherwise it says who has it: a life, and in the low bits
// whether the registration is complete.
const VACANT = 0;
const CLAIMED = 1;
const REGISTERED = 2;
const STAGE = 3;
/** A life (see Life) whose end can be proven. */
export const PROVABLE = 4;
/** Where the number of a life begins in it. */
export const LIFE_SHIFT = 3;

/** Words of the table's own line: how many records have ever been taken. */
const COUNT = 0;

/**
 * Words of the table.
 *
 * @param maxReaders Most readers at a time.
 * @returns Its size.
 */
export function readerTableWords(maxReaders: number): number {
  return LINE + maxReaders * RECORD_WORDS;
}

/** The reader slots of a domain. */
export class ReaderTable {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #maxReaders: number;

  constructor(words: Int32Array, base: Address, maxReaders: number) {
    this.#words = words;
    this.#base = base;
    this.#maxReaders = maxReaders;
  }

  /** One past the highest record that was ever taken: a scan looks no further. */
  get count(): number {
    // Pairs with: the raise in `register`. If this load comes first, so does the scan's
    // sequence move, and the newcomer goes online after it: its loads see what was published.
    return Atomics.load(this.#words, this.#base + COUNT);
  }

  /**
   * Where a reader's slot is.
   *
   * @param index The reader.
   * @returns The address of its slot.
   */
  slot(index: number): Address {
    return this.#base + LINE + index * RECORD_WORDS;
  }

  /**
   * A word to nap on.
   *
   * @param index The reader.
   * @returns The address of a word that is always 0.
   */
  nap(index: number): Address {
    return this.slot(index) + NAP;
  }

  /**
   * Takes a vacant record. From the first store on the record says whose it is, so
   * that even a thread that dies in the middle of this can be found out.
   *
   * @param life Who takes it; the two low bits are 0.
   * @returns The reader's index and the record's generation, or `undefined` when all are taken.
   */
  register(
    life: number = 1 << LIFE_SHIFT,
  ): { index: number; generation: number } | undefined {
    const words = this.#words;
    for (let index = 0; index < this.#maxReaders; index++) {
      const record = this.slot(index);
      const status = record + STATUS;
      if (
        Atomics.compareExchange(words, status, VACANT, life | CLAIMED) !==
          VACANT
      ) continue;
      const generation = Atomics.add(words, record + GENERATION, 1) + 1;
      Atomics.store(words, record + SLOT, 0);
      Atomics.store(words, record + NAME, 0);
      Atomics.store(words, record + BURIER, 0);
      // Raise the count before the slot can go online. Pairs with: `count`.
      let count = this.count;
      while (count <= index) {
        Atomics.compareExchange(words, this.#base + COUNT, count, index + 1);
        count = this.count;
      }
      Atomics.store(words, status, life | REGISTERED);
      return { index, generation };
    }
    return undefined;
  }

  /**
   * Gives a record back. Its thread is offline and owns nothing any more.
   *
   * @param index The reader.
   */
  unregister(index: number): void {
    Atomics.store(this.#words, this.slot(index) + NAME, 0);
    Atomics.store(this.#words, this.slot(index) + STATUS, VACANT);
  }

  /**
   * Whether a thread holds a record.
   *
   * @param index The reader.
   * @returns `true` while it is registered.
   */
  isRegistered(index: number): boolean {
    const status = Atomics.load(this.#words, this.slot(index) + STATUS);
    return (status & STAGE) === REGISTERED;
  }

  /**
   * Who has a record, or is about to.
   *
   * @param index The record.
   * @returns The life, or 0.
   */
  lifeOf(index: number): number {
    return Atomics.load(this.#words, this.slot(index) + STATUS) & ~STAGE;
  }

  /**
   * Who has taken the right to bury the thread that has a record.
   *
   * @param index The record.
   * @returns The life, or 0.
   */
  burierOf(index: number): number {
    return Atomics.load(this.#words, this.slot(index) + BURIER);
  }

  /**
   * Takes the right to bury the thread that has a record.
   *
   * @param index The record.
   * @param dead The life that has ended.
   * @param burier The life of whoever takes it.
   * @param isDead Whether another burier, who has taken it before, has died of its own.
   * @returns Whether the caller has it: nobody else does, and the record is still the dead thread's.
   */
  claimBurial(
    index: number,
    dead: number,
    burier: number,
    isDead: (life: number) => boolean,
  ): boolean {
    const words = this.#words;
    const at = this.slot(index) + BURIER;
    const other = Atomics.load(words, at);
    if (other !== 0 && !isDead(other)) return false;
    if (Atomics.compareExchange(words, at, other, burier) !== other) {
      return false;
    }
    // The record is vacated by a burial alone. If that came first, it may be anybody's by now.
    if (this.lifeOf(index) === dead) return true;
    Atomics.compareExchange(words, at, burier, 0);
    return false;
  }

  /**
   * Gives the right back, as the burial could not be brought to its end.
   *
   * @param index The record.
   * @param burier The life of whoever has it.
   */
  leaveBurial(index: number, burier: number): void {
    const at = this.slot(index) + BURIER;
    Atomics.compareExchange(this.#words, at, burier, 0);
  }

  /**
   * How often a record has been taken.
   *
   * @param index The reader.
   * @returns The generation of the thread that has it, or had it last.
   */
  generationOf(index: number): number {
    return Atomics.load(this.#words, this.slot(index) + GENERATION);
  }

  /**
   * Whether a record is held by the thread of a generation.
   *
   * @param index The reader.
   * @param generation All of the generation: names of the holders of locks keep a part of it.
   * @returns `false` once that thread's membership has ended, for as long as it takes to register 2³² times.
   */
  isHeldBy(index: number, generation: number): boolean {
    return this.isRegistered(index) &&
      this.generationOf(index) === generation;
  }

  /**
   * Whether threads other than one hold records.
   *
   * @param index The one, or -1.
   * @returns `true` while there are any.
   */
  hasOthers(index: number): boolean {
    for (let other = 0; other < this.count; other++) {
      if (other !== index && this.isRegistered(other)) return true;
    }
    return false;
  }

  /**
   * The block with a reader's name. To be followed inside a read section only.
   *
   * @param index The reader.
   * @returns The block, or 0.
   */
  nameOf(index: number): Address {
    return Atomics.load(this.#words, this.slot(index) + NAME);
  }

  /**
   * Where the word is that leads to a reader's name.
   *
   * @param index The reader.
   * @returns The address.
   */
  nameAt(index: number): Address {
    return this.slot(index) + NAME;
  }

  /** How many records there are. */
  get size(): number {
    return this.#maxReaders;
  }

  /**
   * Publishes a reader's name.
   *
   * @param index The reader.
   * @param block The block with the name, or 0.
   */
  setName(index: number, block: Address): void {
    Atomics.store(this.#words, this.slot(index) + NAME, block);
  }
}
