// One thread's membership of a domain: the parts of `Rcu` that structures are built on.

import { Callbacks } from "./callbacks/_callbacks.ts";
import { DebugHeap } from "./debug/_heap.ts";
import { Trail } from "./debug/_trail.ts";
import { DebugReader } from "./debug/_reader.ts";
import { CallbackCounters } from "./callbacks/_counters.ts";
import { Handover } from "./callbacks/_handover.ts";
import { Orphans } from "./callbacks/_orphans.ts";
import { gatherHand } from "./callbacks/_shared_list.ts";
import { Throttle } from "./callbacks/_throttle.ts";
import type { Detector } from "./grace_periods/_detector.ts";
import { openDetector } from "./grace_periods/_detectors.ts";
import { GracePeriods, turn } from "./grace_periods/_grace_periods.ts";
import { Sequence } from "./grace_periods/_sequence.ts";
import { StallWatch } from "./grace_periods/_stall_watch.ts";
import type { GracePeriodCookie } from "./grace_periods/cookie.ts";
import {
  RcuStallError,
  type StalledReader,
  type StallReport,
} from "./grace_periods/stall_report.ts";
import {
  CHECKS,
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_HIGH_WATER,
  HEADER_MAX_READERS,
  HEADER_STALL_TIMEOUT,
  type Layout,
  layout,
  magazinesOf,
  workOf,
} from "./_layout.ts";
import { Inquest } from "./_inquest.ts";
import { Life } from "./_life.ts";
import type { Address } from "./memory/arena.ts";
import { RcuMemoryError } from "./memory/errors.ts";
import { Heap, type HeapPlace } from "./memory/_heap.ts";
import { Journal } from "./memory/_journal.ts";
import { Roots } from "./memory/_roots.ts";
import { measureText, readText, writeText } from "./memory/_text.ts";
import { type FullPolicy, readPolicy } from "./_policy.ts";
import { Obituaries } from "./readers/_obituaries.ts";
import { Reader } from "./readers/_reader.ts";
import { ReaderTable } from "./readers/_slots.ts";
import {
  acquire,
  holderIn,
  holderOf,
  isHeldBy,
  lockOwner,
  release,
  tryAcquire,
} from "./sync/_mutex.ts";
import { hasStack, probeDeepStack, probeStack } from "./sync/_stack.ts";
import { park } from "./sync/_park.ts";

// Deno loads some globals when they are first used and runs pending microtasks meanwhile, which may
// be anybody's code. That must not happen under a lock: use them now.
void [
  performance,
  setTimeout,
  clearTimeout,
  queueMicrotask,
  crypto,
  AbortController,
];

/** How long an allocation waits for frees that other threads have deferred, in ms. */
const OTHERS_PATIENCE = 250;
/** Periods in a row after which nothing was freed: as many as there are segments, and then something is wrong. */
const DRAINS = 3;
/** A pause between two looks at what other threads do, in ms. */
const NAP = 1;
/** What overload makes an updater wait at most, in ms: 1, and twice that for each further highWater. */
const LONGEST_OVERLOAD_WAIT = 64;

/** Why a thread does not say inside a section that it reads nothing. */
export const UNPROTECTED = "nothing would protect what the section reads";

/** Who has waited for so long asks whether somebody has died, in ms. */
const DOUBT = 200;

/** How often pending callbacks are counted anew because one has changed hands meanwhile. */
const COUNT_TRIES = 8;

/** What may be behind a wait that does not end, for errors. */
const LEFT_BEHIND =
  "if it is a worker that has ended without close(), it is in the way until that is proven";

/** A report, and the same in words. */
interface Described {
  report: StallReport;
  words: string;
}

/** Those of this thread that are open. */
const memberships = new Set<Membership>();

/** What a membership reports to its owner. */
export interface MembershipEvents {
  /** A callback threw, or a section was held across an await. */
  onError(error: unknown): void;
  /** A grace period that this thread waits for, or its callbacks do, does not end; in words, if not as usual. */
  onStall?(report: StallReport, warning?: string): void;
}

/**
 * A registered thread. `Rcu` is its public face; structures use it directly.
 *
 * Rules for structures:
 *
 * 1. Walk shared nodes between `reader.enter()` and `reader.exit()`.
 * 2. Allocate before taking a lock; under a lock use `heap.tryAllocate` alone.
 * 3. `retire` what was unlinked under the lock, and call `afterUpdate` when no
 *    lock is held: it may run callbacks of the user.
 * 4. `lock`, `tryLock` and `allocate` throw if the stack has little room, before
 *    they touch anything. Elsewhere call `probeStack` before a section is entered in
 *    which an overflow must not happen, for it might not be left.
 */
