// The sequence word, its completed twin, and cookies that never wrap.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";
import type { GracePeriodCookie } from "./cookie.ts";

// Readers load the sequence; the other words are for whoever wants a grace period.
const SEQUENCE = 0;
const EPOCH = 1;
const COMPLETED = LINE;
const EXPEDITED = LINE + 1;
const FORCED = LINE + 2;
/** What the sequence was when a period was forced last. */
const FORCED_PERIOD = LINE + 3;
/** Two words, at a multiple of 8 bytes. */
const FIRST_SEEN = LINE + 4;

/** Words of the sequence and its counters. */
export const SEQUENCE_WORDS: number = 2 * LINE;

/** Periods in half a turn of the sequence word. */
const HALF = 2 ** 30;

/**
 * The sequence of grace periods.
 *
 * 1. The word is odd, so that no value of it is the 0 of an offline slot, and
 *    moves by 2. Moving it begins a period; COMPLETED, moved to the same
 *    value, ends it. One period is in progress at most: the word moves only
 *    from the value that COMPLETED has.
 * 2. A period is a full one for whoever unlinked something before it began.
 *    While none is in progress that is the next; while one is, the one after,
 *    because the one in progress may have begun before the unlinking. Either
 *    way it is the next one to begin.
 * 3. The word wraps after 2³¹ periods. EPOCH counts its half turns, so its
 *    lowest bit equals the word's highest one; where they differ, the thread
 *    that moved the word has not counted yet, and the true epoch is one more.
 *    EPOCH is loaded first: a move between the two loads shows as a difference.
 *    The next period does not begin before the half turn is counted, by
 *    whoever begins it if need be.
 */
export class Sequence {
  readonly #words: Int32Array;
  readonly #base: Address;

  constructor(words: Int32Array, base: Address) {
    this.#words = words;
    this.#base = base;
  }

  /** The address of the sequence word. */
  get address(): Address {
    return this.#base + SEQUENCE;
  }

  /** The address of what `StallWatch` notes of the period in progress: 64 bits. */
  get firstSeen(): Address {
    return this.#base + FIRST_SEEN;
  }

  /** Lays out a fresh domain. */
  initialize(): void {
    Atomics.store(this.#words, this.#base + COMPLETED, 1);
    Atomics.store(this.#words, this.#base + SEQUENCE, 1);
  }

  /** The sequence word as it is now. */
  current(): number {
    return Atomics.load(this.#words, this.#base + SEQUENCE);
  }

  /** Whether a period has begun and not ended. */
  inProgress(): boolean {
    return Atomics.load(this.#words, this.#base + COMPLETED) !== this.current();
  }

  /** Periods begun so far. */
  started(): number {
    const epoch = Atomics.load(this.#words, this.#base + EPOCH);
    return periods(epoch, this.current());
  }

  /** Periods ended so far; may lag behind, never ahead. */
  completed(): number {
    const completed = Atomics.load(this.#words, this.#base + COMPLETED);
    const epoch = Atomics.load(this.#words, this.#base + EPOCH);
    const sequence = this.current();
    // One is in progress at most (1), so all but the last one begun have ended.
    return periods(epoch, sequence) - (sequence === completed ? 0 : 1);
  }

  /**
   * The number of a period that an announcement stands for.
   *
   * @param announced A slot's value, other than 0 and at most one turn old.
   * @returns How many periods had begun when it was announced.
   */
  periodOf(announced: number): number {
    return this.started() - (((this.current() - announced) | 0) / 2);
  }

  /**
   * The period that is a full one from here on (2).
   *
   * @returns The cookie.
   */
  cookie(): GracePeriodCookie {
    // Pairs with: the caller's unlinking store. A period that begins after this load begins
    // after the unlinking as well.
    return this.started() + 1 as GracePeriodCookie;
  }

  /** Begins a period if none is in progress; if another thread just did, that one serves. */
  begin(): void {
    const words = this.#words;
    const at = this.#base + SEQUENCE;
    const completed = Atomics.load(words, this.#base + COMPLETED);
    this.#countHalfTurn();
    const next = (completed + 2) | 0;
    if (Atomics.compareExchange(words, at, completed, next) === completed) {
      this.#countHalfTurn();
    }
  }

  /** Counts a half turn that has been made and not been counted (3). */
  #countHalfTurn(): void {
    const at = this.#base + EPOCH;
    const epoch = Atomics.load(this.#words, at);
    if (trueEpoch(epoch, this.current()) === epoch) return;
    // If another thread is faster, the epoch is no longer the one that was loaded first.
    Atomics.compareExchange(this.#words, at, epoch, (epoch + 1) | 0);
  }

  /**
   * Ends a period: every reader that was online when it began has passed a
   * quiescent state. Ending one that has ended does nothing.
   *
   * @param sequence The value to which the word had moved.
   */
  end(sequence: number): void {
    Atomics.compareExchange(
      this.#words,
      this.#base + COMPLETED,
      (sequence - 2) | 0,
      sequence,
    );
  }

  /** Counts a wait that asked for an expedited period. */
  countExpedited(): void {
    Atomics.add(this.#words, this.#base + EXPEDITED, 1);
  }

  /** Counts that overload has forced the period in progress. */
  countForced(): void {
    Atomics.store(this.#words, this.#base + FORCED_PERIOD, this.current());
    Atomics.add(this.#words, this.#base + FORCED, 1);
  }

  /**
   * Whether somebody has forced the period in progress lately.
   *
   * @param seen What {@linkcode forced} was when it was looked at last.
   * @returns `true` if so.
   */
  wasForced(seen: number): boolean {
    return this.forced !== seen &&
      Atomics.load(this.#words, this.#base + FORCED_PERIOD) === this.current();
  }

  /** Waits that asked for an expedited period. */
  get expedited(): number {
    return Atomics.load(this.#words, this.#base + EXPEDITED) >>> 0;
  }

  /** Periods that overload forced. */
  get forced(): number {
    return Atomics.load(this.#words, this.#base + FORCED) >>> 0;
  }
}

function trueEpoch(epoch: number, sequence: number): number {
  return (epoch & 1) === (sequence >>> 31) ? epoch : (epoch + 1) | 0;
}

function periods(epoch: number, sequence: number): number {
  return (trueEpoch(epoch, sequence) >>> 0) * HALF +
    ((sequence & 0x7fff_ffff) >>> 1);
}
