// A route's fields where they lie in shared memory: in the Fib's records, and copied into the cache's entries.

import type { Address } from "../memory/arena.ts";
import type { RouteFields } from "./route.ts";

const FLAGS = 0;
const GATEWAY = 1;
const INTERFACE = 2;
const METRIC = 3;
const MTU = 4;
/** Words of a route. */
export const ROUTE_WORDS = 5;

/**
 * Writes a route where no reader can find it.
 *
 * @param words The arena's words.
 * @param at Where to.
 * @param fields The route.
 */
export function writeRoute(
  words: Int32Array,
  at: Address,
  fields: RouteFields,
): void {
  words[at + FLAGS] = fields.flags;
  words[at + GATEWAY] = fields.gateway;
  words[at + INTERFACE] = fields.interface;
  words[at + METRIC] = fields.metric;
  words[at + MTU] = fields.mtu;
}

/**
 * Reads a route, in a read section or under the lock.
 *
 * @param words The arena's words.
 * @param at Where it lies.
 * @returns Its fields.
 */
export function readRoute(words: Int32Array, at: Address): RouteFields {
  return {
    flags: words[at + FLAGS],
    gateway: words[at + GATEWAY],
    interface: words[at + INTERFACE],
    metric: words[at + METRIC],
    mtu: words[at + MTU],
  };
}

/**
 * Whether a route has just these fields.
 *
 * @param words The arena's words.
 * @param at Where it lies.
 * @param fields The fields.
 * @returns `true` if it has.
 */
export function hasRoute(
  words: Int32Array,
  at: Address,
  fields: RouteFields,
): boolean {
  return words[at + INTERFACE] === fields.interface &&
    words[at + GATEWAY] === fields.gateway &&
    words[at + METRIC] === fields.metric &&
    words[at + MTU] === fields.mtu &&
    words[at + FLAGS] === fields.flags;
}
