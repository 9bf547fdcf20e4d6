// Nodes of masks: which children of a node are known to have passed a quiescent state.

import type { Address } from "../memory/arena.ts";
import { alignLine } from "../memory/_size_classes.ts";
import { release, tryAcquire } from "../sync/_mutex.ts";
import type { Sequence } from "./_sequence.ts";

const LOCK = 0;
/** The period that the mask is about, as the sequence word had it; 0 in a fresh domain. */
const SEQUENCE = 1;
/** A bit for every child, 32 to a word. */
const MASK = 2;

/** Children in a word of the mask. */
export const WORD_CHILDREN = 32;

function maskWords(children: number): number {
  return Math.ceil(children / WORD_CHILDREN);
}

/**
 * Words of a node: whole cache lines, so that threads that report to
 * different nodes touch different ones.
 *
 * @param children The most that it can have.
 * @returns Its size.
 */
export function nodeWords(children: number): number {
  return alignLine(MASK + maskWords(children));
}

/**
 * The bits of the first children of a word.
 *
 * @param children How many, from 1; more than a word has are taken for all of them.
 * @returns The bits.
 */
export function firstBits(children: number): number {
  return children >= WORD_CHILDREN ? -1 : (1 << children) - 1;
}

/**
 * The nodes of a detector. A bit is an assertion: with SEQUENCE = S it says
 * that the child has passed period S. Once true, that stays true, so the nodes
 * have to see to one thing alone: that no bit is ever read as one about
 * another period than that for which it was set.
 *
 * 1. Nobody prepares a node for a period: whoever reports first finds that
 *    SEQUENCE is of another one, and clears the mask. A thread that begins a
 *    period and dies owes nobody anything.
 * 2. Bits for S are set under the node's lock by a thread that has found there
 *    that the sequence word is still S. So no node goes back to an older
 *    period: if SEQUENCE were newer than S, its writer would have had the lock
 *    before, and the sequence word would have moved before that. Values are
 *    compared for equality with the live word alone, hence no difference of
 *    two of them can overflow.
 * 3. {@linkcode known} takes no lock. Clearing stores the mask before SEQUENCE,
 *    `known` loads SEQUENCE before the mask. So what it finds under SEQUENCE
 *    = S was set for S, or for a later period; then S has ended, and whatever
 *    is said about it is true.
 * 4. The word comes to the same value after 2³¹ periods. A node that takes
 *    part has SEQUENCE = S at the end of every period S, unless its lock could
 *    not be had; and `known` knows nothing while the lock is taken, for however
 *    many periods that is. As in `Sequence.end`, only a thread that sleeps
 *    between two of its steps for exactly a turn of the word could be deceived.
 * 5. Nobody waits for a lock. If its holder is preempted, or dead for ever, the
 *    node is as if nobody had reported to it, and the caller looks at what is
 *    below. Every state in which a holder can be stopped is one that (1) to (3)
 *    allow. A lock that this thread itself finds in its own name is one that an
 *    exception took it out of (the stack was full): it goes on with it, for no
 *    other thread has had it since.
 */
export class MaskNodes {
  readonly #words: Int32Array;
  readonly #sequence: Sequence;
  readonly #owner: number;
  readonly #maskWords: number;

  /**
   * @param words The domain's words.
   * @param sequence The domain's sequence.
   * @param owner The name under which this thread takes locks.
   * @param children The most that a node can have.
   */
  constructor(
    words: Int32Array,
    sequence: Sequence,
    owner: number,
    children: number,
  ) {
    this.#words = words;
    this.#sequence = sequence;
    this.#owner = owner;
    this.#maskWords = maskWords(children);
  }

  /**
   * Which children of a node are known to have passed a period.
   *
   * @param node The node.
   * @param word The word of its mask.
   * @param sequence The period.
   * @returns Their bits; 0 while somebody holds the lock (4).
   */
  known(node: Address, word: number, sequence: number): number {
    const words = this.#words;
    if (Atomics.load(words, node + LOCK) !== 0) return 0;
    // Acquire: before the mask. Pairs with: the stores in `report` (3).
    if (Atomics.load(words, node + SEQUENCE) !== sequence) return 0;
    return Atomics.load(words, node + MASK + word);
  }

  /**
   * Notes that children have passed a period, unless the node's lock is taken
   * or the period has ended.
   *
   * @param node The node.
   * @param word The word of its mask.
   * @param bits Their bits.
   * @param sequence The period.
   * @param children How many children there are, counted after the period began.
   * @returns Whether it is known now that all of them have.
   */
  report(
    node: Address,
    word: number,
    bits: number,
    sequence: number,
    children: number,
  ): boolean {
    const words = this.#words;
    const lock = node + LOCK;
    if (
      !tryAcquire(words, lock, this.#owner) &&
      Atomics.load(words, lock) !== this.#owner
    ) return false;
    let all = false;
    if (this.#sequence.current() === sequence) {
      if (Atomics.load(words, node + SEQUENCE) !== sequence) {
        for (let i = 0; i < this.#maskWords; i++) {
          Atomics.store(words, node + MASK + i, 0);
        }
        // Release: after the mask. Pairs with: the loads in `known` (3).
        Atomics.store(words, node + SEQUENCE, sequence);
      }
      const at = node + MASK + word;
      Atomics.store(words, at, Atomics.load(words, at) | bits);
      all = this.#hasAll(node, children);
    }
    release(words, lock);
    return all;
  }

  #hasAll(node: Address, children: number): boolean {
    let mask = node + MASK;
    for (let left = children; left > 0; left -= WORD_CHILDREN, mask++) {
      const missing = ~Atomics.load(this.#words, mask) & firstBits(left);
      if (missing !== 0) return false;
    }
    return true;
  }
}
