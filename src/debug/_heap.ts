// The heap in debug mode: how pointers and blocks are used is checked, and recorded for the next check.

import type { Sequence } from "../grace_periods/_sequence.ts";
import type { Address } from "../memory/arena.ts";
import { Heap, type HeapPlace, POISON } from "../memory/_heap.ts";
import {
  DEFERRED,
  type Entered,
  type Entry,
  FREED,
  PUBLISHED,
  type Trail,
  UNLINKED,
} from "./_trail.ts";
import { type Act, blame } from "./_stacks.ts";

/** Longest chain of pointers that is followed to tell whether a block can still be found. */
const LONGEST_CHAIN = 64;

/** What the checks rest on. */
export interface Evidence {
  trail: Trail;
  sequence: Sequence;
  /** What errors call a thread, given as the holder of a lock. */
  whoIs(owner: number): string;
  /** Hears of a misuse that is noticed when nobody can be told by throwing. */
  onMisuse(error: Error): void;
}

/**
 * The heap of a thread in debug mode. What users do with blocks of their own is
 * checked: `free`, `deferFree`, and pointers. What structures do with theirs is not recorded.
 *
 * A block that `assignPointer` has published must not be freed at once before it was unlinked
 * and a grace period has ended; and one that was deferred must have been unlinked when
 * its period is over and it is freed. What is known is the pointer that published it last, so
 * some misuse goes unnoticed; but what is reported is so:
 *
 * 1. A block counts as found while the word that it was published in last points
 *    to it, and that word's block can be found in turn: it was never published (a
 *    root; unless entries are lost), or it counts as found itself.
 * 2. It counts as unlinked when `assignPointer` has put something else there.
 *    Where plain stores have, it is not known when, and nothing is reported.
 * 3. A block that hangs on one that is unlinked is found by no new reader. What takes a whole
 *    structure apart may therefore free its blocks in any order, a period after the root;
 *    and it may defer all of them in any order, for the root is deferred when they are freed.
 */
export class DebugHeap extends Heap {
  readonly #trail: Trail;
  readonly #sequence: Sequence;
  readonly #evidence: Evidence;

  /**
   * @param words The domain's words.
   * @param place As of any heap.
   * @param evidence What else is known.
   */
  constructor(words: Int32Array, place: HeapPlace, evidence: Evidence) {
    super(words, place);
    this.#trail = evidence.trail;
    this.#trail.isFree = (tag) => this.isFree(tag);
    this.#sequence = evidence.sequence;
    this.#evidence = evidence;
  }

  override tryAllocate(size: number): Address {
    const block = super.tryAllocate(size);
    if (block !== 0) this.#trail.forget(this.tagOf(block));
    return block;
  }

  /**
   * As of any heap, and records that the block goes.
   *
   * @param block What the caller claims to be a live block.
   * @param act "free" or "defer freeing".
   * @returns The address of the block's tag.
   */
  override liveTagOf(block: Address, act: string): Address {
    const tag = super.liveTagOf(block, act);
    const atOnce = act === "free";
    if (atOnce) this.#assertUnpublished(block, tag);
    const cookie = this.#sequence.cookie();
    this.#trail.end(tag, atOnce ? FREED : DEFERRED, cookie);
    return tag;
  }

  protected override misuse(message: string, tag: Address): Error {
    const entry = this.#trail.find(tag);
    if (entry === undefined) return super.misuse(message, tag);
    const { ended, state } = entry;
    return ended === undefined || state < DEFERRED
      ? super.misuse(message, tag)
      : blame(message, [
        this.#act(ended, state === FREED ? "freed it" : "deferred freeing it"),
      ]);
  }

  /**
   * Loads a pointer.
   *
   * @param pointer What the caller claims to be a word of a block.
   * @returns What it holds.
   */
  dereference(pointer: Address): Address {
    const act = "dereference";
    const home = this.tagAround(pointer);
    if (home === 0 || this.isFree(home)) {
      // What was unlinked and deferred meanwhile is intact until the section ends.
      this.checkWord(pointer, "pointer", true, act);
    }
    const value = this.words[pointer];
    if (value === 0) return value;
    const target = this.tagAround(value);
    // What is no word of a block is whatever the caller has stored there instead of a pointer.
    if (target === 0) {
      if (value !== POISON) return value;
      throw new Error(
        `Cannot dereference a pointer as it must have been assigned: word ${pointer} holds what fills freed memory`,
      );
    }
    if (this.isFree(target)) this.checkWord(value, "target", true, act);
    return value;
  }

