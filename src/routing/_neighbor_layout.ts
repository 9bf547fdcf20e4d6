// Where a neighbour table's parts lie, and how a neighbour gets into words.

import { show } from "../memory/_codec.ts";
import type { Address } from "../memory/arena.ts";
import { formatAddress } from "./_prefix.ts";

// The header. Its first line is written once, when the table is made.
export const CHAINS = 0;
export const BUCKET_MASK = 1;
export const SECRET = 2;
export const THRESHOLD_1 = 3;
export const THRESHOLD_2 = 4;
export const THRESHOLD_3 = 5;
/** Ticks. */
export const STALE_TIME = 6;
// The second line: what every newcomer and every collection writes.
/** Entries, those included that are about to be linked. */
export const ENTRIES = 16;
/** Linked entries that nothing refers to. */
export const UNREFERENCED = 17;
/** The last version that a link got. */
export const VERSIONS = 18;
// The third line: the collector's.
export const COLLECTOR_LOCK = 32;
/** When the last forced collection was, in ticks. */
export const LAST_FLUSH = 33;
/** The bucket that the next collection looks at first. */
export const ROVER = 34;
export const OVERFLOWS = 35;
export const FORCED = 36;
export const COLLECTED = 37;
/** Hashed locks of the writers, a word each. */
export const LOCKS = 48;
export const LOCK_MASK = 255;
export const HEADER_WORDS: number = LOCKS + LOCK_MASK + 1;

// A node: what an entry is, and who refers to it. It never changes but for the last two words.
export const NEXT = 0;
export const ADDRESS = 1;
export const INTERFACE = 2;
/** How many refer to it; {@linkcode DEAD} once the collector has taken it. */
export const REFERENCES = 3;
/** What is known of it: a block of its own, replaced as a whole. */
export const LINK = 4;
export const NODE_WORDS = 5;
export const DEAD = -1;

// A link: the state and the high part of the link address in one word, the low part in another.
export const HIGH = 0;
export const LOW = 1;
/** When it was written, in ticks. */
export const UPDATED = 2;
/** Never the same for two links of a table (but after 2³²). */
export const VERSION = 3;
export const LINK_WORDS = 4;
const STATE_SHIFT = 16;
const STATE_MASK = 7;
const HAS_ADDRESS = 1 << 20;

/**
 * How far a neighbour's link address is known.
 *
 * @example Who answers
 * ```ts
 * import { type NeighborState, NeighborTable, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * const state: NeighborState = "failed";
 * neighbors.set("10.0.0.1", 2, { state });
 * assertEquals(neighbors.lookup("10.0.0.1", 2)?.state, state);
 * ```
 */
export type NeighborState =
  | "incomplete"
  | "reachable"
  | "stale"
  | "failed"
  | "permanent";

/** The states by their codes. */
const STATES: readonly NeighborState[] = [
  "incomplete",
  "reachable",
  "stale",
  "failed",
  "permanent",
];
const FAILED = 3;
const PERMANENT = 4;

/**
 * One neighbour, as it was at one moment. Frozen.
 *
 * @example It does not change
 * ```ts
 * import { type Neighbor, NeighborTable, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * const before: Neighbor = neighbors.resolve("10.0.0.1", 2)!;
 * neighbors.set("10.0.0.1", 2, { linkAddress: "00:1b:21:3c:9d:f8" });
 * assertEquals([before.state, before.linkAddress], ["incomplete", null]);
 * ```
 */
export interface Neighbor {
  /** Its IPv4 address, dotted. */
  readonly address: string;
  /** The interface behind which it is. */
  readonly interface: number;
  /** Its link address, six pairs of lower-case hexadecimal digits, or `null`. */
  readonly linkAddress: string | null;
  /** How far the link address is known. */
  readonly state: NeighborState;
}

/** A link taken apart: what stands in HIGH and LOW. */
export interface LinkWords {
  high: number;
  low: number;
}

/**
 * Whether a link is that of a neighbour that did not answer.
 *
 * @param high Its first word.
 * @returns Whether its state is "failed".
 */
export function isFailed(high: number): boolean {
  return ((high >>> STATE_SHIFT) & STATE_MASK) === FAILED;
}

/**
 * Whether a link is never collected.
 *
 * @param high Its first word.
 * @returns Whether its state is "permanent".
 */
export function isPermanent(high: number): boolean {
  return ((high >>> STATE_SHIFT) & STATE_MASK) === PERMANENT;
}

/**
 * Puts a state and a link address into words.
 *
 * @param old What was known before.
 * @param linkAddress The address; `null` for none, `undefined` for the old one.
 * @param state The state; `undefined` for what the address suggests.
 * @param act What the caller was about to do, for the error.
 * @returns The words.
 */
export function encodeLink(
  old: LinkWords,
  linkAddress: string | null | undefined,
  state: NeighborState | undefined,
  act: string,
): LinkWords {
  let { high, low } = old;
  if (linkAddress !== undefined) {
    const digits = digitsOf(linkAddress, act);
    high = digits === "" ? 0 : HAS_ADDRESS | parseInt(digits.slice(0, 4), 16);
    low = digits === "" ? 0 : parseInt(digits.slice(4), 16) | 0;
  }
  const known = (high & HAS_ADDRESS) !== 0;
  const code = state === undefined ? (known ? 1 : 0) : STATES.indexOf(state);
  if (code < 0) {
    throw new TypeError(
      `Cannot ${act} as its state must be one of ${
        STATES.map((name) => `"${name}"`).join(", ")
      }: received ${show(state)}`,
    );
  }
  if (!known && code !== 0 && code !== FAILED) {
    throw new TypeError(
      `Cannot ${act} as a "${
        STATES[code]
      }" one must have a link address: received none`,
    );
  }
  high = (high & (HAS_ADDRESS | 0xffff)) | (code << STATE_SHIFT);
  return { high, low };
}

/** The twelve digits of a link address, or none. */
function digitsOf(linkAddress: string | null, act: string): string {
  if (linkAddress === null) return "";
  if (
    typeof linkAddress === "string" &&
    /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(linkAddress)
  ) return linkAddress.replaceAll(/[:-]/g, "");
  const message =
    `Cannot ${act} as its link address must be six pairs of hexadecimal digits or null: received ${
      show(linkAddress)
    }`;
  throw typeof linkAddress === "string"
    ? new RangeError(message)
    : new TypeError(message);
}

/**
 * Reads a neighbour. The caller is in a section.
 *
 * @param words The arena's words.
 * @param node The neighbour.
 * @param link Its link, loaded once.
 * @returns It, frozen.
 */
export function decodeNeighbor(
  words: Int32Array,
  node: Address,
  link: Address,
): Neighbor {
  const high = words[link + HIGH];
  const digits = hex(high & 0xffff, 4) + hex(words[link + LOW] >>> 0, 8);
  return Object.freeze({
    address: formatAddress(words[node + ADDRESS]),
    interface: words[node + INTERFACE] >>> 0,
    linkAddress: (high & HAS_ADDRESS) === 0
      ? null
      : digits.match(/../g)!.join(":"),
    state: STATES[(high >>> STATE_SHIFT) & STATE_MASK],
  });
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
