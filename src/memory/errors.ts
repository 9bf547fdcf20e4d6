/**
 * Thrown when an allocation does not fit even after every deferred block that
 * could be reclaimed was. The structure that asked is as it was before.
 *
 * @example What it carries
 * ```ts
 * import { Rcu, RcuMemoryError } from "@grace/rcu";
 * import { assert, assertThrows } from "@std/assert";
 *
 * using rcu = Rcu.create({ capacity: 2 ** 21 });
 * const error = assertThrows(
 *   () => rcu.memory.allocate(2 ** 19),
 *   RcuMemoryError,
 * );
 * assert(error.requested > error.available);
 * ```
 */
export class RcuMemoryError extends Error {
  /** The name of the error, always `"RcuMemoryError"`. */
  override readonly name = "RcuMemoryError";
  /** Bytes that were asked for. */
  readonly requested: number;
  /** Bytes that are free, in pieces too small or held by other threads. */
  readonly available: number;
  /** Bytes that wait for a grace period. */
  readonly deferred: number;

  /**
   * Made by the allocations of this package.
   *
   * @param message What failed.
   * @param data The figures behind it, in bytes.
   */
  constructor(
    message: string,
    data: { requested: number; available: number; deferred: number },
  ) {
    super(message);
    this.requested = data.requested;
    this.available = data.available;
    this.deferred = data.deferred;
  }
}
