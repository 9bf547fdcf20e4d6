// A list of deferred blocks that threads give to one another.

import { acquire, isHeldBy, release, tryAcquire } from "../sync/_mutex.ts";
import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import { LIST } from "../memory/_work.ts";
import { LATER, NEXT, WAIT } from "./_counters.ts";

/** Longest wait for the list's lock, which is held for a walk along it, in ms. */
const LOCK_TIMEOUT = 10_000;

/** A list that was taken. */
export interface Taken {
  /** The tag of its last block. */
  tail: Address;
  /** How many there are. */
  count: number;
}

/** Where a list's words are, and who uses it. */
export interface SharedListPlace {
  lock: Address;
  head: Address;
  count: Address;
  /** Counts those who gave; 0 if nobody does. */
  departures: Address;
  /** The thread's name as the holder of a lock, and its line. */
  owner: number;
  line: Address;
  /** Where the thread writes down what it is in the middle of. */
  work: Address;
  /** Called when the lock has not been given back for a while. */
  onSlow?: (() => void) | undefined;
  /** Longest wait for the lock in ms, where it is not the usual one. */
  patience?: number;
}

/**
 * A list that is given to and taken from as a whole, under its lock.
 *
 * 1. COUNT goes up before a list is there and goes down after the taker has
 *    counted the blocks as its own: who adds up COUNT and what every thread has
 *    waiting may count a block twice, but never misses one.
 * 2. Whoever has had the lock, or has found COUNT to be 0, knows that every block
 *    whose giving was over before is counted as some thread's own. Barriers rest on that.
 * 3. Who dies in the middle has the lock until it is buried. It was giving: then the
 *    list is on NEXT, or the shared one begins with it; or its tail was linked to
 *    that already, which a repetition does once more. Or it was taking: then LIST names the list, and
 *    that is still the shared one, or it is NEXT, or neither.
 */
export class SharedList {
  readonly #words: Int32Array;
  readonly #heap: Heap;
  readonly #place: SharedListPlace;

  constructor(words: Int32Array, heap: Heap, place: SharedListPlace) {
    this.#words = words;
    this.#heap = heap;
    this.#place = place;
  }

