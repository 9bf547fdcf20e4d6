// Growing and shrinking a table while others read and write it.

import { RcuStallError } from "../grace_periods/stall_report.ts";
import type { Address } from "../memory/arena.ts";
import { hasStack } from "../sync/_stack.ts";
import {
  FORWARDED,
  HEADS,
  MASK,
  NEXT,
  RESIZE_LOCK,
  STRIPE_COUNT,
  STRIPE_LOCK,
  STRIPES,
  SUCCESSOR,
  TABLE,
  type Table,
  tableWords,
} from "./_table.ts";

/** Buckets that move under one holding of a lock. */
const CHUNK = 64;

/**
 * Moves a map's chains to a table of another size, one stripe at a time, a few
 * buckets at a time. See the invariants of {@linkcode Table}, 4 and 5.
 *
 * The work can be left at any bucket and taken up by any thread: the successor
 * stands in the table, and every head says whether its chain has moved.
 */
export class Resizer {
  readonly #table: Table<unknown>;
  readonly #words: Int32Array;

  constructor(table: Table<unknown>) {
    this.#table = table;
    this.#words = table.words;
  }

  /**
   * Resizes if a stripe's count asks for it. Without memory or stack, or when another
   * thread is at it, does nothing: chains get longer for a while. Runs no callback.
   *
   * @param stripe The stripe that has just changed.
   */
  check(stripe: Address): void {
    const { membership } = this.#table;
    if (!hasStack()) return;
    // Another thread may be replacing the table: its mask is read inside a section.
    membership.reader.enter();
    try {
      const table = Atomics.load(this.#words, this.#table.header + TABLE);
      const count = Atomics.load(this.#words, stripe + STRIPE_COUNT);
      const wanted = this.#table.wantedBuckets(table, count);
      if (wanted === this.#words[table + MASK] + 1) return;
    } finally {
      membership.reader.exit();
    }
    const lock = this.#table.header + RESIZE_LOCK;
    try {
      if (!membership.tryLock(lock)) return;
      try {
        this.#resize(stripe);
      } finally {
        membership.unlock(lock);
      }
    } catch (error) {
      // A writer that does not give its stripe back: whoever needs the stripe is told so. Or the
      // stack has no room for the next lock. The update that led here has been done, and the rest
      // of the move can wait.
      if (!(error instanceof RcuStallError || error instanceof RangeError)) {
        throw error;
      }
    }
  }

  /** The caller holds RESIZE_LOCK: the table and its successor stay. */
  #resize(stripe: Address): void {
    const words = this.#words;
    const { header, membership } = this.#table;
    const old = Atomics.load(words, header + TABLE);
    let successor = words[old + SUCCESSOR];
    if (successor === 0) {
      const count = Atomics.load(words, stripe + STRIPE_COUNT);
      const buckets = this.#table.wantedBuckets(old, count);
      if (buckets === words[old + MASK] + 1) return;
      successor = membership.heap.tryAllocate(tableWords(buckets));
      if (successor === 0) return;
      this.#table.clearTable(successor, buckets);
      membership.journal.join(successor);
      // Publish, before any head says FORWARDED.
      membership.journal.store(old + SUCCESSOR, successor);
      membership.journal.finish();
    }
    for (let s = 0; s < STRIPES; s++) {
      if (!this.#moveStripe(s, old, successor)) return;
    }
    membership.journal.leave(old);
    // Publish (5). Pairs with: `root` and `tableOf`.
    membership.journal.store(header + TABLE, successor);
    membership.journal.finish();
  }

  #moveStripe(stripe: number, old: Address, successor: Address): boolean {
    const { membership } = this.#table;
    const words = this.#words;
    const line = this.#table.stripe(stripe);
    const least = Math.min(words[old + MASK], words[successor + MASK]);
    const shrinks = words[successor + MASK] < words[old + MASK];
    let bucket = stripe;
    while (bucket <= least) {
      let moved = true;
      membership.lock(line + STRIPE_LOCK);
      try {
        // Nodes are copied: what readers remember of them is void.
        this.#table.beginChange(stripe, STRIPES);
        try {
          for (let i = 0; i < CHUNK && bucket <= least && moved; i++) {
            if (words[old + HEADS + bucket] !== FORWARDED) {
              if (shrinks) this.#merge(old, successor, bucket);
              else moved = this.#split(old, successor, bucket);
            }
            if (moved) bucket += STRIPES;
          }
        } finally {
          this.#table.endChange(stripe, STRIPES);
        }
      } finally {
        membership.unlock(line + STRIPE_LOCK);
      }
      if (!moved) return false;
    }
    return true;
  }

  /** Distributes a chain over two buckets of a table twice as large. */
  #split(old: Address, successor: Address, bucket: number): boolean {
    const words = this.#words;
    const table = this.#table;
    const { heap, journal } = table.membership;
    const high = words[old + MASK] + 1; // the bit that decides
    const head = words[old + HEADS + bucket];
    // The last run of nodes that go the same way moves as it is (4).
    let run = head;
    for (let node = head, side = -1; node !== 0; node = words[node + NEXT]) {
      const other = table.hashOf(node) & high;
      if (other !== side) run = node;
      side = other;
    }
    const heads = [0, 0];
    if (run !== 0) heads[(table.hashOf(run) & high) === 0 ? 0 : 1] = run;
    for (let node = head; node !== run; node = words[node + NEXT]) {
      const size = table.nodeWordsAt(node);
      const copy = heap.tryAllocate(size);
      if (copy === 0) {
        for (const first of heads) {
          for (let made = first; made !== 0 && made !== run;) {
            const next = words[made + NEXT];
            heap.free(made);
            made = next;
          }
        }
        return false;
      }
      words.copyWithin(copy, node, node + size);
      const side = (table.hashOf(node) & high) === 0 ? 0 : 1;
      words[copy + NEXT] = heads[side];
      heads[side] = copy;
    }
    for (const first of heads) {
      for (let copy = first; copy !== 0 && copy !== run;) {
        journal.join(copy);
        copy = words[copy + NEXT];
      }
    }
    for (let node = head; node !== run; node = words[node + NEXT]) {
      journal.leave(node);
    }
    // Publish. Pairs with: the load of the head in `find`.
    journal.store(successor + HEADS + bucket, heads[0]);
    journal.store(successor + HEADS + bucket + high, heads[1]);
    journal.store(old + HEADS + bucket, FORWARDED);
    journal.finish();
    return true;
  }

  /** Joins two chains in a bucket of a table half as large. */
  #merge(old: Address, successor: Address, bucket: number): void {
    const words = this.#words;
    const { journal } = this.#table.membership;
    const other = bucket + words[successor + MASK] + 1;
    const first = words[old + HEADS + bucket];
    const second = words[old + HEADS + other];
    if (first !== 0 && second !== 0) {
      let last = first;
      while (words[last + NEXT] !== 0) last = words[last + NEXT];
      journal.store(last + NEXT, second);
    }
    const joined = first !== 0 ? first : second;
    // Publish. Pairs with: the load of the head in `find`.
    journal.store(successor + HEADS + bucket, joined);
    journal.store(old + HEADS + bucket, FORWARDED);
    journal.store(old + HEADS + other, FORWARDED);
    journal.finish();
  }
}
