// What a dead thread leaves, and how it is wound up.

import { CallbackCounters } from "./callbacks/_counters.ts";
import { Handover } from "./callbacks/_handover.ts";
import { Orphans } from "./callbacks/_orphans.ts";
import { gather, lengthOf } from "./callbacks/_shared_list.ts";
import { NEXT } from "./callbacks/_counters.ts";
import { TRAIL_LOCK } from "./debug/_trail.ts";
import { releaseMasks } from "./grace_periods/_detectors.ts";
import {
  CHECKS,
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
  magazinesOf,
  workOf,
} from "./_layout.ts";
import type { Address } from "./memory/arena.ts";
import { Heap, HELD, JOINING, LEAVING } from "./memory/_heap.ts";
import { Journal } from "./memory/_journal.ts";
import { Roots } from "./memory/_roots.ts";
import { readText } from "./memory/_text.ts";
import { Obituaries, type Obituary } from "./readers/_obituaries.ts";
import { ReaderTable } from "./readers/_slots.ts";
import { isHeldBy, lockOwner, release } from "./sync/_mutex.ts";

/** Longest wait for a lock, in ms: its holder may be the next one to be buried. */
const PATIENCE = 50;

/**
 * Winds up what threads leave that have been proven dead. One may wait for a lock that
 * another one has: what cannot be done yet is begun again when the others' has been.
 *
 * @param words The domain's words.
 * @param dead Their records.
 */
export function windUp(words: Int32Array, dead: number[]): void {
  let left = dead;
  while (left.length > 0) {
    let obstacle: unknown;
    const rest = left.filter((index) => {
      try {
        new Estate(words, index).windUp();
        return false;
      } catch (error) {
        obstacle = error;
        return true;
      }
    });
    // Somebody alive is in the way: the next one to ask has better luck.
    if (rest.length === left.length) throw obstacle;
    left = rest;
  }
}

/**
 * Winds up what a thread leaves that has been proven dead. Whoever does it takes
 * the thread's place: it works with that thread's record, magazines, lists and
 * words in hand, under its name as a holder of locks. So:
 *
 * 1. Everything is in the state in which the dead thread left it, for nobody else writes
 *    what is its own, and what is shared it has locked, as far as it was in the middle of it.
 * 2. Each step leaves a state in which the dead thread could have died. Should
 *    whoever does this die, too, that is proven in turn, and the next one begins again.
 * 3. The order: what is half done is finished while its locks are still taken; then marks
 *    are looked for; then the structures' locks are given back, and whoever gets them finds
 *    what they protect whole; then deferred blocks, magazines and the name pass
 *    on; the record becomes vacant last, when nothing says any more that the thread had anything.
 * 4. The slot becomes 0 first: a dead thread reads nothing. Grace periods go on from there,
 *    and what the journal has to do needs no block that one might reclaim: it
 *    only stores words of structures, and marks tags of blocks that are live.
 */
class Estate {
  readonly #words: Int32Array;
  readonly #index: number;
  readonly #owner: number;
  readonly #line: Address;
  readonly #readers: ReaderTable;
  readonly #counters: CallbackCounters;
  readonly #heap: Heap;
  readonly #journal: Journal;
  readonly #orphans: Orphans;
  readonly #handover: Handover;
  readonly #roots: Roots;
  readonly #obituaries: Obituaries;
  readonly #detector: Address;
  readonly #trail: Address | undefined;

