// Deferred blocks whose thread has left, until another thread takes them over.

import { acquire, release } from "../sync/_mutex.ts";
import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import { LINE } from "../memory/_size_classes.ts";

const LOCK = 0;
const HEAD = 1;
const COUNT = 2;
/** How often a thread has left blocks here. */
const DEPARTURES = 3;

/** Words of the list. */
export const ORPHAN_WORDS: number = LINE;

/** Longest wait for the list's lock, which is held for a few stores, in ms. */
const LOCK_TIMEOUT = 10_000;

/** The list of deferred blocks that belong to no thread. */
export class Orphans {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #heap: Heap;
  readonly #owner: number;

  constructor(words: Int32Array, base: Address, heap: Heap, owner: number) {
    this.#words = words;
    this.#base = base;
    this.#heap = heap;
    this.#owner = owner;
  }

  /** How many blocks there are. */
  get count(): number {
    return Atomics.load(this.#words, this.#base + COUNT);
  }

  /**
   * How often a thread has left blocks, modulo 2³². Moves before the thread's
   * own count of what waits goes down, so that a barrier notices.
   */
  get departures(): number {
    return Atomics.load(this.#words, this.#base + DEPARTURES);
  }

  /**
   * Leaves a list of deferred blocks behind.
   *
   * @param head Its first block.
   * @param count How many there are.
   */
  leave(head: Address, count: number): void {
    if (head === 0) return;
    const heap = this.#heap;
    let tag = heap.tagOf(head);
    for (let next = heap.nextDeferred(tag); next !== 0;) {
      tag = heap.tagOf(next);
      next = heap.nextDeferred(tag);
    }
    this.#lock();
    heap.linkDeferred(tag, Atomics.load(this.#words, this.#base + HEAD));
    Atomics.store(this.#words, this.#base + HEAD, head);
    Atomics.add(this.#words, this.#base + COUNT, count);
    Atomics.add(this.#words, this.#base + DEPARTURES, 1);
    release(this.#words, this.#base + LOCK);
  }

  /**
   * Takes all blocks. They were deferred at unknown times: the taker defers them anew.
   *
   * @param count Counts them as the taker's, before they are no longer counted here.
   * @returns The first block, or 0.
   */
  take(count: (blocks: number) => void): Address {
    if (this.count === 0) return 0;
    this.#lock();
    const head = Atomics.exchange(this.#words, this.#base + HEAD, 0);
    count(this.count);
    Atomics.store(this.#words, this.#base + COUNT, 0);
    release(this.#words, this.#base + LOCK);
    return head;
  }

  #lock(): void {
    if (
      !acquire(this.#words, this.#base + LOCK, this.#owner, LOCK_TIMEOUT)
    ) {
      throw new Error(
        `Cannot take the lock of the orphaned blocks within ${LOCK_TIMEOUT} ms: its holder does not give it back`,
      );
    }
  }
}
