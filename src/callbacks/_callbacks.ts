// One thread's callbacks: deferred frees in shared memory, closures beside them, in segments.

import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import { LINE } from "../memory/_size_classes.ts";
import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import type { GracePeriods } from "../grace_periods/_grace_periods.ts";
import type { Orphans } from "./_orphans.ts";
import { Timer } from "./_timer.ts";

// A thread's line. It alone writes it.
/** Deferred blocks that have no cookie yet. */
const NEXT = 0;
/** Deferred blocks of the segment that waits for the later period. */
const LATER = 1;
/** Deferred blocks of the segment that waits for the earlier one. */
const WAIT = 2;
/** Callbacks and frees ever enqueued in this record, by whichever thread had it. */
const ENQUEUED = 3;
/** Those of them that have been invoked or handed on. */
const INVOKED = 4;
/** The largest difference of the two so far. */
const PEAK = 5;

/** Words of one thread's line. */
export const CALLBACK_WORDS: number = LINE;

/** Enqueueings between two looks at the segments. */
const INTERVAL = 64;

/** First and longest pause between two looks while nothing is enqueued, in ms. */
const SHORTEST_PAUSE = 0;
const LONGEST_PAUSE = 10;

/** A segment that waits: its blocks hang on a word of the line, its closures here. */
interface Segment {
  readonly head: Address;
  cookie: GracePeriodCookie | undefined;
  closures: (() => void)[];
  frees: number;
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
 * 3. A segment runs only when `poll` has said that its period has ended.
 */
export class Callbacks {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #heap: Heap;
  readonly #periods: GracePeriods;
  readonly #orphans: Orphans;
  readonly #onError: (error: unknown) => void;
  readonly #onIdle: () => void;
  readonly #highWater: number;
  readonly #onForced: () => void;

  #next: (() => void)[] = [];
  #ready: (() => void)[] = [];
  #nextCount = 0;
  #wait: Segment;
  #later: Segment;
  #enqueued: number;
  #invoked: number;
  #peak: number;
  #closures = 0;
  #quota = INTERVAL;
  #forceAt: number;
  #running = false;
  #left = false;
  #pause = SHORTEST_PAUSE;
  readonly #timer = new Timer();
  readonly #onTurn = (): void => this.#turn();

  constructor(
    words: Int32Array,
    base: Address,
    heap: Heap,
    periods: GracePeriods,
    orphans: Orphans,
    options: {
      highWater: number;
      onError: (error: unknown) => void;
      onForced: () => void;
      onIdle: () => void;
    },
  ) {
    this.#words = words;
    this.#base = base;
    this.#heap = heap;
    this.#periods = periods;
    this.#orphans = orphans;
    this.#highWater = options.highWater;
    this.#onError = options.onError;
    this.#onForced = options.onForced;
    this.#onIdle = options.onIdle;
    this.#forceAt = options.highWater;
    this.#wait = segment(base + WAIT);
    this.#later = segment(base + LATER);
    // The counters belong to the record, not to its thread: a barrier that began while another
    // thread had it still counts right.
    this.#enqueued = Atomics.load(words, base + ENQUEUED);
    this.#invoked = Atomics.load(words, base + INVOKED);
    this.#peak = 0;
    Atomics.store(words, base + PEAK, 0);
  }

