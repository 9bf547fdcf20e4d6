// The reclaimer's loop: takes what threads hand over, waits for the grace period, frees.

import { type GracePeriods, turn } from "../grace_periods/_grace_periods.ts";
import type { Heap } from "../memory/_heap.ts";
import type { Callbacks } from "./_callbacks.ts";
import { BEAT_INTERVAL, type Handover } from "./_handover.ts";
import type { Orphans } from "./_orphans.ts";
import { park } from "../sync/_park.ts";

/** Between two looks of a reclaimer that nobody wakes and that has no delay, in ms. */
const POLL_INTERVAL = 10;
/** First and longest nap between two looks at a period, in ms. */
const SHORTEST_NAP = 0.05;
const LONGEST_NAP = 1;
/** Naps or batches between two turns of the event loop. */
const NAPS = 8;

/** What a reclaimer works with, and for how long. */
export interface ReclaimerSettings {
  words: Int32Array;
  /** A word that nobody notifies. */
  nap: number;
  callbacks: Callbacks;
  periods: GracePeriods;
  handover: Handover;
  heap: Heap;
  orphans: Orphans;
  /** Between two batches, in ms; 0: woken by whoever defers. */
  delay: number;
  /** Whether nobody ever wakes it. */
  realTime: boolean;
  /** Ends it after so long without work, in ms. */
  idleTimeout: number;
  /** Ends it. */
  signal: AbortSignal | undefined;
  /** Whether no other thread is a member of the domain. */
  isAlone(): boolean;
}

/**
 * Reclaims until the domain is at its end, the signal is aborted, or nothing
 * could be done for `idleTimeout`. The caller holds the claim and gives it back.
 *
 * Every wait ends after BEAT_INTERVAL at the latest, but for the naps, which are
 * shorter; and after each of them the heart beats.
 *
 * @param settings What it works with.
 */
export async function reclaim(settings: ReclaimerSettings): Promise<void> {
  const { callbacks, delay, handover, heap, orphans, signal } = settings;
  const isOver = () =>
    settings.isAlone() && handover.count === 0 && orphans.count === 0;
  const pollInterval = delay || POLL_INTERVAL;
  let worked = performance.now();
  let nextBatch = 0;
  let used = false;
  let nap = SHORTEST_NAP;
  let naps = 0;
  while (!signal?.aborted) {
    handover.beat();
    const { invoked, pending: waited } = callbacks;
    if (performance.now() >= nextBatch && handover.count > 0) {
      callbacks.help(true);
      nextBatch = performance.now() + delay;
    }
    callbacks.adopt();
    callbacks.processCallbacks();
    const { pending } = callbacks;
    if (callbacks.invoked !== invoked || pending !== waited) {
      used = true;
      worked = performance.now();
      nap = SHORTEST_NAP;
    }
    // What waits for the end of `delay` is work, too.
    const idleSince = Math.max(worked, nextBatch);
    if (performance.now() - idleSince > settings.idleTimeout) return;
    if (pending > 0) {
      // A reader is in the way. Timers are slower than a period takes.
      settings.periods.watch();
      if (++naps % NAPS === 0) await turn(0, signal);
      else park(settings.words, settings.nap, 0, nap);
      nap = Math.min(2 * nap, LONGEST_NAP);
      continue;
    }
    if (used) {
      // What is freed here is needed elsewhere.
      heap.flush();
      used = false;
    }
    if (isOver()) return;
    const wait = nextBatch - performance.now();
    if (settings.realTime) {
      await turn(Math.min(pollInterval, BEAT_INTERVAL), signal);
    } else if (handover.count > 0 && wait > 0) {
      await turn(Math.min(wait, BEAT_INTERVAL), signal);
    } else if (handover.prepareToSleep()) {
      // Pairs with: the wake-up of a thread that leaves.
      if (isOver()) return handover.cancelSleep();
      await handover.sleep(BEAT_INTERVAL);
    } else if (++naps % NAPS === 0) {
      // Even a reclaimer that is never out of work serves its event loop.
      await turn(0, signal);
    }
  }
}
