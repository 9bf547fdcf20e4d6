// Deferred blocks whose thread has left, until another thread takes them over.

import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import { LINE } from "../memory/_size_classes.ts";
import { SharedList, type Taken } from "./_shared_list.ts";

const LOCK = 0;
const HEAD = 1;
const COUNT = 2;
/** How often a thread has left blocks here. */
const DEPARTURES = 3;

/** Words of the list. */
export const ORPHAN_WORDS: number = LINE;

/** The list of deferred blocks that belong to no thread. */
export class Orphans {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #heap: Heap;
  readonly #list: SharedList;

  constructor(
    words: Int32Array,
    base: Address,
    heap: Heap,
    owner: number,
    line: Address,
    work: Address,
    onSlow?: () => void,
    patience?: number,
  ) {
    this.#words = words;
    this.#base = base;
    this.#heap = heap;
    this.#list = new SharedList(words, heap, {
      lock: base + LOCK,
      head: base + HEAD,
      count: base + COUNT,
      departures: base + DEPARTURES,
      owner,
      line,
      work,
      onSlow,
      ...(patience === undefined ? {} : { patience }),
    });
  }

  /** How many blocks there are. */
  get count(): number {
    return this.#list.count;
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
   * @param head Its first block, or 0.
   * @param count How many there are.
   * @param from The word on which it hangs, which becomes 0; 0: none.
   */
  leave(head: Address, count: number, from: Address): void {
    if (head === 0) return;
    const heap = this.#heap;
    let tag = heap.tagOf(head);
    for (let next = heap.nextDeferred(tag); next !== 0;) {
      tag = heap.tagOf(next);
      next = heap.nextDeferred(tag);
    }
    this.#list.give(head, tag, count, from, true);
  }

  /**
   * Takes all blocks, and puts them before those of a thread's NEXT.
   *
   * @param line The thread's line.
   * @param count Counts them as the taker's, before they are no longer counted here.
   * @returns What was taken, or `undefined` if there was nothing.
   */
  take(
    line: Address,
    count: (blocks: number) => void,
  ): Taken | undefined {
    return this.#list.take(line, true, count);
  }

  /**
   * Brings what a dead thread was doing here to an end, by whoever has taken its place.
   *
   * @param line The dead thread's line.
   */
  recover(line: Address): void {
    this.#list.recover(line);
  }
}
