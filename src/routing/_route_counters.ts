// A thread's counters: a line that it alone writes, so that counting is not what threads meet on.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { COUNTER_WORDS, LOOKUPS, LOOKUPS_HIGH } from "./_route_layout.ts";

/** The counters of a cache. */
export class RouteCounters {
  readonly #membership: Membership;
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #own: Address;
  readonly #threads: number;

  constructor(membership: Membership, base: Address, threads: number) {
    this.#membership = membership;
    this.#words = membership.words;
    this.#base = base;
    this.#own = base + membership.index * COUNTER_WORDS;
    this.#threads = threads;
  }

  /**
   * Counts. After the membership has ended, as in the rest of an operation in
   * whose middle it did, nothing is counted: the line may be another thread's.
   *
   * @param what A counter of this thread.
   * @param by How much, from 0.
   */
  count(what: number, by = 1): void {
    if (this.#membership.closed) return;
    const at = this.#own + what;
    Atomics.store(this.#words, at, this.#words[at] + by);
  }

  /**
   * A counter of this thread.
   *
   * @param what The counter.
   * @returns Its value, modulo 2³².
   */
  own(what: number): number {
    return this.#words[this.#own + what];
  }

  /**
   * Counts lookups, which would soon be too many for one word.
   *
   * @param by How many.
   */
  countLookups(by: number): void {
    const before = this.#words[this.#own + LOOKUPS] >>> 0;
    if (before + by > 0xffff_ffff) this.count(LOOKUPS_HIGH);
    this.count(LOOKUPS, by);
  }

  /**
   * Adds a counter up over all threads.
   *
   * @param what The counter.
   * @returns The sum; each thread's part is modulo 2³².
   */
  total(what: number): number {
    let sum = 0;
    for (let thread = 0; thread < this.#threads; thread++) {
      const line = this.#base + thread * COUNTER_WORDS;
      sum += Atomics.load(this.#words, line + what) >>> 0;
    }
    return sum;
  }

  /**
   * Adds all threads' lookups up.
   *
   * @returns The sum.
   */
  totalLookups(): number {
    return this.total(LOOKUPS_HIGH) * 2 ** 32 + this.total(LOOKUPS);
  }
}
