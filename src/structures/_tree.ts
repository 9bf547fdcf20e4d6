// The red-black tree behind RcuSortedMap: where things lie, and how a key is found.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { BlockKeyCodec, WordCodec } from "../memory/_codec.ts";
import type { KeyCodec } from "../memory/codec.ts";
import { journalWords } from "../memory/_journal.ts";
import { noteWrite } from "./_own_writes.ts";
import { keyCodec } from "./_table.ts";
import { announceChange } from "./_watch.ts";

// The map's header: a line for readers, a line for writers, a line for the stamps.
/** The current tree. */
export const TREE = 0;
/** How many watch the map (see `Watch`). */
export const WATCHERS = 1;
/** The writers' lock. */
export const LOCK = 16;
/** Entries. */
export const SIZE = 17;
/** How many nodes there are in the stock. */
export const STOCK_COUNT = 18;
/** Moves when something changes while somebody watches. */
export const WATCHED = 19;
/** A counter from which values in blocks get their numbers. */
const STAMPS = 32;
/** The nodes of the stock. */
const STOCK = 48;

// A tree: one word, in a line of its own. Another one takes its place when all is replaced.
export const ROOT = 1;
export const TREE_WORDS = 16;

// A node. Its address is a multiple of 4, so that bit 0 of a link is free: in LEFT it says whether
// the node is red. In RIGHT and ROOT it is 0.
export const LEFT = 0;
export const RIGHT = 1;
/** A word in order (see `WordCodec.bias`), or the block of the key. */
export const KEY = 2;
export const VALUE = 3;
export const NODE_WORDS = 4;
/** The bit of the colour in LEFT. */
export const RED = 1;
/** The mask of LEFT without the colour. */
export const LINK = -2;

/**
 * More nodes than a path has: a path of 2·log2(n + 1) nodes, each of five words
 * with its tag, in 2³¹ words.
 */
export const LONGEST_PATH = 64;

/** The stores of an update: three for every two levels, and those of rotations and counts. */
const MOST_STORES = 2 * LONGEST_PATH;
/** Where an update writes them down. */
export const JOURNAL: number = STOCK + LONGEST_PATH;
export const HEADER_WORDS: number = JOURNAL + journalWords(MOST_STORES);

/** What is looked for: a key as it is compared. */
export interface Probe {
  /** The word in order; 0 with keys in blocks. */
  word: number;
  /** The prepared key; `undefined` with keys in words. */
  key: unknown;
}

/**
 * One thread's view of a map's tree.
 *
 * After Howard and Walpole ("Relativistic red-black trees", Concurrency and
 * Computation 26, 2014) and the red-black tree of userspace RCU (Desnoyers,
 * 2011), but no update waits for a grace period: a deletion copies the way to
 * the successor instead.
 *
 * A search for a key m goes left of a node whose key is greater, right of one
 * whose key is smaller. It finds m *from* a node if it comes to m when it
 * starts there. Readers look at links and keys alone, never at colours.
 *
 * 1. Only the holder of LOCK stores into nodes that are published, and only
 *    into those that are in the tree: links, colours, value words. A node's key
 *    never changes. A node that was taken out stays as it was until a grace
 *    period later.
 * 2. Whenever nobody holds LOCK, the tree is a search tree and a red-black tree:
 *    the root is black, no red node has a red child, and every way down passes
 *    equally many black nodes. So no way is longer than 2·log2(n + 1) nodes.
 * 3. Every store of a link keeps this: from any node, in the tree or taken out,
 *    from which a search found m before, it finds m afterwards, unless m is the
 *    key that the store takes out. For a search that does not come by the link
 *    nothing changes. For one that does:
 *    a. *Insertion* replaces 0: no search found anything there.
 *    b. *Deletion* of a node with one child or none replaces the node by it: a
 *       search for another key went on to the child.
 *    c. *Deletion* of a node D with two children replaces it by a copy of its
 *       successor S, with D's left child, and on the right copies of the nodes on
 *       the way to S, the last of which has S's right child in place of S. To
 *       the left nothing changes. To the right a search passes the same keys, and
 *       where it passed S, the link behind S; S itself it finds sooner.
 *    d. *Rotation* of G down to the right, P being its left child, b P's right
 *       one and u G's right one. First P's right link: b becomes G', a copy of G
 *       with b on its left and u on its right. Keys below G's are found from G'
 *       as from b, and b has no others. Then the link to G becomes P: keys below
 *       P's are found on its left as before, keys between on b by way of G', G's
 *       own at G', those above on u by way of G'. To the left it is the same.
 * 4. By (3), a reader that is anywhere on its way finds every key that is there
 *    all the time, whatever is stored meanwhile: by induction over the stores.
 * 5. What it comes to was in the tree at some moment since it set out: a link of
 *    a node in the tree leads into the tree, and a node that was taken out leads
 *    to what was in the tree at that moment, which came after the reader did.
 * 6. The greatest key not above k is that of the node c at which a search for k
 *    went right last; k itself counts as such a node. Let m ≤ k be there all the
 *    time. From each node y < m to which the search comes, a search for m finds
 *    it. If y came by a right link, that of a smaller node, then m was found from
 *    there. If it came by ROOT or by the left link of a node x > k, then at the
 *    moment of (5) every key of the tree between y and x was found from y, m
 *    among them; and (3). So if c were below m, the search would have gone on
 *    from c as one for m does, and have gone right at m, if not before: c ≥ m.
 *    In the same manner for the smallest key not below k.
 * 7. A node is complete when a link to it is stored. Keys and values in blocks
 *    belong to the node that is in the tree, whichever copy it is, and are
 *    retired when the key is taken out or the value replaced.
 * 8. TREE changes under LOCK, to a tree that is complete. A section that is open
 *    keeps to the one from which it read first.
 */
