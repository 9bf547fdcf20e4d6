// The hash table behind RcuMap: where things lie, and how a key is found.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { BlockKeyCodec, mix, show, WordCodec } from "../memory/_codec.ts";
import type { KeyCodec } from "../memory/codec.ts";
import { noteWrite } from "./_own_writes.ts";
import { announceChange } from "./_watch.ts";

// The map's header: two lines, then a line a stripe, then, with string keys, the versions.
/** The current table. */
export const TABLE = 0;
export const SEED = 1;
export const RESIZE_LOCK = 2;
/** The mask below which the table does not shrink. */
export const LEAST_MASK = 3;
/** With string keys: moves whenever anything that readers may have cached is replaced. */
export const CHANGES = 4;
/** How many watch the map (see `Watch`). */
export const WATCHERS = 5;
/** The second line: a counter from which values in blocks get their numbers. */
const STAMPS = 16;
/** Moves when something changes while somebody watches. */
export const WATCHED = 17;
/** Stripes of buckets, each with a lock for its writers. */
export const STRIPES = 16;
const FIRST_STRIPE = 32;
const STRIPE_SHIFT = 4;
/** A stripe: the writers' lock, and its entries. */
export const STRIPE_LOCK = 0;
export const STRIPE_COUNT = 1;
/** Versions: each stands for the keys whose hashes have its low bits. */
const VERSIONS = FIRST_STRIPE + (STRIPES << STRIPE_SHIFT);
/** Few enough to stay in the cache of whoever reads them; many enough that a change voids little. */
export const VERSION_COUNT = 256;

// A table: its mask, the table that replaces it, a head for each bucket.
export const MASK = 0;
export const SUCCESSOR = 1;
export const HEADS = 4;
/** A head that says: look in the successor. */
export const FORWARDED = -1;

// A node. With word keys KEY is the key itself, otherwise its hash, and the key stands behind.
export const NEXT = 0;
export const KEY = 1;
export const VALUE = 2;
export const NODE_WORDS = 3;

/** A stripe may hold this many entries more than its share before a small table grows. */
const SLACK = 4;

/** What a lookup looks for: the key as it is compared, and its hash. */
export interface Probe {
  /** The key's word, or its hash. */
  word: number;
  hash: number;
  /** The prepared key; `undefined` with word keys. */
  key: unknown;
}

/**
 * The key that a probe looks for.
 *
 * @param probe The probe.
 * @returns Its word, or the prepared key.
 */
export function keyOf(probe: Pick<Probe, "word" | "key">): unknown {
  return probe.key ?? probe.word;
}

/**
 * One thread's view of a map's table.
 *
 * Invariants, on which readers rely. A bucket belongs to the stripe of its low
 * bits, in every table; "the lock" is that of the stripe.
 *
 * 1. Under the lock alone: heads, NEXT words and value words change; versions
 *    and counts move.
 * 2. A node is complete when it is published, and is published at the head of
 *    its chain. Its key never changes; its value word may.
 * 3. A node is unlinked by one store to the word before it, and keeps its own
 *    NEXT until a grace period later. A reader that stands on it walks on into
 *    the chain, past nothing that was there when it came.
 * 4. A chain moves to the successor as a whole: the new heads are published,
 *    then the old head becomes FORWARDED. The last run of nodes that go to the
 *    same new bucket moves as it is; nodes before it are copied, so that an old
 *    chain stays whole for the readers in it. Merging two chains appends one to
 *    the other; a reader in the first meets nodes of the second, which do not
 *    match.
 * 5. The table word changes only when every bucket of the old table is
 *    FORWARDED, or when all stripes are locked (`replaceAll`).
 * 6. A version (string keys) is odd while something that readers may have
 *    cached of its keys is being replaced, and even and larger afterwards, so
 *    one that was seen never comes back (but after 2³¹ changes). A reader caches
 *    only under an even version that it loaded before the head; if it finds it
 *    unchanged later, nothing that it cached has been replaced meanwhile. CHANGES
 *    moves after a version became odd and before anything is replaced: a reader
 *    that loaded it before an even version, and finds it unchanged later, may
 *    rely on everything that it cached since then.
 */
export class Table<K> {
  readonly membership: Membership;
  readonly words: Int32Array;
  readonly header: Address;
  readonly seed: number;
  readonly wordKey: WordCodec<K> | undefined;
  readonly blockKey: BlockKeyCodec<K, unknown, unknown> | undefined;
  /** Whether there are versions. */
  readonly versioned: boolean;

  /** The section in which the table was pinned, and the table. */
  #section = -1;
  #pinned: Address = 0;

  constructor(
    membership: Membership,
    header: Address,
    codec: KeyCodec<K, unknown>,
  ) {
    this.membership = membership;
    this.words = membership.words;
    this.header = header;
    this.seed = membership.words[header + SEED];
    const { word, block } = keyCodec(codec);
    this.wordKey = word;
    this.blockKey = block;
    this.versioned = isVersioned(codec);
  }

