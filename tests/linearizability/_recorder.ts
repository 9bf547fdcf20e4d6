// How a thread writes down what it does.

import { ENTRY } from "./_plan.ts";

/** Writes down what a thread does. */
export class Recorder {
  readonly #control: Int32Array;
  readonly #ticket: number;
  readonly #log: Int32Array;
  #at = 0;

  /**
   * @param control Words that all threads share.
   * @param ticket Which of them counts.
   * @param log This thread's log.
   */
  constructor(control: Int32Array, ticket: number, log: Int32Array) {
    this.#control = control;
    this.#ticket = ticket;
    this.#log = log;
  }

  /** Draws a number: what happens before is over, and what happens afterwards has not begun. */
  ticket(): number {
    return Atomics.add(this.#control, this.#ticket, 1);
  }

  /**
   * Writes down that an operation has ended.
   *
   * @param called The number drawn before it.
   * @param returned The one drawn after it.
   * @param output What it answered.
   */
  write(called: number, returned: number, output: number): void {
    const log = this.#log;
    log[this.#at] = called;
    log[this.#at + 1] = returned;
    log[this.#at + 2] = output;
    this.#at += ENTRY;
  }

  /** Begins a log anew. */
  rewind(): void {
    this.#at = 0;
  }
}
