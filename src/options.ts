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
   * Most threads at a time, from 1 to 4,096.
   *
   * @default {64}
   */
  maxReaders?: number;
  /**
   * How the end of a grace period is noticed. `scan`: whoever wants one polls
   * the readers' slots.
   *
   * @default {"scan"}
   */
  detector?: "scan";
  /**
   * When callbacks run.
   *
   * @default {immediate}
   */
  callbacks?: CallbackPolicy;
  /**
   * Pending callbacks of one thread that count as overload, from 1: beyond
   * it, the updater waits up to 1 ms for a grace period, once per so many.
   *
   * @default {10000}
   */
  highWater?: number;
  /**
   * How long a blocking wait lasts before it gives up, in ms, from 1: waits
   * for grace periods, for locks, and of updates for memory.
   *
   * @default {10000}
   */
  stallTimeout?: number;
  /**
   * Whether every use is checked and freed memory is poisoned: pointers
   * (`dereference`, `assignPointer`), and views that are looked at after their
   * section. To notice that, the view of a `bytes` value is a `Proxy` of a
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
