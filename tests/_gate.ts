// A gate through which threads go together, again and again.

import { PATIENCE } from "./_workers.ts";

/** Words of a gate: two cache lines. */
export const GATE_WORDS = 32;

const PASSED = 0;
const ARRIVED = 16;
/** What PASSED is when a thread has failed: the others must not wait for it. */
const BROKEN = -1;

/** Longest sleep between two looks, in ms. */
const NAP = 1;

/** One thread's side of a gate. */
export class Gate {
  readonly #words: Int32Array;
  readonly #threads: number;
  readonly #looks: number;
  #passed = 0;

  /**
   * @param words {@linkcode GATE_WORDS}, all 0 when the first thread comes.
   * @param threads How many threads go through.
   * @param looks How often a thread looks before it sleeps, 100 or 200 times a µs. The more,
   * the closer together threads start, and the sooner the scheduler of a busy machine gives each
   * of them a processor; but the longer they are in each other's way where there is but one.
   */
  constructor(words: Int32Array, threads: number, looks: number) {
    this.#words = words;
    this.#threads = threads;
    this.#looks = looks;
  }

  /** Waits until all threads are here. */
  pass(): void {
    const words = this.#words;
    const next = ++this.#passed;
    if (Atomics.add(words, ARRIVED, 1) + 1 === this.#threads) {
      Atomics.store(words, ARRIVED, 0);
      // Unless it is broken meanwhile. Pairs with: the look in `#await`.
      Atomics.compareExchange(words, PASSED, next - 1, next);
      Atomics.notify(words, PASSED);
    }
    this.#await(next);
  }

  #await(next: number): void {
    const words = this.#words;
    let deadline = Infinity;
    for (let looks = 0; Atomics.load(words, PASSED) !== next; looks++) {
      if (Atomics.load(words, PASSED) === BROKEN) {
        throw new Error("Another thread has failed");
      }
      if (looks < this.#looks) continue;
      const now = performance.now();
      if (deadline === Infinity) deadline = now + PATIENCE;
      if (now > deadline) throw new Error("Not all threads came to the gate");
      Atomics.wait(words, PASSED, next - 1, NAP);
    }
  }

  /** Tells the others that this thread will not come. */
  break(): void {
    Atomics.store(this.#words, PASSED, BROKEN);
    Atomics.notify(this.#words, PASSED);
  }
}
