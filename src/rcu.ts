// The public face of a thread's membership.

import {
  checkBoolean,
  checkFunction,
  checkSignal,
  type OptionNames,
  refuseNumber,
  takeOptions,
  uncloneable,
} from "./_arguments.ts";
import { connect } from "./by_name/_connect.ts";
import type { Presence } from "./by_name/_presence.ts";
import { createDomain, openDomain, type OpenedDomain } from "./_domain.ts";
import type { GracePeriodCookie } from "./grace_periods/cookie.ts";
import { StallEvent } from "./grace_periods/stall_event.ts";
import type { StallReport } from "./grace_periods/stall_report.ts";
import { Membership, stallWarning, UNPROTECTED } from "./_membership.ts";
import { show } from "./memory/_codec.ts";
import type { Address, Arena, MemoryAudit } from "./memory/arena.ts";
import type {
  AttachOptions,
  BarrierOptions,
  ConnectOptions,
  RcuHandle,
  RcuOptions,
  SynchronizeOptions,
  SynchronizeSyncOptions,
} from "./options.ts";
import { errorEvent } from "./_error_event.ts";
import { ReaderLostEvent } from "./reader_lost.ts";
import { ReclaimerHost } from "./_reclaimer_host.ts";
import { probeStack } from "./sync/_stack.ts";
import { OpenSection, type ReadSection } from "./readers/section.ts";
import type { RcuStats, ReaderStats } from "./stats.ts";

/** How often a thread that wants to hear of deaths asks for them, in ms. */
const WATCH = 1_000;

const SYNCHRONIZE_OPTIONS: OptionNames<SynchronizeOptions> = {
  expedited: true,
  signal: true,
};
const SYNCHRONIZE_SYNC_OPTIONS: OptionNames<SynchronizeSyncOptions> = {
  expedited: true,
  timeout: true,
};
const BARRIER_OPTIONS: OptionNames<BarrierOptions> = { signal: true };

/**
 * The internals behind an open `Rcu`, for structures.
 *
 * @param rcu What the caller got as its first argument.
 * @param act What the caller was about to do, for the error.
 * @returns The membership.
 */
export let membershipOf: (rcu: Rcu, act: string) => Membership;

/**
 * One thread's membership of a domain: a set of threads that share one buffer
 * and wait for each other's read sections before they reuse memory.
 *
 * Read sections cost next to nothing, never block and never retry. They are
 * synchronous: the turn of the event loop bounds them. A tight loop of
 * sections does not hold up grace periods; a long computation that does not
 * return to the event loop and reads in between should call
 * {@linkcode Rcu.quiescentState} or {@linkcode Rcu.threadOffline}.
 *
 * Dispatches `"error"` (an `ErrorEvent`) when a callback threw, a read
 * section was held across an `await`, or debug mode finds out too late for
 * throwing what was done wrong; unless a listener calls
 * `preventDefault()`, the error is also printed with `console.error`. Dispatches
 * `"readerlost"` (a {@linkcode ReaderLostEvent}) when a worker has died without {@linkcode Rcu.close}.
 *
 * Dispatches `"stall"` (a {@linkcode StallEvent}) when a grace period does not end
 * for `stallTimeout`, and again after twice that, four times that and so on; unless
 * a listener calls `preventDefault()`, it is also printed with `console.warn`. It
 * comes in each thread that waits for the period (`synchronize`, `barrier`, an update for
 * memory) or whose callbacks wait for it, from wherever that thread looks at the period:
 * its event loop, or the middle of a blocking wait. What a reclaimer waits for is reported
 * by the `Rcu` that started it; one of one's own prints it. Nothing keeps the
 * process alive for that.
 *
 * @example Two threads, one map
 * ```ts
 * import { Rcu, RcuMap, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using main = Rcu.create({ name: "main" });
 * const map = RcuMap.open(main, "ports", { key: u32, value: u32 });
 * map.set(443, 8443);
 *
 * // In a worker: Rcu.attach(event.data) on a handle that was posted to it.
 * using worker = Rcu.attach(main.handle, { name: "worker" });
 * const same = RcuMap.open(worker, "ports", { key: u32, value: u32 });
 * assertEquals(same.get(443), 8443);
 * ```
 */
export class Rcu extends EventTarget implements Disposable {
  private readonly _uncloneable = uncloneable(
    "an Rcu, of which only the handle, rcu.handle, is for other threads",
  );
  /**
   * What {@linkcode Rcu.attach} needs in another thread: post this, not the
   * `Rcu`, which belongs to its thread.
   */
  readonly handle: RcuHandle;
  /** The domain's memory, for structures of one's own. */
  readonly memory: Arena;

