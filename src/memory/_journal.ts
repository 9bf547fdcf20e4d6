// What a thread is in the middle of, in shared memory: whoever proves it dead can finish it.

import type { Address } from "./arena.ts";
import { type Heap, HELD, JOINING, LEAVING, LIVE, PASSING } from "./_heap.ts";
import { LINE } from "./_size_classes.ts";
import {
  HAND_WORDS,
  LOCKS,
  MOST_LOCKS,
  PHASE,
  RANGE_AT,
  RANGE_END,
  RANGE_STEP,
  STORES,
  STORES_AT,
  WATCHED,
} from "./_work.ts";

/** Stores for which a thread's own words have room. */
const OWN_STORES = 24;

/** Blocks for which the lists of an update keep room. */
const KEPT = 1024;

/** Words of one thread's journal. */
export const WORK_WORDS: number = (HAND_WORDS + 2 * OWN_STORES + LINE - 1) &
  -LINE;

// Phases.
const IDLE = 0;
const COMMITTED = 1;
const DONE = 2;

/**
 * How much room a journal elsewhere needs.
 *
 * @param stores The most stores that an update makes.
 * @returns Words.
 */
export function journalWords(stores: number): number {
  return 2 * stores;
}

/**
 * The redo log of a thread. It knows nothing of structures: an update, under
 * its lock, says which blocks it links (`join`), which it unlinks (`leave`) and
 * which words it changes (`store`); `commit` does it, `end` cleans up. The
 * thread may die between any two stores, its own plain ones included, and
 * whoever has the proof calls {@linkcode Journal.recover}.
 *
 * 1. A block that was allocated and is not published is HELD: its tag names the
 *    thread. `join` and `leave` only mark tags, and what bears a mark counts as live
 *    like before. So until `commit` nothing has happened: HELD, JOINING and PASSING blocks
 *    are freed, LEAVING ones become LIVE again, the lock is given back.
 * 2. `commit` stores PHASE = COMMITTED when every mark and every entry is in
 *    place, and makes the stores in the order in which they were named. A thread that is
 *    dead has them made again, all of them in that order: nobody else writes those
 *    words, for the dead thread still has the lock. A word is stored twice in one update only with
 *    care: a reader may see the first value again. Those who store a link more than once
 *    (sorted maps) store such links that every one of them is right for a reader at any time.
 * 3. PHASE = DONE is stored before the lock is given back: what is in the
 *    entries is not stored any more. JOINING becomes LIVE before that, too: without the
 *    lock another thread may unlink the block, and its tag is no longer ours to write. LEAVING
 *    and PASSING blocks are nobody else's: they are deferred by `end`, or by the burier; each
 *    bears its mark until just that has been done with it.
 * 4. PHASE = IDLE is stored last, when no mark is left.
 * 5. Marks are plain stores: a tag has one writer at a time (Heap, 1), and an
 *    audit that reads the old or the new value comes to the same.
 * 6. An exception in the middle (the stack was full) meets `settle` on its way
 *    out, before the lock is given back: what was committed is done, what was not is undone.
 * 7. Locks that the thread takes are written into its words before they are taken, and
 *    looked at by what they themselves say: a place that names a lock whose word does
 *    not bear the thread's name says nothing. So none of those stores need an order.
 * 8. What watchers sleep on is written down before the lock is taken, and forgotten when they have
 *    been told. In between a burial tells them; once more than need be does no harm.
 */
export class Journal {
  readonly #words: Int32Array;
  readonly #heap: Heap;
  readonly #retire: (block: Address) => void;
  #work: Address;
  /** Where the stores are written, and the same in private, in words: addresses and values in turn. */
  #area: Address;
  readonly #stores: number[] = [];
  #storeWords = 0;
  /** The tags of blocks that join, and the blocks that leave. The lists keep their room. */
  #joined: Address[] = [];
  #joins = 0;
  #left: Address[] = [];
  #leaves = 0;
  #phase = IDLE;
  #locks = 0;
  /** Whether an update has begun and not ended. */
  open = false;

