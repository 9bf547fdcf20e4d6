/** The locks of the base: the reader-writer spin locks of the 2.5.3 kernel, one beside each chain. */
import type { Membership } from "../src/_membership.ts";
import type { Address } from "../mod.ts";
import type { ChainDiscipline } from "../src/routing/_route_discipline.ts";
import { RouteTable } from "../src/routing/_route_table.ts";
import { acquire, release } from "../src/sync/_mutex.ts";
import { pause } from "../src/sync/_park.ts";

/**
 * A lock that nobody holds. As in `include/asm-i386/rwlock.h`: a reader
 * subtracts 1, a writer subtracts all of it, and whoever finds that another
 * was first adds it back and spins. One atomic instruction to take it and one
 * to give it back, where the lock of `_rw_lock.ts` needs a load and a
 * compare-and-exchange; and readers pass by writers that wait.
 */
export const UNLOCKED = 0x0100_0000;

/** Takes a lock for reading. */
export function readLock(words: Int32Array, lock: Address): void {
  if (Atomics.sub(words, lock, 1) <= 0) readLockSlow(words, lock);
}

function readLockSlow(words: Int32Array, lock: Address): void {
  do {
    Atomics.add(words, lock, 1);
    while (Atomics.load(words, lock) < 1) pause();
  } while (Atomics.sub(words, lock, 1) <= 0);
}

/** Gives it back. */
export function readUnlock(words: Int32Array, lock: Address): void {
  Atomics.add(words, lock, 1);
}

/** Takes a lock for writing. */
export function writeLock(words: Int32Array, lock: Address): void {
  while (Atomics.sub(words, lock, UNLOCKED) !== UNLOCKED) {
    Atomics.add(words, lock, UNLOCKED);
    while (Atomics.load(words, lock) !== UNLOCKED) pause();
  }
}

/** Gives it back. */
export function writeUnlock(words: Int32Array, lock: Address): void {
  Atomics.add(words, lock, UNLOCKED);
}

/** Longest wait for the mutex, in ms. */
const PATIENCE = 10_000;

/** Takes the mutex. */
export function lockMutex(
  words: Int32Array,
  mutex: Address,
  owner: number,
): void {
  if (!acquire(words, mutex, owner, PATIENCE)) {
    throw new Error(`Cannot take the mutex within ${PATIENCE} ms`);
  }
}

/** Words of a pair: the head of a chain and its lock, the kernel's `rt_hash_bucket`. */
export const PAIR = 2;

/**
 * Writers under the lock of a chain. Readers are kept out by it, so entries
 * move in place and what is unlinked is freed at once.
 *
 * The table keeps its heads together. A reader of the kernel finds lock and
 * head in one cache line, and so does a reader here: writers, before they give
 * a lock back, copy the head to it.
 */
export class PairDiscipline implements ChainDiscipline {
  readonly movesInPlace = true;
  readonly #membership: Membership;
  readonly #chains: Address;
  readonly #pairs: Address;

  constructor(membership: Membership, chains: Address, pairs: Address) {
    this.#membership = membership;
    this.#chains = chains;
    this.#pairs = pairs;
  }

  lock(bucket: number): void {
    writeLock(this.#membership.words, this.#pairs + PAIR * bucket + 1);
  }

  unlock(bucket: number): void {
    const { words } = this.#membership;
    const pair = this.#pairs + PAIR * bucket;
    words[pair] = words[this.#chains + bucket];
    writeUnlock(words, pair + 1);
  }

  reclaim(entry: Address): void {
    this.#membership.heap.free(entry);
  }
}

/** The same under one mutex for all chains. */
export class MutexDiscipline implements ChainDiscipline {
  readonly movesInPlace = true;
  readonly #membership: Membership;
  readonly #mutex: Address;
  readonly #owner: number;

  constructor(membership: Membership, mutex: Address, owner: number) {
    this.#membership = membership;
    this.#mutex = mutex;
    this.#owner = owner;
  }

  lock(): void {
    lockMutex(this.#membership.words, this.#mutex, this.#owner);
  }

  unlock(): void {
    release(this.#membership.words, this.#mutex);
  }

  reclaim(entry: Address): void {
    this.#membership.heap.free(entry);
  }
}

/** A table whose lookups find their chains in pairs: bucket `n` is pair `n / 2`. */
export class PairView extends RouteTable {
  override readonly chains: Address;

  constructor(table: RouteTable, threads: number, pairs: Address) {
    const { membership, header, fib, neighbors, clock, discipline } = table;
    super(membership, header, fib, neighbors, { clock, threads, discipline });
    this.chains = pairs;
  }
}
