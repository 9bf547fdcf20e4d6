// Building a sorted map's whole contents aside, publishing them at once, and taking trees down.

import type { Address } from "../memory/arena.ts";
import {
  KEY,
  LEFT,
  LINK,
  LOCK,
  makeRoot,
  NODE_WORDS,
  type Probe,
  RED,
  RIGHT,
  ROOT,
  SIZE,
  TREE,
  type Tree,
  VALUE,
} from "./_tree.ts";
import type { Values } from "./_values.ts";

/** A node that is not in a tree yet. */
interface Entry {
  probe: Probe;
  node: Address;
}

/**
 * Nodes that no reader can find yet. Plain stores suffice: what publishes them
 * publishes the stores.
 */
export class TreeBuilder<K, V> {
  readonly #tree: Tree<K>;
  readonly #values: Values<V>;
  readonly #words: Int32Array;
  /** One number for all values: no two that are published share a block. */
  readonly #stamp: number;
  #entries: Entry[] = [];

  constructor(tree: Tree<K>, values: Values<V>) {
    this.#tree = tree;
    this.#values = values;
    this.#words = tree.words;
    this.#stamp = tree.nextStamp();
  }

  /**
   * Puts an entry in. A later entry of a key replaces an earlier one.
   *
   * @param key The key.
   * @param value The value.
   */
  add(key: K, value: V): void {
    const { membership, blockKey } = this.#tree;
    const words = this.#words;
    const probe = this.#tree.probe(key, true);
    const word = this.#values.store(value);
    this.#values.seal(word, this.#stamp);
    let node: Address = 0;
    try {
      node = membership.allocate(NODE_WORDS);
      words[node + KEY] = blockKey === undefined
        ? probe.word
        : membership.allocate(blockKey.measure(probe.key));
    } catch (error) {
      if (node !== 0) membership.heap.free(node);
      this.#values.discard(word);
      throw error;
    }
    blockKey?.write(words, words[node + KEY], probe.key);
    words[node + VALUE] = word;
    this.#entries.push({ probe, node });
  }

  /** Replaces the map's contents with what was added, by one store. */
  publish(): void {
    const tree = this.#tree;
    const { header, membership, words } = tree;
    const { journal } = membership;
    let built: Address = 0;
    try {
      this.#sort();
      const size = this.#entries.length;
      // The levels that are full are black, and one that is not is red.
      const root = this.#arrange(0, size, 31 - Math.clz32(size + 1));
      built = makeRoot(membership, root);
      tree.beginWrite();
      membership.lock(header + LOCK);
      try {
        const old = Atomics.load(words, header + TREE);
        journal.join(built);
        forEachBlock(tree, this.#values, root, (block) => journal.join(block));
        takeDown(tree, this.#values, words[old + ROOT]);
        journal.leave(old);
        // Publish (8). Pairs with: the loads of `Tree.tree` and `RcuSortedMap.get`.
        journal.store(header + TREE, built);
        journal.store(header + SIZE, size);
        journal.commit();
      } finally {
        membership.unlock(header + LOCK);
      }
    } catch (error) {
      if (built !== 0) membership.heap.discard(built);
      this.discard();
      throw error;
    }
    journal.end();
    tree.unpin();
    tree.noteWrite(undefined);
    membership.afterUpdate();
  }

  /** Sorts the entries, and keeps the last one of each key. */
  #sort(): void {
    const tree = this.#tree;
    // Stable: entries of one key stay in the order in which they came.
    this.#entries.sort((a, b) => tree.compare(a.node, b.probe));
    const all = this.#entries;
    this.#entries = all.filter(({ node }, i) => {
      const kept = i + 1 === all.length ||
        tree.compare(node, all[i + 1].probe) !== 0;
      if (!kept) this.#free(node);
      return kept;
    });
  }

  /**
   * Arranges some entries as a tree whose levels are full, but for the last.
   *
   * @param begin The first entry.
   * @param end One past the last one.
   * @param black How many levels are black.
   * @returns The root, or 0.
   */
  #arrange(begin: number, end: number, black: number): Address {
    if (begin === end) return 0;
    const words = this.#words;
    const middle = (begin + end) >>> 1;
    const { node } = this.#entries[middle];
    const left = this.#arrange(begin, middle, black - 1);
    words[node + LEFT] = left | (black === 0 ? RED : 0);
    words[node + RIGHT] = this.#arrange(middle + 1, end, black - 1);
    return node;
  }

  /** Frees what was added and not published. */
  discard(): void {
    for (const { node } of this.#entries) this.#free(node);
    this.#entries = [];
  }

  #free(node: Address): void {
    const { blockKey, membership: { heap } } = this.#tree;
    this.#values.discard(this.#words[node + VALUE]);
    if (blockKey !== undefined) heap.discard(this.#words[node + KEY]);
    heap.discard(node);
  }
}

/**
 * Empties a map without needing memory, by one store. Unlike a replacement it
 * shows in sections that are open.
 *
 * @param tree The map's tree.
 * @param values The map's values.
 */
export function emptyTree<K, V>(tree: Tree<K>, values: Values<V>): void {
  const { header, membership, words } = tree;
  const { journal } = membership;
  tree.beginWrite();
  membership.lock(header + LOCK);
  try {
    const current = Atomics.load(words, header + TREE);
    takeDown(tree, values, words[current + ROOT]);
    // No key stays: (3) has nothing to keep.
    journal.store(current + ROOT, 0);
    journal.store(header + SIZE, 0);
    journal.commit();
  } finally {
    membership.unlock(header + LOCK);
  }
  journal.end();
  tree.noteWrite(undefined);
  membership.afterUpdate();
}

/** Names the nodes of a tree to which no link will lead, with their keys and values. */
function takeDown<K, V>(
  tree: Tree<K>,
  values: Values<V>,
  root: Address,
): void {
  const { journal } = tree.membership;
  forEachBlock(tree, values, root, (block) => journal.leave(block));
}

/** Visits the nodes of a tree, their keys and their values. */
function forEachBlock<K, V>(
  tree: Tree<K>,
  values: Values<V>,
  root: Address,
  visit: (block: Address) => void,
): void {
  const { blockKey, words } = tree;
  const left = [root];
  while (left.length > 0) {
    const node = left.pop()!;
    if (node === 0) continue;
    left.push(words[node + RIGHT], words[node + LEFT] & LINK);
    if (values.inBlocks) visit(words[node + VALUE]);
    if (blockKey !== undefined) visit(words[node + KEY]);
    visit(node);
  }
}
