// Starting threads that die, and waiting until their deaths have been proven.

import { Rcu } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { PATIENCE } from "./_workers.ts";

/** Its task has begun. */
export const BEGUN = 1;
/** It has come to its end alive. */
export const DONE = 2;
/** It is dying. */
export const DYING = 3;

/** A thread that dies. */
export interface Mortal extends Disposable {
  /** As in `MortalTask`. */
  state: Int32Array;
  /** Waits until the state is not below. */
  reached(state: number): Promise<void>;
  terminate(): void;
  error: string | undefined;
}

/**
 * Starts a thread.
 *
 * @param rcu The domain.
 * @param task What it does.
 * @param at Before which of its atomic accesses it dies; -1: it does not.
 * @returns The thread.
 */
export function startMortal(rcu: Rcu, task: string, at = -1): Mortal {
  const url = new URL("./_mortal_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const state = new Int32Array(new SharedArrayBuffer(8));
  const mortal: Mortal = {
    state,
    error: undefined,
    async reached(least) {
      const deadline = performance.now() + PATIENCE;
      for (let seen; (seen = Atomics.load(state, 0)) < least;) {
        if (performance.now() > deadline || mortal.error !== undefined) {
          throw new Error(`A mortal got to ${seen}: ${mortal.error}`);
        }
        // It does not keep the event loop alive.
        const timer = setTimeout(() => {}, PATIENCE);
        const sleep = Atomics.waitAsync(state, 0, seen, 100);
        if (sleep.async) await sleep.value;
        clearTimeout(timer);
      }
    },
    terminate: () => worker.terminate(),
    [Symbol.dispose]: () => worker.terminate(),
  };
  worker.onerror = (event) => {
    event.preventDefault();
    mortal.error = event.message;
  };
  worker.postMessage({ handle: rcu.handle, task, at, state });
  return mortal;
}

/**
 * Waits until only one thread is a member.
 *
 * @param rcu That thread's membership.
 */
export async function untilAlone(rcu: Rcu): Promise<void> {
  const { inquest, readers } = membershipOf(rcu, "ask");
  const deadline = performance.now() + PATIENCE;
  while (readers.hasOthers(rcu.readerId)) {
    if (performance.now() > deadline) throw new Error("Somebody lives on");
    await inquest.run();
    await new Promise((resolve) => setTimeout(resolve));
  }
}
