// The detector of tree RCU: masks in a combining tree.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";
import type { ReaderTable } from "../readers/_slots.ts";
import { type Detector, type DetectorParts, isBehind } from "./_detector.ts";
import {
  firstBits,
  MaskNodes,
  nodeWords,
  WORD_CHILDREN,
} from "./_mask_nodes.ts";
import type { Sequence } from "./_sequence.ts";

/** Nodes of each level, from the leaves to the root. */
function levels(maxReaders: number, fanout: number): number[] {
  const nodes = [Math.ceil(maxReaders / fanout)];
  for (let below; (below = nodes[nodes.length - 1]) > 1;) {
    nodes.push(Math.ceil(below / fanout));
  }
  return nodes;
}

/**
 * Words of the tree.
 *
 * @param maxReaders Reader slots of the domain.
 * @param fanout The most children of a node.
 * @returns Its size.
 */
export function treeWords(maxReaders: number, fanout: number): number {
  const nodes = levels(maxReaders, fanout).reduce((sum, n) => sum + n);
  return LINE + nodes * nodeWords(fanout);
}

/**
 * Readers report; the last child of a node to report reports to the parent,
 * the last child of the root ends the wait of all who want the period. After
 * McKenney, "Hierarchical RCU" (LWN.net, 2008). A reader writes to the line of
 * its leaf, which it shares with `fanout` readers at most, and one in `fanout`
 * goes on to the next level: that is what it costs the readers, once per
 * period. Who wants the period loads one word.
 *
 * Readers that are offline report nothing, and those that go offline need not:
 * whoever polls looks at the slots of those who have not reported, and reports
 * for them, as the kernel's `force_quiescent_state` does. The first poll of a
 * period looks at all of them, so that those who are offline are off the list;
 * any other one goes up to the first that is in the way, and the next time from
 * there. A thread that goes online reports too.
 *
 * Why a period S waits for every reader that was online when it began. That a
 * bit under S was set for S is proven at {@linkcode MaskNodes}.
 *
 * 1. A reader's bit is set by itself, after its slot has announced S, or by
 *    one who has found, after the sequence moved to S, that the slot is 0 or
 *    not older than S. Either way that reader has passed: these are the cases
 *    (3) and (4) of the proof at `Reader`.
 * 2. A node's bit in its parent is set by one who has found each child that
 *    the node has in its mask, or has found it to have passed himself. Which
 *    children there are follows from `ReaderTable.count`, loaded after the
 *    sequence moved to S. A record that is taken later raises the count before
 *    its thread can go online, so that thread loads S, or a later value, and
 *    what was published before S: it is none of those to wait for. (The count
 *    never falls. A record that is given back has an offline slot; one that is
 *    taken again after its bit was set went online after that, so (1) holds.)
 * 3. By induction the root's mask is full, PASSED = S, and `passed` true only
 *    if every reader that existed when S began has passed it.
 * 4. `passed` is right whatever becomes of locks and reports: where a mask says
 *    nothing, it looks at what is below, down to the slots. A report that was
 *    not made because a lock was taken, or that was not passed on because its
 *    thread was stopped, is made up for by whoever polls next.
 * 5. PASSED is stored by whoever finds that S is over, so it is S at the end of
 *    every period. A store that comes late may put an ended period in place of
 *    a newer one: then the next poll finds the newer one in the masks again.
 */
export class TreeDetector implements Detector {
  readonly #words: Int32Array;
  readonly #readers: ReaderTable;
  readonly #sequence: Sequence;
  readonly #reader: number;
  /** The last period of which somebody has found that all readers have passed it. */
  readonly #passed: Address;
  /** The last period that somebody has polled. */
  readonly #begun: Address;
  readonly #nodes: MaskNodes;
  readonly #nodeWords: number;
  readonly #fanout: number;
  /** The first node of each level, from the leaves to the root. */
  readonly #levels: Address[] = [];
  /** Readers below a child of a node of each level. */
  readonly #spans: number[] = [];
  /** The period that this thread polled last, and the reader that was in the way. */
  #polled = 0;
  #suspect = 0;

  constructor(parts: DetectorParts, fanout: number) {
    const { words, base, maxReaders, readers, sequence, reader, owner } = parts;
    this.#words = words;
    this.#readers = readers;
    this.#sequence = sequence;
    this.#reader = reader;
    this.#passed = base;
    this.#begun = base + 1;
    this.#nodes = new MaskNodes(words, sequence, owner, fanout);
    this.#nodeWords = nodeWords(fanout);
    this.#fanout = fanout;
    let first = base + LINE;
    let span = 1;
    for (const nodes of levels(maxReaders, fanout)) {
      this.#levels.push(first);
      this.#spans.push(span);
      first += nodes * this.#nodeWords;
      span *= fanout;
    }
  }