export class Membership {
  readonly words: Int32Array;
  readonly index: number;
  readonly heap: Heap;
  readonly reader: Reader;
  readonly readers: ReaderTable;
  readonly sequence: Sequence;
  readonly periods: GracePeriods;
  readonly callbacks: Callbacks;
  readonly counters: CallbackCounters;
  readonly roots: Roots;
  readonly debug: boolean;
  /** The heap in debug mode: it checks how pointers and blocks are used. */
  readonly checks: DebugHeap | undefined;
  readonly stallTimeout: number;
  readonly policy: FullPolicy;
  readonly orphans: Orphans;
  /** Where the policy `offloaded` hands over. */
  readonly handover: Handover | undefined;
  /** What the update that this thread is making does. */
  readonly journal: Journal;
  readonly obituaries: Obituaries;
  /** Asks whether others have died. */
  readonly inquest: Inquest;

  /** Reports that something else than a grace period does not end, to the owner. */
  readonly reportStall: (report: StallReport, warning: string) => void;

  readonly #detector: Detector;
  readonly #stalls: StallWatch;
  readonly #owner: number;
  readonly #nap: Address;
  readonly #life: Life;
  readonly #scratch: Address;
  readonly #onClose = new Set<() => void>();
  #closed = false;
  /** Periods that overload had forced when this thread looked last. */
  #forced = 0;
  /** Whether it left the forcing to another thread then. */
  #yielded = false;