  readonly #membership: Membership;
  /** If it was found by a name. */
  #presence: Presence | undefined;
  #watches = false;

  static {
    membershipOf = (rcu, act) => {
      if (!(#membership in Object(rcu))) {
        throw new TypeError(
          `Cannot ${act} as its first argument must be an Rcu: received ${
            show(rcu)
          }`,
        );
      }
      rcu.#membership.assertOpen(act);
      return rcu.#membership;
    };
  }

  private constructor({ handle, words, name, startsReclaimer }: OpenedDomain) {
    super();
    this.handle = handle;
    const report = (error: unknown) => this.#report(error);
    const membership = new Membership(words, name, {
      onError: report,
      onStall: (stall, warning) => this.#reportStall(stall, warning),
    });
    this.#membership = membership;
    this.memory = arenaOf(membership);
    if (startsReclaimer) {
      new ReclaimerHost(handle, membership, {
        onError: report,
        onStall: (stall) => this.#reportStall(stall),
      }).start();
    }
  }

  /**
   * Creates a domain and registers the calling thread.
   *
   * @param options How the domain is laid out and behaves.
   * @returns The calling thread's membership.
   * @throws {RangeError} If an option is out of range or the memory cannot be had.
   * @throws {TypeError} If an option is of the wrong type.
   *
   * @example A small domain
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create({ capacity: 4 * 2 ** 20, maxReaders: 8 });
   * assertEquals(rcu.memory.audit().capacity, 4 * 2 ** 20);
   * ```
   */
  static create(options: RcuOptions = {}): Rcu {
    return new Rcu(createDomain(options));
  }

  /**
   * Registers the calling thread with a domain that another thread created.
   *
   * Where all slots are taken, those of threads that ended without `close()` become free as soon
   * as that is proven, which takes a turn of the event loop: await something and try again.
   *
   * @param handle The other thread's `handle`.
   * @param options The thread's name.
   * @returns The calling thread's membership.
   * @throws {TypeError} If `handle` is not that of a domain, or of another layout version.
   * @throws {RangeError} If `maxReaders` threads are registered already.
   *
   * @example Joining
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using creator = Rcu.create();
   * using rcu = Rcu.attach(creator.handle, { name: "second" });
   * assertEquals(rcu.stats().readers.map((reader) => reader.name), ["", "second"]);
   * ```
   */
  static attach(handle: RcuHandle, options: AttachOptions = {}): Rcu {
    return new Rcu(openDomain(handle, options));
  }

  /**
   * Joins the domain of a name, without a handle: whoever comes first in this process creates it,
   * all others find it, be they workers, workers of workers, or the threads of
   * `deno serve --parallel`. It is there until the last thread that has connected closes its `Rcu`
   * or ends; threads that have joined by {@linkcode Rcu.attach} do not count for that.
   *
   * Options of the domain that are given must be what it has, if it is there already; `name` and
   * `reclaimer` are the calling thread's own, and `reclaimer` is `"worker"` unless you say otherwise.
   *
   * A worker that has connected answers those who come later from its event loop. In a main
   * thread, whose turns may be long, a small worker does it, from a `data:` URL, which needs no
   * permission and does not keep the process alive.
   *
   * @param name Any string.
   * @param options The domain's options, and how long to search.
   * @returns The calling thread's membership.
   * @throws {RangeError} If an option is out of range or not what the domain has, the
   * memory cannot be had, or `maxReaders` threads are registered already.
   * @throws {TypeError} If `name` or an option is of the wrong type, or the other threads' package is of
   * another layout version.
   * @throws {DOMException} A `"TimeoutError"` if no thread that has the domain answers
   * in time; the signal's reason if it is aborted.
   * @throws {Error} In a browser, and in Node.js before version 24.
   *
   * @example Two threads that know nothing of each other but a name
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = await Rcu.connect("my app");
   * const ports = RcuMap.open(rcu, "ports", { key: string, value: u32 });
   * ports.set("https", 443);
   *
   * // In any worker:
   * using member = await Rcu.connect("my app", { name: "worker" });
   * const same = RcuMap.open(member, "ports", { key: string, value: u32 });
   * assertEquals(same.get("https"), 443);
   * ```
   */
  static async connect(
    name: string,
    options: ConnectOptions = {},
  ): Promise<Rcu> {
    const { member, presence } = await connect(
      name,
      options,
      (opened) => new Rcu(opened),
    );
    member.#presence = presence;
    return member;
  }

  /** This thread's number in statistics and stall reports, from 0. */
  get readerId(): number {
    return this.#membership.index;
  }

  // Read side

  /**
   * Runs a function as one read section: what it finds stays intact until it
   * returns. Sections nest.
   *
   * @typeParam T What the function returns.
   * @param section The function; synchronous.
   * @returns What it returned.
   * @throws {TypeError} If it is no function, or returned a promise: a section
   * cannot span an `await`.
   * @throws {Error} If the membership is closed.
   *
   * @example Two lookups that belong together
   * ```ts
   * import { Rcu, RcuMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const users = RcuMap.open(rcu, "users", { key: string, value: string });
   * users.replaceAll([["alice", "admin"], ["admin", "rw"]]);
   * const rights = rcu.read(() => users.get(users.get("alice")!));
   * assertEquals(rights, "rw");
   * ```
   */
  read<T>(section: () => T): T {
    const reader = this.#membership.reader;
    reader.enter();
    let result: T;
    let isPromise: boolean;
    try {
      result = section();
      // In the section: what was found may be looked at no longer.
      isPromise = isThenable(result);
    } catch (error) {
      // Here, so that it costs nothing where all is well.
      checkFunction(section, "section", "read");
      throw error;
    } finally {
      // No call in between: there may be no room for one on the stack.
      if (--reader.depth === 0) reader.leave();
    }
    if (isPromise) {
      throw new TypeError(
        "Cannot read across an await as a section must be synchronous: received a function that returned a promise",
      );
    }
    return result;
  }

  /**
   * Opens a read section that ends when it is disposed of, in the same turn. Where the stack may
   * overflow, use {@linkcode Rcu.read}: there may be no room left to dispose of anything.
   *
   * @returns The section.
   * @throws {Error} If the membership is closed. Disposing throws if the
   * section was held across an `await`.
   *
   * @example With `using`
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * {
   *   using section = rcu.readLock();
   *   assertEquals(section.open, true);
   * }
   * ```
   */
  readLock(): ReadSection {
    const reader = this.#membership.reader;
    reader.noteOpening();
    const section = new OpenSection(reader);
    // Last: whatever fails for want of stack has opened nothing.
    reader.enter();
    return section;
  }

  /**
   * Announces a quiescent state: this thread holds no reference into shared
   * memory. For long loops that never return to the event loop and rarely read.
   *
   * @throws {Error} Inside a read section, or if the membership is closed.
   *
   * @example In a long loop
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const step = RcuCell.open(rcu, "step", { value: u32, initial: 2 });
   * let sum = 0;
   * for (let i = 0; i < 1000; i++) {
   *   sum += step.get();
   *   rcu.quiescentState();
   * }
   * assertEquals(sum, 2000);
   * ```
   */
  quiescentState(): void {
    this.#membership.assertOpen("announce a quiescent state");
    this.#membership.assertOutside(
      "announce a quiescent state",
      UNPROTECTED,
    );
    this.#membership.reader.checkQuiescentState();
  }