  passed(sequence: number): boolean {
    // Pairs with: the stores of PASSED here and in `report`.
    if (Atomics.load(this.#words, this.#passed) === sequence) return true;
    // The sequence moves on only when a period has ended.
    if (this.#sequence.current() !== sequence) return true;
    if (
      this.#polled === sequence && this.#isInTheWay(this.#suspect, sequence)
    ) return false;
    this.#polled = sequence;
    const root = this.#levels.length - 1;
    if (!this.#force(root, 0, sequence, !this.#isFirst(sequence))) return false;
    Atomics.store(this.#words, this.#passed, sequence);
    return true;
  }

  /** Whether nobody has polled a period before. If whoever it was stops in the middle, others look all the same. */
  #isFirst(sequence: number): boolean {
    const words = this.#words;
    const begun = Atomics.load(words, this.#begun);
    return begun !== sequence &&
      Atomics.compareExchange(words, this.#begun, begun, sequence) === begun;
  }

  report(sequence: number): void {
    const fanout = this.#fanout;
    let child = this.#reader;
    for (let level = 0; level < this.#levels.length; level++) {
      const index = Math.floor(child / fanout);
      const bit = child - index * fanout;
      const all = this.#nodes.report(
        this.#node(level, index),
        bit >>> 5,
        1 << (bit & 31),
        sequence,
        this.#children(level, index),
      );
      if (!all) return;
      child = index;
    }
    Atomics.store(this.#words, this.#passed, sequence);
  }

  blocking(
    sequence: number,
    visit: (reader: number, announced: number) => void,
  ): void {
    for (let reader = 0; reader < this.#readers.count; reader++) {
      const announced = this.#announced(reader);
      if (isBehind(announced, sequence) && !this.#isKnown(reader, sequence)) {
        visit(reader, announced);
      }
    }
  }

  /**
   * Looks at what is below a node and has not reported, and reports for it: at
   * all of it, or up to the first reader in the way.
   *
   * @returns Whether all of it has passed the period.
   */
  #force(
    level: number,
    index: number,
    sequence: number,
    stopsAtFirst: boolean,
  ): boolean {
    const node = this.#node(level, index);
    const children = this.#children(level, index);
    const first = index * this.#fanout;
    let all = true;
    for (
      let at = 0;
      at < children && (all || !stopsAtFirst);
      at += WORD_CHILDREN
    ) {
      const word = at >>> 5;
      const known = this.#nodes.known(node, word, sequence);
      let found = known;
      let missing = ~known & firstBits(children - at);
      while (missing !== 0 && (all || !stopsAtFirst)) {
        const bit = missing & -missing;
        missing ^= bit;
        const child = first + at + 31 - Math.clz32(bit);
        const passed = level === 0
          ? !this.#isInTheWay(child, sequence)
          : this.#force(level - 1, child, sequence, stopsAtFirst);
        if (passed) {
          found |= bit;
        } else {
          all = false;
          if (level === 0) this.#suspect = child;
        }
      }
      if (found !== known) {
        this.#nodes.report(node, word, found, sequence, children);
      }
    }
    return all;
  }

  #isInTheWay(reader: number, sequence: number): boolean {
    return isBehind(this.#announced(reader), sequence);
  }

  #announced(reader: number): number {
    // Pairs with: the slot stores in Reader. If our load comes first, the reader goes online
    // after the sequence moved and sees what was published; if its store comes first, we wait.
    return Atomics.load(this.#words, this.#readers.slot(reader));
  }

  /** Whether a reader, or what it is below, is known to have passed a period. */
  #isKnown(reader: number, sequence: number): boolean {
    let child = reader;
    for (let level = 0; level < this.#levels.length; level++) {
      const index = Math.floor(child / this.#fanout);
      const bit = child - index * this.#fanout;
      const node = this.#node(level, index);
      const known = this.#nodes.known(node, bit >>> 5, sequence);
      if ((known & (1 << (bit & 31))) !== 0) return true;
      child = index;
    }
    return false;
  }

  #node(level: number, index: number): Address {
    return this.#levels[level] + index * this.#nodeWords;
  }

  /** How many children a node has now. Loaded after the period began (2). */
  #children(level: number, index: number): number {
    const below = Math.ceil(this.#readers.count / this.#spans[level]);
    return Math.min(below - index * this.#fanout, this.#fanout);
  }
}
