// Where the words of a Fib and of its nodes lie. How a lookup walks them: `FibLookup.lookupRoute`.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";

// The Fib's own words. Readers read the first line, writers alone the second.
/** The root node. */
export const ROOT = 0;
/** Counts changes, twice each: it is odd while one is being published. See {@linkcode publishChange}. */
export const GENERATION = 1;
/** Counts records that have gone out of use. */
export const RECYCLED = 2;
/** How many prefixes there are. */
export const SIZE = 3;
/** The writers' lock. */
export const LOCK: number = LINE;
/** The block with the root's rules. */
export const ROOT_RULES: number = LINE + 1;
/** The hash table of route records: its block, its mask, and how many records it holds. */
export const BUCKETS: number = LINE + 2;
export const BUCKET_MASK: number = LINE + 3;
export const RECORDS: number = LINE + 4;
/** The lowest route number that was never used, or not since its block was freed. */
export const FRESH: number = LINE + 5;
/** Lists of route numbers: those that wait for a period, and those that come after them. */
export const WAITING: number = LINE + 6;
export const COLLECTING: number = LINE + 7;
/** The period that the first list waits for: two words, the lower one first. */
export const COOKIE: number = LINE + 8;
/** The blocks of records, by the logarithm of the first number in them. */
export const CHUNKS: number = 2 * LINE;
/** The last numbers that RECYCLED counted, in a ring. */
export const RECYCLED_LOG: number = CHUNKS + 32;
/** Length of the ring, a power of two. */
export const LOG_LENGTH = 256;
/** By the same logarithm: the list of numbers to use again; how many are in use, and in use or waiting. */
export const UNUSED: number = RECYCLED_LOG + LOG_LENGTH;
export const USED: number = UNUSED + 32;
export const BUSY: number = USED + 32;
/** Words of a Fib, nodes, rules and records apart. */
export const FIB_WORDS: number = BUSY + 32;

/** Bits of an address that the root decides on: one word a cell. */
export const ROOT_STRIDE = 16;
export const ROOT_CELLS: number = 1 << ROOT_STRIDE;

// Any other node decides on 8 bits. Its cells are runs of equal ones, and it has an index word
// for eight cells: the number of the run of the first of them in 8 bits, then, from the low
// end, for each of the eight how many runs further its own is, in 3 bits.
export const NODE_STRIDE = 8;
export const NODE_CELLS: number = 1 << NODE_STRIDE;
/** Behind the index: the block with the node's rules, which writers alone look at. */
export const NODE_RULES: number = NODE_CELLS / 8;
/** Behind that: one word a run. */
export const NODE_RUNS: number = NODE_RULES + 1;

/**
 * Where the word of a cell is.
 *
 * @param words The arena's words.
 * @param node A node below the root.
 * @param cell The cell.
 * @returns The address of its run.
 */
export function runOf(
  words: Int32Array,
  node: Address,
  cell: number,
): Address {
  const index = words[node + (cell >>> 3)];
  return node + NODE_RUNS + (index >>> 24) +
    ((index >>> (3 * (cell & 7))) & 7);
}

/**
 * Publishes a change, under the lock. Before and after it GENERATION is counted:
 * whoever has seen the change finds another generation than that of any answer
 * before it, and nobody takes what was looked up meanwhile for an answer
 * of the new one.
 *
 * @param words The arena's words.
 * @param fib The Fib.
 * @param pointer A word that leads readers to a node.
 * @param value What it becomes. Every node that it leads to is complete.
 */
export function publishChange(
  words: Int32Array,
  fib: Address,
  pointer: Address,
  value: number,
): void {
  Atomics.add(words, fib + GENERATION, 1);
  // Publish. Pairs with: the loads of `FibLookup.lookupRoute`.
  Atomics.store(words, pointer, value);
  // Before anything is retired or recycled. Pairs with: `FibLookup.generation`.
  Atomics.add(words, fib + GENERATION, 1);
}