  /**
   * @param words The domain's words.
   * @param index The dead thread's record.
   */
  constructor(words: Int32Array, index: number) {
    const maxReaders = words[HEADER_MAX_READERS];
    const kind = words[HEADER_DETECTOR];
    const checks = words[HEADER_DEBUG] === CHECKS;
    const places = layout(words.length, maxReaders, kind, checks);
    const readers = new ReaderTable(words, places.readers, maxReaders);
    const owner = lockOwner(index, readers.generationOf(index));
    const work = workOf(places, index);
    this.#words = words;
    this.#index = index;
    this.#owner = owner;
    this.#readers = readers;
    this.#counters = new CallbackCounters(words, places.callbacks);
    this.#line = this.#counters.line(index);
    const heap = new Heap(words, {
      control: places.heap,
      table: places.pageTable,
      firstPage: places.firstPage,
      endPage: places.endPage,
      magazines: magazinesOf(places, index),
      owner,
      index,
      work,
      scratch: workOf(places, maxReaders),
      patience: PATIENCE,
      debug: words[HEADER_DEBUG] !== 0,
    });
    this.#heap = heap;
    this.#journal = new Journal(words, work, heap, (left) => this.#defer(left));
    const { handover, orphans } = places;
    this.#orphans = new Orphans(
      words,
      orphans,
      heap,
      owner,
      this.#line,
      work,
      undefined,
      PATIENCE,
    );
    this.#handover = new Handover(
      words,
      handover,
      heap,
      owner,
      this.#line,
      work,
      undefined,
      PATIENCE,
    );
    this.#roots = new Roots(words, places.roots, heap, owner, this.#journal);
    this.#obituaries = new Obituaries(words, places.obituaries, maxReaders);
    this.#detector = places.detector;
    this.#trail = places.trail;
  }

  /** Winds everything up, and tells the other threads. */
  windUp(): void {
    const words = this.#words;
    const heap = this.#heap;
    const line = this.#line;
    const life = this.#readers.lifeOf(this.#index);
    Atomics.store(words, this.#readers.slot(this.#index), 0);
    this.#journal.recoverStores();
    heap.recover();
    this.#handover.recover(line);
    this.#orphans.recover(line);
    gather(words, heap, line);
    this.#settleMarks();
    this.#giveLocksBack();
    this.#leaveList();
    this.#handover.resign(this.#owner);
    const id = this.#index;
    const block = this.#readers.nameOf(id);
    const obituary: Obituary = {
      life,
      id,
      name: block === 0 ? "" : readText(words, block),
      lostCallbacks: this.#counters.settle(id),
    };
    this.#obituaries.add(obituary, this.#owner);
    this.#leaveName();
    heap.flush();
    this.#readers.unregister(this.#index);
    // The reclaimer ends with the last other thread, and has something to take.
    this.#handover.wake();
  }

  /** What the thread had allocated is freed or public, what it had unlinked deferred or public. */
  #settleMarks(): void {
    const heap = this.#heap;
    const happened = this.#journal.hasHappened;
    heap.forEachMarked((block, kind) => {
      if (kind === HELD) heap.free(block);
      else if (kind === JOINING ? happened : !happened && kind === LEAVING) {
        heap.makePublic(block);
      } else if (happened) this.#defer(block);
      else heap.free(block);
    });
    this.#journal.endRecovery();
  }

  #defer(block: Address): void {
    const words = this.#words;
    const next = this.#line + NEXT;
    this.#heap.takeInHand(block);
    this.#heap.linkDeferred(this.#heap.tagOf(block), words[next]);
    words[next] = block;
    this.#heap.takeInHand(0);
  }

  #giveLocksBack(): void {
    const words = this.#words;
    const giveBack = (lock: Address): void => {
      if (isHeldBy(words, lock, this.#owner)) release(words, lock);
    };
    this.#journal.forEachLock(giveBack);
    giveBack(this.#roots.lock);
    if (this.#trail !== undefined) giveBack(this.#trail + TRAIL_LOCK);
    const kind = words[HEADER_DETECTOR];
    releaseMasks(kind, words, this.#detector, this.#readers.size, this.#owner);
  }

  #leaveList(): void {
    const list = this.#words[this.#line + NEXT];
    const from = this.#line + NEXT;
    this.#orphans.leave(list, lengthOf(this.#heap, list), from);
  }

  #leaveName(): void {
    const block = this.#readers.nameOf(this.#index);
    if (block === 0) return;
    this.#journal.leave(block);
    this.#journal.store(this.#readers.nameAt(this.#index), 0);
    this.#journal.finish();
    this.#leaveList();
  }
}
