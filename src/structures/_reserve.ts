// Blocks for an update that allocates under a lock and may have to begin again.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import type { Journal } from "../memory/_journal.ts";

/** Thrown under the lock when a block cannot be had without waiting. */
export class Shortage {
  /** The block's words. */
  readonly size: number;

  constructor(size: number) {
    this.size = size;
  }
}

/**
 * What an update allocates. Nobody waits for a grace period under a lock: an
 * update that runs short lets go of the lock, waits for a block of that size,
 * and begins again with all that it had.
 */
export class Reserve {
  readonly #heap: Heap;
  /** The blocks given out: block, size, block, size, … */
  #taken: number[] = [];
  /** Size → blocks to give out. */
  readonly #spare = new Map<number, Address[]>();

  constructor(heap: Heap) {
    this.#heap = heap;
  }

  /**
   * A block, without waiting.
   *
   * @param size Words.
   * @returns The block.
   * @throws {Shortage} If there is none.
   */
  take(size: number): Address {
    const block = this.tryTake(size);
    if (block === 0) throw new Shortage(size);
    return block;
  }

  /**
   * A block, without waiting.
   *
   * @param size Words.
   * @returns The block, or 0 if there is none.
   */
  tryTake(size: number): Address {
    const block = this.#spare.get(size)?.pop() ??
      this.#heap.tryAllocate(size);
    if (block !== 0) this.#taken.push(block, size);
    return block;
  }

  /**
   * Adds a block for later.
   *
   * @param size Words.
   * @param block The block.
   */
  add(size: number, block: Address): void {
    const blocks = this.#spare.get(size);
    if (blocks === undefined) this.#spare.set(size, [block]);
    else blocks.push(block);
  }

  /** Takes back every block that was given out: the update begins again. */
  reset(): void {
    const taken = this.#taken;
    this.#taken = [];
    for (let i = 0; i < taken.length; i += 2) this.add(taken[i + 1], taken[i]);
  }

  /**
   * Parts with the blocks that were given out: the update publishes them.
   *
   * @param journal The update.
   */
  commit(journal: Journal): void {
    for (let i = 0; i < this.#taken.length; i += 2) {
      journal.join(this.#taken[i]);
    }
    this.#taken = [];
  }

  /** Frees what is left. */
  dispose(): void {
    this.reset();
    for (const blocks of this.#spare.values()) {
      for (const block of blocks) this.#heap.discard(block);
    }
    this.#spare.clear();
  }
}

/**
 * Does something under a lock that allocates from a reserve, as often as it
 * takes to have all the blocks.
 *
 * @param m The thread's membership.
 * @param lock The lock. It is not held.
 * @param reserve What `act` takes blocks from; empty in the end.
 * @param act What to do; a {@linkcode Shortage} that it throws must leave everything as it was.
 * @returns What `act` returns.
 */
export function reserveUnderLock<T>(
  m: Membership,
  lock: Address,
  reserve: Reserve,
  act: () => T,
): T {
  try {
    while (true) {
      let size = 0;
      m.lock(lock);
      try {
        return act();
      } catch (error) {
        if (!(error instanceof Shortage)) throw error;
        size = error.size;
      } finally {
        m.unlock(lock);
      }
      reserve.reset();
      // May run callbacks that update the same structure: nothing is kept here meanwhile but blocks.
      reserve.add(size, m.allocate(size));
    }
  } finally {
    reserve.dispose();
  }
}
