// Where a route cache's parts lie.

import type { Address } from "../memory/arena.ts";

// The header. Its first line is written when the cache is made, and SECRET when it is renewed.
export const CHAINS = 0;
export const BUCKETS = 1;
export const SECRET = 2;
export const GC_THRESHOLD = 3;
export const MAX_SIZE = 4;
export const ELASTICITY = 5;
/** Times are in ticks. */
export const GC_MIN_INTERVAL = 6;
export const GC_INTERVAL = 7;
export const GC_TIMEOUT = 8;
export const SECRET_INTERVAL = 9;
/** The counters, a line a thread. */
export const COUNTERS = 10;
/** What the cache was opened with. */
export const FIB = 11;
export const NEIGHBORS = 12;
// The second line: what every insertion writes.
/** Entries in the chains. */
export const ENTRIES = 16;
/** The last serial that an entry got. */
export const SERIALS = 17;
// The third line: the collector's.
export const COLLECTOR_LOCK = 32;
/** When the last collection was that counts for `gcMinInterval`. */
export const LAST_COLLECTION = 33;
/** The bucket after which the next collection begins. */
export const ROVER = 34;
/** How many entries the collector is content with. */
export const EQUILIBRIUM = 35;
/** How long an entry at the head of its chain may lie unused before a collection takes it. */
export const EXPIRY = 36;
/** The same two for the periodic part. */
export const LAST_EXPIRATION = 37;
export const EXPIRATION_ROVER = 38;
/** When the secret was drawn. */
export const LAST_SECRET = 39;
/** Hashed locks of the writers, a word each. */
export const LOCKS = 48;
/** Locks, as the kernel has them on small machines. */
export const LOCK_COUNT = 256;
export const HEADER_WORDS: number = LOCKS + LOCK_COUNT;

// An entry: one cache line. It is complete when it is published; only NEXT, GENERATION, LAST_USE
// and REFERENCES change after that.
export const NEXT = 0;
// The key.
export const DESTINATION = 1;
export const SOURCE = 2;
export const INTERFACE = 3;
export const TOS = 4;
/** The Fib's generation for which the route was last found right. */
export const GENERATION = 5;
/** A number other than 0 that no other entry of the cache has (but after 2³²). */
export const SERIAL = 6;
/** The next hop's entry in the neighbour table, which counts a reference for it. */
export const NEIGHBOR = 7;
/** The last tick in which it was found. */
export const LAST_USE = 8;
/** How many holds there are, and UNLINKED. */
export const REFERENCES = 9;
// The route: a copy of the fields of the Fib's record.
export const ROUTE = 10;
export const ENTRY_WORDS = 16;
/** Set in REFERENCES once the entry is out of its chain: the last hold disposes of it. */
export const UNLINKED = 0x8000_0000 | 0;

// A thread's counters.
/** Lookups, in two words. */
export const LOOKUPS = 0;
export const LOOKUPS_HIGH = 1;
export const MISSES = 2;
export const UNREACHABLE = 3;
export const REVALIDATIONS = 4;
export const INSERTIONS = 5;
export const REPLACEMENTS = 6;
export const EVICTIONS = 7;
export const COLLECTIONS = 8;
export const IGNORED = 9;
export const MISSED_GOALS = 10;
export const COLLECTED = 11;
export const EXPIRED = 12;
export const OVERFLOWS = 13;
export const NEIGHBOR_OVERFLOWS = 14;
export const FLUSHES = 15;
export const COUNTER_WORDS = 16;

/**
 * Whether two entries have the same key.
 *
 * @param words The arena's words.
 * @param a An entry.
 * @param b Another one.
 * @returns `true` if they have.
 */
export function sameKey(words: Int32Array, a: Address, b: Address): boolean {
  return words[a + DESTINATION] === words[b + DESTINATION] &&
    words[a + SOURCE] === words[b + SOURCE] &&
    words[a + INTERFACE] === words[b + INTERFACE] &&
    words[a + TOS] === words[b + TOS];
}
