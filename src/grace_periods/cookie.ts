/**
 * What {@linkcode Rcu.startPoll} returns: the grace period that must have ended before
 * whatever was unlinked until then can be reused. A plain number that never
 * wraps: it can be stored, posted to other threads of the domain and compared
 * with another one (the larger is the later).
 *
 * @example Polling instead of waiting
 * ```ts
 * import { type GracePeriodCookie, Rcu } from "@grace/rcu";
 * import { assert } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const cookie: GracePeriodCookie = rcu.startPoll();
 * await rcu.synchronize();
 * assert(rcu.poll(cookie));
 * ```
 */
export type GracePeriodCookie = number & {
  /** Tells a cookie from other numbers; nothing at run time. */
  readonly kind: "cookie";
};
