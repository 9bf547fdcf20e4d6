// A thread's callback line, and the counters of all of them.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";

// A thread's line. It alone writes it.
/** Deferred blocks that have no cookie yet. */
export const NEXT = 0;
/** Deferred blocks of the segment that waits for the later period. */
export const LATER = 1;
/** Deferred blocks of the segment that waits for the earlier one. */
export const WAIT = 2;
/** Callbacks and frees ever enqueued in this record, by whichever thread had it. */
export const ENQUEUED = 3;
/** Those of them that have been invoked. */
export const INVOKED = 4;
/** The largest number that waited at once so far. */
export const PEAK = 5;
/** Those of them that have been handed on to other threads. */
export const HANDED = 6;
/** Closures that wait: those of a thread that dies are lost. */
export const CLOSURES = 7;
/** Closures that were lost so, of all threads that had the record. */
export const LOST = 8;

/** Words of one thread's line. */
export const CALLBACK_WORDS: number = LINE;

/** The counters of every record, for barriers and statistics. */
export class CallbackCounters {
  readonly #words: Int32Array;
  readonly #base: Address;

  constructor(words: Int32Array, base: Address) {
    this.#words = words;
    this.#base = base;
  }

  /**
   * Where a reader's line is.
   *
   * @param reader The reader.
   * @returns The address of its line.
   */
  line(reader: number): Address {
    return this.#base + reader * CALLBACK_WORDS;
  }

  /**
   * How many callbacks a record has ever got.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  enqueued(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + ENQUEUED);
  }

  /**
   * How many callbacks of a record have been invoked.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  invoked(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + INVOKED);
  }

  /**
   * How many callbacks of a record have been handed on to other threads.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  handed(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + HANDED);
  }

  /**
   * How many closures of a record were lost, as their thread died.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  lost(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + LOST);
  }

  /**
   * How many callbacks of a record have been invoked, handed on or lost.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  done(reader: number): number {
    return (this.invoked(reader) + this.handed(reader) + this.lost(reader)) | 0;
  }

  /**
   * Settles a dead thread's account: nothing of it waits here any more.
   *
   * @param reader Its record. Its deferred blocks are another thread's by now.
   * @returns How many closures were lost.
   */
  settle(reader: number): number {
    const words = this.#words;
    const line = this.line(reader);
    const pending = Math.max(0, this.pending(reader));
    // What the thread had not noted itself.
    Atomics.store(words, line + PEAK, this.peak(reader));
    const lost = Math.min(words[line + CLOSURES], pending);
    // In this order: who dies in between leaves what a repetition does right.
    Atomics.add(words, line + HANDED, pending - lost);
    // Pairs with: `barrier`, which waits for no closure of a dead thread.
    Atomics.add(words, line + LOST, lost);
    words[line + CLOSURES] = 0;
    return lost;
  }

  /**
   * How many callbacks of a record wait.
   *
   * @param reader The record.
   * @returns The number.
   */
  pending(reader: number): number {
    // What is done first: it never passes ENQUEUED, so the difference is not negative.
    const done = this.done(reader);
    return (this.enqueued(reader) - done) | 0;
  }

  /**
   * The most callbacks that a record's thread had waiting when it looked.
   *
   * @param reader The record.
   * @returns The number.
   */
  peak(reader: number): number {
    return Math.max(
      Atomics.load(this.#words, this.line(reader) + PEAK),
      this.pending(reader),
    );
  }
}