  /** How many blocks there are. */
  get count(): number {
    return Atomics.load(this.#words, this.#place.count);
  }

  /**
   * Gives a list.
   *
   * @param head Its first block.
   * @param tail The tag of its last one.
   * @param count How many there are.
   * @param from The word on which it hangs, which becomes 0; 0: none.
   * @param wait Whether to wait for a thread that has the lock now.
   * @returns Whether it has been given.
   */
  give(
    head: Address,
    tail: Address,
    count: number,
    from: Address,
    wait: boolean,
  ): boolean {
    const words = this.#words;
    const place = this.#place;
    const { departures } = place;
    if (!this.#lock(wait)) return false;
    Atomics.add(words, place.count, count);
    this.#heap.linkDeferred(tail, Atomics.load(words, place.head));
    // Publish. Pairs with: `take`, and who looks at the head without the lock.
    Atomics.store(words, place.head, head);
    if (from !== 0) words[from] = 0;
    if (departures !== 0) Atomics.add(words, departures, 1);
    release(words, place.lock);
    return true;
  }

  /**
   * Takes all blocks, and puts them before those of a thread's NEXT. They were
   * deferred at unknown times: the taker defers them anew.
   *
   * @param line The thread's line.
   * @param wait Whether to wait for a thread that has the lock now.
   * @param count Counts them as the taker's, before they are no longer counted here.
   * @returns What was taken, or `undefined` if there was nothing.
   */
  take(
    line: Address,
    wait: boolean,
    count: (blocks: number) => void,
  ): Taken | undefined {
    const words = this.#words;
    const place = this.#place;
    const { work } = place;
    if (this.count === 0 || !this.#lock(wait)) return undefined;
    const head = Atomics.load(words, place.head);
    let tail = 0;
    let blocks = 0;
    for (let block = head; block !== 0; blocks++) {
      tail = this.#heap.tagOf(block);
      block = this.#heap.nextDeferred(tail);
    }
    if (head !== 0) {
      words[work + LIST] = head;
      Atomics.store(words, place.head, 0);
      count(blocks);
      this.#heap.linkDeferred(tail, words[line + NEXT]);
      words[line + NEXT] = head;
      words[work + LIST] = 0;
      Atomics.sub(words, place.count, blocks);
    }
    release(words, place.lock);
    return head === 0 ? undefined : { tail, count: blocks };
  }

  #lock(wait: boolean): boolean {
    const place = this.#place;
    const { line, lock, onSlow, owner, patience = LOCK_TIMEOUT } = place;
    // An exception took this thread out of the middle of something.
    if (isHeldBy(this.#words, lock, owner)) this.recover(line);
    if (!wait) return tryAcquire(this.#words, lock, owner);
    if (acquire(this.#words, lock, owner, patience, onSlow)) return true;
    throw new Error(
      `Cannot take the lock of the deferred blocks within ${patience} ms: its holder does not give it back`,
    );
  }

  /**
   * Brings a dead thread's giving or taking to an end (3), by whoever has taken its place.
   *
   * @param line The dead thread's line.
   */
  recover(line: Address): void {
    const words = this.#words;
    const { count, departures, head, lock, owner, work } = this.#place;
    if (!isHeldBy(words, lock, owner)) return;
    const shared = words[head];
    const list = words[work + LIST];
    if (list !== 0) {
      if (list !== shared) prepend(words, this.#heap, line, list);
      words[work + LIST] = 0;
    } else {
      for (const at of [line + NEXT, line + WAIT, line + LATER]) {
        const given = words[at];
        if (given === 0 || !leads(this.#heap, given, shared)) continue;
        Atomics.store(words, head, given);
        words[at] = 0;
      }
    }
    Atomics.store(words, count, lengthOf(this.#heap, words[head]));
    if (departures !== 0) Atomics.add(words, departures, 1);
    release(words, lock);
  }
}

/**
 * How long a list is.
 *
 * @param heap The heap.
 * @param head Its first block, or 0.
 * @returns The number of blocks.
 */
export function lengthOf(heap: Heap, head: Address): number {
  let length = 0;
  for (let block = head; block !== 0; length++) {
    block = heap.nextDeferred(heap.tagOf(block));
  }
  return length;
}

/** Whether a list leads to a block. */
function leads(
  heap: Heap,
  list: Address,
  to: Address,
): boolean {
  if (to === 0) return false;
  let block = list;
  while (block !== 0 && block !== to) {
    block = heap.nextDeferred(heap.tagOf(block));
  }
  return block === to;
}

/** Puts a list before NEXT, unless one of them is a part of the other. */
function prepend(
  words: Int32Array,
  heap: Heap,
  line: Address,
  list: Address,
): void {
  const next = words[line + NEXT];
  if (list === 0 || leads(heap, next, list)) return;
  if (!leads(heap, list, next)) {
    let tag = heap.tagOf(list);
    for (let block; (block = heap.nextDeferred(tag)) !== 0;) {
      tag = heap.tagOf(block);
    }
    heap.linkDeferred(tag, next);
  }
  words[line + NEXT] = list;
}

/**
 * Brings all that a dead thread had deferred to NEXT, by whoever has taken its place.
 * A list that was about to move from one word to another hangs on both.
 *
 * @param words The arena's words.
 * @param heap The dead thread's heap.
 * @param line Its line.
 */
export function gather(words: Int32Array, heap: Heap, line: Address): void {
  for (const list of [WAIT, LATER]) {
    prepend(words, heap, line, words[line + list]);
    words[line + list] = 0;
  }
  gatherHand(words, heap, line);
}

/**
 * Brings a deferred block that is in hand to NEXT, unless it is there already.
 *
 * @param words The arena's words.
 * @param heap The thread's heap.
 * @param line Its line.
 * @returns The tag of the block, if it was not there; otherwise 0.
 */
export function gatherHand(
  words: Int32Array,
  heap: Heap,
  line: Address,
): Address {
  const block = heap.inHand;
  if (block === 0) return 0;
  let tag = 0;
  // On its way to or from the head of a list.
  if (!leads(heap, words[line + NEXT], block)) {
    tag = heap.tagOf(block);
    heap.linkDeferred(tag, words[line + NEXT]);
    words[line + NEXT] = block;
  }
  heap.takeInHand(0);
  return tag;
}
