// How a structure keeps a value: in the word itself, or in a block that the word points to.

import type { DebugReader } from "../debug/_reader.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { BlockCodec, show, WordCodec } from "../memory/_codec.ts";
import type { Codec } from "../memory/codec.ts";
import { Generations } from "./_generations.ts";

// A value's block: a number that tells it from every other block that this structure puts at the
// same address, then the value. Immutable once published.
const VERSION = 0;
const PAYLOAD = 1;

interface Decoded<V> {
  version: number;
  value: V;
}

/** Reads and writes the value words of one structure, in one thread. */
export class Values<V> {
  readonly #membership: Membership;
  readonly #words: Int32Array;
  readonly #word: WordCodec<V> | undefined;
  readonly #block: BlockCodec<V, unknown, unknown> | undefined;
  readonly #decoded = new Generations<Address, Decoded<V>>();

  constructor(membership: Membership, codec: Codec<V, unknown>) {
    this.#membership = membership;
    this.#words = membership.words;
    if (codec instanceof WordCodec) this.#word = codec;
    else if (codec instanceof BlockCodec) this.#block = codec;
    else {
      throw new TypeError(
        `Cannot open a structure as its value must be a codec: received ${
          show(codec)
        }`,
      );
    }
  }

  /** Whether values have blocks of their own. */
  get inBlocks(): boolean {
    return this.#block !== undefined;
  }

  /** Whether decoded values are kept and given out again. */
  get reusable(): boolean {
    return this.#block !== undefined && this.#block.reusable;
  }

  /**
   * Checks a value and stores it where no reader can find it yet.
   *
   * @param value What the caller passed.
   * @returns The word that stands for it.
   */
  store(value: V): number {
    if (this.#word !== undefined) return this.#word.toWord(value);
    const codec = this.#block!;
    const prepared = codec.prepare(value);
    const block = this.#membership.allocate(
      PAYLOAD + codec.measure(prepared),
    );
    try {
      codec.write(this.#words, block + PAYLOAD, prepared);
    } catch (error) {
      // A callback that ran for want of memory may have detached the bytes.
      this.#membership.heap.free(block);
      throw error;
    }
    return block;
  }

  /**
   * Gives a stored value its version, just before it is published. What a
   * thread has decoded is told by block and version, so no two values that the
   * structure publishes in the same block may have the same version.
   *
   * @param word What `store` returned.
   * @param version A number that the structure has not given out before, modulo 2³².
   */
  seal(word: number, version: number): void {
    if (this.#block !== undefined) this.#words[word + VERSION] = version;
  }

  /**
   * What tells a value from a later one in the same word.
   *
   * @param word A published value's word, inside a section.
   * @returns Its version; 0 for values that are in the word.
   */
  versionOf(word: number): number {
    return this.#block !== undefined ? this.#words[word + VERSION] : 0;
  }

  /**
   * Reads a value, inside a section.
   *
   * @param word Its word.
   * @returns A copy, or something immutable.
   */
  load(word: number): V {
    if (this.#word !== undefined) return this.#word.fromWord(word);
    const codec = this.#block!;
    if (!codec.reusable) return codec.read(this.#words, word + PAYLOAD);
    const version = this.#words[word + VERSION];
    const known = this.#decoded.get(word);
    if (known !== undefined && known.version === version) return known.value;
    const value = codec.read(this.#words, word + PAYLOAD);
    if (known === undefined) this.#decoded.set(word, { version, value });
    else {
      known.version = version;
      known.value = value;
    }
    return value;
  }

  /**
   * Looks at a value without copying, inside a section.
   *
   * @param word Its word.
   * @returns The view.
   */
  view(word: number): unknown {
    if (this.#word !== undefined) return this.#word.fromWord(word);
    const codec = this.#block!;
    if (codec.reusable) return this.load(word);
    const { debug, reader } = this.#membership;
    const check = debug ? (reader as DebugReader).sectionCheck() : undefined;
    return codec.view(this.#words, word + PAYLOAD, check);
  }

  /**
   * Frees what was stored and never published.
   *
   * @param word What `store` returned.
   */
  discard(word: number): void {
    if (this.#block !== undefined) this.#membership.heap.discard(word);
  }

  /**
   * Names what the update publishes.
   *
   * @param word What `store` returned.
   */
  join(word: number): void {
    if (this.#block !== undefined) this.#membership.journal.join(word);
  }

  /**
   * Names what the update takes away; it is freed after a grace period.
   *
   * @param word What was published.
   */
  leave(word: number): void {
    if (this.#block !== undefined) this.#membership.journal.leave(word);
  }
}
