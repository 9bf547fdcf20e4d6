// How a thread shows that it lives: the Web Lock that it holds as long as it is a member.

import { HEADER_ID, HEADER_LIVES } from "./_layout.ts";
import { LIFE_SHIFT, PROVABLE } from "./readers/_slots.ts";

/** The Web Locks of this process, which Deno has and its types lack. */
interface Locks {
  request<T>(
    name: string,
    options: { ifAvailable?: boolean },
    granted: (lock: unknown) => T | Promise<T>,
  ): Promise<T>;
}

function locks(): Locks | undefined {
  return (globalThis.navigator as unknown as { locks?: Locks } | undefined)
    ?.locks;
}

/** Whether this thread is a worker, which lives until it is ended whatever it holds. */
function isWorker(): boolean {
  const { WorkerGlobalScope } = globalThis as {
    WorkerGlobalScope?: new () => object;
  };
  return WorkerGlobalScope !== undefined &&
    globalThis instanceof WorkerGlobalScope;
}

function lockName(words: Int32Array, life: number): string {
  const id = words.slice(HEADER_ID, HEADER_ID + 4).join();
  return `@grace/rcu ${id} ${life >>> LIFE_SHIFT}`;
}

/**
 * A thread's life in a domain: a number that no other one has, and a Web Lock of
 * that name.
 *
 * 1. The request for the lock is in the queue before `begin` returns, and only
 *    then is the number written anywhere. So whoever reads a life and asks for its
 *    lock stands behind its owner.
 * 2. The owner gives the lock back after it has left its record. So whoever is
 *    granted it, and finds the life still in the record, knows that the owner
 *    has stopped: the runtime gives a thread's locks back when its JavaScript runs no more,
 *    and not before. `terminate()` is no proof, nor is silence.
 * 3. The lock is granted to one at a time: one buries.
 * 4. A main thread has no lock, for a lock keeps its process alive; its death ends the
 *    process anyway. It is never proven dead, nor is any thread where there are no Web Locks.
 *
 * Measured on Deno 2.9.6: the request is in the queue at once; a thread that called
 * `self.close()`, or was ended by an error, is proven dead within 2 ms, one that
 * was terminated when the turn that it is in ends.
 */
export class Life {
  /** What stands for it in the record. */
  readonly mark: number;
  #end: () => void = () => {};

  /**
   * Begins a life.
   *
   * @param words The domain's words.
   */
  constructor(words: Int32Array) {
    const number = Atomics.add(words, HEADER_LIVES, 1) + 1;
    const manager = locks();
    this.mark = number << LIFE_SHIFT;
    if (manager === undefined || !isWorker()) return;
    this.mark |= PROVABLE;
    const lasts = new Promise<void>((resolve) => this.#end = resolve);
    manager.request(lockName(words, this.mark), {}, () => lasts).catch(
      () => {},
    );
  }

  /** Ends it: the thread has left. */
  end(): void {
    this.#end();
  }
}

/**
 * Does something if a life has ended without its owner's doing.
 *
 * @param words The domain's words.
 * @param life What stands for it.
 * @param act What to do; until it is done nobody else has the proof.
 */
export async function ifDead(
  words: Int32Array,
  life: number,
  act: () => Promise<void>,
): Promise<void> {
  if ((life & PROVABLE) === 0) return;
  await locks()?.request(
    lockName(words, life),
    { ifAvailable: true },
    async (lock) => {
      if (lock !== null) await act();
    },
  );
}
