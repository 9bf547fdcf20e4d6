// A writer's way down a tree, and the rotations on it.

import type { Address } from "../memory/arena.ts";
import type { Journal } from "../memory/_journal.ts";
import {
  KEY,
  LEFT,
  LINK,
  LONGEST_PATH,
  RED,
  RIGHT,
  ROOT,
  VALUE,
} from "./_tree.ts";

/**
 * The nodes from the root down to where something changes. The caller holds
 * the lock, so that nobody else stores into nodes of the tree.
 */
export class Path {
  /** The nodes. */
  readonly nodes: Int32Array = new Int32Array(LONGEST_PATH);
  /** LEFT or RIGHT: the side to which the way leaves a node. */
  readonly sides: Int32Array = new Int32Array(LONGEST_PATH);
  /** The tree in which it is. */
  tree: Address = 0;

  readonly #words: Int32Array;
  readonly #journal: Journal;

  /**
   * @param words The arena's words.
   * @param journal Gets what is stored, and shows it before it is.
   */
  constructor(words: Int32Array, journal: Journal) {
    this.#words = words;
    this.#journal = journal;
  }

  /**
   * Where a link leads to.
   *
   * @param link Where it is.
   * @returns The node, or 0.
   */
  target(link: Address): Address {
    return this.#journal.load(link) & LINK;
  }

  /**
   * A node's child.
   *
   * @param node The node.
   * @param side LEFT or RIGHT.
   * @returns The child, or 0.
   */
  child(node: Address, side: number): Address {
    return this.target(node + side);
  }

  /**
   * Whether a node is red.
   *
   * @param node The node, or 0, which is black.
   * @returns Whether it is.
   */
  isRed(node: Address): boolean {
    return node !== 0 && (this.#journal.load(node + LEFT) & RED) !== 0;
  }

  /**
   * Colours a node that readers may be looking at; they ignore it.
   *
   * @param node The node.
   * @param red Whether it is to be red.
   */
  paint(node: Address, red: boolean): void {
    if (this.isRed(node) === red) return;
    const at = node + LEFT;
    this.#journal.store(at, this.#journal.load(at) ^ RED);
  }

  /**
   * Where the link is that leads to a level of the way.
   *
   * @param level The level; 0 is the root's.
   * @returns The address.
   */
  linkTo(level: number): Address {
    return level === 0
      ? this.tree + ROOT
      : this.nodes[level - 1] + this.sides[level - 1];
  }

  /**
   * Stores a link into a node of the tree.
   *
   * @param link Where it is.
   * @param node Where it leads to; complete.
   */
  link(link: Address, node: Address): void {
    const journal = this.#journal;
    // The colour that stands beside it stays.
    // Publish (7). Pairs with: the loads of `Tree.find` and `RcuSortedMap.get`.
    journal.store(link, node | (journal.load(link) & ~LINK));
  }

  /**
   * Fills a node that nobody can find yet.
   *
   * @param node The node.
   * @param of The node whose key, value and colour it has.
   * @param left Its left child.
   * @param right Its right child.
   */
  copy(node: Address, of: Address, left: Address, right: Address): void {
    const words = this.#words;
    words[node + LEFT] = left | (this.#journal.load(of + LEFT) & RED);
    words[node + RIGHT] = right;
    words[node + KEY] = words[of + KEY];
    words[node + VALUE] = words[of + VALUE];
  }

  /**
   * Moves a node down and its child on the other side up, by two stores (3d).
   *
   * @param link The link that leads to it.
   * @param side The side to which it moves.
   * @param node What the copy of it goes into.
   * @returns The child, which is now where the node was.
   */
  rotate(link: Address, side: number, node: Address): Address {
    const down = this.target(link);
    const up = this.child(down, 1 - side);
    const outer = this.child(down, side);
    const inner = this.child(up, side);
    if (side === LEFT) this.copy(node, down, outer, inner);
    else this.copy(node, down, inner, outer);
    this.link(up + side, node);
    this.link(link, up);
    this.#journal.leave(down);
    return up;
  }
}
