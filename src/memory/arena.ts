/**
 * A place in the arena: the index of a word in {@linkcode Arena.words}. 0 is
 * the null address.
 */
export type Address = number;

/**
 * Where every byte of an arena is, at one moment. `live`, `deferred`, `free`
 * and `overhead` add up to `capacity`.
 */
export interface MemoryAudit {
  /** Bytes of the arena. */
  capacity: number;
  /** Bytes in blocks that are allocated, their rounding included. */
  live: number;
  /** Bytes in blocks that wait for a grace period. */
  deferred: number;
  /** Bytes that can be allocated. */
  free: number;
  /** Bytes that the library needs itself: reader slots, tags, page tails. */
  overhead: number;
}

/**
 * The memory that the threads of a domain share. Reached as `rcu.memory`.
 *
 * @example A block of one's own
 * ```ts
 * import { Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const before = rcu.memory.audit().live;
 * const block = rcu.memory.allocate(4);
 * rcu.memory.words[block] = 42;
 * assertEquals(rcu.memory.words[block], 42);
 * rcu.memory.free(block);
 * assertEquals(rcu.memory.audit().live, before);
 * ```
 */
export interface Arena {
  /**
   * Every word of the arena. Words that another thread can touch at the same
   * time go through `Atomics`, or through `rcu.dereference` and
   * `rcu.assignPointer`.
   */
  readonly words: Int32Array;

  /**
   * Allocates a block. Its contents are unspecified. Where nothing is free,
   * waits for the pending grace period and tries again; inside a read section
   * it cannot wait.
   *
   * @param words Size in words of 4 bytes, from 1 to the arena's length.
   * @returns The address of the first word, a multiple of 4.
   * @throws {RangeError} If `words` is not an integer in that range.
   * @throws {RcuMemoryError} If the block does not fit.
   */
  allocate(words: number): Address;

  /**
   * Frees a block at once: for blocks that no reader can have seen. What has
   * been published goes through `rcu.deferFree`.
   *
   * @param address What {@linkcode Arena.allocate} returned.
   * @throws {RangeError} If no block begins there.
   * @throws {Error} If the block is already free or deferred.
   */
  free(address: Address): void;

  /**
   * Accounts for every byte, from the state of every block itself. Takes time
   * in proportion to the number of blocks.
   *
   * @returns The account.
   */
  audit(): MemoryAudit;
}
