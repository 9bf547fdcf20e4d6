/**
 * When ready callbacks and deferred frees are done, and by which thread. The
 * policy belongs to the domain: whoever creates it decides, and every thread
 * that attaches follows. None of them lets anything be reused early, and
 * `barrier`, `close` and an allocation that finds no memory do what they need
 * at once, whatever the policy.
 *
 * | mode        | for                                              | costs                                                          |
 * | ----------- | ------------------------------------------------ | -------------------------------------------------------------- |
 * | `immediate` | most programs: least memory, most updates        | a turn with many ready callbacks is a long one                 |
 * | `throttled` | a thread that must answer in time and updates    | more memory waits; at a sustained high rate, up to `highWater` |
 * | `offloaded` | several updating threads, one core more to spare | a thread and a slot of `maxReaders`; freed memory comes later  |
 *
 * `immediate`: all that is ready is done at the thread's next update or turn
 * of the event loop.
 *
 * `throttled`: at most `maxBatch` ready callbacks and frees a turn, the rest
 * in later ones, so that timers and messages are served in between. After a
 * full batch, the next one is `plugTicks` ticks of 1 ms away; 0 is the
 * next timer's turn, one or two milliseconds later. That bounds the rate: a
 * thread that defers more than 16 a turn piles up. Once its pending callbacks
 * reach `highWater` the limit is lifted until a hundredth of that is left. After
 * "RCU for low latency" (Linux, 2004: `rcupdate.rcumaxbatch`,
 * `rcupdate.rcuplugticks`) and the kernel's `blimit`, `qhimark`, `qlowmark`.
 * `maxBatch`, from 1 to 2³⁰, is 16 by default; `plugTicks`, from 0 to 60,000, is 0.
 *
 * `offloaded`: a reclaimer thread takes deferred frees over, in lists that
 * change hands as a whole, waits for their grace periods and frees them.
 * `callRcu` closures cannot leave their thread: it runs them itself, when
 * their period has ended. With `delay` 0 (the default) whoever defers wakes the
 * reclaimer; otherwise that many ms, up to 60,000, lie between two batches: fewer grace
 * periods, and more memory that waits. With `realTime` nobody ever wakes it
 * and it looks every `delay` ms (10 if that is 0): a thread that defers makes no system
 * call. After the `call_rcu` thread of userspace RCU (2011). `Rcu.create`
 * starts a worker for it, unless `reclaimer: "none"` says that
 * {@linkcode runReclaimer} is called in a thread of one's own. Without a
 * reclaimer, and where it cannot keep up, threads reclaim for themselves.
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
 *
 * @example Throttled: a timer runs between two batches
 * ```ts
 * import { Rcu } from "@grace/rcu";
 * import { assert } from "@std/assert";
 *
 * using rcu = Rcu.create({ callbacks: { mode: "throttled", maxBatch: 4 } });
 * const log: string[] = [];
 * const timer = setInterval(() => log.push("timer"));
 * for (let i = 0; i < 100; i++) rcu.callRcu(() => log.push("callback"));
 * while (log.filter((what) => what === "callback").length < 100) {
 *   await new Promise((resolve) => setTimeout(resolve));
 * }
 * clearInterval(timer);
 * const between = log.slice(log.indexOf("callback"), log.lastIndexOf("callback"));
 * assert(between.includes("timer"));
 * ```
 *
 * @example Offloaded: another thread frees
 * ```ts
 * import { Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create({ callbacks: { mode: "offloaded", delay: 1 } });
 * for (let i = 0; i < 1000; i++) rcu.deferFree(rcu.memory.allocate(8));
 * await rcu.barrier();
 * assertEquals(rcu.memory.audit().deferred, 0);
 * ```
 */
export type CallbackPolicy =
  | { mode: "immediate" }
  | { mode: "throttled"; maxBatch?: number; plugTicks?: number }
  | { mode: "offloaded"; delay?: number; realTime?: boolean };