  /** Callbacks and frees of this thread that have not been invoked. */
  get pending(): number {
    return (this.#enqueued - this.#invoked) | 0;
  }

  /** Deferred frees among them. */
  get frees(): number {
    return this.pending - this.#closures;
  }

  /** The period that the next callbacks wait for, or `undefined` when none waits. */
  get waitsFor(): GracePeriodCookie | undefined {
    return this.#wait.cookie;
  }

  /** Whether callbacks are being invoked right now. */
  get running(): boolean {
    return this.#running;
  }

  /**
   * Enqueues a block to be freed. Runs nothing: {@linkcode checkCallbacks} does, later.
   *
   * @param block A live block that no new reader can find.
   * @param tag Its tag.
   */
  deferFree(block: Address, tag: Address): void {
    const words = this.#words;
    const head = this.#base + NEXT;
    this.#heap.linkDeferred(tag, words[head]);
    words[head] = block;
    this.#enqueue();
  }

  /**
   * Enqueues a closure.
   *
   * @param callback What to run after a grace period.
   */
  callRcu(callback: () => void): void {
    this.#next.push(callback);
    this.#closures++;
    this.#timer.keepAlive(true);
    this.#enqueue();
  }

  #enqueue(): void {
    this.#nextCount++;
    this.#countEnqueued(1);
    this.#quota--;
  }

