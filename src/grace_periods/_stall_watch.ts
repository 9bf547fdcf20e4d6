// Noticing that a grace period does not end, in a thread that looks at it anyway.

import type { Address } from "../memory/arena.ts";
import type { Sequence } from "./_sequence.ts";

/** This part of `stallTimeout` a thread watches a period before it compares notes with others. */
const PRIVATE = 1 / 4;

/**
 * Watches the period in progress for one thread that waits for it, or whose
 * callbacks do. It has no timer of its own: whoever polls the period calls
 * {@linkcode look} between two looks at the readers. A period that ends before it has
 * been seen twice costs nothing but a glance at the clock.
 *
 * When a period began is written nowhere, for most are over within microseconds.
 * Each watcher takes down when it first saw a period in its way. Once that
 * is a while ago, watchers agree on the earliest sight by one word of shared memory:
 *
 * 1. The word holds a period and a time, 64 bits as a whole, so that no thread takes
 *    the time of one period for that of another.
 * 2. It moves by compare-and-exchange alone, to an earlier time of the same
 *    period or to another period. A watcher that was held up may put an old period
 *    over a younger one: then a thread that has not compared yet knows of its own
 *    sight only. An age is too small at times, and never too large.
 * 3. Threads count time from origins of their own; what they share is the wall clock
 *    as it was when each began, so a clock that is set in between shows as a difference.
 *    The time is kept modulo 2³² ms; of periods that last 24 days a thread knows what it has
 *    seen itself.
 */
export class StallWatch {
  readonly #words: Int32Array;
  readonly #sequence: Sequence;
  readonly #timeout: number;
  readonly #report: (age: number) => boolean;
  #notes: BigInt64Array | undefined;
  /** The period that was seen last. */
  #period = 0;
  /** When it was seen first, as `performance.now()` counts. */
  #since = 0;
  #compared = false;
  /** The age at which it is reported next. */
  #due = 0;

  /**
   * @param words The domain's words.
   * @param sequence The domain's sequence.
   * @param timeout The age in ms at which a period counts as stalled.
   * @param report Reports a stall; says whether a reader is in the way.
   */
  constructor(
    words: Int32Array,
    sequence: Sequence,
    timeout: number,
    report: (age: number) => boolean,
  ) {
    this.#words = words;
    this.#sequence = sequence;
    this.#timeout = timeout;
    this.#report = report;
  }

  /**
   * Sees that a period is still in progress, and reports it when `timeout` is
   * over, and then after twice as long each time. Runs code of the user.
   *
   * @param period The value of the sequence since it began.
   */
  look(period: number): void {
    const now = performance.now();
    if (period !== this.#period) return this.#begin(period, now);
    if (!this.#compared && now - this.#since >= PRIVATE * this.#timeout) {
      this.#compare();
    }
    const age = now - this.#since;
    if (age < this.#due) return;
    // First: what listens to the report may come back here.
    const due = this.#due;
    while (this.#due <= age) this.#due = 2 * this.#due + this.#timeout;
    // Nobody is in the way any more, and the next poll ends the period; or it does not.
    if (!this.#report(age)) this.#due = due;
  }

  /**
   * How long the period in progress has been seen to last.
   *
   * @returns Milliseconds; 0 if none is in progress.
   */
  age(): number {
    if (!this.#sequence.inProgress()) return 0;
    const period = this.#sequence.current();
    const now = performance.now();
    if (period !== this.#period) this.#begin(period, now);
    this.#compare();
    return now - this.#since;
  }

  #begin(period: number, now: number): void {
    this.#period = period;
    this.#since = now;
    this.#due = this.#timeout;
    this.#compared = false;
  }

  /** Tells the other watchers of the period when it was first seen, or learns it from them. */
  #compare(): void {
    this.#compared = true;
    const notes = this.#notes ??= new BigInt64Array(this.#words.buffer);
    const at: Address = this.#sequence.firstSeen / 2;
    const mine = Math.floor(performance.timeOrigin + this.#since) | 0;
    const note = (BigInt(this.#period) << 32n) | BigInt(mine >>> 0);
    let seen = Atomics.load(notes, at);
    while (true) {
      if (Number(seen >> 32n) === this.#period) {
        const earlier = (mine - Number(BigInt.asIntN(32, seen))) | 0;
        if (earlier >= 0) {
          this.#since -= earlier;
          return;
        }
      }
      // Pairs with: the load in another watcher (2).
      const found = Atomics.compareExchange(notes, at, seen, note);
      if (found === seen) return;
      seen = found;
    }
  }
}