export class Tree<K> {
  readonly membership: Membership;
  readonly words: Int32Array;
  readonly header: Address;
  readonly wordKey: WordCodec<K> | undefined;
  readonly blockKey: BlockKeyCodec<K, unknown, unknown> | undefined;
  /** What makes a word one in order. */
  readonly bias: number;

  /** The section in which the tree was pinned, and the tree. */
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
    const { word, block } = keyCodec(codec);
    this.wordKey = word;
    this.blockKey = block;
    this.bias = word === undefined ? 0 : word.bias;
  }

  /**
   * The tree to start from. Within one explicit section always the same, so
   * that a section sees all of a `replaceAll` or nothing of it.
   *
   * @returns The tree.
   */
  tree(): Address {
    const reader = this.membership.reader;
    // The dependent load. Pairs with: the store of TREE in TreeBuilder.
    if (reader.depth === 0) return this.words[this.header + TREE];
    if (this.#section !== reader.section) {
      this.#section = reader.section;
      this.#pinned = this.words[this.header + TREE];
    }
    return this.#pinned;
  }

  /** Lets the section that is open see what this thread has just published. */
  unpin(): void {
    this.#section = -1;
  }

  /**
   * Checks a key.
   *
   * @param key What the caller passed.
   * @param kept Whether the probe outlives code that may change the caller's object.
   * @returns What to look for.
   */
  probe(key: K, kept = false): Probe {
    if (this.wordKey !== undefined) {
      return { word: this.wordKey.toKeyWord(key) ^ this.bias, key: undefined };
    }
    const checked = this.blockKey!.prepareKey(key);
    return { word: 0, key: kept ? this.blockKey!.own(checked) : checked };
  }

  /**
   * A node's key, inside a section, in the form that is looked for.
   *
   * @param node The node.
   * @returns The probe, which nobody else has.
   */
  probeOf(node: Address): Probe {
    const at = this.words[node + KEY];
    if (this.blockKey === undefined) return { word: at, key: undefined };
    const key = this.blockKey.read(this.words, at);
    return { word: 0, key: this.blockKey.prepareKey(key) };
  }

  /**
   * The key that a probe stands for.
   *
   * @param probe The probe.
   * @returns The key, which nobody else has or can change.
   */
  keyOf(probe: Probe): K {
    return this.wordKey !== undefined
      ? this.wordKey.fromWord(probe.word ^ this.bias)
      : this.blockKey!.own(probe.key) as K;
  }

  /**
   * Orders a node and a key.
   *
   * @param node The node.
   * @param probe The key.
   * @returns Below 0 if the node comes first, above 0 if the key does, 0 if the node has the key.
   */
  compare(node: Address, probe: Probe): number {
    const at = this.words[node + KEY];
    if (this.blockKey !== undefined) {
      return this.blockKey.compare(this.words, at, probe.key);
    }
    return at < probe.word ? -1 : at > probe.word ? 1 : 0;
  }

  /**
   * Finds a node, inside a section.
   *
   * @param tree Where to start.
   * @param probe The key.
   * @returns The node, or 0.
   */
  find(tree: Address, probe: Probe): Address {
    const words = this.words;
    // Dependent loads, here and below. Pairs with: the store of `Path.link`.
    let node = words[tree + ROOT];
    while (node !== 0) {
      const order = this.compare(node, probe);
      if (order === 0) return node;
      node = order > 0 ? words[node + LEFT] & LINK : words[node + RIGHT];
    }
    return 0;
  }

  /**
   * Finds the first node from a key on, inside a section (6).
   *
   * @param probe The key.
   * @param behind Whether the key itself does not count.
   * @returns The node, or 0.
   */
  from(probe: Probe, behind: boolean): Address {
    const words = this.words;
    let node = words[this.tree() + ROOT];
    let found: Address = 0;
    while (node !== 0) {
      const order = this.compare(node, probe);
      if (order > 0) {
        found = node;
        node = words[node + LEFT] & LINK;
      } else if (order < 0 || behind) node = words[node + RIGHT];
      else return node;
    }
    return found;
  }

  /**
   * Finds the last node up to a key, inside a section (6).
   *
   * @param probe The key.
   * @returns The node, or 0.
   */
  upTo(probe: Probe): Address {
    const words = this.words;
    let node = words[this.tree() + ROOT];
    let found: Address = 0;
    while (node !== 0) {
      const order = this.compare(node, probe);
      if (order < 0) {
        found = node;
        node = words[node + RIGHT];
      } else if (order > 0) node = words[node + LEFT] & LINK;
      else return node;
    }
    return found;
  }

  /**
   * Finds the node at an end of the tree, inside a section: the way of a search
   * for a key before all others, or behind them.
   *
   * @param side LEFT or RIGHT.
   * @returns The node, or 0.
   */
  end(side: number): Address {
    const words = this.words;
    let found: Address = 0;
    let node = words[this.tree() + ROOT];
    while (node !== 0) {
      found = node;
      node = words[node + side] & LINK;
    }
    return found;
  }

  /**
   * A number for values that are about to be published: no other ones of this
   * map have it (but for those 2³² later).
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

  /** Entries. */
  count(): number {
    return Atomics.load(this.words, this.header + SIZE);
  }
}