  /**
   * Takes the thread offline until it reads again: before a blocking call or a
   * long computation without reads. The end of a turn does it too.
   *
   * @throws {Error} Inside a read section, or if the membership is closed.
   *
   * @example Before blocking
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * rcu.read(() => {});
   * rcu.threadOffline();
   * assertEquals(rcu.stats().readers[0].online, false);
   * ```
   */
  threadOffline(): void {
    this.#membership.assertOpen("go offline");
    this.#membership.assertOutside("go offline", UNPROTECTED);
    this.#membership.reader.goOffline();
  }

  /**
   * Puts the thread online ahead of its next section; a section does it by
   * itself. The end of the turn takes it offline again, and so does an event listener
   * that throws while no section is open, as that ends the turn, too.
   *
   * @throws {Error} If the membership is closed.
   *
   * @example After blocking
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * rcu.threadOnline();
   * assertEquals(rcu.stats().readers[0].online, true);
   * ```
   */
  threadOnline(): void {
    this.#membership.assertOpen("go online");
    if (!this.#membership.reader.online) this.#membership.reader.goOnline();
  }

  // Waiting

  /**
   * Waits until every read section that is open now, in any thread, has ended.
   * Keeps the process alive until then, for as long as it takes:
   * `AbortSignal.timeout(ms)` sets a limit.
   *
   * @param options Whether to hurry, and a signal to give up.
   * @returns A promise that resolves then.
   * @throws {RcuStallError} If the signal is aborted first; its cause is the signal's reason.
   * @throws {Error} Inside a read section, or if the membership is closed, be it meanwhile.
   *
   * @example Unlink, wait, reuse
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const pointer = rcu.memory.allocate(4);
   * const old = rcu.memory.allocate(4);
   * rcu.assignPointer(pointer, old);
   * rcu.assignPointer(pointer, 0);
   * await rcu.synchronize();
   * rcu.memory.free(old);
   * rcu.memory.free(pointer);
   * assertEquals(rcu.memory.audit().deferred, 0);
   * ```
   */
  async synchronize(options: SynchronizeOptions = {}): Promise<void> {
    const act = "wait for a grace period";
    const { expedited = false, signal } = takeOptions(
      options,
      SYNCHRONIZE_OPTIONS,
      act,
    );
    this.#membership.assertOpen(act);
    this.#membership.assertOutside(act);
    checkBoolean("expedited", expedited, act);
    this.#checkSignal(act, signal);
    await this.#membership.synchronize(expedited, signal);
  }

  /**
   * As {@linkcode Rcu.synchronize}, blocking the thread.
   *
   * @param options Whether to hurry, and how long to wait at most.
   * @throws {RcuStallError} If the time is up.
   * @throws {RangeError} If the timeout is not from 0.
   * @throws {TypeError} If an option is of the wrong type.
   * @throws {Error} Inside a read section, or if the membership is closed.
   *
   * @example Blocking
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * rcu.synchronizeSync({ expedited: true });
   * assertEquals(rcu.stats().gracePeriods.completed, 1);
   * ```
   */
  synchronizeSync(options: SynchronizeSyncOptions = {}): void {
    const membership = this.#membership;
    const act = "wait for a grace period";
    const { expedited = false, timeout = membership.stallTimeout } =
      takeOptions(options, SYNCHRONIZE_SYNC_OPTIONS, act);
    membership.assertOpen(act);
    membership.assertOutside(act);
    checkBoolean("expedited", expedited, act);
    if (!(typeof timeout === "number" && timeout >= 0)) {
      refuseNumber(
        `Cannot ${act} as timeout must be a number of ms from 0`,
        timeout,
      );
    }
    membership.synchronizeSync(timeout, expedited);
  }

  /**
   * Takes note of the grace period after which what has been unlinked until
   * now can be reused.
   *
   * @returns Its cookie.
   * @throws {Error} If the membership is closed.
   *
   * @example Later
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assert } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cookie = rcu.startPoll();
   * rcu.synchronizeSync();
   * assert(rcu.poll(cookie));
   * ```
   */
  startPoll(): GracePeriodCookie {
    this.#membership.assertOpen("start polling");
    return this.#membership.periods.start();
  }

  /**
   * Whether a grace period has ended. Does what it can to bring that about,
   * without waiting.
   *
   * @param cookie What {@linkcode Rcu.startPoll} returned, in any thread of the domain.
   * @returns `true` once it has ended, and for ever after.
   * @throws {RangeError} If `cookie` cannot be one of this domain.
   * @throws {Error} If the membership is closed.
   *
   * @example A section in another thread holds it up
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * using other = Rcu.attach(rcu.handle);
   * const section = other.readLock();
   * const cookie = rcu.startPoll();
   * assertEquals(rcu.poll(cookie), false);
   * section[Symbol.dispose]();
   * other.threadOffline();
   * assertEquals(rcu.poll(cookie), true);
   * ```
   */
  poll(cookie: GracePeriodCookie): boolean {
    const membership = this.#membership;
    membership.assertOpen("poll");
    if (
      !Number.isInteger(cookie) || cookie < 0 ||
      cookie > membership.sequence.started() + 1
    ) {
      throw new RangeError(
        `Cannot poll as the cookie must come from startPoll() of the same domain: received ${
          show(cookie)
        }`,
      );
    }
    return membership.periods.poll(cookie);
  }

  // Deferring

  /**
   * Runs a function on this thread after a grace period, from the event loop,
   * from {@linkcode Rcu.barrier}, or during a later update. Keeps the process
   * alive until it has run; dies with the thread.
   *
   * @param callback What to run. If it throws, an `"error"` event says so.
   * @throws {TypeError} If `callback` is not a function.
   * @throws {Error} If the membership is closed.
   *
   * @example Afterwards
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const log: string[] = [];
   * rcu.callRcu(() => log.push("a grace period later"));
   * await rcu.barrier();
   * assertEquals(log.length, 1);
   * ```
   */
  callRcu(callback: () => void): void {
    this.#membership.assertOpen("call back");
    checkFunction(callback, "callback", "call back");
    this.#membership.callbacks.callRcu(callback);
    this.#membership.afterUpdate();
  }

  /**
   * Frees a block after a grace period. Survives the thread. In debug mode, an `"error"`
   * event says so if a pointer still leads to the block when it is freed.
   *
   * @param address A live block that no new reader can find.
   * @throws {RangeError} If no block begins there.
   * @throws {Error} If the block is already free or deferred, or the membership is closed.
   *
   * @example Replacing what a pointer names
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const pointer = rcu.memory.allocate(1);
   * rcu.assignPointer(pointer, rcu.memory.allocate(4));
   * const old = rcu.read(() => rcu.dereference(pointer));
   * rcu.assignPointer(pointer, 0);
   * rcu.deferFree(old);
   * await rcu.barrier();
   * assertEquals(rcu.memory.audit().deferred, 0);
   * ```
   */
  deferFree(address: Address): void {
    const membership = this.#membership;
    membership.assertOpen("defer");
    const tag = membership.heap.liveTagOf(address, "defer freeing");
    probeStack();
    membership.callbacks.deferFree(address, tag);
    membership.afterUpdate();
  }

  /**
   * Waits until every callback and deferred free that any thread had enqueued
   * is done. Keeps the process alive until then. Closures run in the threads that enqueued them:
   * one that blocks, or whose turn does not end, holds this up until its death has been proven.
   *
   * @param options A signal to give up.
   * @returns A promise that resolves then.
   * @throws {RcuStallError} If the signal is aborted first. Its report names who is in the way.
   * @throws {Error} Inside a read section, or if the membership is closed, be it meanwhile.
   *
   * @example Before taking stock
   * ```ts
   * import { Rcu, RcuMap, u32, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: string });
   * map.set(1, "one").set(1, "uno");
   * await rcu.barrier();
   * assertEquals(rcu.stats().callbacks.pending, 0);
   * ```
   */
  async barrier(options: BarrierOptions = {}): Promise<void> {
    const { signal } = takeOptions(
      options,
      BARRIER_OPTIONS,
      "finish a barrier",
    );
    this.#membership.assertOpen("finish a barrier");
    this.#membership.assertOutside("finish a barrier");
    this.#checkSignal("finish a barrier", signal);
    await this.#membership.barrier(signal);
  }

  /**
   * As {@linkcode Rcu.barrier}, blocking the thread for `stallTimeout` ms at most.
   *
   * @throws {RcuStallError} If the time is up.
   * @throws {Error} Inside a read section or a callback, or if the membership is closed.
   *
   * @example Blocking
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * let ran = false;
   * rcu.callRcu(() => ran = true);
   * rcu.barrierSync();
   * assertEquals(ran, true);
   * ```
   */
  barrierSync(): void {
    const membership = this.#membership;
    membership.assertOpen("finish a barrier");
    membership.assertOutside("finish a barrier");
    if (membership.callbacks.running) {
      throw new Error(
        "Cannot finish a barrier inside a callback: it would wait for itself",
      );
    }
    membership.barrierSync(membership.stallTimeout);
  }

  // Building one's own structure

  /**
   * Loads a pointer that other threads may be changing. What it points to is
   * complete and stays intact until the section ends.
   *
   * This is the one load of shared, mutable memory that does not go through
   * `Atomics`. What the address leads to depends on it, and every processor
   * that runs JavaScript keeps such loads in order; the language's memory model
   * does not promise it. It is the bargain of the kernel's `rcu_dereference`
   * on the same processors.
   *
   * @param pointer The word that holds the address, in a block that is live or
   * was when the section began.
   * @returns The address, or 0.
   * @throws {Error} In debug mode, outside a read section; an updater under
   * its own lock opens one, too. In debug mode, if the block is free, or the one
   * that the pointer leads to, or the membership closed.
   * @throws {RangeError} In debug mode, if the pointer is not in a block.
   *
   * @example Reading
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const pointer = rcu.memory.allocate(1);
   * const block = rcu.memory.allocate(1);
   * rcu.memory.words[block] = 7;
   * rcu.assignPointer(pointer, block);
   * assertEquals(
   *   rcu.read(() => rcu.memory.words[rcu.dereference(pointer)]),
   *   7,
   * );
   * ```
   */
  dereference(pointer: Address): Address {
    const membership = this.#membership;
    if (membership.debug) return dereferenceInDebug(membership, pointer);
    return membership.words[pointer];
  }

  /**
   * Publishes a block: whoever dereferences the pointer from now on finds
   * everything that was written into it before.
   *
   * @param pointer The word that holds the address, in a live block.
   * @param value The block's address, or that of a word in it, or 0.
   * @throws {RangeError} In debug mode, if either is not in a block.
   * @throws {Error} In debug mode, if the block of either is free or deferred,
   * or the membership closed.
   *
   * @example Publishing
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const pointer = rcu.memory.allocate(1);
   * const block = rcu.memory.allocate(4);
   * rcu.assignPointer(pointer, block);
   * assertEquals(rcu.read(() => rcu.dereference(pointer)), block);
   * ```
   */
  assignPointer(pointer: Address, value: Address): void {
    const membership = this.#membership;
    if (membership.debug) return assignInDebug(membership, pointer, value);
    // Publish. Pairs with: `dereference`.
    Atomics.store(membership.words, pointer, value);
  }

  // Events

  /**
   * Listens for a stall.
   *
   * @param type `"stall"`: a grace period that this thread has to do with has not
   * ended for `stallTimeout`, and for twice, four times that.
   * @param listener What to call; `event.report` says who is in the way. While a
   * blocking wait calls it, the thread waits.
   * @param options As of `EventTarget`.
   *
   * @example A reader that holds memory up
   * ```ts
   * import { Rcu, type StallReport } from "@grace/rcu";
   * import { assert, assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create({ name: "updater", stallTimeout: 5 });
   * using other = Rcu.attach(rcu.handle, { name: "reader" });
   * const section = other.readLock();
   * const reports: StallReport[] = [];
   * rcu.addEventListener("stall", (event) => {
   *   event.preventDefault();
   *   if (reports.push(event.report) < 2) return;
   *   section[Symbol.dispose]();
   *   other.threadOffline();
   * });
   * rcu.synchronizeSync({ timeout: 10_000 });
   * assertEquals(reports[0].readers.map(({ name }) => name), ["reader"]);
   * assert(reports[1].age >= 15); // 5 ms, and then 10 ms
   * ```
   */
  override addEventListener(
    type: "stall",
    listener:
      | ((event: StallEvent) => unknown)
      | { handleEvent(event: StallEvent): unknown }
      | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  /**
   * Listens for an event.
   *
   * @param type `"error"`: a callback threw, or a read section was held across an `await`.
   * @param listener What to call; `event.error` is what was thrown.
   * @param options As of `EventTarget`.
   *
   * @example Counting errors instead of printing them
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const messages: string[] = [];
   * rcu.addEventListener("error", (event) => {
   *   event.preventDefault();
   *   messages.push(event.message);
   * });
   * rcu.callRcu(() => {
   *   throw new Error("in a callback");
   * });
   * await rcu.barrier();
   * assertEquals(messages, ["in a callback"]);
   * ```
   */
  override addEventListener(
    type: "error",
    listener:
      | ((event: ErrorEvent) => unknown)
      | { handleEvent(event: ErrorEvent): unknown }
      | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  /**
   * Listens for an event.
   *
   * @param type `"readerlost"`: a worker died without `close()`, and what it had has been taken over.
   * @param listener What to call; `event.name` is what the worker was called.
   * @param options As of `EventTarget`.
   *
   * @example Hearing of a worker that has died
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const lost: string[] = [];
   * rcu.addEventListener("readerlost", ({ name }) => lost.push(name));
   * assertEquals(lost, []); // nobody has died
   * ```
   */
  override addEventListener(
    type: "readerlost",
    listener:
      | ((event: ReaderLostEvent) => unknown)
      | { handleEvent(event: ReaderLostEvent): unknown }
      | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  /**
   * Listens for an event of another type.
   *
   * @param type The type.
   * @param listener What to call.
   * @param options As of `EventTarget`.
   */
  override addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    listener: unknown,
    options?: boolean | AddEventListenerOptions,
  ): void {
    if (type === "readerlost" && !this.#watches) this.#watchForDeaths();
    super.addEventListener(type, listener as EventListener, options);
  }

  /**
   * Stops listening for an event.
   *
   * @param type The type.
   * @param listener What was to be called.
   * @param options As of `EventTarget`.
   *
   * @example Listening for a while
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * let errors = 0;
   * const listener = (event: ErrorEvent) => {
   *   errors += event.message.length;
   * };
   * rcu.addEventListener("error", listener);
   * rcu.removeEventListener("error", listener);
   * rcu.dispatchEvent(new ErrorEvent("error", { message: "unheard" }));
   * assertEquals(errors, 0);
   * ```
   */
  override removeEventListener(
    type: "stall",
    listener:
      | ((event: StallEvent) => unknown)
      | { handleEvent(event: StallEvent): unknown }
      | null,
    options?: boolean | EventListenerOptions,
  ): void;
  /**
   * Stops listening for errors.
   *
   * @param type The type.
   * @param listener What was to be called.
   * @param options As of `EventTarget`.
   */
  override removeEventListener(
    type: "error",
    listener:
      | ((event: ErrorEvent) => unknown)
      | { handleEvent(event: ErrorEvent): unknown }
      | null,
    options?: boolean | EventListenerOptions,
  ): void;
  /**
   * Listens no longer.
   *
   * @param type `"readerlost"`.
   * @param listener What was to be called.
   * @param options As of `EventTarget`.
   *
   * @example Listening for a while
   * ```ts
   * import { Rcu, type ReaderLostEvent } from "@grace/rcu";
   *
   * using rcu = Rcu.create();
   * const listener = ({ name }: ReaderLostEvent) => console.log(name);
   * rcu.addEventListener("readerlost", listener);
   * rcu.removeEventListener("readerlost", listener);
   * ```
   */
  override removeEventListener(
    type: "readerlost",
    listener:
      | ((event: ReaderLostEvent) => unknown)
      | { handleEvent(event: ReaderLostEvent): unknown }
      | null,
    options?: boolean | EventListenerOptions,
  ): void;
  /**
   * Stops listening for an event of another type.
   *
   * @param type The type.
   * @param listener What was to be called.
   * @param options As of `EventTarget`.
   */
  override removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions,
  ): void;
  override removeEventListener(
    type: string,
    listener: unknown,
    options?: boolean | EventListenerOptions,
  ): void {
    super.removeEventListener(type, listener as EventListener, options);
  }

  // The rest

  /**
   * What the domain has done and holds.
   *
   * @returns Counters, current and peak; the memory's account takes time in
   * proportion to the number of blocks.
   * @throws {Error} If the membership is closed.
   *
   * @example Who is there
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create({ name: "main" });
   * assertEquals(rcu.stats().readers, [
   *   { id: 0, name: "main", online: false, observed: 0, pending: 0 },
   * ]);
   * ```
   */
  stats(): RcuStats {
    const { counters, heap, readers, sequence, words } = this.#membership;
    this.#membership.assertOpen("take statistics");
    const list: ReaderStats[] = [];
    let peak = 0;
    let invoked = 0;
    let lost = 0;
    for (let id = 0; id < readers.count; id++) {
      invoked += counters.invoked(id) >>> 0;
      lost += counters.lost(id) >>> 0;
      peak = Math.max(peak, counters.peak(id));
      if (!readers.isRegistered(id)) continue;
      const announced = Atomics.load(words, readers.slot(id));
      list.push({
        id,
        name: "",
        online: announced !== 0,
        observed: announced === 0 ? 0 : sequence.periodOf(announced),
        pending: counters.pending(id),
      });
    }
    // Reading names goes online itself: afterwards, or it would show.
    for (const entry of list) entry.name = this.#membership.nameOf(entry.id);
    return {
      gracePeriods: {
        started: sequence.started(),
        completed: sequence.completed(),
        expedited: sequence.expedited,
        forced: sequence.forced,
      },
      callbacks: {
        pending: this.#membership.pendingOfAll(),
        peak,
        invoked,
        lost,
      },
      memory: heap.audit(),
      readers: list,
    };
  }

  /**
   * Ends the membership. What it deferred passes to other threads, its
   * closures still run. What still waits for a grace period, a barrier or a
   * change is rejected. The domain goes on; closing twice does nothing.
   *
   * A worker should call this before `self.close()`, which stops it on the spot:
   *
   * ```ts ignore
   * rcu.close();
   * self.close();
   * ```
   *
   * Closures run in the thread that enqueued them, when their grace period has ended. A thread
   * that stops before, as this one may, loses them, and `"readerlost"` says so: where they
   * matter, `await rcu.barrier()` first.
   *
   * Nothing else does it: `using` does not get to run. A worker that ends without it
   * counts as a reader until it is proven dead, which takes another thread that waits, or
   * listens for `"readerlost"`, and some tenths of a second; its closures are lost. A worker of
   * `node:worker_threads` stays alive in Deno until it calls this or is ended.
   *
   * @throws {Error} Inside a read section.
   *
   * @example Leaving
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertThrows } from "@std/assert";
   *
   * const rcu = Rcu.create();
   * rcu.close();
   * assertThrows(() => rcu.read(() => {}), Error, "closed");
   * ```
   */
  close(): void {
    this.#membership.close();
    this.#presence?.end();
  }

  /**
   * As {@linkcode Rcu.close}.
   *
   * @example With `using`
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * assertEquals(rcu.readerId, 0);
   * ```
   */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Keeps shared memory out of `JSON.stringify`.
   *
   * @returns An empty object.
   *
   * @example In a log
   * ```ts
   * import { Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * assertEquals(JSON.stringify({ rcu }), '{"rcu":{}}');
   * ```
   */
  toJSON(): Record<string, never> {
    return {};
  }

  /** Tells the listeners of this thread who has died, while it is a member. Keeps no process alive. */
  async #watchForDeaths(): Promise<void> {
    const membership = this.#membership;
    const { inquest, obituaries } = membership;
    this.#watches = true;
    for (let seen = obituaries.count; !membership.closed;) {
      await obituaries.next(seen, WATCH);
      if (membership.closed) return;
      const { count, news } = obituaries.since(seen);
      seen = count;
      for (const { id, lostCallbacks, name } of news) {
        const init = { readerId: id, name, lostCallbacks };
        this.dispatchEvent(new ReaderLostEvent(init));
      }
      inquest.begin();
    }
  }

  #checkSignal(act: string, signal: AbortSignal | undefined): void {
    checkSignal(signal, act);
    if (signal?.aborted) {
      this.#membership.throwAborted(act, signal);
    }
  }

  #reportStall(
    report: StallReport,
    warning: string = stallWarning(report),
  ): void {
    const event = new StallEvent("stall", { report, cancelable: true });
    if (!this.dispatchEvent(event)) return;
    console.warn(warning);
  }

