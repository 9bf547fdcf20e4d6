// How writers of a chain exclude each other, and when memory may be used again.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { LOCK_COUNT, LOCKS } from "./_route_layout.ts";

/** How writers of a chain keep out of each other's way, and what becomes of what they unlink. */
export interface ChainDiscipline {
  /** Whether an entry may be unlinked and linked again while readers walk: they hold locks. */
  readonly movesInPlace: boolean;
  /** Takes the lock of a chain for writing. */
  lock(bucket: number): void;
  /** Gives it back. */
  unlock(bucket: number): void;
  /** Sees to it that an entry is freed that has just been unlinked. */
  reclaim(entry: Address): void;
}

/** Readers without locks: hashed locks for writers, and a grace period before memory is reused. */
export class RcuDiscipline implements ChainDiscipline {
  readonly movesInPlace = false;
  readonly #membership: Membership;
  readonly #locks: Address;

  constructor(membership: Membership, header: Address) {
    this.#membership = membership;
    this.#locks = header + LOCKS;
  }

  lock(bucket: number): void {
    this.#membership.lock(this.#locks + (bucket & (LOCK_COUNT - 1)));
  }

  unlock(bucket: number): void {
    this.#membership.unlock(this.#locks + (bucket & (LOCK_COUNT - 1)));
  }

  reclaim(entry: Address): void {
    this.#membership.retire(entry);
  }
}
