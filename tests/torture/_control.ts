// Words with which the threads of a run hear from each other.

import type { Rcu } from "../../mod.ts";
import { sharedWords } from "../_workers.ts";

/** Updates so far. */
const UPDATES = 0;
/** Whether something has gone wrong: then everybody ends. */
const FAILED = 1;
/** Odd while everybody is to stand still. */
const STUTTER = 2;
/** Threads that stand still. */
const STANDING = 3;
/** Barriers that are being waited for. */
const BARRIERS = 4;
/** A word that nobody notifies. */
const NAP = 5;
const WORDS = 6;

/** Longest stop of a thread, in ms: only a driver that has died lasts so long. */
const LONGEST_STOP = 1_000;

/** How long a run is. */
export interface Length {
  /** It ends after so many updates. @default {Infinity} */
  updates?: number;
  /** It ends after so long, in ms. */
  time: number;
}

/** What is cloned to a worker. */
export interface ControlParts {
  words: Int32Array;
  updates: number;
  /** As `Date.now()` says, which is the same in all threads. */
  until: number;
}

/** One thread's view of the run. */
export class Control {
  readonly parts: ControlParts;
  readonly #words: Int32Array;

  constructor(parts: ControlParts) {
    this.parts = parts;
    this.#words = parts.words;
  }

  /** A run that begins now. */
  static start({ updates = Infinity, time }: Length): Control {
    const words = sharedWords(WORDS);
    return new Control({ words, updates, until: Date.now() + time });
  }

  /** Whether the run is at its end. */
  get over(): boolean {
    const { updates, until } = this.parts;
    return Atomics.load(this.#words, UPDATES) >= updates ||
      Atomics.load(this.#words, FAILED) !== 0 || Date.now() >= until;
  }

  /** Ends the run, as something has gone wrong. */
  fail(): void {
    Atomics.store(this.#words, FAILED, 1);
  }

  /** Counts an update. */
  countUpdate(): void {
    Atomics.add(this.#words, UPDATES, 1);
  }

  /** Whether somebody waits for a barrier. */
  get hasBarrier(): boolean {
    return Atomics.load(this.#words, BARRIERS) > 0;
  }

  /** Notes until it is disposed of that somebody waits for a barrier. */
  beginBarrier(): Disposable {
    Atomics.add(this.#words, BARRIERS, 1);
    return {
      [Symbol.dispose]: () => void Atomics.sub(this.#words, BARRIERS, 1),
    };
  }

  /** Blocks the thread for a while, in ms. It holds grace periods up if it is online. */
  nap(ms: number): void {
    Atomics.wait(this.#words, NAP, 0, ms);
  }

  /** Stands still while everybody has to. Outside sections. */
  stutter(rcu: Rcu): void {
    const words = this.#words;
    const phase = Atomics.load(words, STUTTER);
    if (phase % 2 === 0) return;
    rcu.threadOffline();
    Atomics.add(words, STANDING, 1);
    Atomics.wait(words, STUTTER, phase, LONGEST_STOP);
    Atomics.sub(words, STANDING, 1);
  }

  /**
   * The driver's side: has everybody stand still for a moment.
   *
   * @param threads How many there are.
   * @returns Whether all of them did so together.
   */
  async stopAll(threads: number): Promise<boolean> {
    const words = this.#words;
    Atomics.add(words, STUTTER, 1);
    let all = false;
    // A thread that waits for another one's callbacks cannot stop before that one goes on.
    for (let look = 0; look < 20 && !all && !this.over; look++) {
      await later(1);
      all = Atomics.load(words, STANDING) === threads;
    }
    Atomics.add(words, STUTTER, 1);
    Atomics.notify(words, STUTTER);
    return all;
  }
}

/** A later turn of the event loop. */
export function later(ms = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
