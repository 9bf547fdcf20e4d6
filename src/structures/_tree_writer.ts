// What writers do to a tree under its lock: put and delete.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { Reserve, reserveUnderLock, Shortage } from "./_reserve.ts";
import {
  JOURNAL,
  KEY,
  LEFT,
  LOCK,
  LONGEST_PATH,
  NODE_WORDS,
  type Probe,
  RED,
  RIGHT,
  SIZE,
  STOCK_COUNT,
  stockAt,
  TREE,
  type Tree,
  VALUE,
} from "./_tree.ts";
import { keyOf } from "./_table.ts";
import { Path } from "./_tree_path.ts";
import type { Values } from "./_values.ts";
import type { Expected } from "./_writer.ts";

/**
 * The writing side of a sorted map, in one thread; see {@linkcode Tree}.
 *
 * An update has two halves. The first looks at the tree, says how many nodes
 * will be copied, and takes them; it may end in a {@linkcode Shortage}, and
 * begin again. The second cannot fail: it stores the link that makes the
 * update, and then repaints and rotates until the tree is a red-black tree again.
 *
 * How many nodes are copied: by an insertion 2 at most. By a deletion 3 at most
 * for rotations, and where the key's node has two children, as many as are on
 * the way to its successor. That is O(log n) at worst, and 1 on average over
 * the keys of any tree, for every node is on such a way for one key at most.
 *
 * A deletion that finds no memory takes nodes from the map's stock, so that a
 * full memory can be emptied. What it retires is more than what it takes; the
 * stock is filled up by later updates.
 */
export class TreeWriter<K, V> {
  readonly #tree: Tree<K>;
  readonly #values: Values<V>;
  readonly #words: Int32Array;
  readonly #membership: Membership;
  readonly #reserve: Reserve;
  readonly #path: Path;
  /** Nodes to copy into, and how many of them are taken. */
  readonly #fresh: Int32Array = new Int32Array(LONGEST_PATH);
  #used = 0;
  /** How many of them are from the stock. */
  #stocked = 0;

  constructor(tree: Tree<K>, values: Values<V>) {
    const { membership } = tree;
    this.#tree = tree;
    this.#values = values;
    this.#words = tree.words;
    this.#membership = membership;
    this.#reserve = new Reserve(membership.heap);
    this.#path = new Path(tree.words, membership.journal);
  }

  /**
   * Puts a stored value under a key. Takes the value over: it is published,
   * or discarded if that was not to be.
   *
   * @param probe The key.
   * @param value The value's word.
   * @param expected What must still be there, or `undefined` for anything.
   * @returns Whether it was.
   */
  put(probe: Probe, value: number, expected: Expected | undefined): boolean {
    let done = false;
    this.#tree.beginWrite();
    try {
      done = this.#run(() => this.#put(probe, value, expected));
    } catch (error) {
      this.#values.discard(value);
      throw error;
    }
    if (!done) this.#values.discard(value);
    else this.#tree.noteWrite(keyOf(probe));
    this.#membership.afterUpdate();
    return done;
  }

  /**
   * Takes a key out.
   *
   * @param probe The key.
   * @returns Whether it was there.
   */
  delete(probe: Probe): boolean {
    this.#tree.beginWrite();
    const deleted = this.#run(() => this.#delete(probe));
    if (deleted) {
      this.#tree.noteWrite(keyOf(probe));
      this.#membership.afterUpdate();
    }
    return deleted;
  }