  /**
   * The table to start from. Within one explicit section always the same, so
   * that a section sees all of a `replaceAll` or nothing of it.
   *
   * @returns The table.
   */
  root(): Address {
    const reader = this.membership.reader;
    // The dependent load. Pairs with: the stores of TABLE in Resizer.
    if (reader.depth === 0) return this.words[this.header + TABLE];
    if (this.#section !== reader.section) {
      this.#section = reader.section;
      this.#pinned = this.words[this.header + TABLE];
    }
    return this.#pinned;
  }

  /** Lets the section that is open see what this thread has just published. */
  unpin(): void {
    this.#section = -1;
  }

  /**
   * Checks and hashes a key.
   *
   * @param key What the caller passed.
   * @param kept Whether the probe outlives code that may change the caller's object.
   * @returns What to look for.
   */
  probe(key: K, kept = false): Probe {
    if (this.wordKey !== undefined) {
      const word = this.wordKey.toKeyWord(key);
      return { word, hash: mix(word ^ this.seed), key: undefined };
    }
    const checked = this.blockKey!.prepareKey(key);
    const prepared = kept ? this.blockKey!.own(checked) : checked;
    const hash = this.blockKey!.hash(prepared, this.seed);
    return { word: hash, hash, key: prepared };
  }

  /**
   * Finds a node, inside a section.
   *
   * @param table Where to start.
   * @param probe What to look for.
   * @returns The node, or 0.
   */
  find(table: Address, probe: Probe): Address {
    const words = this.words;
    const { hash } = probe;
    while (true) {
      const bucket = hash & words[table + MASK];
      const head = words[table + HEADS + bucket];
      if (head !== FORWARDED) return this.findIn(head, probe);
      table = words[table + SUCCESSOR];
    }
  }

  /**
   * Finds a node in a chain.
   *
   * @param node The chain's first node, or 0.
   * @param probe What to look for.
   * @returns The node, or 0.
   */
  findIn(node: Address, probe: Probe): Address {
    const words = this.words;
    const { word, key } = probe;
    const codec = this.blockKey;
    for (; node !== 0; node = words[node + NEXT]) {
      if (words[node + KEY] !== word) continue;
      if (
        codec === undefined || codec.equals(words, node + NODE_WORDS, key)
      ) return node;
    }
    return 0;
  }

  /**
   * The table in which a hash's bucket is now. The caller holds the lock.
   *
   * @param hash The hash.
   * @returns The table; its bucket is not FORWARDED.
   */
  tableOf(hash: number): Address {
    const words = this.words;
    let table = Atomics.load(words, this.header + TABLE);
    while (
      words[table + HEADS + (hash & words[table + MASK])] === FORWARDED
    ) table = words[table + SUCCESSOR];
    return table;
  }

  /**
   * A hash's stripe.
   *
   * @param hash The hash.
   * @returns The address of its line.
   */
  stripe(hash: number): Address {
    return this.header + FIRST_STRIPE +
      ((hash & (STRIPES - 1)) << STRIPE_SHIFT);
  }

  /**
   * Where the version of a hash is.
   *
   * @param hash The hash.
   * @returns The address.
   */
  versionAt(hash: number): Address {
    return this.header + VERSIONS + (hash & (VERSION_COUNT - 1));
  }

  /**
   * Makes versions odd, before anything of their keys is replaced. The caller
   * holds the locks, and makes them even afterwards.
   *
   * @param hash The first hash.
   * @param step The distance to the next one; by default there is none.
   */
  beginChange(hash: number, step: number = VERSION_COUNT): void {
    if (!this.versioned) return;
    const end = this.header + VERSIONS + VERSION_COUNT;
    this.membership.journal.beginOdd(this.versionAt(hash), end, step);
    this.#moveVersions(hash, step);
    // After the versions (6). Pairs with: the load in StringCache.
    Atomics.add(this.words, this.header + CHANGES, 1);
  }

  /**
   * Makes versions even again.
   *
   * @param hash The first hash.
   * @param step The distance to the next one; by default there is none.
   */
  endChange(hash: number, step: number = VERSION_COUNT): void {
    if (!this.versioned) return;
    this.#moveVersions(hash, step);
    this.membership.journal.endOdd();
  }

