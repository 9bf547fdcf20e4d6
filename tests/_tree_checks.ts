// What must be true of a sorted map's tree whenever nobody is writing, and what a search from
// anywhere must find even while somebody is.

import { assert, assertEquals } from "@std/assert";
import type { RcuSortedMap } from "../mod.ts";
import type { Address } from "../src/memory/arena.ts";
import {
  KEY,
  LEFT,
  LINK,
  type Probe,
  RED,
  RIGHT,
  ROOT,
  STOCK_COUNT,
  stockAt,
  TREE,
  type Tree,
  VALUE,
} from "../src/structures/_tree.ts";
import { tagOf } from "./_audit.ts";

// deno-lint-ignore no-explicit-any -- any map
type AnyMap = RcuSortedMap<any, any, any>;

/**
 * The tree behind a map.
 *
 * @param map The map.
 * @returns The tree.
 */
export function treeOf(map: AnyMap): Tree<unknown> {
  return (map as unknown as { _tree: Tree<unknown> })._tree;
}

/**
 * Where a tree's root is written down.
 *
 * @param tree The tree.
 * @returns The address.
 */
export function rootLink({ words, header }: Tree<unknown>): Address {
  return words[header + TREE] + ROOT;
}

/** What a tree is like. */
export interface Shape {
  /** Its nodes, in order. */
  nodes: Address[];
  /** The nodes on its longest way down. */
  height: number;
}

/**
 * Asserts that a map's tree is a search tree and a red-black tree, not higher
 * than it may be, and that the map's size and stock are right.
 *
 * @param map The map.
 * @returns The tree's shape.
 */
export function assertTree(map: AnyMap): Shape {
  const tree = treeOf(map);
  const { words, header } = tree;
  const nodes: Address[] = [];
  const seen = new Set<Address>();
  let height = 0;
  // A loop would have no end.
  const walk = (
    node: Address,
    depth: number,
    below: Probe | undefined,
    above: Probe | undefined,
    underRed: boolean,
  ): number => {
    if (node === 0) return 0;
    assertEquals(node & 3, 0, `a link leads to ${node}`);
    assert(!seen.has(node), `node ${node} is there twice`);
    seen.add(node);
    height = Math.max(height, depth);
    if (below !== undefined) {
      assert(tree.compare(node, below) > 0, `node ${node} is out of order`);
    }
    if (above !== undefined) {
      assert(tree.compare(node, above) < 0, `node ${node} is out of order`);
    }
    const red = (words[node + LEFT] & RED) !== 0;
    assert(!(red && underRed), `node ${node} is red under a red one`);
    const probe = tree.probeOf(node);
    const left = words[node + LEFT] & LINK;
    const blackLeft = walk(left, depth + 1, below, probe, red);
    nodes.push(node);
    const right = words[node + RIGHT];
    const blackRight = walk(right, depth + 1, probe, above, red);
    assertEquals(blackLeft, blackRight, `black nodes below node ${node}`);
    return blackLeft + (red ? 0 : 1);
  };
  const root = words[rootLink(tree)];
  assert(root === 0 || (words[root + LEFT] & RED) === 0, "the root is red");
  walk(root, 1, undefined, undefined, false);
  assertEquals(map.size, nodes.length, "size");
  const most = 2 * Math.log2(nodes.length + 1);
  assert(height <= most, `height ${height} of ${nodes.length} nodes`);
  for (let i = 0; i < words[header + STOCK_COUNT]; i++) {
    const node = words[stockAt(header, i)];
    assert(!seen.has(node), `node ${node} of the stock is in the tree`);
    seen.add(node);
  }
  return { nodes, height };
}

/**
 * Asserts that every block of a map is live, and belongs to it once.
 *
 * @param map The map.
 */
export function assertBlocks(map: AnyMap): void {
  const tree = treeOf(map);
  const { words } = tree;
  const { inBlocks } = (map as unknown as { _values: { inBlocks: boolean } })
    ._values;
  const blocks = new Set<Address>();
  for (const node of assertTree(map).nodes) {
    const own = [node];
    if (tree.blockKey !== undefined) own.push(words[node + KEY]);
    if (inBlocks) own.push(words[node + VALUE]);
    for (const block of own) {
      assert(!blocks.has(block), `block ${block} has two owners`);
      blocks.add(block);
      assertEquals(words[tagOf(words, block)], 1, `the tag of block ${block}`);
    }
  }
}

/** The keys that searches find from every node, in the tree or taken out of it. */
export class Findable {
  readonly #tree: Tree<unknown>;
  readonly #keys: Map<unknown, Probe>;
  readonly #found = new Map<Address, Set<unknown>>();

  /**
   * @param map The map. No node of it may be freed as long as this is used.
   * @param keys All keys that are ever in it.
   */
  constructor(map: AnyMap, keys: Iterable<unknown>) {
    this.#tree = treeOf(map);
    this.#keys = new Map();
    for (const key of keys) this.#keys.set(key, this.#tree.probe(key));
    this.look();
  }

  /** How many nodes are known. */
  get nodes(): number {
    return this.#found.size;
  }

  /**
   * Asserts that whatever was once found from a node still is.
   *
   * @param except A key that may be gone.
   */
  look(except?: unknown): void {
    const { words } = this.#tree;
    const left = [words[rootLink(this.#tree)], ...this.#found.keys()];
    const seen = new Set<Address>([0]);
    for (let node; (node = left.pop()) !== undefined;) {
      if (seen.has(node)) continue;
      seen.add(node);
      left.push(words[node + LEFT] & LINK, words[node + RIGHT]);
      const before = this.#found.get(node);
      const now = new Set<unknown>();
      for (const [key, probe] of this.#keys) {
        if (this.#finds(node, probe)) now.add(key);
      }
      for (const key of before ?? []) {
        assert(
          key === except || now.has(key),
          `${key} is no longer found from node ${node}`,
        );
      }
      this.#found.set(node, now);
    }
  }

  #finds(node: Address, probe: Probe): boolean {
    const { words } = this.#tree;
    while (node !== 0) {
      const order = this.#tree.compare(node, probe);
      if (order === 0) return true;
      node = order > 0 ? words[node + LEFT] & LINK : words[node + RIGHT];
    }
    return false;
  }
}