/**
 * Lays an empty map out.
 *
 * @param membership The calling thread's membership.
 * @returns Its header.
 */
export function makeTree(membership: Membership): Address {
  const { words } = membership;
  const header = membership.allocate(HEADER_WORDS);
  words.fill(0, header, header + HEADER_WORDS);
  try {
    words[header + TREE] = makeRoot(membership, 0);
    while (words[header + STOCK_COUNT] < LONGEST_PATH) {
      const node = membership.allocate(NODE_WORDS);
      words[stockAt(header, words[header + STOCK_COUNT]++)] = node;
    }
  } catch (error) {
    discardTree(membership, header);
    throw error;
  }
  return header;
}

/**
 * Makes a tree that nobody can find yet.
 *
 * @param membership The calling thread's membership.
 * @param root Its root, or 0.
 * @returns The tree.
 */
export function makeRoot(membership: Membership, root: Address): Address {
  const tree = membership.allocate(TREE_WORDS);
  membership.words[tree + ROOT] = root;
  return tree;
}

/**
 * Frees an empty map that nobody can find.
 *
 * @param membership The calling thread's membership.
 * @param header Its header.
 */
export function discardTree(membership: Membership, header: Address): void {
  const { heap, words } = membership;
  while (words[header + STOCK_COUNT] > 0) {
    heap.free(words[stockAt(header, --words[header + STOCK_COUNT])]);
  }
  if (words[header + TREE] !== 0) heap.free(words[header + TREE]);
  heap.free(header);
}

/**
 * Where a node of the stock is named.
 *
 * @param header The map's header.
 * @param i Which one, from 0.
 * @returns The address.
 */
export function stockAt(header: Address, i: number): Address {
  return header + STOCK + i;
}