  #moveVersions(hash: number, step: number): void {
    for (let h = hash & (VERSION_COUNT - 1); h < VERSION_COUNT; h += step) {
      // Pairs with: the load in StringCache.
      Atomics.add(this.words, this.versionAt(h), 1);
    }
  }

  /**
   * Reads a node's key.
   *
   * @param node The node.
   * @returns The key.
   */
  keyOf(node: Address): K {
    return this.wordKey !== undefined
      ? this.wordKey.fromWord(this.words[node + KEY])
      : this.blockKey!.read(this.words, node + NODE_WORDS);
  }

  /**
   * The hash of a node's key.
   *
   * @param node The node.
   * @returns 32 bits.
   */
  hashOf(node: Address): number {
    const word = this.words[node + KEY];
    return this.wordKey !== undefined ? mix(word ^ this.seed) : word;
  }

  /**
   * Whether two nodes have the same key.
   *
   * @param node A node.
   * @param other Another one.
   * @returns Whether they have.
   */
  sameKey(node: Address, other: Address): boolean {
    const { words, blockKey } = this;
    if (words[node + KEY] !== words[other + KEY]) return false;
    if (blockKey === undefined) return true;
    const key = blockKey.prepareKey(this.keyOf(other));
    return blockKey.equals(words, node + NODE_WORDS, key);
  }

  /**
   * How long a node for a key is.
   *
   * @param key A prepared key; `undefined` with word keys.
   * @returns Words.
   */
  nodeWords(key: unknown): number {
    return this.blockKey === undefined
      ? NODE_WORDS
      : NODE_WORDS + this.blockKey.measure(key);
  }

  /**
   * How long a node is.
   *
   * @param node The node.
   * @returns Words.
   */
  nodeWordsAt(node: Address): number {
    return this.blockKey === undefined
      ? NODE_WORDS
      : NODE_WORDS + this.blockKey.wordsAt(this.words, node + NODE_WORDS);
  }

  /**
   * Fills a node that is not published yet.
   *
   * @param node The node.
   * @param probe Its key.
   * @param value Its value word.
   */
  writeNode(node: Address, probe: Probe, value: number): void {
    this.words[node + KEY] = probe.word;
    this.words[node + VALUE] = value;
    this.blockKey?.write(this.words, node + NODE_WORDS, probe.key);
  }

  /**
   * Makes an empty table.
   *
   * @param table A block of {@linkcode tableWords}.
   * @param buckets A power of two, 16 or more.
   */
  clearTable(table: Address, buckets: number): void {
    this.words.fill(0, table, table + tableWords(buckets));
    this.words[table + MASK] = buckets - 1;
  }

  /**
   * A number for values that are about to be published: no other ones of this
   * map, whatever their stripe, have it (but for those 2³² later).
   *
   * @returns The number.
   */
  nextStamp(): number {
    return Atomics.add(this.words, this.header + STAMPS, 1);
  }

  /** To be called before a write: should the thread die in it, who buries it tells the watchers. */
  beginWrite(): void {
    this.membership.journal.willTell(this.header + WATCHED);
  }

  /**
   * Tells whoever wants to know that there has been a write: watchers, and updates of this thread
   * that try again.
   *
   * @param key The key as it is compared, or `undefined` for all that there are.
   */
  noteWrite(key: unknown): void {
    const { header, membership, words } = this;
    announceChange(words, header + WATCHERS, header + WATCHED);
    membership.journal.hasTold();
    noteWrite(membership, header, key);
  }

  /** Entries of all stripes. */
  count(): number {
    let count = 0;
    for (let s = 0; s < STRIPES; s++) {
      count += Atomics.load(this.words, this.stripe(s) + STRIPE_COUNT);
    }
    return count;
  }

  /**
   * Whether a table is too small or too large for what a stripe holds.
   *
   * @param table The table.
   * @param count The stripe's entries.
   * @returns How many buckets it should have.
   */
  wantedBuckets(table: Address, count: number): number {
    const mask = this.words[table + MASK];
    const share = (mask + 1) / STRIPES;
    if (count > (share >>> 1) + (share >>> 4) + SLACK) return (mask + 1) * 2;
    if (
      count < share >>> 4 &&
      mask > Atomics.load(this.words, this.header + LEAST_MASK)
    ) return (mask + 1) / 2;
    return mask + 1;
  }
}

/**
 * How long a table is.
 *
 * @param buckets Its buckets.
 * @returns Words.
 */
export function tableWords(buckets: number): number {
  return HEADS + buckets;
}

/**
 * How many buckets a number of entries fills without making the table grow.
 *
 * @param entries The number.
 * @param least Fewest buckets, a power of two.
 * @returns A power of two.
 */
export function bucketsFor(entries: number, least: number): number {
  let buckets = least;
  while (buckets < 2 * entries) buckets *= 2;
  return buckets;
}

/**
 * How long a map's header is.
 *
 * @param codec The key codec.
 * @returns Words.
 */
export function headerWords(codec: KeyCodec<unknown, unknown>): number {
  return isVersioned(codec) ? VERSIONS + VERSION_COUNT : VERSIONS;
}

/**
 * Checks a key codec.
 *
 * @param codec What the caller passed.
 * @returns It, as what it is.
 */
export function keyCodec<K>(codec: KeyCodec<K, unknown>): {
  word: WordCodec<K> | undefined;
  block: BlockKeyCodec<K, unknown, unknown> | undefined;
} {
  if (codec instanceof WordCodec) return { word: codec, block: undefined };
  if (codec instanceof BlockKeyCodec) return { word: undefined, block: codec };
  throw new TypeError(
    `Cannot open a map as its key must be one of the codecs u32, i32, f64, string and bytes: received ${
      (codec as { schema?: string } | undefined)?.schema ?? show(codec)
    }`,
  );
}

/**
 * Whether a map has versions: string keys are cached by thread.
 *
 * @param codec The key codec.
 * @returns Whether it has.
 */
function isVersioned(codec: KeyCodec<unknown, unknown>): boolean {
  return codec.schema === "string";
}
