// Waiting for change without polling: words that watchers sleep on and writers move.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";

/** Longer than any wait: a timer whose only purpose is to keep the process alive. */
const FOR_EVER = 2 ** 30;

/**
 * Tells watchers that something has changed. After the change: either this load
 * finds a watcher counted, or the watcher counts itself afterwards and finds
 * the change by itself. Costs one load where nobody watches.
 *
 * @param words The arena's words.
 * @param watchers Where watchers are counted.
 * @param version What moves.
 */
export function announceChange(
  words: Int32Array,
  watchers: Address,
  version: Address,
): void {
  // Pairs with: the addition in `Watch.begin`.
  if (Atomics.load(words, watchers) === 0) return;
  // Pairs with: the sleep in `Watch`.
  Atomics.add(words, version, 1);
  Atomics.notify(words, version);
}

/** How a thread waits for what a structure's version says. */
export class Watch {
  readonly #membership: Membership;
  readonly #watchers: Address;
  readonly #version: Address;
  readonly #waiting = new Set<() => void>();
  #asleep = false;

  /**
   * @param membership The calling thread's membership.
   * @param watchers Where watchers are counted: 0 spares writers the rest.
   * @param version What moves with every change that is made while somebody watches.
   */
  constructor(membership: Membership, watchers: Address, version: Address) {
    this.#membership = membership;
    this.#watchers = watchers;
    this.#version = version;
  }

  /** The version, modulo 2³². */
  get version(): number {
    return Atomics.load(this.#membership.words, this.#version) >>> 0;
  }

  /** Counts a watcher. */
  begin(): void {
    // Before it looks at anything. Pairs with: the load in `announceChange` and in `RcuCell`'s writers.
    Atomics.add(this.#membership.words, this.#watchers, 1);
  }

  /** Counts it no more. */
  end(): void {
    Atomics.sub(this.#membership.words, this.#watchers, 1);
  }

  /**
   * Waits until the version may have changed, as a watcher that is counted.
   *
   * @param since The version seen.
   * @param signal Ends the wait early.
   * @param keepAlive Whether the process stays alive meanwhile.
   * @returns A promise that rejects when the wait is over before.
   */
  change(
    since: number,
    signal: AbortSignal | undefined,
    keepAlive: boolean,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => reject(signal!.reason);
    // First: the caller's object may throw.
    signal?.addEventListener("abort", abort);
    const forget = this.#membership.onClose(() =>
      reject(
        new Error(
          "Cannot wait for a change as the Rcu must be open: it is closed",
        ),
      )
    );
    const alive = keepAlive ? setInterval(() => {}, FOR_EVER) : undefined;
    this.#waiting.add(resolve);
    this.#sleep(since);
    return promise.finally(() => {
      this.#waiting.delete(resolve);
      clearInterval(alive);
      forget();
      signal?.removeEventListener("abort", abort);
    });
  }

  /** One sleep serves all waits of this thread: it cannot be called off when a wait is. */
  #sleep(since: number): void {
    if (this.#asleep) return;
    // Pairs with: the store or addition to the version, and then the notification, by writers.
    // Either the writer finds us counted and notifies, or its store comes first and we do not sleep.
    const sleep = Atomics.waitAsync(
      this.#membership.words,
      this.#version,
      since | 0,
    );
    this.#asleep = sleep.async;
    const wake = () => {
      this.#asleep = false;
      for (const resolve of [...this.#waiting]) resolve();
    };
    if (sleep.async) sleep.value.then(wake);
    else wake();
  }
}