  /**
   * @param words The arena's words.
   * @param work The thread's own words.
   * @param heap The thread's heap.
   * @param retire Defers a block's freeing.
   */
  constructor(
    words: Int32Array,
    work: Address,
    heap: Heap,
    retire: (block: Address) => void,
  ) {
    this.#words = words;
    this.#work = work;
    this.#area = work + HAND_WORDS;
    this.#heap = heap;
    this.#retire = retire;
  }

  /**
   * Has the stores of the update that begins written elsewhere, where it makes many.
   *
   * @param area {@linkcode journalWords} that belong to the lock that the caller holds.
   */
  useArea(area: Address): void {
    this.#area = area;
  }

  /**
   * Names a block that the update links.
   *
   * @param block A block that this thread has allocated.
   */
  join(block: Address): void {
    const tag = this.#heap.tagOf(block);
    this.open = true;
    // One that is named twice, or that is public already, is not marked again.
    if (this.#words[tag] !== this.#heap.mark(HELD)) return;
    this.#words[tag] = this.#heap.mark(JOINING);
    this.#joined[this.#joins++] = tag;
  }

  /**
   * Names a block that the update unlinks.
   *
   * @param block A block that is public.
   */
  leave(block: Address): void {
    const tag = this.#heap.tagOf(block);
    const joins = this.#words[tag] === this.#heap.mark(JOINING);
    this.open = true;
    this.#words[tag] = this.#heap.mark(joins ? PASSING : LEAVING);
    this.#left[this.#leaves++] = block;
  }

  /**
   * Names a store of the update.
   *
   * @param address A word that only holders of the lock write.
   * @param value What it is to hold.
   */
  store(address: Address, value: number): void {
    const words = this.#words;
    const stores = this.#stores;
    const at = this.#area + this.#storeWords;
    this.open = true;
    words[at] = address;
    words[at + 1] = value;
    stores[this.#storeWords++] = address;
    stores[this.#storeWords++] = value;
  }

  /**
   * The value that a word is going to have.
   *
   * @param address The word.
   * @returns What was named last for it, or what it holds.
   */
  load(address: Address): number {
    const stores = this.#stores;
    for (let i = this.#storeWords - 2; i >= 0; i -= 2) {
      if (stores[i] === address) return stores[i + 1];
    }
    return this.#words[address];
  }

  /** Makes the stores: from here on the update has happened. */
  commit(): void {
    const words = this.#words;
    const work = this.#work;
    this.open = true;
    words[work + STORES] = this.#storeWords;
    words[work + STORES_AT] = this.#area;
    words[work + PHASE] = COMMITTED;
    this.#phase = COMMITTED;
    this.#make();
  }

  #make(): void {
    const words = this.#words;
    const stores = this.#stores;
    const end = this.#storeWords;
    for (let i = 0; i < end; i += 2) {
      // Publish. Pairs with: what the caller of `store` says.
      Atomics.store(words, stores[i], stores[i + 1]);
    }
    words[this.#work + PHASE] = DONE;
    this.#phase = DONE;
    const joined = this.#joined;
    const joining = this.#heap.mark(JOINING);
    for (let i = 0; i < this.#joins; i++) {
      if (words[joined[i]] === joining) words[joined[i]] = LIVE;
    }
  }

  /** Cleans up: what left is deferred. */
  end(): void {
    const words = this.#words;
    const left = this.#left;
    const leaving = this.#heap.mark(LEAVING);
    const passing = this.#heap.mark(PASSING);
    for (let i = 0; i < this.#leaves; i++) {
      // Not what has been deferred already, where an exception cut this short.
      const mark = words[this.#heap.tagOf(left[i])];
      if (mark === leaving || mark === passing) this.#retire(left[i]);
    }
    this.#clear();
  }

  #clear(): void {
    this.#words[this.#work + PHASE] = IDLE;
    this.#phase = IDLE;
    if (this.#joins > KEPT) this.#joined = [];
    if (this.#leaves > KEPT) this.#left = [];
    this.#joins = 0;
    this.#leaves = 0;
    this.#storeWords = 0;
    this.#area = this.#work + HAND_WORDS;
    this.open = false;
  }

  /** Commits and cleans up. */
  finish(): void {
    this.commit();
    this.end();
  }

  /**
   * After an exception: an update that was committed is done, one that was not is undone. Does
   * nothing between `commit` and `end`.
   */
  settle(): void {
    this.#makeEven();
    if (this.#phase === DONE) return;
    if (this.#phase === COMMITTED) {
      this.#make();
      return this.end();
    }
    const words = this.#words;
    for (let i = 0; i < this.#leaves; i++) {
      words[this.#heap.tagOf(this.#left[i])] = LIVE;
    }
    const held = this.#heap.mark(HELD);
    for (let i = 0; i < this.#joins; i++) words[this.#joined[i]] = held;
    this.#clear();
  }

  /** As {@linkcode Journal.settle}, where the last update's end was cut short, too. */
  settleAll(): void {
    if (this.#phase === DONE) this.end();
    else this.settle();
  }

  /**
   * Names words that are odd for as long as the update lasts.
   *
   * @param at The first one.
   * @param end One past the last one.
   * @param step From one to the next.
   */
  beginOdd(at: Address, end: Address, step: number): void {
    const words = this.#words;
    const work = this.#work;
    words[work + RANGE_AT] = at;
    words[work + RANGE_STEP] = step;
    words[work + RANGE_END] = end;
  }

  /** They are even again. */
  endOdd(): void {
    this.#words[this.#work + RANGE_END] = 0;
  }

  // Locks of structures

  /**
   * Names a lock before it is taken.
   *
   * @param lock The lock.
   */
  noteLock(lock: Address): void {
    this.#words[this.#work + LOCKS + (this.#locks++ & (MOST_LOCKS - 1))] = lock;
  }

  /** A lock has been given back. Once the first of several has, no further one is taken before the last. */
  forgetLock(): void {
    this.#locks--;
  }

  /** The thread's words may be another one's from now on. */
  detach(scratch: Address): void {
    this.#work = scratch;
    this.#area = scratch + HAND_WORDS;
  }

  // Watchers

  /**
   * Says before a write what watchers sleep on.
   *
   * @param version A word that moves whenever they are to look.
   */
  willTell(version: Address): void {
    this.#words[this.#work + WATCHED] = version;
  }

  /** They have been told. */
  hasTold(): void {
    this.#words[this.#work + WATCHED] = 0;
  }

  // For a thread that is dead, by whoever has taken its place

  /**
   * Makes the stores that a dead thread had committed. It still has their locks. Wakes who waits
   * for one of the words to change, or for the structure: the thread may have died before it did.
   */
  recoverStores(): void {
    const words = this.#words;
    const work = this.#work;
    const phase = words[work + PHASE];
    const area = words[work + STORES_AT];
    // What is done may have been followed by newer stores, and an area elsewhere be another one's by now.
    if (phase === COMMITTED || (phase === DONE && area === this.#area)) {
      const end = area + words[work + STORES];
      for (let at = area; at < end; at += 2) {
        if (phase === COMMITTED) Atomics.store(words, words[at], words[at + 1]);
        Atomics.notify(words, words[at]);
      }
      words[work + PHASE] = DONE;
    }
    this.#makeEven();
    const version = words[work + WATCHED];
    if (version === 0) return;
    // Pairs with: the sleep in `Watch`. Who finds nothing new sleeps on.
    Atomics.add(words, version, 1);
    Atomics.notify(words, version);
    words[work + WATCHED] = 0;
  }

  #makeEven(): void {
    const words = this.#words;
    const work = this.#work;
    const range = words[work + RANGE_END];
    if (range === 0) return;
    const step = words[work + RANGE_STEP];
    for (let at = words[work + RANGE_AT]; at < range; at += step) {
      if ((Atomics.load(words, at) & 1) !== 0) Atomics.add(words, at, 1);
    }
    words[work + RANGE_END] = 0;
  }

  /** Whether a dead thread's update has happened. */
  get hasHappened(): boolean {
    return this.#words[this.#work + PHASE] === DONE;
  }

  /** All marks are gone. */
  endRecovery(): void {
    this.#words[this.#work + PHASE] = IDLE;
  }

  /**
   * Visits the locks that a dead thread may have.
   *
   * @param visit Gets each.
   */
  forEachLock(visit: (lock: Address) => void): void {
    const first = this.#work + LOCKS;
    for (let at = first; at < first + MOST_LOCKS; at++) {
      const lock = this.#words[at];
      if (lock !== 0) visit(lock);
      this.#words[at] = 0;
    }
  }
}
