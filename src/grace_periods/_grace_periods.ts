// Grace periods: cookies, polling, and waiting in both styles.

import { park, pause } from "../sync/_park.ts";
import type { Reader } from "../readers/_reader.ts";
import type { GracePeriodCookie } from "./cookie.ts";
import type { Detector } from "./_detector.ts";
import type { Sequence } from "./_sequence.ts";

/**
 * Looks at the slots before the first nap, some 20 µs: a reader in a loop of sections that has a
 * processor passes within a few; one that has none gets the waiter's only by a nap.
 */
const SPINS = 200;
/** First and longest nap of a blocking wait, in ms. */
const SHORTEST_NAP = 0.05;
const LONGEST_NAP = 1;
/** Longest pause between two looks of an asynchronous wait, in ms. */
const LONGEST_PAUSE = 10;

/** The grace periods of a domain, as one thread sees and drives them. */
export class GracePeriods {
  /** Called by {@linkcode watch} with the sequence of a period that has not ended. */
  onHindered: (sequence: number) => void = () => {};

  readonly #words: Int32Array;
  readonly #sequence: Sequence;
  readonly #detector: Detector;
  readonly #reader: Reader;
  readonly #nap: number;
  /** The sequence of the period that was in the way of the last poll; 0: none was. */
  #hindered = 0;

  constructor(
    words: Int32Array,
    sequence: Sequence,
    detector: Detector,
    reader: Reader,
    nap: number,
  ) {
    this.#words = words;
    this.#sequence = sequence;
    this.#detector = detector;
    this.#reader = reader;
    this.#nap = nap;
  }

  /**
   * The period that must end before what has been unlinked can be reused, and
   * begins it where none is in progress.
   *
   * @returns Its cookie.
   */
  start(): GracePeriodCookie {
    const cookie = this.#sequence.cookie();
    this.registerBatch();
    return cookie;
  }

  /** Begins a period if none is in progress. */
  registerBatch(): void {
    if (!this.#sequence.inProgress()) this.#sequence.begin();
  }

  /**
   * Drives periods as far as they go without waiting.
   *
   * @param cookie The period that is wanted.
   * @returns Whether it has ended.
   */
  poll(cookie: GracePeriodCookie): boolean {
    const sequence = this.#sequence;
    while (sequence.completed() < cookie) {
      const current = sequence.current();
      if (!sequence.inProgress()) {
        sequence.begin();
        continue;
      }
      // Between two sections the caller itself is quiescent, and must not wait for itself.
      this.#reader.checkQuiescentState();
      if (!this.#detector.passed(current)) {
        this.#hindered = current;
        return false;
      }
      // A stale `current` is of a period that has ended already: then this does nothing.
      sequence.end(current);
    }
    this.#hindered = 0;
    return true;
  }

  /**
   * To be called now and then by whoever waits, after a poll: has a stall
   * noticed. May run code of the user; no lock is held.
   */
  watch(): void {
    if (this.#hindered !== 0) this.onHindered(this.#hindered);
  }

  /**
   * Blocks the thread until a period has ended. The caller is offline.
   *
   * @param cookie The period.
   * @param timeout Longest wait in ms.
   * @param expedited Whether to look again at once instead of napping longer and longer.
   * @returns Whether it has ended.
   */
  wait(
    cookie: GracePeriodCookie,
    timeout: number,
    expedited: boolean,
  ): boolean {
    for (let i = 0; i < SPINS; i++) {
      if (this.poll(cookie)) return true;
      pause();
    }
    // Before the clock of this wait: a report says that the period is as old as the wait at least.
    this.watch();
    const deadline = performance.now() + timeout;
    let nap = SHORTEST_NAP;
    while (!this.poll(cookie)) {
      const left = deadline - performance.now();
      // The caller reports it.
      if (left <= 0) return false;
      this.watch();
      park(this.#words, this.#nap, 0, Math.min(nap, left));
      if (!expedited) nap = Math.min(nap * 2, LONGEST_NAP);
    }
    return true;
  }

  /**
   * Waits until a period has ended, the event loop turning meanwhile. Keeps
   * the process alive until then.
   *
   * @param cookie The period.
   * @param expedited Whether to look again in the very next turn every time.
   * @param signal Ends the wait early.
   * @returns Whether it has ended; `false` means the signal was first.
   */
  async waitAsync(
    cookie: GracePeriodCookie,
    expedited: boolean,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    // The microtask that ends this turn's read side may be queued behind us.
    await undefined;
    let pause = 0;
    while (!this.poll(cookie)) {
      if (signal?.aborted) return false;
      this.watch();
      await turn(pause, signal);
      if (!expedited) pause = Math.min(pause + 1, LONGEST_PAUSE);
    }
    return true;
  }
}

/**
 * Waits for a later turn of the event loop.
 *
 * @param ms How long to wait at least.
 * @param signal Ends the wait early.
 * @returns A promise that keeps the process alive.
 */
export function turn(
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
