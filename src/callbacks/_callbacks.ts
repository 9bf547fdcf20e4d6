// One thread's callbacks: deferred frees in shared memory, closures beside them, in segments.

import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import type { GracePeriods } from "../grace_periods/_grace_periods.ts";
import { hasStack, probeStack } from "../sync/_stack.ts";
import { Closures } from "./_closures.ts";
import {
  type CallbackCounters,
  CLOSURES,
  ENQUEUED,
  HANDED,
  INVOKED,
  LATER,
  LOST,
  NEXT,
  PEAK,
  WAIT,
} from "./_counters.ts";
import type { Handover } from "./_handover.ts";
import type { Orphans } from "./_orphans.ts";
import type { Taken } from "./_shared_list.ts";
import { emptySegment, leftIn, type Segment } from "./_segment.ts";
import { type Throttle, UNLIMITED } from "./_throttle.ts";
import { Timer } from "./_timer.ts";

/** Enqueueings between two looks at the segments. */
const INTERVAL = 64;

/** First and longest pause between two looks while nothing is enqueued, in ms. */
const SHORTEST_PAUSE = 0;
const LONGEST_PAUSE = 10;

/** Turns in a row in which nothing could be done: perhaps a thread is in the way that has died. */
const VAIN_TURNS = 32;

/** What a thread's callbacks report, and how they are done. */
export interface CallbackSettings {
  /** Callbacks that wait and count as overload. */
  highWater: number;
  /** The limit of the policy `throttled`. */
  throttle: Throttle | undefined;
  /** The stack of the policy `offloaded`. */
  handover: Handover | undefined;
  /** Whether the thread hands over, which the reclaimer does not. */
  handsOver: boolean;
  /** A callback threw. */
  onError(error: unknown): void;
  /** Overload: how many times highWater wait. */
  onForced(times: number): void;
  /** The reclaimer gives no sign of life, or callbacks have waited for long. */
  onSilence(): void;
  /** The thread has left and nothing of its own waits any more: its line is not written again. */
  onEnd(): void;
}

/**
 * Callbacks in the order in which they were enqueued, in three segments, after
 * the kernel's `rcu_segcblist`: NEXT collects; it moves as a whole to a segment
 * that is stamped with a cookie *after* the last of its callbacks was enqueued,
 * so the cookie covers all of them; two stamped segments are enough, because a
 * cookie lies at most two periods ahead.
 *
 * 1. Enqueuing writes the block's tag and this thread's own line, and reads no
 *    word that another thread writes: its cost does not depend on how many
 *    threads there are. The global words are looked at every INTERVAL calls.
 * 2. A block is on exactly one list: its tag carries the link.
 * 3. A segment runs only when `poll` has said that its period has ended. It
 *    keeps its place, and its cookie, until all of it has run.
 * 4. With a reclaimer, NEXT's blocks go to the {@linkcode Handover} where they
 *    would be stamped; its closures are stamped here. What a thread has taken from there it
 *    never hands over again (`#keep`), so that a barrier has to look at two
 *    generations of goals and not at any number of them.
 */
export class Callbacks {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #heap: Heap;
  readonly #periods: GracePeriods;
  readonly #orphans: Orphans;
  readonly #counters: CallbackCounters;
  readonly #settings: CallbackSettings;
  readonly #throttle: Throttle | undefined;
  readonly #handover: Handover | undefined;
  readonly #handsOver: boolean;
  readonly #highWater: number;