  /**
   * Stores a pointer, and records what is published and unlinked by that.
   *
   * @param pointer What the caller claims to be a word of a live block.
   * @param value 0, or what the caller claims to be a word of a live block.
   */
  assign(pointer: Address, value: Address): void {
    const act = "assign a pointer";
    this.checkWord(pointer, "pointer", false, act);
    if (value !== 0) this.checkWord(value, "value", false, act);
    const home = this.tagAround(pointer);
    const next = value === 0 ? 0 : this.tagAround(value);
    // A pointer into its own block makes nothing known that was not.
    const publishes = next !== 0 && next !== home;
    const stack = publishes ? this.#trail.here() : 0;
    if (publishes) this.#trail.publish(next, pointer, stack);
    // Publish. Pairs with: `dereference`.
    const old = Atomics.exchange(this.words, pointer, value);
    const last = old === POISON ? 0 : this.tagAround(old);
    if (last === 0 || last === next || last === home) return;
    const entry = this.#trail.find(home);
    // Nobody comes to this word any more, since longer.
    const cookie = entry !== undefined && entry.state >= UNLINKED
      ? entry.cookie
      : this.#sequence.cookie();
    this.#trail.unlink(
      last,
      pointer,
      cookie,
      publishes ? stack : this.#trail.here(),
    );
  }

  override release(block: Address, tag: Address): void {
    const entry = this.#trail.find(tag);
    if (entry?.state === DEFERRED && entry.published !== undefined) {
      // Free already, as far as readers are concerned: what has been done must not be found now.
      const { ended, pointer, published } = entry;
      if (this.#isFound(pointer, tag, false)) {
        const error = blame(
          `Cannot free a deferred block as no reader may find it: word ${pointer} still points to block ${block}`,
          [
            this.#act(published, "published it"),
            this.#act(ended!, "deferred freeing it"),
          ],
        );
        queueMicrotask(() => this.#evidence.onMisuse(error));
      }
    }
    super.release(block, tag);
  }

  #assertUnpublished(block: Address, tag: Address): void {
    const entry = this.#trail.find(tag);
    if (entry?.published === undefined) return;
    const { pointer, published, ended, state } = entry;
    if (state === PUBLISHED && this.#isFound(pointer, tag, true)) {
      throw blame(
        `Cannot free a block at once as no reader may find it: word ${pointer} still points to block ${block}`,
        [this.#act(published, "published it")],
      );
    }
    if (state === UNLINKED && !this.#isOver(entry)) {
      throw blame(
        `Cannot free a block at once as a grace period must have ended since it was unlinked: block ${block}`,
        [
          this.#act(published, "published it"),
          this.#act(ended!, "unlinked it"),
        ],
      );
    }
  }

  /**
   * Whether a word leads a reader to a block.
   *
   * @param pointer The word.
   * @param tag The block's tag.
   * @param atOnce Whether readers count whose sections began before now.
   */
  #isFound(pointer: Address, tag: Address, atOnce: boolean): boolean {
    for (let steps = 0; steps < LONGEST_CHAIN; steps++) {
      if (this.tagAround(Atomics.load(this.words, pointer)) !== tag) {
        return false;
      }
      const home = this.tagAround(pointer);
      if (home === 0 || this.isFree(home)) return false;
      const entry = this.#trail.find(home);
      if (entry === undefined) return this.#trail.complete;
      if (entry.state !== PUBLISHED) return atOnce && !this.#isOver(entry);
      tag = home;
      pointer = entry.pointer;
    }
    return false;
  }

  /** Whether no reader has a block any more that is unlinked. */
  #isOver({ cookie }: Entry): boolean {
    return ((this.#sequence.completed() - cookie) | 0) >= 0;
  }

  #act({ owner, frames }: Entered, what: string): Act {
    return { who: this.#evidence.whoIs(owner), what, frames: frames() };
  }
}
