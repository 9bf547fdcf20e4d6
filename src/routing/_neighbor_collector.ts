// Which neighbours go, and when.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import {
  BUCKET_MASK,
  CHAINS,
  COLLECTED,
  COLLECTOR_LOCK,
  DEAD,
  ENTRIES,
  FORCED,
  HIGH,
  isFailed,
  isPermanent,
  LAST_FLUSH,
  LINK,
  LOCK_MASK,
  LOCKS,
  NEXT,
  REFERENCES,
  ROVER,
  STALE_TIME,
  THRESHOLD_1,
  THRESHOLD_2,
  THRESHOLD_3,
  UNREFERENCED,
  UPDATED,
} from "./_neighbor_layout.ts";
import { TICK, ticksSince } from "./_route_clock.ts";
import { LEAF_READ } from "../readers/_reader.ts";

/** Between the thresholds, forced collections are at least this far apart, in ticks. */
export const FLUSH_PAUSE: number = 5_000 / TICK;
/** A forced collection spares what was updated this recently, in ticks. */
const RECENT = 5_000 / TICK;

/**
 * The kernel's rules for a neighbour table that fills up.
 *
 * 1. Below the second threshold a newcomer needs nobody's leave. From there on
 *    it forces a collection if the last one was more than 5 s ago, and from the
 *    third threshold on always.
 * 2. A forced collection takes entries that nothing refers to, that are not
 *    permanent, and that have failed or were not updated for 5 s, until as many
 *    are left as the second threshold says.
 * 3. The newcomer is turned away only at the third threshold, and only if
 *    nothing could be taken.
 * 4. The periodic collection does nothing below the first threshold. Otherwise
 *    it takes every entry that nothing refers to, that is not permanent, and
 *    that has failed or was not updated for the stale time.
 */
export class NeighborCollector {
  readonly #membership: Membership;
  readonly #words: Int32Array;
  readonly #header: Address;

  constructor(membership: Membership, header: Address) {
    this.#membership = membership;
    this.#words = membership.words;
    this.#header = header;
  }

  /**
   * Makes room for one entry more. No lock is held.
   *
   * @param entries How many there were before it.
   * @param now The time, in ticks.
   * @returns Whether it may stay.
   */
  makeRoom(entries: number, now: number): boolean {
    const words = this.#words;
    const header = this.#header;
    const most = words[header + THRESHOLD_3];
    const wanted = words[header + THRESHOLD_2];
    if (entries < wanted && entries < most) return true;
    if (entries < most) {
      const last = Atomics.load(words, header + LAST_FLUSH);
      if (ticksSince(now, last) <= FLUSH_PAUSE) return true;
    }
    return this.forceCollect(entries + 1 - wanted, now) > 0 || entries < most;
  }

  /**
   * The forced collection.
   *
   * @param goal How many entries are too many.
   * @param now The time, in ticks.
   * @returns How many went.
   */
  forceCollect(goal: number, now: number): number {
    const words = this.#words;
    const header = this.#header;
    Atomics.add(words, header + FORCED, 1);
    let freed = 0;
    // Where everything is referred to, as with a route cache that fills the table, looking at
    // every entry would tell nothing else.
    if (Atomics.load(words, header + UNREFERENCED) > 0) {
      freed = this.#sweepAlone(now, Math.max(goal, 1), RECENT);
    }
    Atomics.store(words, header + LAST_FLUSH, now);
    return freed;
  }

  /**
   * The periodic collection.
   *
   * @param now The time, in ticks.
   * @returns How many entries went.
   */
  collect(now: number): number {
    const words = this.#words;
    const header = this.#header;
    if (Atomics.load(words, header + ENTRIES) < words[header + THRESHOLD_1]) {
      return 0;
    }
    return this.#sweepAlone(now, Infinity, words[header + STALE_TIME]);
  }

  #sweepAlone(now: number, goal: number, age: number): number {
    const lock = this.#header + COLLECTOR_LOCK;
    this.#membership.lock(lock);
    try {
      return this.#sweep(now, goal, age);
    } finally {
      this.#membership.unlock(lock);
    }
  }

  /** Goes through the table once, from where the last sweep stopped. */
  #sweep(now: number, goal: number, age: number): number {
    const words = this.#words;
    const header = this.#header;
    const mask = words[header + BUCKET_MASK];
    let bucket = words[header + ROVER];
    let freed = 0;
    for (let left = mask; left >= 0 && freed < goal; left--) {
      bucket = (bucket + 1) & mask;
      freed += this.#sweepChain(bucket, now, goal - freed, age);
    }
    words[header + ROVER] = bucket;
    Atomics.add(words, header + COLLECTED, freed);
    return freed;
  }

  #sweepChain(bucket: number, now: number, goal: number, age: number): number {
    const words = this.#words;
    const header = this.#header;
    const lock = header + LOCKS + (bucket & LOCK_MASK);
    let freed = 0;
    if (!this.#hasCandidate(bucket, now, age)) return 0;
    this.#membership.lock(lock);
    try {
      let at = words[header + CHAINS] + bucket;
      for (let node = words[at]; node !== 0 && freed < goal; node = words[at]) {
        if (this.#isStale(node, now, age) && this.take(at, node)) freed++;
        else at = node + NEXT;
      }
    } finally {
      this.#membership.unlock(lock);
    }
    return freed;
  }

  /** Whether it is worth taking a chain's lock. */
  #hasCandidate(bucket: number, now: number, age: number): boolean {
    const { reader } = this.#membership;
    const words = this.#words;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    let node = words[words[this.#header + CHAINS] + bucket];
    while (
      node !== 0 &&
      (Atomics.load(words, node + REFERENCES) !== 0 ||
        !this.#isStale(node, now, age))
    ) node = words[node + NEXT];
    return node !== 0;
  }

  #isStale(node: Address, now: number, age: number): boolean {
    const words = this.#words;
    const link = words[node + LINK];
    const high = words[link + HIGH];
    return !isPermanent(high) &&
      (isFailed(high) || ticksSince(now, words[link + UPDATED]) > age);
  }

  /**
   * Takes an entry out if nothing refers to it. Its chain's lock is held.
   *
   * @param at The word that leads to it.
   * @param node The entry.
   * @returns Whether it is gone.
   */
  take(at: Address, node: Address): boolean {
    const words = this.#words;
    // Pairs with: `hold`. Either it counts its reference first and the entry stays, or it
    // finds the entry dead and makes another one, behind our lock.
    if (Atomics.compareExchange(words, node + REFERENCES, 0, DEAD) !== 0) {
      return false;
    }
    // The node keeps its own NEXT: a reader that stands on it walks on.
    Atomics.store(words, at, words[node + NEXT]);
    Atomics.sub(words, this.#header + UNREFERENCED, 1);
    Atomics.sub(words, this.#header + ENTRIES, 1);
    this.#membership.retire(words[node + LINK]);
    this.#membership.retire(node);
    return true;
  }
}
