/**
 * When ready callbacks run. `immediate`: all of them, at the thread's next
 * update or turn of the event loop.
 *
 * @example The default, spelled out
 * ```ts
 * import { type CallbackPolicy, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const callbacks: CallbackPolicy = { mode: "immediate" };
 * using rcu = Rcu.create({ callbacks });
 * let ran = false;
 * rcu.callRcu(() => ran = true);
 * await rcu.barrier();
 * assertEquals(ran, true);
 * ```
 */
export type CallbackPolicy = { mode: "immediate" };
