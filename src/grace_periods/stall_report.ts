/**
 * What is known about a grace period that does not end.
 *
 * @example Reading one
 * ```ts
 * import { Rcu, RcuStallError, type StallReport } from "@grace/rcu";
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * using rcu = Rcu.create({ name: "updater" });
 * using other = Rcu.attach(rcu.handle, { name: "reader" });
 * using section = other.readLock();
 * const error = assertThrows(
 *   () => rcu.synchronizeSync({ timeout: 10 }),
 *   RcuStallError,
 * );
 * const report: StallReport = error.report;
 * assertEquals(report.readers.map((reader) => reader.name), ["reader"]);
 * ```
 */
export interface StallReport {
  /**
   * How long the grace period in progress has been seen to last, by the thread that
   * has watched it longest, in ms; 0 if none is in progress. If the report is about a
   * lock, or about callbacks of other threads: how long this thread has waited.
   */
  age: number;
  /**
   * The readers that are in the way. If a barrier waits for callbacks and no grace period is held
   * up: the threads whose callbacks they are.
   */
  readers: StalledReader[];
  /** Callbacks and deferred frees of all threads that wait. */
  pending: number;
}

/**
 * A reader that holds up a grace period.
 *
 * @example Who is in the way
 * ```ts
 * import { Rcu, RcuStallError, type StalledReader } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * using other = Rcu.attach(rcu.handle, { name: "slow" });
 * using section = other.readLock();
 * let stalled: StalledReader[] = [];
 * try {
 *   rcu.synchronizeSync({ timeout: 1 });
 * } catch (error) {
 *   if (error instanceof RcuStallError) stalled = error.report.readers;
 * }
 * assertEquals(stalled.map(({ name, behind }) => [name, behind]), [["slow", 1]]);
 * assertEquals(section.open, true);
 * ```
 */
export interface StalledReader {
  /** Its `readerId`. */
  id: number;
  /** The name that it gave when it joined, or `""`. */
  name: string;
  /** How long it has been seen in the way, in ms: as long as the period, which waits only for readers of its beginning. */
  age: number;
  /** How many grace periods have begun since its last quiescent state; 0 if it is none that a period waits for. */
  behind: number;
}

/**
 * Thrown when a wait runs into its limit because a reader does not pass a
 * quiescent state, because a thread does not give back a lock, or because one does not
 * come to the callbacks that a barrier waits for.
 *
 * @example Who is in the way
 * ```ts
 * import { Rcu, RcuStallError } from "@grace/rcu";
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * using other = Rcu.attach(rcu.handle);
 * using section = other.readLock();
 * const error = assertThrows(
 *   () => rcu.synchronizeSync({ timeout: 10 }),
 *   RcuStallError,
 * );
 * assertEquals(error.report.readers[0].id, other.readerId);
 * ```
 */
export class RcuStallError extends Error {
  /** The name of the error, always `"RcuStallError"`. */
  override readonly name = "RcuStallError";
  /** Who is in the way, and since when. */
  readonly report: StallReport;

  /**
   * Made by the waits of this package.
   *
   * @param message What was waited for.
   * @param report Who is in the way.
   * @param options An optional cause: the reason of the signal that ended the wait.
   */
  constructor(message: string, report: StallReport, options?: ErrorOptions) {
    super(message, options);
    this.report = report;
  }
}
