// Every change of a map, one after the other.

import {
  checkBoolean,
  checkSignal,
  type OptionNames,
  takeOptions,
} from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Watch } from "./_watch.ts";

/**
 * How to watch a map.
 *
 * @example For a while
 * ```ts
 * import { type ChangesOptions, Rcu, RcuMap, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
 * const options: ChangesOptions = {
 *   signal: AbortSignal.timeout(10_000),
 *   keepAlive: true,
 * };
 * const changes = map.changes(options);
 * map.set(1, 1);
 * assertEquals((await changes.next()).done, false);
 * await changes.return?.();
 * ```
 */
export interface ChangesOptions {
  /** Ends it: what waits then is rejected with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Whether the process stays alive for as long as somebody waits for a change.
   *
   * @default {false}
   */
  keepAlive?: boolean;
}

const OPTIONS: OptionNames<ChangesOptions> = { signal: true, keepAlive: true };

/**
 * Watches a structure.
 *
 * @param membership The calling thread's membership.
 * @param watch The structure's.
 * @param options What the caller passed.
 * @returns Its changes from now on.
 */
export function changesOf(
  membership: Membership,
  watch: Watch,
  options: ChangesOptions,
): AsyncIterableIterator<number, void, void> {
  const act = "watch a map";
  const { signal, keepAlive = false } = takeOptions(options, OPTIONS, act);
  checkSignal(signal, act);
  checkBoolean("keepAlive", keepAlive, act);
  membership.assertOpen(act);
  return new Changes(watch, membership, signal, keepAlive);
}

/** The changes of a structure: those that come while nobody asks are one. */
class Changes implements AsyncIterableIterator<number, void, void> {
  readonly #watch: Watch;
  readonly #membership: Membership;
  readonly #keepAlive: boolean;
  readonly #returned = new AbortController();
  /** Aborted when the consumer wants no more, in either way. */
  readonly #over: AbortSignal;
  readonly #forget: () => void;
  #seen: number;
  #counted = true;
  #ended = false;
  /** Resolves when the call before has its answer. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param watch The structure's.
   * @param membership The calling thread's membership.
   * @param signal Ends it.
   * @param keepAlive Whether the process stays alive while somebody waits.
   */
  constructor(
    watch: Watch,
    membership: Membership,
    signal: AbortSignal | undefined,
    keepAlive: boolean,
  ) {
    this.#watch = watch;
    this.#membership = membership;
    this.#keepAlive = keepAlive;
    const returned = this.#returned.signal;
    this.#over = signal === undefined
      ? returned
      : AbortSignal.any([signal, returned]);
    // From here on, whenever the consumer asks.
    watch.begin();
    this.#seen = watch.version;
    const release = () => this.#release();
    this.#forget = membership.onClose(release);
    if (this.#over.aborted) release();
    else this.#over.addEventListener("abort", release);
  }

  #release(): void {
    if (!this.#counted) return;
    this.#counted = false;
    this.#watch.end();
    this.#forget?.();
  }

  next(): Promise<IteratorResult<number, void>> {
    // Calls are answered in their order.
    const answer = this.#last.then(() => this.#next());
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #next(): Promise<IteratorResult<number, void>> {
    if (this.#ended) return { done: true, value: undefined };
    try {
      this.#membership.assertOpen("wait for a change");
      this.#over.throwIfAborted();
      for (let now; (now = this.#watch.version) === this.#seen;) {
        await this.#watch.change(now, this.#over, this.#keepAlive);
      }
    } catch (error) {
      this.#ended = true;
      this.#release();
      if (this.#returned.signal.aborted) {
        return { done: true, value: undefined };
      }
      throw error;
    }
    this.#seen = this.#watch.version;
    return { done: false, value: this.#seen };
  }

  return(): Promise<IteratorResult<number, void>> {
    this.#returned.abort();
    this.#ended = true;
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