  #countEnqueued(count: number): void {
    this.#enqueued = (this.#enqueued + count) | 0;
    // Pairs with: `barrier`, which must find what was enqueued before it was called.
    Atomics.store(this.#words, this.#base + ENQUEUED, this.#enqueued);
    this.#pause = SHORTEST_PAUSE;
    if (!this.#timer.armed) this.#timer.start(this.#onTurn, SHORTEST_PAUSE);
  }

  /**
   * Looks at the segments if it is time to. To be called after an update, when
   * no lock is held.
   */
  checkCallbacks(): void {
    if (this.#quota > 0) return;
    this.processCallbacks();
    if (this.pending >= this.#forceAt) {
      // Once per highWater, not on every call: the 2009 fault.
      this.#forceAt = this.pending + this.#highWater;
      this.#onForced();
      this.processCallbacks();
    }
    if (this.pending < this.#highWater) this.#forceAt = this.#highWater;
  }

  /** Moves the segments on as far as periods have ended, and invokes what is ready. */
  processCallbacks(): void {
    this.#quota = INTERVAL;
    const pending = this.pending;
    if (pending > this.#peak) {
      this.#peak = pending;
      Atomics.store(this.#words, this.#base + PEAK, pending);
    }
    // Twice at most: what a callback enqueues is for a later call, or a callback
    // that enqueues itself would never let go of the thread.
    for (let pass = 0; pass < 2; pass++) {
      const wait = this.#wait;
      if (this.#nextCount > 0) {
        if (wait.cookie === undefined) this.#stamp(wait);
        else if (this.#later.cookie === undefined) this.#stamp(this.#later);
      }
      if (wait.cookie === undefined || !this.#periods.poll(wait.cookie)) break;
      this.#wait = this.#later;
      this.#later = wait;
      this.invokeCallbacks(wait);
    }
  }

  /** Gives what NEXT holds a cookie. */
  #stamp(segment: Segment): void {
    const words = this.#words;
    // After the last enqueueing, hence after the unlinking that preceded it.
    segment.cookie = this.#periods.start();
    segment.closures = this.#next;
    segment.frees = this.#nextCount - this.#next.length;
    this.#next = [];
    this.#nextCount = 0;
    words[segment.head] = words[this.#base + NEXT];
    words[this.#base + NEXT] = 0;
  }

  /**
   * Frees and runs what a segment holds: its period has ended.
   *
   * @param ready The segment.
   */
  invokeCallbacks(ready: Segment): void {
    const { closures, frees } = ready;
    const heap = this.#heap;
    const words = this.#words;
    for (let block = words[ready.head]; block !== 0;) {
      const tag = heap.tagOf(block);
      const next = heap.nextDeferred(tag);
      // The head moves first: whoever takes the list over finds the rest.
      words[ready.head] = next;
      heap.release(block, tag);
      block = next;
    }
    ready.cookie = undefined;
    ready.closures = [];
    ready.frees = 0;
    this.#countInvoked(frees);
    if (closures.length > 0) this.#run(closures);
  }

  /** Runs closures, or leaves them to the call that is already running some. */
  #run(closures: (() => void)[]): void {
    // One by one: a call cannot have as many arguments as there may be closures.
    for (const closure of closures) this.#ready.push(closure);
    if (this.#running) return;
    this.#running = true;
    try {
      // A callback may wait for memory and so make further ones ready: they queue up behind.
      for (let i = 0; i < this.#ready.length; i++) {
        try {
          this.#ready[i]();
        } catch (error) {
          this.#onError(error);
        }
      }
    } finally {
      const count = this.#ready.length;
      this.#ready = [];
      this.#running = false;
      this.#closures -= count;
      this.#countInvoked(count);
    }
  }

  #countInvoked(count: number): void {
    this.#invoked = (this.#invoked + count) | 0;
    // Pairs with: `barrier`, which returns when this covers what it found enqueued.
    Atomics.store(this.#words, this.#base + INVOKED, this.#invoked);
    if (this.#closures === 0) this.#timer.keepAlive(false);
    if (this.pending !== 0) return;
    if (this.#left) this.#timer.stop();
    this.#onIdle();
  }

  #turn(): void {
    if (!this.#left) this.adopt();
    this.processCallbacks();
    if (this.pending === 0) {
      this.#pause = SHORTEST_PAUSE;
      return;
    }
    this.#pause = Math.min(this.#pause + 1, LONGEST_PAUSE);
    this.#timer.start(this.#onTurn, this.#pause);
  }

  /** Takes over what threads that left had deferred. */
  adopt(): void {
    const words = this.#words;
    const head = this.#base + NEXT;
    let block = this.#orphans.take((count) => this.#countEnqueued(count));
    while (block !== 0) {
      const tag = this.#heap.tagOf(block);
      const next = this.#heap.nextDeferred(tag);
      this.#heap.linkDeferred(tag, words[head]);
      words[head] = block;
      this.#nextCount++;
      block = next;
    }
  }

  /**
   * Hands every deferred block on. Closures stay: their periods need no record.
   */
  leave(): void {
    this.#left = true;
    const words = this.#words;
    const nextFrees = this.#nextCount - this.#next.length;
    this.#orphans.leave(words[this.#base + NEXT], nextFrees);
    words[this.#base + NEXT] = 0;
    this.#nextCount = this.#next.length;
    let frees = nextFrees;
    for (const segment of [this.#wait, this.#later]) {
      this.#orphans.leave(words[segment.head], segment.frees);
      words[segment.head] = 0;
      frees += segment.frees;
      segment.frees = 0;
    }
    this.#countInvoked(frees);
  }
}

function segment(head: Address): Segment {
  return { head, cookie: undefined, closures: [], frees: 0 };
}

/** The counters of every record, for barriers and statistics. */
export class CallbackCounters {
  readonly #words: Int32Array;
  readonly #base: Address;

  constructor(words: Int32Array, base: Address) {
    this.#words = words;
    this.#base = base;
  }

  /**
   * Where a reader's line is.
   *
   * @param reader The reader.
   * @returns The address of its line.
   */
  line(reader: number): Address {
    return this.#base + reader * CALLBACK_WORDS;
  }

  /**
   * How many callbacks a record has ever got.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  enqueued(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + ENQUEUED);
  }

  /**
   * How many callbacks of a record have been invoked or handed on.
   *
   * @param reader The record.
   * @returns The count, modulo 2³².
   */
  invoked(reader: number): number {
    return Atomics.load(this.#words, this.line(reader) + INVOKED);
  }

  /**
   * How many callbacks of a record wait.
   *
   * @param reader The record.
   * @returns The number.
   */
  pending(reader: number): number {
    // INVOKED first: it never passes ENQUEUED, so the difference is not negative.
    const invoked = this.invoked(reader);
    return (this.enqueued(reader) - invoked) | 0;
  }

  /**
   * The most callbacks that a record's thread had waiting when it looked.
   *
   * @param reader The record.
   * @returns The number.
   */
  peak(reader: number): number {
    return Math.max(
      Atomics.load(this.#words, this.line(reader) + PEAK),
      this.pending(reader),
    );
  }
}
