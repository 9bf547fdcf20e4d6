// What `Rcu.stats` returns.

import type { MemoryAudit } from "./memory/arena.ts";

/**
 * Grace periods since a domain was created.
 *
 * @example One more
 * ```ts
 * import { type GracePeriodStats, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * rcu.synchronizeSync({ expedited: true });
 * const periods: GracePeriodStats = rcu.stats().gracePeriods;
 * assertEquals(periods, { started: 1, completed: 1, expedited: 1, forced: 0 });
 * ```
 */
export interface GracePeriodStats {
  /** Periods that have begun. */
  started: number;
  /** Periods that have ended. */
  completed: number;
  /** Waits that asked for an expedited period. */
  expedited: number;
  /** Periods that overload forced. */
  forced: number;
}

/**
 * Callbacks and deferred frees of a domain.
 *
 * @example One that waits
 * ```ts
 * import { type CallbackStats, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * rcu.deferFree(rcu.memory.allocate(4));
 * const callbacks: CallbackStats = rcu.stats().callbacks;
 * assertEquals([callbacks.pending, callbacks.lost], [1, 0]);
 * ```
 */
export interface CallbackStats {
  /** Those of all threads that wait. */
  pending: number;
  /** The largest number that has ever waited in one thread, as each saw it when it looked. */
  peak: number;
  /** Those invoked by the records of all threads, modulo 2³². */
  invoked: number;
  /** Closures that will never run, as their threads died, modulo 2³². */
  lost: number;
}

/**
 * What a domain has done and holds, at one moment.
 *
 * @example Before and after
 * ```ts
 * import { Rcu, type RcuStats } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const before: RcuStats = rcu.stats();
 * rcu.synchronizeSync();
 * const { gracePeriods } = rcu.stats();
 * assertEquals(gracePeriods.completed, before.gracePeriods.completed + 1);
 * ```
 */
export interface RcuStats {
  /** Grace periods since the domain was created. */
  gracePeriods: GracePeriodStats;
  /** Callbacks and deferred frees. */
  callbacks: CallbackStats;
  /** Where every byte is. */
  memory: MemoryAudit;
  /** The registered threads. */
  readers: ReaderStats[];
}

/**
 * A registered thread.
 *
 * @example Who is reading
 * ```ts
 * import { Rcu, type ReaderStats } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create({ name: "main" });
 * using section = rcu.readLock();
 * const readers: ReaderStats[] = rcu.stats().readers;
 * const online = readers.filter((reader) => reader.online);
 * assertEquals(online.map(({ name }) => name), ["main"]);
 * assertEquals(section.open, true);
 * ```
 */
export interface ReaderStats {
  /** Its `readerId`. */
  id: number;
  /** Its name, or `""`. */
  name: string;
  /** Whether it may be in a read section. */
  online: boolean;
  /** How many grace periods had begun when it last announced a quiescent state; 0 while offline. */
  observed: number;
  /** Its callbacks and deferred frees that wait. */
  pending: number;
}
