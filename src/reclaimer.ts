// The thread that frees what others have deferred.

import { reclaim } from "./callbacks/_reclaimer.ts";
import { checkSignal, type OptionNames, takeOptions } from "./_arguments.ts";
import { openDomain } from "./_domain.ts";
import { turn } from "./grace_periods/_grace_periods.ts";
import { HEADER_DETECTOR, HEADER_MAX_READERS, layout } from "./_layout.ts";
import { BEAT_INTERVAL, Handover, SILENCE } from "./callbacks/_handover.ts";
import type { StallReport } from "./grace_periods/stall_report.ts";
import { Membership, stallWarning } from "./_membership.ts";
import type { RcuHandle } from "./options.ts";
import { readPolicy } from "./_policy.ts";
import { Inquest } from "./_inquest.ts";
import { ReaderTable } from "./readers/_slots.ts";

/**
 * How a reclaimer runs.
 *
 * @example One with an end
 * ```ts
 * import { Rcu, type ReclaimerOptions, runReclaimer } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create({
 *   callbacks: { mode: "offloaded" },
 *   reclaimer: "none",
 * });
 * const end = new AbortController();
 * const options: ReclaimerOptions = { signal: end.signal, name: "cleaner" };
 * const done = runReclaimer(rcu.handle, options);
 * end.abort();
 * await done;
 * assertEquals(rcu.stats().readers.length, 1);
 * ```
 */
export interface ReclaimerOptions {
  /** Ends it: what it has not freed by then passes to other threads. */
  signal?: AbortSignal;
  /**
   * Its name in statistics and stall reports.
   *
   * @default {"reclaimer"}
   */
  name?: string;
}

/** How often a reclaimer asks who has died, in ms. */
const DOUBT = 1_000;

const OPTIONS: OptionNames<ReclaimerOptions> = { signal: true, name: true };

/**
 * Makes the calling thread the reclaimer of a domain whose callbacks are
 * `offloaded`: it frees what other threads defer. To be called in a worker of
 * its own, because it naps, for up to 1 ms at a time, while grace periods last.
 * It takes one of `maxReaders`.
 *
 * A domain has one reclaimer at a time; a further one stands by, without a slot,
 * until the first has ended. The promise resolves when no other thread is a member and
 * everything has been freed, or when the signal is aborted. A worker that ended without
 * `close()` counts as a member until its death is proven, within seconds. A reclaimer's worker
 * that is terminated instead is noticed after 2 s of silence: until then what was
 * handed over waits, and what it had taken does until its death is proven; then
 * other threads take over both. A grace period that does not end for `stallTimeout` is printed with
 * `console.warn`.
 *
 * @param handle The domain's handle.
 * @param options A signal to end it, and a name.
 * @returns A promise that keeps the thread's event loop alive until then.
 * @throws {TypeError} If `handle` is not that of a domain, its callbacks are not
 * `offloaded`, or the signal is none.
 * @throws {RangeError} If `maxReaders` threads are registered already.
 *
 * @example In a worker of one's own
 * ```ts
 * import { Rcu, runReclaimer } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const rcu = Rcu.create({
 *   callbacks: { mode: "offloaded" },
 *   reclaimer: "none",
 * });
 * // In the worker: self.onmessage = ({ data }) => runReclaimer(data);
 * const done = runReclaimer(rcu.handle);
 * for (let i = 0; i < 1000; i++) rcu.deferFree(rcu.memory.allocate(8));
 * await rcu.barrier();
 * assertEquals(rcu.memory.audit().deferred, 0);
 * rcu.close();
 * await done; // It was alone.
 * ```
 */
export async function runReclaimer(
  handle: RcuHandle,
  options: ReclaimerOptions = {},
): Promise<void> {
  const act = "run a reclaimer";
  const { signal, name = "reclaimer" } = takeOptions(options, OPTIONS, act);
  checkSignal(signal, act);
  const onStall = (report: StallReport) => console.warn(stallWarning(report));
  await serve(handle, name, signal, Infinity, true, onStall);
}

/**
 * As {@linkcode runReclaimer}, for a worker that may be started again: it ends
 * if there is another reclaimer, and after some time without work.
 *
 * @param handle The domain's handle.
 * @param idleTimeout That time, in ms.
 * @param onStall Called when a period does not end that it waits for.
 */
export async function runIdleReclaimer(
  handle: RcuHandle,
  idleTimeout: number,
  onStall: (report: StallReport) => void,
): Promise<void> {
  await serve(handle, "reclaimer", undefined, idleTimeout, false, onStall);
}

async function serve(
  handle: RcuHandle,
  name: string,
  signal: AbortSignal | undefined,
  idleTimeout: number,
  standsBy: boolean,
  onStall: (report: StallReport) => void,
): Promise<void> {
  const { words } = openDomain(handle, { name });
  const { mode } = readPolicy(words);
  if (mode !== "offloaded") {
    throw new TypeError(
      `Cannot run a reclaimer as the domain's callbacks.mode must be "offloaded": received "${mode}"`,
    );
  }
  const maxReaders = words[HEADER_MAX_READERS];
  const places = layout(words.length, maxReaders, words[HEADER_DETECTOR]);
  const readers = new ReaderTable(words, places.readers, maxReaders);
  const inquest = new Inquest(words);
  let beat = 0;
  let heard = performance.now();
  while (!signal?.aborted && readers.hasOthers(-1)) {
    const latest = Handover.beatOf(words, places.handover);
    if (latest !== beat) heard = performance.now();
    beat = latest;
    if (!Handover.hasReclaimer(words, places.handover)) {
      if (await serveAsMember(words, name, signal, idleTimeout, onStall)) {
        return;
      }
    } else if (!standsBy) return;
    else if (performance.now() - heard > SILENCE) {
      await inquest.run();
      heard = performance.now();
    }
    await turn(BEAT_INTERVAL, signal);
  }
}

/** Serves unless another thread is faster; says whether it did. */
async function serveAsMember(
  words: Int32Array,
  name: string,
  signal: AbortSignal | undefined,
  idleTimeout: number,
  onStall: (report: StallReport) => void,
): Promise<boolean> {
  let served = false;
  const onError = (error: unknown) => console.error(error);
  const membership = new Membership(words, name, { onError, onStall }, true);
  const { index, owner, policy, readers } = membership;
  const handover = membership.handover!;
  // Threads that have died are in the way, and the reclaimer waits for the last one to go.
  const doubt = setInterval(() => membership.inquest.begin(), DOUBT);
  try {
    if (policy.mode !== "offloaded" || !handover.claim(owner)) return false;
    served = true;
    try {
      await reclaim({
        words,
        nap: readers.nap(index),
        callbacks: membership.callbacks,
        periods: membership.periods,
        handover,
        heap: membership.heap,
        orphans: membership.orphans,
        delay: policy.delay,
        realTime: policy.realTime,
        idleTimeout,
        signal,
        isAlone: () => !readers.hasOthers(index),
      });
    } finally {
      handover.resign(owner);
    }
  } finally {
    clearInterval(doubt);
    // Whatever came in before the claim was given back is taken, and freed or left to others.
    membership.close();
  }
  return served;
}
