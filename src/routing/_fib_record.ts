// Route records: one for each distinct route, shared by all prefixes that have it.

import type { Address } from "../memory/arena.ts";
import { CHUNKS } from "./_fib_trie.ts";
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
const FLAGS = 0;
const GATEWAY = 1;
const INTERFACE = 2;
const METRIC = 3;
const MTU = 4;
/** How many rules, and updates in progress, name it. */
export const REFERENCES = 5;
/** The number of the next record in its bucket, or in its list of unused ones. */
export const NEXT = 6;

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
 * Reads a record's fields.
 *
 * @param words The arena's words.
 * @param record A record, in a read section or under the lock.
 * @returns Its fields.
 */
export function readRecord(words: Int32Array, record: Address): RouteFields {
  return {
    flags: words[record + FLAGS],
    gateway: words[record + GATEWAY],
    interface: words[record + INTERFACE],
    metric: words[record + METRIC],
    mtu: words[record + MTU],
  };
}

/**
 * Writes a record that no rule names.
 *
 * @param words The arena's words.
 * @param record The record.
 * @param fields What it holds.
 */
export function writeRecord(
  words: Int32Array,
  record: Address,
  fields: RouteFields,
): void {
  words[record + FLAGS] = fields.flags;
  words[record + GATEWAY] = fields.gateway;
  words[record + INTERFACE] = fields.interface;
  words[record + METRIC] = fields.metric;
  words[record + MTU] = fields.mtu;
}

/**
 * Whether a record holds just these fields.
 *
 * @param words The arena's words.
 * @param record The record.
 * @param fields The fields.
 * @returns Whether they are the same.
 */
export function recordHas(
  words: Int32Array,
  record: Address,
  fields: RouteFields,
): boolean {
  return words[record + INTERFACE] === fields.interface &&
    words[record + GATEWAY] === fields.gateway &&
    words[record + METRIC] === fields.metric &&
    words[record + MTU] === fields.mtu &&
    words[record + FLAGS] === fields.flags;
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
