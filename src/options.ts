// What callers pass to create and join domains, and to wait.

import type { CallbackPolicy } from "./callbacks/policy.ts";

/**
 * How a new domain is laid out and behaves.
 *
 * @example A small domain for tests
 * ```ts
 * import { Rcu, type RcuOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: RcuOptions = { capacity: 4 * 2 ** 20, debug: true };
 * using rcu = Rcu.create({ ...options, name: "test" });
 * assertEquals(rcu.memory.audit().capacity, options.capacity);
 * ```
 */
export interface RcuOptions {
  /**
   * Bytes reserved for the domain, committed as they are touched; rounded down
   * to a multiple of 16,384. From 2 MiB to 8 GiB.
   *
   * @default {268435456}
   */
  capacity?: number;
  /**
   * Most threads at a time, from 1 to 4,096. Each takes some KiB, and half of the capacity must
   * stay free: 4,096 need 12 MiB.
   *
   * @default {64}
   */
  maxReaders?: number;
  /**
   * How it is noticed that all readers have passed a quiescent state. Every
   * thread of the domain does it in the same way, and nothing but the cost
   * depends on it. Reads cost the same with all three: what a reader may have
   * to do on top is done once per grace period.
   *
   * - `"scan"`: whoever wants a grace period polls the readers' slots; readers
   *   do nothing. A look costs one load while the same reader is in the way, and
   *   one per reader once in a grace period. Best for up to some dozens of
   *   threads, and where few threads want grace periods. As in userspace RCU
   *   (Desnoyers et al., 2012).
   * - `"classic"`: each reader ticks itself off in one global mask, the last
   *   one ends the wait; whoever wants the grace period looks at one word. Every
   *   reader writes to one and the same cache line, under one lock, once per
   *   grace period: for few threads, of which many wait. As in the kernels of 2002
   *   to 2008 (McKenney, Sarma and Soni, "Scaling dcache with RCU", 2004).
   * - `"tree"`: the masks form a combining tree, each with `fanout` children
   *   at most, from 2 to 32 (16 unless you say so). A reader shares its
   *   line with `fanout` others, the last of them goes on to the next level. For
   *   many threads, of which many wait: no line is written by all of them, and
   *   what has passed below a node is not looked at again. It takes a cache line
   *   per node. As in the kernel since 2009 (McKenney, "Hierarchical RCU", 2008).
   *
   * With the last two, threads that are offline are not waited for either:
   * whoever polls ticks them off, with one look at each per grace period.
   *
   * @default {"scan"}
   */
  detector?: "scan" | "classic" | "tree" | { type: "tree"; fanout: number };
  /**
   * When callbacks run, and by which thread deferred frees are done.
   *
   * @default {immediate}
   */
  callbacks?: CallbackPolicy;
  /**
   * With `callbacks: { mode: "offloaded" }`: whether a worker is started that
   * reclaims. It takes one of `maxReaders`, and needs `--allow-read` where the package is a local
   * file, `--allow-import` where it comes from a URL. It ends with the domain,
   * and whenever it has had nothing to do for a second, so that it keeps no
   * program alive; it is started again when it is needed. If it cannot run, an
   * `"error"` event says so, and every thread reclaims for itself.
   *
   * @default {"worker"}
   */
  reclaimer?: "worker" | "none";
  /**
   * Pending callbacks of one thread that count as overload, from 1; with
   * `offloaded`, those of one thread and the reclaimer. Beyond it the updater
   * helps to reclaim and waits for a grace period, once per so many: up to
   * 1 ms, and twice that for each further so many that wait, 64 ms at most.
   *
   * @default {10000}
   */
  highWater?: number;
  /**
   * How long a blocking wait lasts before it gives up, in ms, from 1: waits
   * for grace periods, for locks, and of updates for memory. And how long a grace period
   * lasts before it counts as stalled: then a `"stall"` event says so, and
   * again after twice, four times that and so on.
   *
   * @default {10000}
   */
  stallTimeout?: number;
  /**
   * Whether every use is checked and freed memory is poisoned. Checked are
   * pointers (`dereference`, `assignPointer`), blocks that are freed twice, or too early
   * (`free`, `deferFree`), and views that are looked at after their section. An error
   * says what was done before, by which thread and where; the stack of that act is that of
   * its `cause`. What other threads have done is kept in the domain's memory, for
   * which a sixteenth of it goes, 4 MiB at most.
   *
   * To notice a late look at a view, the view of a `bytes` value is a `Proxy` of a
   * `Uint8Array` then, which native functions refuse: `TextDecoder.decode`,
   * `Deno.stdout.writeSync`, `ArrayBuffer.isView`. Give them a copy,
   * `view.slice()`.
   *
   * @default {false}
   */
  debug?: boolean;
  /**
   * This thread's name in statistics and stall reports.
   *
   * @default {""}
   */
  name?: string;
}