  #next: (() => void)[] = [];
  #nextCount = 0;
  /** The tag of NEXT's last block. */
  #nextTail: Address = 0;
  /** Whether NEXT holds blocks that were handed over before. */
  #keep = false;
  #wait: Segment;
  #later: Segment;
  #enqueued: number;
  #invoked: number;
  #handed: number;
  /** What threads that had the record before lost as they died. */
  readonly #lost: number;
  #peak: number;
  /** Closures that wait. Shared, too, so that those of a thread that dies are known. */
  #closures = 0;
  #quota = INTERVAL;
  #forceAt: number;
  #left = false;
  /** The line may be another thread's by now. */
  #ended = false;
  /** Ready callbacks wait for a later turn. */
  #plugged = false;
  #pause = SHORTEST_PAUSE;
  /** Turns since something was done. */
  #vainTurns = 0;
  readonly #ready: Closures;
  readonly #timer = new Timer();
  readonly #onTurn = (): void => this.#turn();

  constructor(
    words: Int32Array,
    reader: number,
    heap: Heap,
    periods: GracePeriods,
    orphans: Orphans,
    counters: CallbackCounters,
    settings: CallbackSettings,
  ) {
    this.#words = words;
    const base = counters.line(reader);
    this.#base = base;
    this.#heap = heap;
    this.#periods = periods;
    this.#orphans = orphans;
    this.#counters = counters;
    this.#settings = settings;
    this.#throttle = settings.throttle;
    this.#handover = settings.handover;
    this.#handsOver = settings.handsOver;
    this.#highWater = settings.highWater;
    this.#forceAt = settings.highWater;
    this.#ready = new Closures(settings.onError, (count) => {
      this.#countClosures(-count);
      this.#countInvoked(count);
    });
    this.#wait = emptySegment(base + WAIT);
    this.#later = emptySegment(base + LATER);
    // The counters belong to the record, not to its thread: a barrier that began while another
    // thread had it still counts right.
    this.#enqueued = Atomics.load(words, base + ENQUEUED);
    this.#invoked = Atomics.load(words, base + INVOKED);
    this.#handed = Atomics.load(words, base + HANDED);
    this.#lost = Atomics.load(words, base + LOST);
    this.#peak = Atomics.load(words, base + PEAK);
  }

  /** Callbacks and frees of this thread that have been neither invoked nor handed on. */
  get pending(): number {
    const done = this.#invoked + this.#handed + this.#lost;
    return (this.#enqueued - done) | 0;
  }

  /** Callbacks and frees that this record has ever invoked, modulo 2³². */
  get invoked(): number {
    return this.#invoked;
  }

  /** What counts as overload: with a reclaimer, what has been handed over and not freed as well. */
  get backlog(): number {
    const handover = this.#handover;
    if (handover === undefined) return this.pending;
    const { reclaimer } = handover;
    const taken = reclaimer < 0 || !this.#handsOver
      ? 0
      : this.#counters.pending(reclaimer);
    return this.pending + handover.count + taken;
  }

  /** Deferred frees among those that are pending in this thread. */
  get frees(): number {
    return this.pending - this.#closures;
  }

  /** The period that the next callbacks wait for, or `undefined` when none waits. */
  get waitsFor(): GracePeriodCookie | undefined {
    return this.#wait.cookie;
  }

  /** Whether callbacks are being invoked right now. */
  get running(): boolean {
    return this.#ready.running;
  }

  /**
   * Enqueues a block to be freed. Runs nothing: {@linkcode checkCallbacks} does, later.
   *
   * @param block A live block that no new reader can find.
   * @param tag Its tag.
   */
  deferFree(block: Address, tag: Address): void {
    this.#arm();
    this.#link(block, tag);
    // No call from here on: if the stack has no room for one, the block is in NEXT and not counted.
    this.#nextCount++;
    this.#quota--;
    this.#enqueued = (this.#enqueued + 1) | 0;
    // Pairs with: `barrier`, as in `#countEnqueued`.
    Atomics.store(this.#words, this.#base + ENQUEUED, this.#enqueued);
  }

  /**
   * Enqueues a closure.
   *
   * @param callback What to run after a grace period.
   */
  callRcu(callback: () => void): void {
    probeStack();
    this.#timer.keepAlive(true);
    this.#arm();
    // No call from here on, as in `deferFree`.
    this.#next[this.#next.length] = callback;
    this.#words[this.#base + CLOSURES] = ++this.#closures;
    this.#nextCount++;
    this.#quota--;
    this.#enqueued = (this.#enqueued + 1) | 0;
    // Pairs with: `barrier`, as in `#countEnqueued`.
    Atomics.store(this.#words, this.#base + ENQUEUED, this.#enqueued);
  }

  #countClosures(change: number): void {
    this.#closures += change;
    this.#words[this.#base + CLOSURES] = this.#closures;
  }

  /** Puts a block before the others in NEXT. */
  #link(block: Address, tag: Address): void {
    const words = this.#words;
    const head = this.#base + NEXT;
    const first = words[head];
    if (first === 0) this.#nextTail = tag;
    this.#heap.takeInHand(block);
    this.#heap.linkDeferred(tag, first);
    words[head] = block;
    this.#heap.takeInHand(0);
  }

  #countEnqueued(count: number): void {
    this.#enqueued = (this.#enqueued + count) | 0;
    // Pairs with: `barrier`, which must find what was enqueued before it was called.
    Atomics.store(this.#words, this.#base + ENQUEUED, this.#enqueued);
    this.#arm();
  }

  /** Sees to it that what is enqueued has its turn. */
  #arm(): void {
    this.#pause = SHORTEST_PAUSE;
    if (!this.#timer.armed) this.#timer.start(this.#onTurn, SHORTEST_PAUSE);
  }

  /**
   * Looks at the segments if it is time to. To be called after an update, when
   * no lock is held.
   */
  checkCallbacks(): void {
    if (this.#quota > 0) return;
    this.processCallbacks(true);
    const backlog = this.backlog;
    if (backlog >= this.#forceAt) this.#force(backlog);
    else if (backlog < this.#highWater) this.#forceAt = this.#highWater;
  }

  /** Overload: reclaims for those who fall behind or have left, too. */
  #force(backlog: number): void {
    // What follows may come back here.
    this.#forceAt = backlog + this.#highWater;
    this.adopt();
    this.help(false);
    this.processCallbacks();
    this.#settings.onForced(Math.floor(backlog / this.#highWater));
    this.processCallbacks();
    // Once per highWater further callbacks, not on every one: the 2009 fault.
    const left = this.backlog;
    this.#forceAt = this.#highWater + (left < this.#highWater ? 0 : left);
  }

  /**
   * Moves the segments on as far as periods have ended, and invokes what is ready.
   *
   * @param limited Whether the policy decides: how many are invoked, and whether the reclaimer
   * gets NEXT. Otherwise all that can be done is done here and now.
   */
  processCallbacks(limited = false): void {
    // Before anything changes hands: a callback that could not be called for want of stack would
    // be lost. After an update that has been made, the next one will do.
    if (!limited) probeStack();
    else if (!hasStack()) return;
    this.#quota = INTERVAL;
    // A block whose release an exception cut short waits for that.
    if (!this.#left && this.#heap.inHand !== 0) this.#heap.settleHand();
    const pending = this.pending;
    if (pending > this.#peak) {
      this.#peak = pending;
      Atomics.store(this.#words, this.#base + PEAK, pending);
    }
    this.#throttle?.watch(pending);
    if (this.#ready.waiting) this.#ready.run([], 0, 0);
    // Twice at most: what a callback enqueues is for a later call, or a callback
    // that enqueues itself would never let go of the thread.
    // And no more once a callback has closed the membership and was the last to be done.
    for (let pass = 0; pass < 2 && !this.#ended; pass++) {
      const busy = limited && this.#handsOver && !this.#handOver();
      if (
        this.#wait.cookie === undefined && this.#later.cookie !== undefined
      ) {
        // An exception cut a batch short after the segments had changed places.
        [this.#wait, this.#later] = [this.#later, this.#wait];
      }
      const wait = this.#wait;
      if (this.#nextCount > 0 && !busy) {
        if (wait.cookie === undefined) this.#stamp(wait);
        else if (this.#later.cookie === undefined) this.#stamp(this.#later);
      }
      if (wait.cookie === undefined || !this.#periods.poll(wait.cookie)) break;
      const most = limited && this.#throttle !== undefined
        ? this.#throttle.allowance
        : UNLIMITED;
      if (most < leftIn(wait)) {
        this.#plug();
        if (most > 0) this.invokeCallbacks(wait, most);
        break;
      }
      this.#wait = this.#later;
      this.#later = wait;
      this.invokeCallbacks(wait, most);
    }
  }

  /** Sees to it that the rest of a batch has its turn, `plugTicks` from now. */
  #plug(): void {
    if (this.#plugged) return;
    this.#plugged = true;
    this.#timer.stop();
    this.#timer.start(this.#onTurn, this.#throttle!.plugTicks);
  }

  /**
   * Hands NEXT's blocks to the reclaimer, if there is one that keeps up.
   *
   * @returns Whether that is done with; not if another thread is at it, and the next look is soon enough.
   */
  #handOver(): boolean {
    const frees = this.#nextCount - this.#next.length;
    if (frees === 0 || this.#keep) return true;
    const handover = this.#handover!;
    if (!handover.alive) {
      this.doubt();
      // A few frees are no reason to start a thread.
      if (frees >= INTERVAL) handover.want();
      this.help(false);
      return true;
    }
    if (this.backlog >= this.#highWater) return true;
    const from = this.#base + NEXT;
    const head = this.#words[from];
    if (!handover.push(head, this.#nextTail, frees, from)) return false;
    this.#nextCount = this.#next.length;
    this.#countHanded(frees);
    handover.wake();
    // Pairs with: `resign`. If the reclaimer has gone meanwhile, it may not have seen our list.
    if (handover.holder === 0) this.help(true);
    return true;
  }

  /** Gives what NEXT holds a cookie. */
  #stamp(segment: Segment): void {
    const words = this.#words;
    // After the last enqueueing, hence after the unlinking that preceded it.
    segment.cookie = this.#periods.start();
    segment.closures = this.#next;
    segment.frees = this.#nextCount - this.#next.length;
    segment.done = 0;
    this.#next = [];
    this.#nextCount = 0;
    this.#keep = false;
    words[segment.head] = words[this.#base + NEXT];
    words[this.#base + NEXT] = 0;
  }

  /**
   * Frees and runs what a segment holds: its period has ended.
   *
   * @param ready The segment.
   * @param most How much of it at most.
   */
  invokeCallbacks(ready: Segment, most: number): void {
    const { closures, done } = ready;
    const frees = Math.min(ready.frees, most);
    const end = Math.min(closures.length, done + most - frees);
    // Before anything is done: closures may come back here.
    this.#throttle?.spend(frees + end - done);
    const heap = this.#heap;
    const words = this.#words;
    let block = words[ready.head];
    for (let left = frees; left > 0; left--) {
      const tag = heap.tagOf(block);
      const next = heap.nextDeferred(tag);
      // The head moves before the block does: whoever takes the list over finds the rest. And each
      // block is counted by itself: where the stack has no room for its release, it stays in hand
      // (`takeBack`), and what has been done is done.
      heap.takeInHand(block);
      words[ready.head] = next;
      ready.frees--;
      heap.release(block, tag);
      this.#invoked = (this.#invoked + 1) | 0;
      block = next;
    }
    ready.done = end;
    if (block === 0 && end === closures.length) {
      ready.cookie = undefined;
      ready.closures = [];
      ready.done = 0;
    }
    this.#countInvoked(0);
    if (end > done) this.#ready.run(closures, done, end);
  }

  #countInvoked(count: number): void {
    this.#invoked = (this.#invoked + count) | 0;
    // Pairs with: `barrier`, which returns when this covers what it found enqueued.
    Atomics.store(this.#words, this.#base + INVOKED, this.#invoked);
    this.#rest();
  }

  /** Counts blocks that others can find by now. */
  #countHanded(count: number): void {
    this.#handed = (this.#handed + count) | 0;
    // Pairs with: `barrier`, as above.
    Atomics.store(this.#words, this.#base + HANDED, this.#handed);
    this.#rest();
  }

  /** Something has been done: perhaps all. */
  #rest(): void {
    this.#vainTurns = 0;
    this.#throttle?.watch(this.pending);
    if (this.#closures === 0) this.#timer.keepAlive(false);
    if (!this.#left || this.pending !== 0 || this.#ended) return;
    this.#ended = true;
    this.#timer.stop();
    this.#settings.onEnd();
  }

  #turn(): void {
    this.#plugged = false;
    this.#throttle?.replenish();
    try {
      this.adopt();
      this.processCallbacks(true);
      if (this.#wait.cookie !== undefined) this.#periods.watch();
    } finally {
      // Even then, or what is left would never have its turn.
      if (this.pending === 0) {
        this.#pause = SHORTEST_PAUSE;
      } else {
        this.#pause = Math.min(this.#pause + 1, LONGEST_PAUSE);
        if (++this.#vainTurns % VAIN_TURNS === 0) this.#settings.onSilence();
        this.#timer.start(this.#onTurn, this.#pause);
      }
    }
  }

  /** Takes over what threads that left had deferred. Does nothing once this one has left. */
  adopt(): void {
    if (this.#left) return;
    this.#receive((count) => this.#orphans.take(this.#base, count));
  }

  /**
   * A block whose release an exception has cut short is in NEXT again, before the others.
   *
   * @param tag Its tag.
   */
  takeBack(tag: Address): void {
    if (this.#nextCount === this.#next.length) this.#nextTail = tag;
    this.#nextCount++;
    this.#arm();
  }

  /** Takes a shared list over. */
  #receive(
    take: (count: (blocks: number) => void) => Taken | undefined,
  ): boolean {
    const wasEmpty = this.#words[this.#base + NEXT] === 0;
    const taken = take((count) => this.#countEnqueued(count));
    if (taken === undefined) return false;
    if (wasEmpty) this.#nextTail = taken.tail;
    this.#nextCount += taken.count;
    return true;
  }

  /**
   * Takes over what has been handed to the reclaimer and waits for it. Does
   * nothing once this thread has left.
   *
   * @param wait Whether to wait for a thread that is doing so now: then, whatever
   * had been handed over before is counted as some thread's own afterwards.
   */
  help(wait: boolean): void {
    if (this.#left) return;
    const handover = this.#handover;
    if (handover === undefined) return;
    const taken = this.#receive((count) =>
      handover.take(this.#base, wait, count)
    );
    if (taken) this.#keep = true;
  }

  /** Has it looked into if the reclaimer gives no sign of life. */
  doubt(): void {
    if (this.#handover?.isDoubtful) this.#settings.onSilence();
  }

  /** Does before the thread leaves what can be done at once. */
  finish(): void {
    if (this.#handsOver && this.#handover!.alive) {
      this.processCallbacks(true);
      return;
    }
    // Where nobody is reading, everything is reclaimed here and now, what others left included.
    this.help(true);
    this.adopt();
    this.processCallbacks();
    this.processCallbacks();
  }

  /**
   * Hands every deferred block on. Closures stay: the line is this thread's until
   * they have run.
   */
  leave(): void {
    this.#left = true;
    const words = this.#words;
    const next = this.#base + NEXT;
    let frees = this.#nextCount - this.#next.length;
    this.#orphans.leave(words[next], frees, next);
    this.#nextCount = this.#next.length;
    for (const segment of [this.#wait, this.#later]) {
      this.#orphans.leave(words[segment.head], segment.frees, segment.head);
      frees += segment.frees;
      segment.frees = 0;
    }
    this.#countHanded(frees);
  }
}
