// Choices that a seed decides.

import { seeded, shuffle } from "../../bench/_random.ts";

/** Random choices, the same for the same seeds. */
export class Random {
  readonly #next: () => number;

  /** @param seeds What decides: the run's seed, and what tells this thread from others. */
  constructor(...seeds: number[]) {
    let state = 0;
    // Seeds that differ in a bit must not begin alike (the finalizer of MurmurHash3).
    for (const seed of seeds) {
      state = state + 0x9e3779b9 ^ seed;
      state = Math.imul(state ^ state >>> 16, 0x85ebca6b);
      state = Math.imul(state ^ state >>> 13, 0xc2b2ae35);
      state ^= state >>> 16;
    }
    this.#next = seeded(state);
  }

  /** An integer from 0 up to `end`. */
  below(end: number): number {
    return Math.floor(this.#next() * end);
  }

  /** `true` once in so many times. */
  oneIn(times: number): boolean {
    return this.below(times) === 0;
  }

  /** A number from 0 up to `end`. */
  upTo(end: number): number {
    return this.#next() * end;
  }

  /** One of several. */
  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }

  /** All of several, in random order. */
  shuffled<T>(from: readonly T[]): T[] {
    return shuffle([...from], this.#next);
  }
}