  #report(error: unknown): void {
    const message = messageOf(error);
    const event = errorEvent(error, message);
    if (!this.dispatchEvent(event)) return;
    try {
      console.error(error);
    } catch {
      // What was thrown cannot even be printed.
      console.error(message);
    }
  }
}

/** What was thrown may do as it likes when it is asked for its message. */
function messageOf(error: unknown): string {
  try {
    const message = error instanceof Error ? error.message : error;
    return typeof message === "string" ? message : show(message);
  } catch {
    return "what was thrown does not say what it is";
  }
}

function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null &&
    typeof (value as { then?: unknown }).then === "function";
}

function dereferenceInDebug(
  membership: Membership,
  pointer: Address,
): Address {
  membership.assertOpen("dereference");
  const { checks, reader } = membership;
  if (reader.depth === 0) {
    throw reader.outside(
      `Cannot dereference outside a read section: pointer ${show(pointer)}`,
    );
  }
  return checks!.dereference(pointer);
}

function assignInDebug(
  membership: Membership,
  pointer: Address,
  value: Address,
): void {
  membership.assertOpen("assign a pointer");
  membership.checks!.assign(pointer, value);
}

const UNCLONEABLE = uncloneable(
  "the memory of an Rcu, of which only the handle, rcu.handle, is for other threads",
);

function arenaOf(membership: Membership): Arena {
  const { heap, words } = membership;
  const arena: Arena & { readonly _uncloneable: symbol } = {
    _uncloneable: UNCLONEABLE,
    words,
    allocate(size: number): Address {
      membership.assertOpen("allocate");
      if (!Number.isInteger(size) || size < 1 || size > words.length) {
        throw new RangeError(
          `Cannot allocate as the size in words must be an integer from 1 to ${words.length}: received ${
            show(size)
          }`,
        );
      }
      const block = membership.allocate(size);
      // The user's own from now on, whatever becomes of this thread.
      heap.makePublic(block);
      return block;
    },
    free(address: Address): void {
      membership.assertOpen("free");
      const tag = heap.liveTagOf(address, "free");
      probeStack();
      heap.release(address, tag);
    },
    audit(): MemoryAudit {
      membership.assertOpen("audit");
      return heap.audit();
    },
  };
  return arena;
}