/**
 * How a thread joins a domain.
 *
 * @example A named worker
 * ```ts
 * import { type AttachOptions, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: AttachOptions = { name: "worker 1" };
 * using rcu = Rcu.create();
 * using worker = Rcu.attach(rcu.handle, options);
 * assertEquals(rcu.stats().readers[worker.readerId].name, "worker 1");
 * ```
 */
export interface AttachOptions {
  /**
   * The thread's name in statistics and stall reports.
   *
   * @default {""}
   */
  name?: string;
  /**
   * With `offloaded` callbacks: whether this thread, too, starts a worker that
   * reclaims, as {@linkcode RcuOptions.reclaimer} says, whenever there is none.
   *
   * @default {"none"}
   */
  reclaimer?: "worker" | "none";
}

/**
 * How a thread finds a domain by its name, or creates it.
 *
 * @example Whoever comes first creates it
 * ```ts
 * import { type ConnectOptions, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: ConnectOptions = { capacity: 4 * 2 ** 20, timeout: 5_000 };
 * using rcu = await Rcu.connect("options", options);
 * using same = await Rcu.connect("options", { name: "second" });
 * assertEquals(same.handle.id, rcu.handle.id);
 * ```
 */
export interface ConnectOptions extends RcuOptions {
  /** Ends the search early. */
  signal?: AbortSignal;
  /**
   * How long the search may take, in ms, from 1. It takes some ms, and as long as each thread
   * that has the domain is in one turn of its event loop.
   *
   * @default {10000}
   */
  timeout?: number;
}

/**
 * What a thread needs to join a domain: a plain object that `postMessage`
 * carries to a worker. The `Rcu` itself, and the structures opened with it,
 * belong to their thread: posting one is a `DataCloneError`.
 *
 * @example It survives being posted
 * ```ts
 * import { Rcu, type RcuHandle } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * // As `worker.postMessage(rcu.handle)` does.
 * const handle: RcuHandle = structuredClone(rcu.handle);
 * using member = Rcu.attach(handle);
 * assertEquals([handle.kind, member.readerId], ["rcu", 1]);
 * ```
 */
export interface RcuHandle {
  /** Always `"rcu"`. */
  kind: "rcu";
  /** The version of the memory's layout. */
  version: number;
  /** The domain's memory. */
  buffer: SharedArrayBuffer;
  /** The domain's identity. */
  id: string;
}

/**
 * How long to wait, asynchronously.
 *
 * @example In a hurry, but not for ever
 * ```ts
 * import { Rcu, type SynchronizeOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const options: SynchronizeOptions = {
 *   expedited: true,
 *   signal: AbortSignal.timeout(10_000),
 * };
 * await rcu.synchronize(options);
 * assertEquals(rcu.stats().gracePeriods.expedited, 1);
 * ```
 */
export interface SynchronizeOptions {
  /**
   * Whether to look again as often as possible instead of ever less often.
   *
   * @default {false}
   */
  expedited?: boolean;
  /** Ends the wait early. */
  signal?: AbortSignal;
}

/**
 * How long to wait, blocking.
 *
 * @example A limit of its own
 * ```ts
 * import { Rcu, type SynchronizeSyncOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const options: SynchronizeSyncOptions = { timeout: 1000 };
 * rcu.synchronizeSync(options);
 * assertEquals(rcu.stats().gracePeriods.completed, 1);
 * ```
 */
export interface SynchronizeSyncOptions {
  /**
   * Whether to look again as often as possible instead of ever less often.
   *
   * @default {false}
   */
  expedited?: boolean;
  /**
   * Longest wait in ms, from 0.
   *
   * @default {RcuOptions.stallTimeout}
   */
  timeout?: number;
}

/**
 * How long to wait for callbacks.
 *
 * @example Not for ever
 * ```ts
 * import { type BarrierOptions, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const options: BarrierOptions = { signal: AbortSignal.timeout(10_000) };
 * let ran = false;
 * rcu.callRcu(() => ran = true);
 * await rcu.barrier(options);
 * assertEquals(ran, true);
 * ```
 */
export interface BarrierOptions {
  /** Ends the wait early. */
  signal?: AbortSignal;
}