  /** Does something under the lock, again and again until there are enough blocks for it. */
  #run(attempt: () => boolean): boolean {
    return reserveUnderLock(
      this.#membership,
      this.#tree.header + LOCK,
      this.#reserve,
      attempt,
    );
  }

  /**
   * Goes down to a key.
   *
   * @returns The level of its node, or, complemented, that where it would be.
   */
  #find(probe: Probe): number {
    const { nodes, sides } = this.#path;
    const tree = Atomics.load(this.#words, this.#tree.header + TREE);
    this.#path.tree = tree;
    let level = 0;
    let node = this.#path.target(this.#path.linkTo(0));
    for (; node !== 0; level++) {
      nodes[level] = node;
      const order = this.#tree.compare(node, probe);
      if (order === 0) return level;
      sides[level] = order > 0 ? LEFT : RIGHT;
      node = this.#path.child(node, sides[level]);
    }
    return ~level;
  }

  #count(change: number): void {
    const at = this.#tree.header + SIZE;
    this.#membership.journal.store(at, this.#words[at] + change);
  }

  // Putting

  #put(probe: Probe, value: number, expected: Expected | undefined): boolean {
    this.#fillStock();
    const level = this.#find(probe);
    const found = level < 0 ? 0 : this.#path.nodes[level];
    if (expected !== undefined && !this.#isAsExpected(found, expected)) {
      return false;
    }
    if (found !== 0) this.#replace(found, value);
    else this.#insert(~level, probe, value);
    return true;
  }

  #isAsExpected(found: Address, expected: Expected): boolean {
    if (found === 0 || !expected.present) {
      return (found !== 0) === expected.present;
    }
    const word = this.#words[found + VALUE];
    return word === expected.word &&
      this.#values.versionOf(word) === expected.version;
  }

  #replace(node: Address, value: number): void {
    const words = this.#words;
    const { journal } = this.#membership;
    this.#seal(value);
    this.#values.join(value);
    this.#values.leave(words[node + VALUE]);
    // Publish. Pairs with: the load of the value word in `get`.
    journal.store(node + VALUE, value);
    journal.finish();
  }

  #seal(value: number): void {
    if (!this.#values.inBlocks) return;
    this.#values.seal(value, this.#tree.nextStamp());
  }

  #insert(level: number, probe: Probe, value: number): void {
    const path = this.#path;
    const { blockKey } = this.#tree;
    let key = probe.word;
    if (blockKey !== undefined) {
      key = this.#reserve.take(blockKey.measure(probe.key));
      blockKey.write(this.#words, key, probe.key);
    }
    const node = this.#reserve.take(NODE_WORDS);
    // A node below a red one is what may take rotations, two at most.
    this.#used = 0;
    this.#stocked = 0;
    const rotations = this.#rotationsOfInsertion(level);
    for (let i = 0; i < rotations; i++) {
      this.#fresh[i] = this.#reserve.take(NODE_WORDS);
    }

    this.#beginSecondHalf();
    const words = this.#words;
    this.#seal(value);
    this.#values.join(value);
    words[node + LEFT] = RED;
    words[node + RIGHT] = 0;
    words[node + KEY] = key;
    words[node + VALUE] = value;
    path.link(path.linkTo(level), node);
    path.nodes[level] = node;
    this.#count(1);
    this.#rebalanceInsertion(level);
    this.#membership.journal.finish();
  }

  /** From here on nothing can fail. What is stored shows when all is known, in the same order. */
  #beginSecondHalf(): void {
    const { journal } = this.#membership;
    const { header } = this.#tree;
    journal.useArea(header + JOURNAL);
    this.#reserve.commit(journal);
    if (this.#stocked === 0) return;
    const left = this.#words[header + STOCK_COUNT] - this.#stocked;
    journal.store(header + STOCK_COUNT, left);
  }

  /**
   * How far up a red node's being below a red one moves.
   *
   * @param level The level of the red node.
   * @returns The level at which it stops: nothing is to be done there, or rotations are.
   */
  #top(level: number): number {
    const path = this.#path;
    const { nodes, sides } = path;
    while (level >= 2 && path.isRed(nodes[level - 1])) {
      const uncle = path.child(nodes[level - 2], 1 - sides[level - 2]);
      if (!path.isRed(uncle)) break;
      level -= 2;
    }
    return level;
  }

  #rotationsOfInsertion(level: number): number {
    const { nodes, sides } = this.#path;
    const top = this.#top(level);
    if (top < 2 || !this.#path.isRed(nodes[top - 1])) return 0;
    return sides[top - 1] === sides[top - 2] ? 1 : 2;
  }

  /** A red node may be below a red one. */
  #rebalanceInsertion(level: number): void {
    const path = this.#path;
    const { nodes, sides } = path;
    const top = this.#top(level);
    for (; level > top; level -= 2) {
      const grand = nodes[level - 2];
      path.paint(nodes[level - 1], false);
      path.paint(path.child(grand, 1 - sides[level - 2]), false);
      path.paint(grand, true);
    }
    if (level === 0) path.paint(nodes[0], false);
    if (level < 2 || !path.isRed(nodes[level - 1])) return;
    const side = sides[level - 2];
    if (sides[level - 1] !== side) {
      path.rotate(path.linkTo(level - 1), side, this.#next());
    }
    const copy = this.#next();
    const up = path.rotate(path.linkTo(level - 2), 1 - side, copy);
    path.paint(up, false);
    path.paint(copy, true);
  }

  /** A node to copy into. */
  #next(): Address {
    return this.#fresh[this.#used++];
  }

  // Deleting

  #delete(probe: Probe): boolean {
    this.#fillStock();
    const level = this.#find(probe);
    if (level < 0) return false;
    const path = this.#path;
    const { nodes, sides } = path;
    const node = nodes[level];
    // The level of the node whose place falls away: the node's own, or its successor's.
    let last = level;
    if (path.child(node, LEFT) !== 0 && path.child(node, RIGHT) !== 0) {
      sides[level] = RIGHT;
      nodes[++last] = path.child(node, RIGHT);
      for (let left; (left = path.child(nodes[last], LEFT)) !== 0;) {
        sides[last] = LEFT;
        nodes[++last] = left;
      }
    }
    const gone = nodes[last];
    const child = path.child(gone, LEFT) | path.child(gone, RIGHT);
    const black = !path.isRed(gone);
    const short = black && !path.isRed(child);
    this.#takeNodes(
      last - level + (short ? this.#rotationsOfDeletion(last) : 0),
    );

    this.#beginSecondHalf();
    const { journal } = this.#membership;
    if (last === level) path.link(path.linkTo(level), child);
    else this.#copyDown(level, last, child);
    this.#count(-1);
    this.#values.leave(this.#words[node + VALUE]);
    if (this.#tree.blockKey !== undefined) {
      journal.leave(this.#words[node + KEY]);
    }
    journal.leave(node);
    if (short) this.#rebalanceDeletion(last);
    else if (black) path.paint(child, false);
    journal.finish();
    return true;
  }

  /** Puts the successor in a node's place, by one store (3c). */
  #copyDown(level: number, last: number, child: Address): void {
    const path = this.#path;
    const { nodes } = path;
    const node = nodes[level];
    const successor = nodes[last];
    let below = child;
    for (let i = last - 1; i > level; i--) {
      const copy = this.#next();
      path.copy(copy, nodes[i], below, path.child(nodes[i], RIGHT));
      nodes[i] = copy;
      below = copy;
    }
    const copy = this.#next();
    path.copy(copy, successor, path.child(node, LEFT), below);
    if (path.isRed(copy) !== path.isRed(node)) this.#words[copy + LEFT] ^= RED;
    path.link(path.linkTo(level), copy);
    nodes[level] = copy;
    // The way down from the node is as it was.
    for (let old = path.child(node, RIGHT); old !== successor;) {
      const next = path.child(old, LEFT);
      this.#membership.journal.leave(old);
      old = next;
    }
    this.#membership.journal.leave(successor);
  }

  /** What rotations `#rebalanceDeletion` will do, from the tree as it is before. */
  #rotationsOfDeletion(level: number): number {
    const path = this.#path;
    const { nodes, sides } = path;
    for (; level > 0; level--) {
      const side = sides[level - 1];
      const parent = nodes[level - 1];
      let sibling = path.child(parent, 1 - side);
      let rotations = 0;
      const red = path.isRed(sibling);
      if (red) {
        rotations++;
        sibling = path.child(sibling, side);
      }
      if (path.isRed(path.child(sibling, 1 - side))) return rotations + 1;
      if (path.isRed(path.child(sibling, side))) return rotations + 2;
      if (red || path.isRed(parent)) return rotations;
    }
    return 0;
  }

  /** Ways by the link to `level` pass one black node too few. */
  #rebalanceDeletion(level: number): void {
    const path = this.#path;
    const { nodes, sides } = path;
    while (level > 0) {
      const side = sides[level - 1];
      let parent = nodes[level - 1];
      let sibling = path.child(parent, 1 - side);
      if (path.isRed(sibling)) {
        const copy = this.#next();
        path.rotate(path.linkTo(level - 1), side, copy);
        path.paint(sibling, false);
        path.paint(copy, true);
        nodes[level - 1] = sibling;
        nodes[level] = parent = copy;
        sides[level] = side;
        level++;
        sibling = path.child(parent, 1 - side);
      }
      const near = path.child(sibling, side);
      let far = path.child(sibling, 1 - side);
      if (!path.isRed(near) && !path.isRed(far)) {
        path.paint(sibling, true);
        if (path.isRed(parent)) return path.paint(parent, false);
        level--;
        continue;
      }
      if (!path.isRed(far)) {
        far = this.#next();
        path.rotate(parent + 1 - side, 1 - side, far);
        sibling = near;
      }
      const copy = this.#next();
      path.rotate(path.linkTo(level - 1), side, copy);
      path.paint(sibling, path.isRed(copy));
      path.paint(copy, false);
      path.paint(far, false);
      return;
    }
  }

  // Memory

  #takeNodes(count: number): void {
    this.#used = 0;
    this.#stocked = 0;
    const { header } = this.#tree;
    for (let i = 0; i < count; i++) {
      const node = this.#reserve.tryTake(NODE_WORDS);
      if (node === 0) {
        // All that are left, or none: nothing is to be given back.
        let left = this.#words[header + STOCK_COUNT];
        if (left < count - i) throw new Shortage(NODE_WORDS);
        this.#stocked = count - i;
        for (; i < count; i++) {
          this.#fresh[i] = this.#words[stockAt(header, --left)];
        }
        return;
      }
      this.#fresh[i] = node;
    }
  }

  #fillStock(): void {
    const { heap, journal } = this.#membership;
    const { header } = this.#tree;
    const at = header + STOCK_COUNT;
    for (let i; (i = this.#words[at]) < LONGEST_PATH;) {
      const node = heap.tryAllocate(NODE_WORDS);
      if (node === 0) return;
      journal.join(node);
      journal.store(stockAt(header, i), node);
      journal.store(at, i + 1);
      journal.finish();
    }
  }
}
