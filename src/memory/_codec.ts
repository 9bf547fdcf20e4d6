// What structures need to know of a codec: one word, or a block of its own.

import type { Address } from "./arena.ts";
import type { Codec, KeyCodec } from "./codec.ts";

/** A codec whose values fit one word: they are stored in place. */
export abstract class WordCodec<T> implements KeyCodec<T> {
  abstract readonly schema: string;
  declare readonly types: { value: T; view: T };
  readonly isKey = true;
  /** What a word is XORed with so that words, as signed integers, are in the order of the values. */
  abstract readonly bias: number;

  /**
   * Checks a value.
   *
   * @param value What the caller passed.
   * @returns Its word.
   */
  abstract toWord(value: T): number;

  /**
   * The same of a key: its error says that it is one.
   *
   * @param key What the caller passed.
   * @returns Its word.
   */
  abstract toKeyWord(key: T): number;

  /**
   * Turns a word back.
   *
   * @param word The word.
   * @returns The value.
   */
  abstract fromWord(word: number): T;
}

/**
 * A codec whose values need a run of words. Writing goes in steps, so that
 * nothing is half done when the value is bad or memory runs out: `prepare`
 * checks, `measure` sizes, `write` fills a block that is not published yet.
 */
export abstract class BlockCodec<T, Prepared = T, View = T>
  implements Codec<T, View> {
  abstract readonly schema: string;
  declare readonly types: { value: T; view: View };
  /** Whether a decoded value can be given out again, being immutable, and is worth keeping. */
  abstract readonly reusable: boolean;

  /**
   * Checks a value and brings it into the form that is written.
   *
   * @param value What the caller passed.
   * @returns The form.
   */
  abstract prepare(value: T): Prepared;

  /**
   * Sizes a prepared value.
   *
   * @param prepared The value.
   * @returns Words.
   */
  abstract measure(prepared: Prepared): number;

  /**
   * Writes a prepared value.
   *
   * @param words The arena's words.
   * @param address Where to.
   * @param prepared The value.
   */
  abstract write(words: Int32Array, address: Address, prepared: Prepared): void;

  /**
   * Reads a value: a copy, or something immutable.
   *
   * @param words The arena's words.
   * @param address Where it begins.
   * @returns The value.
   */
  abstract read(words: Int32Array, address: Address): T;

  /**
   * Looks at a value without copying it.
   *
   * @param words The arena's words.
   * @param address Where it begins.
   * @param check Throws when the view's section is over; `undefined` outside debug mode.
   * @returns The view.
   */
  abstract view(
    words: Int32Array,
    address: Address,
    check: (() => void) | undefined,
  ): View;

  /**
   * How long a stored value is.
   *
   * @param words The arena's words.
   * @param address Where it begins.
   * @returns Words.
   */
  abstract wordsAt(words: Int32Array, address: Address): number;
}

/** A codec of keys that need more than a word: they are hashed and compared in place. */
export abstract class BlockKeyCodec<K, Prepared = K, View = K>
  extends BlockCodec<K, Prepared, View>
  implements KeyCodec<K, View> {
  readonly isKey = true;

  /**
   * Checks a key. Of keys that count as equal, it may choose one. What was
   * stored is in prepared form.
   *
   * @param key What the caller passed.
   * @returns The key as it is hashed, compared and written.
   */
  abstract prepareKey(key: K): Prepared;

  /**
   * Takes a prepared key out of the caller's hands.
   *
   * @param key The key.
   * @returns It, or a copy that nobody else can change.
   */
  own(key: Prepared): Prepared {
    return key;
  }

  /**
   * Hashes a key.
   *
   * @param key A prepared key.
   * @param seed The table's secret.
   * @returns 32 bits.
   */
  abstract hash(key: Prepared, seed: number): number;

  /**
   * Compares a stored key.
   *
   * @param words The arena's words.
   * @param address Where it begins.
   * @param key A prepared key.
   * @returns Whether they are the same key.
   */
  abstract equals(words: Int32Array, address: Address, key: Prepared): boolean;

  /**
   * Orders a stored key. The order is total, and has no two keys equal but
   * those that `equals` has.
   *
   * @param words The arena's words.
   * @param address Where it begins.
   * @param key A prepared key.
   * @returns Below 0 if the stored key comes first, above 0 if `key` does, 0 if they are the same.
   */
  abstract compare(words: Int32Array, address: Address, key: Prepared): number;
}

/**
 * Mixes a word so that every bit of it moves the low bits of the result: two
 * multiplications, each carrying bits up, and after each a shift that brings
 * them down. With the constants of MurmurHash3's finalizer (Appleby, 2011;
 * public domain), without its first shift, which changes no measured spread of
 * keys over buckets and costs a lookup 4 %.
 *
 * @param word The word.
 * @returns 32 bits.
 */
export function mix(word: number): number {
  word = Math.imul(word, 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 15), 0xc2b2ae35);
  return word ^ (word >>> 16);
}

/**
 * How an error message shows a value.
 *
 * @param value The value.
 * @returns A short text.
 */
export function show(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.length > 40 ? value.slice(0, 40) + "…" : value);
  }
  if (typeof value === "object" && value !== null) {
    return `an object of type ${typeName(value)}`;
  }
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  return Object.is(value, -0) ? "-0" : String(value);
}

/** The caller's object may do as it likes when it is asked for its type. */
function typeName(value: object): string {
  try {
    const { name } = value.constructor;
    return typeof name === "string" ? name : "Object";
  } catch {
    return "Object";
  }
}
