// Route records: one for each distinct route, shared by all prefixes that have it.

import type { Address } from "../memory/arena.ts";
import { CHUNKS } from "./_fib_trie.ts";
import { ROUTE_WORDS } from "./_route_words.ts";
import type { RouteFields } from "./route.ts";

/**
 * What cells and rules hold: a small number that stands for a route; 0 for
 * none. It is small so that a thread finds its own object for the route in an
 * array. The records of the numbers from 2ᶜ up to 2ᶜ⁺¹ lie in a block of their own,
 * a *chunk*, which is allocated when the first of them is used and stays where it is as
 * long as anybody may have one of them.
 */
export type RouteNumber = number;

/** The lowest number. */
export const FIRST_NUMBER: RouteNumber = 64;

// A record. Readers see its fields, which do not change as long as it is in use, and whether it has
// references.
// First come the words of its route.
/** How many rules, and updates in progress, name it. */
export const REFERENCES: number = ROUTE_WORDS;
/** The number of the next record in its bucket, or in its list of unused ones. */
export const NEXT: number = ROUTE_WORDS + 1;

/** Words of a record. */
export const RECORD_WORDS = 8;

/**
 * Where a record is.
 *
 * @param words The arena's words.
 * @param fib The Fib.
 * @param number A number that was found in this section, or under the lock; not 0.
 * @returns Its address.
 */
export function recordOf(
  words: Int32Array,
  fib: Address,
  number: RouteNumber,
): Address {
  const block = 31 - Math.clz32(number);
  // A dependent load: the address depends on the number. Pairs with: the store in `RouteNumbers.#addChunk`.
  return words[fib + CHUNKS + block] + RECORD_WORDS * (number - (1 << block));
}

/**
 * Whether a record is one that an update will still recycle.
 *
 * @param words The arena's words.
 * @param record A record, in a read section or under the lock.
 * @returns `false` if it may have been recycled already.
 */
export function isInUse(words: Int32Array, record: Address): boolean {
  // Pairs with: `RouteRecords.release`, which lets go before RECYCLED counts the record.
  return Atomics.load(words, record + REFERENCES) > 0;
}

/**
 * A hash of a route.
 *
 * @param fields Its fields.
 * @returns 32 bits.
 */
export function hashRoute(fields: RouteFields): number {
  let h = Math.imul(fields.gateway, 0x9e3779b1);
  h = Math.imul((h ^ (h >>> 15)) + fields.interface, 0x85ebca77);
  h = Math.imul((h ^ (h >>> 13)) + fields.metric, 0xc2b2ae3d);
  h = Math.imul((h ^ (h >>> 16)) + fields.mtu + fields.flags, 0x27d4eb2f);
  return h ^ (h >>> 15);
}
