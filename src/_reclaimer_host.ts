// Starting the worker that reclaims, and starting it again.

import type { Membership, MembershipEvents } from "./_membership.ts";
import type { ReclaimerMessage } from "./_reclaimer_worker.ts";
import type { RcuHandle } from "./options.ts";

/** Longest single wait for somebody who wants a reclaimer, in ms. */
const WATCH = 10_000;
/** Between two tries of a worker that found no room in the domain, in ms. */
const RETRY = 1_000;

/**
 * Runs a domain's reclaimer in a worker, for as long as this thread is a member
 * and there is work. A worker that has ended is started again when a thread
 * wants it; nothing here keeps a program alive meanwhile.
 */
export class ReclaimerHost {
  readonly #handle: RcuHandle;
  readonly #membership: Membership;
  readonly #events: MembershipEvents;
  /** What has been reported last. */
  #failure = "";

  constructor(
    handle: RcuHandle,
    membership: Membership,
    events: MembershipEvents,
  ) {
    this.#handle = handle;
    this.#membership = membership;
    this.#events = events;
  }

  /** Starts the worker. */
  start(): void {
    let worker: Worker;
    try {
      const url = new URL("./_reclaimer_worker.ts", import.meta.url);
      worker = new Worker(url, { type: "module", name: "@grace/rcu" });
    } catch (error) {
      // Whoever creates an Rcu has had no chance to listen yet.
      queueMicrotask(() => this.#fail(error));
      return;
    }
    worker.onerror = (event) => {
      event.preventDefault();
      worker.terminate();
      this.#fail(event.message);
    };
    worker.onmessage = ({ data }: MessageEvent<ReclaimerMessage>) => {
      const { failure, stall } = data;
      if (stall !== undefined) {
        if (!this.#membership.closed) this.#events.onStall?.(stall);
        return;
      }
      worker.terminate();
      if (failure === null) this.#watch();
      else this.#retry(failure);
    };
    worker.postMessage(this.#handle);
  }

  #fail(why: unknown): void {
    this.#events.onError(
      new Error(
        `Cannot run the reclaimer as a worker must be able to: ${
          why instanceof Error ? why.message : why
        }; every thread reclaims for itself`,
        { cause: why },
      ),
    );
  }

  /** A domain that is full, of threads or of memory, need not be so for ever. */
  async #retry(failure: string): Promise<void> {
    if (failure !== this.#failure) this.#fail(failure);
    this.#failure = failure;
    const { index, readers, words } = this.#membership;
    const pause = Atomics.waitAsync(words, readers.nap(index), 0, RETRY);
    if (pause.async) await pause.value;
    if (!this.#membership.closed) await this.#watch();
  }

  async #watch(): Promise<void> {
    const handover = this.#membership.handover!;
    while (!this.#membership.closed) {
      if (await handover.wanted(WATCH)) {
        if (!this.#membership.closed) this.start();
        return;
      }
    }
  }
}
