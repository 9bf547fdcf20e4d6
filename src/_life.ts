// How a thread shows that it lives: the Web Lock that it holds as long as it is a member.

import { HEADER_ID, HEADER_LIVES } from "./_layout.ts";
import { LIFE_SHIFT, PROVABLE } from "./readers/_slots.ts";
import { isWorker, webLocks } from "./sync/_web_locks.ts";

function lockName(words: Int32Array, life: number): string {
  const id = words.slice(HEADER_ID, HEADER_ID + 4).join();
  return `@grace/rcu ${id} ${life >>> LIFE_SHIFT}`;
}

/**
 * A thread's life in a domain: a number that no other one has, and a Web Lock of
 * that name.
 *
 * 1. The request for the lock is in the queue before the constructor returns, and only
 *    then is the number written anywhere. So whoever has read a life, and asks then
 *    which locks are held or requested, finds its lock among them while its owner runs.
 * 2. The owner gives the lock back after it has left its record. So whoever does not find
 *    it, and finds the life in the record afterwards, knows that the owner
 *    has stopped: the runtime gives a thread's locks back when its JavaScript runs no more,
 *    and not before. `terminate()` is no proof, nor is silence.
 * 3. The proof does not grow old, for no number comes twice. Nobody holds anything
 *    while the question is open: a thread that blocks meanwhile is in nobody's way. That
 *    is why the lock is not asked for itself. Who buries is settled in the record.
 * 4. A main thread has no lock, for a lock keeps its process alive; its death ends the
 *    process anyway. It is never proven dead, nor is any thread where there are no Web Locks.
 *    A worker of `node:worker_threads` has one in Deno, and is kept alive by it until it leaves:
 *    one that ended of its own accord would have to have left, too.
 *
 * Measured on Deno 2.9.6: the request is in the queue at once; a thread that called
 * `self.close()`, or was ended by an error, is proven dead within some ms, one that
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
    const manager = webLocks();
    this.mark = number << LIFE_SHIFT;
    if (manager === undefined || !isWorker()) return;
    this.mark |= PROVABLE;
    const lasts = new Promise<void>((resolve) => this.#end = resolve);
    manager.request(lockName(words, this.mark), () => lasts).catch(
      () => {},
    );
  }

  /** Ends it: the thread has left. */
  end(): void {
    this.#end();
  }
}

/**
 * Finds out who has died. To be called when the lives have been read.
 *
 * @param words The domain's words.
 * @returns Whether a life has ended, with or without its owner's doing.
 */
export async function takeRoll(
  words: Int32Array,
): Promise<(life: number) => boolean> {
  const manager = webLocks();
  if (manager === undefined) return () => false;
  const { held, pending } = await manager.query();
  const names = new Set([...held, ...pending].map(({ name }) => name));
  return (life) => (life & PROVABLE) !== 0 && !names.has(lockName(words, life));
}