  /**
   * @param words The domain's words.
   * @param name What the thread is called.
   * @param events What it reports.
   * @param reclaims Whether it is the reclaimer, who hands nothing over.
   */
  constructor(
    words: Int32Array,
    name: string,
    events: MembershipEvents,
    reclaims = false,
  ) {
    const maxReaders = words[HEADER_MAX_READERS];
    const kind = words[HEADER_DETECTOR];
    const debug = words[HEADER_DEBUG] === CHECKS;
    const places: Layout = layout(words.length, maxReaders, kind, debug);
    this.words = words;
    this.debug = debug;
    this.stallTimeout = words[HEADER_STALL_TIMEOUT];
    this.readers = new ReaderTable(words, places.readers, maxReaders);
    probeDeepStack();
    this.inquest = new Inquest(words);
    this.#life = new Life(words);
    const record = this.readers.register(this.#life.mark);
    if (record === undefined) {
      this.#life.end();
      // Slots of threads that have died are vacant in a moment.
      this.inquest.begin();
      throw new RangeError(
        `Cannot join the domain as at most ${maxReaders} threads can (maxReaders): all slots are taken; those of threads that ended without close() become free as soon as that is proven`,
      );
    }
    const { index, generation } = record;
    this.index = index;
    this.#owner = lockOwner(index, generation);
    this.#nap = this.readers.nap(index);
    const work = workOf(places, index);
    const scratch = workOf(places, maxReaders);
    const onSlow = () => this.inquest.beginElsewhere();
    this.#scratch = scratch;
    this.obituaries = new Obituaries(words, places.obituaries, maxReaders);
    const place: HeapPlace = {
      control: places.heap,
      table: places.pageTable,
      firstPage: places.firstPage,
      endPage: places.endPage,
      magazines: magazinesOf(places, index),
      owner: this.#owner,
      index,
      work,
      scratch,
      onSlow,
      debug: words[HEADER_DEBUG] !== 0,
    };
    const sequence = new Sequence(words, places.sequence);
    this.sequence = sequence;
    const slot = this.readers.slot(index);
    if (places.trail === undefined) {
      this.heap = new Heap(words, place);
      this.reader = new Reader(words, slot, sequence.address);
    } else {
      const trail = new Trail(words, places.trail, this.#owner, onSlow);
      this.heap = this.checks = new DebugHeap(words, place, {
        trail,
        sequence,
        whoIs: (owner) => this.#whoIs(owner),
        onMisuse: events.onError,
      });
      const called = nameReaders([{ id: index, name }]);
      this.reader = new DebugReader(words, slot, sequence.address, called);
    }
    this.journal = new Journal(
      words,
      work,
      this.heap,
      (block) => this.retire(block),
    );
    this.reader.onHeldAcrossAwait = events.onError;
    const detector = openDetector(kind, {
      words,
      base: places.detector,
      maxReaders,
      readers: this.readers,
      sequence: this.sequence,
      reader: index,
      owner: this.#owner,
    });
    this.#detector = detector;
    this.reader.onAnnounced = (sequence) => detector.report(sequence);
    this.periods = new GracePeriods(
      words,
      this.sequence,
      detector,
      this.reader,
      this.#nap,
    );
    this.#stalls = new StallWatch(
      words,
      this.sequence,
      this.stallTimeout,
      (age) => this.#reportStall(age, events),
    );
    this.reportStall = (report, warning) => events.onStall?.(report, warning);
    this.periods.onHindered = (period) => this.#stalls.look(period);
    this.counters = new CallbackCounters(words, places.callbacks);
    const line = this.counters.line(index);
    this.heap.onInterrupted = () => {
      const tag = gatherHand(words, this.heap, line);
      if (tag !== 0) this.callbacks.takeBack(tag);
    };
    this.orphans = new Orphans(
      words,
      places.orphans,
      this.heap,
      this.#owner,
      line,
      work,
      onSlow,
    );
    const policy = readPolicy(words);
    const highWater = words[HEADER_HIGH_WATER];
    const offloaded = policy.mode === "offloaded";
    this.policy = policy;
    this.handover = offloaded
      ? new Handover(
        words,
        places.handover,
        this.heap,
        this.#owner,
        line,
        work,
        onSlow,
      )
      : undefined;
    this.callbacks = new Callbacks(
      words,
      index,
      this.heap,
      this.periods,
      this.orphans,
      this.counters,
      {
        highWater,
        throttle: policy.mode === "throttled"
          ? new Throttle(policy.maxBatch, policy.plugTicks, highWater)
          : undefined,
        handover: this.handover,
        handsOver: offloaded && !reclaims,
        onError: events.onError,
        onForced: (times) => this.#force(times),
        onSilence: () => this.inquest.begin(),
        onEnd: () => this.#leave(),
      },
    );
    this.roots = new Roots(
      words,
      places.roots,
      this.heap,
      this.#owner,
      this.journal,
      onSlow,
    );
    // What cleans up where the stack was short is compiled now: there is no room for that then.
    this.heap.discard(0);
    this.journal.settle();
    this.journal.settleAll();
    globalThis.addEventListener?.("error", this.#onUncaught);
    memberships.add(this);
    if (name !== "") this.#publishName(name);
  }

  /** The thread as the holder of a lock. */
  get owner(): number {
    return this.#owner;
  }

  /** Whether the membership has ended. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Throws unless the membership is open.
   *
   * @param act What the caller was about to do, for the error.
   */
  assertOpen(act: string): void {
    if (this.#closed) throw this.reader.afterClose(act);
  }

  /**
   * Throws if the thread is in a read section: nobody waits for a grace period there,
   * or says that it reads nothing.
   *
   * @param act What the caller was about to do, for the error.
   * @param why Why it cannot be done there.
   */
  assertOutside(act: string, why = "it would wait for itself"): void {
    if (this.reader.depth !== 0) {
      throw new Error(
        this.reader.held
          ? `Cannot ${act} as no section of this thread may be open: one that was held across an await has not been disposed of`
          : `Cannot ${act} inside a read section: ${why}`,
      );
    }
  }

  // Locks

  /**
   * Takes a lock of a structure. Offline while it waits, so that it holds up no grace period.
   *
   * @param address The lock.
   */
  lock(address: Address): void {
    // The caller's own code may have closed the membership in the middle of an update.
    this.assertOpen("take a lock");
    probeStack();
    this.lockToCleanUp(address);
  }

  /**
   * Takes a lock of a structure to undo what an operation has begun in whose
   * middle the membership may have ended. No other thread has the same name as a
   * holder, not even one that has got the record.
   *
   * @param address The lock.
   */
  lockToCleanUp(address: Address): void {
    // What an exception cut short.
    if (this.journal.open) this.journal.settleAll();
    this.journal.noteLock(address);
    if (!tryAcquire(this.words, address, this.#owner)) this.#lockSlow(address);
  }

  #lockSlow(address: Address): void {
    if (isHeldBy(this.words, address, this.#owner)) {
      throw new Error("Cannot take a lock that this thread holds already");
    }
    if (this.reader.depth === 0) this.reader.goOffline();
    const { words, stallTimeout } = this;
    const onSlow = () => this.inquest.beginElsewhere();
    if (!acquire(words, address, this.#owner, stallTimeout, onSlow)) {
      this.journal.forgetLock();
      const holder = holderOf(this.words, address);
      // Free after all, at the last moment.
      if (holder < 0) return this.lockToCleanUp(address);
      const reader = {
        id: holder,
        name: this.nameOf(holder),
        age: this.stallTimeout,
        behind: 0,
      };
      throw new RcuStallError(
        `Cannot take a lock within ${this.stallTimeout} ms: ${
          nameReaders([reader])
        } holds it; ${LEFT_BEHIND}`,
        {
          age: this.stallTimeout,
          readers: [reader],
          pending: this.pendingOfAll(),
        },
      );
    }
  }

  /**
   * Takes a lock if it is free.
   *
   * @param address The lock.
   * @returns Whether it was.
   */
  tryLock(address: Address): boolean {
    probeStack();
    this.journal.noteLock(address);
    if (tryAcquire(this.words, address, this.#owner)) return true;
    this.journal.forgetLock();
    return false;
  }

  /**
   * Gives a lock back.
   *
   * @param address The lock.
   */
  unlock(address: Address): void {
    // An exception is on its way out: nobody else may make the stores of this update.
    if (this.journal.open) this.journal.settle();
    release(this.words, address);
    this.journal.forgetLock();
  }

  // Memory

  /**
   * Allocates a block, waiting for deferred ones where that is allowed. No lock is held.
   *
   * @param size Words.
   * @returns The block.
   */
  allocate(size: number): Address {
    this.assertOpen("allocate");
    probeStack();
    const block = this.heap.tryAllocate(size);
    return block !== 0 ? block : this.#allocateSlowly(size);
  }

  #allocateSlowly(size: number): Address {
    const heap = this.heap;
    let stalled: StallReport | undefined;
    // What other threads have deferred: first its period, then some patience with them.
    let othersPeriod: GracePeriodCookie | undefined;
    const deadline = performance.now() + this.stallTimeout;
    let patience = Infinity;
    let idle = 0;
    heap.scavenge();
    let block = heap.tryAllocate(size);
    while (block === 0 && this.reader.depth === 0) {
      // Offline, or two threads that wait for each other's blocks hold each other up.
      this.reader.goOffline();
      this.callbacks.adopt();
      this.callbacks.help(true);
      const { frees: own, invoked } = this.callbacks;
      if (own > 0) {
        if (!this.#drain(this.stallTimeout)) {
          stalled = this.stallReport();
          break;
        }
        if (this.callbacks.frees < own) patience = Infinity;
        if (this.callbacks.invoked !== invoked) idle = 0;
        else if (++idle > DRAINS) break;
      } else if (this.pendingOfAll() === this.callbacks.pending) {
        break;
      } else if (patience === Infinity) {
        othersPeriod ??= this.periods.start();
        const left = Math.max(0, deadline - performance.now());
        if (!this.#wait(othersPeriod, left, true)) {
          stalled = this.stallReport();
          break;
        }
        patience = performance.now() + OTHERS_PATIENCE;
      } else if (performance.now() > patience) {
        break;
      } else {
        this.callbacks.doubt();
        this.inquest.beginElsewhere();
        park(this.words, this.#nap, 0, NAP);
      }
      // Or the magazines are another thread's by now.
      this.assertOpen("allocate");
      heap.scavenge();
      block = heap.tryAllocate(size);
    }
    this.assertOpen("allocate");
    if (block !== 0) return block;
    const { deferred, free } = heap.audit();
    const why = stalled !== undefined
      ? `${
        nameReaders(stalled.readers)
      } holds the grace period up; ${LEFT_BEHIND}`
      : this.reader.depth !== 0
      ? "inside a read section it cannot wait for a grace period"
      : "raise capacity or store less";
    throw new RcuMemoryError(
      `Cannot allocate ${size * 4} bytes as they must fit into the arena: ` +
        `${free} bytes are free in all and ${deferred} wait for a grace period; ${why}`,
      { requested: size * 4, available: free, deferred },
    );
  }

  /**
   * Waits for one period and reclaims what it covers. The caller looks at the
   * membership and its sections anew: callbacks have run.
   *
   * @returns Whether the period has ended, or must not be waited for.
   */
  #drain(timeout: number): boolean {
    this.reader.goOffline();
    this.callbacks.processCallbacks();
    // A callback may have closed the membership, or opened a section and left it open.
    if (this.#closed || this.reader.depth !== 0) return true;
    const cookie = this.callbacks.waitsFor;
    if (cookie === undefined) return true;
    if (!this.#wait(cookie, timeout, true)) return false;
    this.callbacks.processCallbacks();
    return true;
  }

  /** Blocks until a period has ended; after a while it may be a dead thread that is in the way. */
  #wait(
    cookie: GracePeriodCookie,
    timeout: number,
    expedited: boolean,
  ): boolean {
    const { periods } = this;
    let left = timeout;
    for (; left > DOUBT; left -= DOUBT) {
      if (periods.wait(cookie, DOUBT, expedited)) return true;
      this.inquest.beginElsewhere();
    }
    return periods.wait(cookie, left, expedited);
  }

  /**
   * Overload: the updater waits a moment for the period that its callbacks need. Not if
   * another thread has just forced it, but it leaves that to others only every other time.
   */
  #force(times: number): void {
    const { callbacks, periods, reader, sequence } = this;
    const cookie = callbacks.waitsFor;
    if (cookie === undefined || reader.depth !== 0) return;
    this.#yielded = !this.#yielded && sequence.wasForced(this.#forced);
    if (!this.#yielded) {
      sequence.countForced();
      // A reader that is not stalled but has no core for a while needs more than a moment.
      const wait = Math.min(2 ** (times - 1), LONGEST_OVERLOAD_WAIT);
      reader.goOffline();
      periods.wait(cookie, wait, true);
    }
    this.#forced = sequence.forced;
  }

  /**
   * Defers the freeing of a block that has just been unlinked.
   *
   * @param block A block that no new reader can find.
   */
  retire(block: Address): void {
    const tag = this.heap.tagOf(block);
    if (!this.#closed) return this.callbacks.deferFree(block, tag);
    // A callback closed the membership in the middle of an operation that goes on.
    this.heap.linkDeferred(tag, 0);
    this.orphans.leave(block, 1, 0);
  }

  /** Gives callbacks a chance to run. No lock is held. */
  afterUpdate(): void {
    if (this.reader.depth === 0 && !this.#closed) {
      this.callbacks.checkCallbacks();
    }
  }

  // Waiting

  /**
   * Blocks until a period has ended.
   *
   * @param timeout Longest wait in ms.
   * @param expedited Whether to hurry.
   */
  synchronizeSync(timeout: number, expedited: boolean): void {
    this.reader.goOffline();
    if (expedited) this.sequence.countExpedited();
    const cookie = this.periods.start();
    if (!this.#wait(cookie, timeout, expedited)) {
      this.#throwStalled("wait for a grace period", timeout);
    }
  }

  /**
   * Waits until a period has ended.
   *
   * @param expedited Whether to hurry.
   * @param signal Ends the wait early.
   */
  async synchronize(
    expedited: boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (expedited) this.sequence.countExpedited();
    const cookie = this.periods.start();
    const ended = await this.whileOpen(
      signal,
      (over) => this.periods.waitAsync(cookie, expedited, over),
    );
    if (ended) return;
    this.assertOpen("wait for a grace period");
    this.throwAborted("wait for a grace period", signal!);
  }

  /**
   * Waits, the event loop turning meanwhile, until the membership ends at most.
   *
   * @param signal What else ends the wait.
   * @param wait Waits; its signal says when to stop.
   */
  async whileOpen<T>(
    signal: AbortSignal | undefined,
    wait: (over: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const over = new AbortController();
    const end = () => over.abort();
    // First: the caller's object may throw.
    signal?.addEventListener("abort", end);
    const forget = this.onClose(end);
    if (signal?.aborted) end();
    const doubt = setInterval(() => this.inquest.begin(), DOUBT);
    try {
      return await wait(over.signal);
    } finally {
      clearInterval(doubt);
      forget();
      signal?.removeEventListener("abort", end);
    }
  }

  /**
   * Blocks until every callback that any thread had enqueued is done.
   *
   * @param timeout Longest wait in ms.
   */
  barrierSync(timeout: number): void {
    const begin = performance.now();
    const { isDone, waitsFor } = this.#barrier();
    while (!isDone()) {
      // A callback may have opened a section and left it open.
      this.assertOutside("finish a barrier");
      const left = begin + timeout - performance.now();
      if (left <= 0) {
        const report = this.#barrierReport(begin, waitsFor());
        this.#throwStalled("finish a barrier", timeout, report);
      }
      if (timeout - left > DOUBT) this.inquest.beginElsewhere();
      if (this.callbacks.waitsFor === undefined) {
        this.reader.goOffline();
        this.#watchOthers();
        park(this.words, this.#nap, 0, NAP);
      } else {
        this.#drain(left);
      }
    }
  }

  /**
   * Waits until every callback that any thread had enqueued is done.
   *
   * @param signal Ends the wait early.
   */
  async barrier(signal: AbortSignal | undefined): Promise<void> {
    const begin = performance.now();
    const { isDone, waitsFor } = this.#barrier();
    await this.whileOpen(signal, async (over) => {
      let pause = 0;
      while (!isDone()) {
        if (signal?.aborted) {
          const { report, words } = this.#barrierReport(begin, waitsFor());
          this.throwAborted("finish a barrier", signal, report, words);
        }
        const cookie = this.callbacks.waitsFor;
        if (cookie !== undefined) {
          await this.periods.waitAsync(cookie, false, over);
        } else {
          this.#watchOthers();
          await turn(pause, over);
          pause = Math.min(pause + 1, 10);
        }
      }
    });
  }

  /** Other threads' callbacks are waited for: what they wait for is what this thread waits for. */
  #watchOthers(): void {
    const { sequence } = this;
    if (sequence.inProgress()) this.#stalls.look(sequence.current());
  }

  /** Takes note of what every thread has enqueued; the result says whether that is done, and whose is not. */
  #barrier(): { isDone: () => boolean; waitsFor: () => number[] } {
    probeStack();
    let departures = 0;
    let goals: number[] = [];
    let second = false;
    const note = () => {
      goals = [];
      for (let reader = 0; reader < this.readers.count; reader++) {
        goals.push(this.counters.enqueued(reader));
      }
    };
    const begin = () => {
      departures = this.orphans.departures;
      this.callbacks.adopt();
      second = false;
      note();
    };
    // Pairs with: the stores of the counters in Callbacks.
    const hasReached = (goal: number, reader: number) =>
      ((this.counters.done(reader) - goal) | 0) >= 0 ||
      this.counters.pending(reader) === 0;
    const reached = () => goals.every(hasReached);
    const waitsFor = () =>
      [...goals.keys()].filter((reader) =>
        reader !== this.index && !hasReached(goals[reader], reader)
      );
    // What it would wait for is other threads' once the membership has ended, be it by a callback.
    const process = () => {
      this.callbacks.processCallbacks();
      this.assertOpen("finish a barrier");
    };
    begin();
    const isDone = () => {
      this.assertOpen("finish a barrier");
      process();
      let done = reached();
      if (done && !second) {
        // A count says how many are done, not which: of a segment, frees are done before closures that
        // were enqueued earlier. But the segment in which that is so has its cookie by now: all that
        // it holds is among the second goals, and is done before anything that comes later. And what
        // threads have handed over is on the stack or with whoever took it, who will not hand
        // it over again: the second goals cover it, too (3 of Handover, 4 of Callbacks).
        second = true;
        this.callbacks.help(true);
        note();
        process();
        done = reached();
      }
      // A thread that closed meanwhile has left blocks behind, of which another one may have
      // charge by now: what there is to wait for is noted anew. Pairs with: `Orphans.leave`.
      if (this.orphans.departures === departures) {
        if (!done) this.callbacks.doubt();
        return done;
      }
      begin();
      return false;
    };
    return { isDone, waitsFor };
  }

  // Reports

  /**
   * Who is in a barrier's way: who holds the grace period up, or else who has callbacks of its own
   * and does not come to them, because it blocks or its turn does not end.
   *
   * @param begin When the barrier began.
   * @param others Threads with callbacks that the barrier waits for.
   * @returns The report, and the same in words.
   */
  #barrierReport(begin: number, others: number[]): Described {
    const report = this.stallReport();
    if (report.readers.length > 0 || others.length === 0) {
      return { report, words: this.#describeBlocking(report) };
    }
    const age = performance.now() - begin;
    const readers = others.map((id) => ({
      id,
      name: this.nameOf(id),
      age,
      behind: 0,
    }));
    const found = { ...report, age, readers };
    return { report: found, words: this.#describeBlocking(found, "callbacks") };
  }

  /**
   * Callbacks of all threads that wait, orphans and what is handed over included.
   * One that changes hands meanwhile may be counted twice. It would be missed if its new place were
   * looked at before it came and the old one after it went; then a counter of
   * those who took or gave has moved, and the count is taken anew.
   */
  pendingOfAll(): number {
    const { counters, handover, orphans, readers } = this;
    const moves = () => {
      let sum = 0;
      for (let reader = 0; reader < readers.count; reader++) {
        sum += counters.enqueued(reader) + counters.handed(reader);
      }
      return sum;
    };
    for (let tries = COUNT_TRIES;; tries--) {
      const before = moves();
      let pending = orphans.count + (handover?.count ?? 0);
      for (let reader = 0; reader < readers.count; reader++) {
        pending += counters.pending(reader);
      }
      if (tries === 1 || moves() === before) return pending;
    }
  }

  /**
   * Who is in the way of the period in progress.
   *
   * @param age How long that has been seen to last, in ms.
   * @returns The report.
   */
  stallReport(age: number = this.#stalls.age()): StallReport {
    const readers: StalledReader[] = [];
    this.#detector.blocking(this.sequence.current(), (reader, announced) => {
      const behind = this.sequence.started() -
        this.sequence.periodOf(announced);
      readers.push({ id: reader, name: "", age, behind });
    });
    // Reading names goes online itself, which may pass the period: afterwards.
    for (const reader of readers) reader.name = this.nameOf(reader.id);
    return { age, readers, pending: this.pendingOfAll() };
  }

  /**
   * The name of a reader.
   *
   * @param reader Its index.
   * @returns The name, or "".
   */
  nameOf(reader: number): string {
    probeStack();
    // A thread that leaves retires its name like any other block.
    this.reader.enter();
    try {
      const block = this.readers.nameOf(reader);
      return block === 0 ? "" : readText(this.words, block);
    } finally {
      this.reader.exit();
    }
  }

  /** What errors call the thread that has done something. */
  #whoIs(owner: number): string {
    if (owner === this.#owner) return "this thread";
    const id = holderIn(owner);
    const { readers } = this;
    return readers.isRegistered(id) &&
        lockOwner(id, readers.generationOf(id)) === owner
      ? nameReaders([{ id, name: this.nameOf(id) }])
      : `reader ${id}, which has left,`;
  }

  /** Says whether there is anybody in the way to report. */
  #reportStall(age: number, events: MembershipEvents): boolean {
    // What is put off is reported at the next look.
    if (this.#closed || !hasStack()) return false;
    const report = this.stallReport(age);
    if (report.readers.length === 0) return false;
    events.onStall?.(report);
    return true;
  }

  #throwStalled(
    act: string,
    timeout: number,
    { report, words }: Described = this.#stalled(),
  ): never {
    throw new RcuStallError(
      `Cannot ${act} within ${timeout} ms: ${words}`,
      report,
    );
  }

  #stalled(): Described {
    const report = this.stallReport();
    return { report, words: this.#describeBlocking(report) };
  }

  /** A report about a wait in which this thread does nothing else. */
  #describeBlocking(report: StallReport, what?: "callbacks"): string {
    const mine = report.readers.filter(({ id }) => this.#isMine(id));
    const hint = mine.length === 0
      ? undefined
      : `${
        nameReaders(mine)
      } is of this thread, too: it does nothing while the thread waits, unless its threadOffline() is called before`;
    return describeStall(report, what, hint);
  }

  /** Whether another membership of this very thread has a record. */
  #isMine(index: number): boolean {
    for (const other of memberships) {
      if (other.words.buffer === this.words.buffer && other.index === index) {
        return true;
      }
    }
    return false;
  }

  /**
   * Throws because a signal has ended a wait.
   *
   * @param act What was waited for.
   * @param signal The signal.
   * @param report Who is in the way; by default of the grace period.
   * @param description The same in words.
   */
  throwAborted(
    act: string,
    signal: AbortSignal,
    report: StallReport = this.stallReport(),
    description: string = describeStall(report),
  ): never {
    throw new RcuStallError(
      `Cannot ${act} as the signal was aborted: ${description}`,
      report,
      { cause: signal.reason },
    );
  }

  // Leaving

  #publishName(name: string): void {
    let block: Address;
    try {
      block = this.allocate(measureText(name));
    } catch (error) {
      // Waiting for memory may have taken over what others had deferred.
      this.close();
      throw error;
    }
    writeText(this.words, block, name);
    this.journal.join(block);
    this.journal.store(this.readers.nameAt(this.index), block);
    this.journal.finish();
  }

  /**
   * Ends the membership. Deferred blocks pass to other threads; the slot stays
   * until this thread's closures have run.
   */
  close(): void {
    if (this.#closed) return;
    this.assertOutside("close", UNPROTECTED);
    probeDeepStack();
    const name = this.readers.nameOf(this.index);
    if (name !== 0) {
      if (this.journal.open) this.journal.settleAll();
      this.journal.leave(name);
      this.journal.store(this.readers.nameAt(this.index), 0);
      this.journal.finish();
    }
    this.#closed = true;
    memberships.delete(this);
    globalThis.removeEventListener?.("error", this.#onUncaught);
    // Before the callbacks: none of them can open a section that would be left open.
    this.reader.close();
    try {
      this.callbacks.finish();
    } finally {
      this.callbacks.leave();
      for (const hook of this.#onClose) hook();
    }
  }

  // An exception that nobody catches ends a worker at once: the microtask that would take it
  // offline never runs. Its sections are over, as far as the exception unwound them.
  readonly #onUncaught = (): void => {
    if (this.reader.depth === 0) this.reader.goOffline();
  };

  /**
   * Has something done when the membership ends.
   *
   * @param hook What to do.
   * @returns Forgets about it.
   */
  onClose(hook: () => void): () => void {
    this.#onClose.add(hook);
    return () => this.#onClose.delete(hook);
  }

  /**
   * Gives the record back: the slot, the callback line, the magazines. From the
   * last store here it may be another thread's, while code of this membership is
   * still on the stack (a callback may close in the middle of an operation),
   * queued, or waiting. None of it writes the record any more:
   *
   * 1. The slot: `reader.close()` stored 0 before the callbacks were left. After
   *    that `goOnline` throws, the microtask at the end of the turn does nothing,
   *    and the rest of `Reader` writes only while online, which it is never again.
   * 2. The callback line: this is called when the thread has left its callbacks and
   *    its last closure has been counted as done. Nothing more is enqueued: the
   *    public calls and `allocate` assert that the membership is open, `retire` goes
   *    to the orphans, `adopt` and `help` do nothing. Nothing more is invoked or
   *    handed on: `processCallbacks` stops, and the timer has been stopped.
   * 3. The magazines: the heap is detached, so that what is freed goes to the depot.
   *    `tryAllocate` and `scavenge` are called only by who has made sure that the
   *    membership is open since code of the user has run: under a lock, which
   *    `lock` asserts and under which there is none, and in `allocate`.
   * 4. The name was retired when the membership was closed, while it was open.
   * 5. The word to nap on is written by nobody.
   */
  #leave(): void {
    this.heap.detach();
    this.journal.detach(this.#scratch);
    this.readers.unregister(this.index);
    // Last: who gets the lock finds that the record is not this thread's any more.
    this.#life.end();
    // The reclaimer ends with the last other thread.
    this.handover?.wake();
  }
}

/**
 * What messages call threads.
 *
 * @param readers Their numbers and names.
 * @returns The words.
 */
export function nameReaders(readers: { id: number; name: string }[]): string {
  return readers.map(({ id, name }) =>
    name === "" ? `reader ${id}` : `reader ${id} ("${name}")`
  ).join(", ");
}

/**
 * What is printed about a stall that nobody listens for.
 *
 * @param report The report.
 * @returns The words.
 */
export function stallWarning(report: StallReport): string {
  return `A grace period has not ended for ${Math.round(report.age)} ms: ${
    describeStall(report)
  }`;
}

function describeStall(
  { pending, readers }: StallReport,
  what: "quiescent state" | "callbacks" = "quiescent state",
  hint: string = LEFT_BEHIND,
): string {
  const waiting = pending === 1
    ? "1 callback waits"
    : `${pending} callbacks wait`;
  if (readers.length === 0) return `no reader is in the way now; ${waiting}`;
  const missing = what === "callbacks"
    ? "come to its callbacks"
    : "pass a quiescent state";
  return `${nameReaders(readers)} did not ${missing}; ${waiting}; ${hint}`;
}
