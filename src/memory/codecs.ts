// The codecs of numbers, strings, bytes and JSON values.

import type { Address } from "./arena.ts";
import { BlockCodec, BlockKeyCodec, mix, show, WordCodec } from "./_codec.ts";
import type { Codec, KeyCodec } from "./codec.ts";
import { refuse, type Refused } from "./_refusal.ts";
import {
  compareText,
  equalsText,
  hashText,
  LONGEST_TEXT,
  measureText,
  readText,
  textWords,
  writeText,
} from "./_text.ts";

class U32 extends WordCodec<number> {
  readonly schema = "u32";
  readonly bias = 0x8000_0000 | 0;
  toWord(value: number): number {
    // The type first: a BigInt cannot even be tried.
    if (typeof value !== "number" || value >>> 0 !== value) {
      refuseInteger("u32", 0, 2 ** 32 - 1, value);
    }
    return value | 0;
  }
  // As `toWord`, each small enough to be inlined where a map is read.
  toKeyWord(key: number): number {
    if (typeof key !== "number" || key >>> 0 !== key) {
      refuseInteger("u32", 0, 2 ** 32 - 1, key, "key");
    }
    return key | 0;
  }
  fromWord(word: number): number {
    return word >>> 0;
  }
}

class I32 extends WordCodec<number> {
  readonly schema = "i32";
  readonly bias = 0;
  toWord(value: number): number {
    if (typeof value !== "number" || (value | 0) !== value) {
      refuseInteger("i32", -(2 ** 31), 2 ** 31 - 1, value);
    }
    return value | 0;
  }
  toKeyWord(key: number): number {
    if (typeof key !== "number" || (key | 0) !== key) {
      refuseInteger("i32", -(2 ** 31), 2 ** 31 - 1, key, "key");
    }
    return key | 0;
  }
  fromWord(word: number): number {
    return word;
  }
}

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

class F64 extends BlockKeyCodec<number> {
  readonly schema = "f64";
  readonly reusable = false;
  prepare(value: number): number {
    if (typeof value !== "number") refuseType("f64", "a number", value);
    return value;
  }
  measure(): number {
    return 2;
  }
  wordsAt(): number {
    return 2;
  }
  write(words: Int32Array, address: Address, value: number): void {
    double[0] = value;
    words[address] = halves[0];
    words[address + 1] = halves[1];
  }
  read(words: Int32Array, address: Address): number {
    halves[0] = words[address];
    halves[1] = words[address + 1];
    return double[0];
  }
  view(words: Int32Array, address: Address): number {
    return this.read(words, address);
  }
  // As in a Map: NaN is one key whatever its bits, and -0 is 0.
  prepareKey(key: number): number {
    if (typeof key !== "number") refuseType("f64", "a number", key, "key");
    return key + 0;
  }
  hash(key: number, seed: number): number {
    double[0] = key;
    if (key !== key) return mix(seed);
    return mix(halves[0] ^ mix(halves[1] ^ seed));
  }
  equals(words: Int32Array, address: Address, key: number): boolean {
    const stored = this.read(words, address);
    return stored === key || (stored !== stored && key !== key);
  }
  // By value, NaN after all others.
  compare(words: Int32Array, address: Address, key: number): number {
    const stored = this.read(words, address);
    if (stored < key) return -1;
    if (stored > key) return 1;
    if (stored === key) return 0;
    return stored === stored ? -1 : key === key ? 1 : 0;
  }
}

class Text extends BlockKeyCodec<string> {
  readonly schema = "string";
  readonly reusable = true;
  prepare(value: string): string {
    return checkedText(value);
  }
  prepareKey(key: string): string {
    return checkedText(key, "key");
  }
  measure(value: string): number {
    return measureText(value);
  }
  wordsAt(words: Int32Array, address: Address): number {
    return textWords(words, address);
  }
  write(words: Int32Array, address: Address, value: string): void {
    writeText(words, address, value);
  }
  read(words: Int32Array, address: Address): string {
    return readText(words, address);
  }
  view(words: Int32Array, address: Address): string {
    return readText(words, address);
  }
  hash(key: string, seed: number): number {
    return hashText(key, seed);
  }
  equals(words: Int32Array, address: Address, key: string): boolean {
    return equalsText(words, address, key);
  }
  // By UTF-16 units, as the operator `<` does.
  compare(words: Int32Array, address: Address, key: string): number {
    return compareText(words, address, key);
  }
}

function checkedText(value: string, what?: Refused): string {
  if (typeof value !== "string") refuseType("string", "a string", value, what);
  if (value.length > LONGEST_TEXT) {
    refuse(
      RangeError,
      `as string as it must have at most ${LONGEST_TEXT} UTF-16 units: received ${value.length}`,
      {},
      what,
    );
  }
  return value;
}

class Bytes extends BlockKeyCodec<Uint8Array> {
  readonly schema = "bytes";
  readonly reusable = false;
  prepare(value: Uint8Array): Uint8Array {
    const bytes = checkedBytes(value);
    // A property of its own would be believed where the value is measured and written.
    return Object.hasOwn(bytes, "length") || Object.hasOwn(bytes, "buffer")
      ? new Uint8Array(bytes)
      : bytes;
  }
  // What lookups do with it runs no code of its owner's: it is a typed array whose elements are
  // read, and `equals` and `compare` do not ask it for its length.
  prepareKey(key: Uint8Array): Uint8Array {
    return checkedBytes(key, "key");
  }
  override own(key: Uint8Array): Uint8Array {
    return new Uint8Array(key);
  }
  measure(value: Uint8Array): number {
    return 1 + ((value.length + 3) >>> 2);
  }
  wordsAt(words: Int32Array, address: Address): number {
    return 1 + ((words[address] + 3) >>> 2);
  }
  write(words: Int32Array, address: Address, value: Uint8Array): void {
    words[address] = value.length;
    const tail = address + ((value.length + 3) >>> 2);
    // Not past the value: what pads the last word is zero, so that words can be compared.
    if (value.length > 0) words[tail] = 0;
    bytesAt(words, address + 1, value.length).set(value);
  }
  read(words: Int32Array, address: Address): Uint8Array {
    return bytesAt(words, address + 1, words[address]).slice();
  }
  view(
    words: Int32Array,
    address: Address,
    check: (() => void) | undefined,
  ): Uint8Array {
    const bytes = bytesAt(words, address + 1, words[address]);
    return check === undefined ? bytes : guard(bytes, check);
  }
  hash(key: Uint8Array, seed: number): number {
    let h = seed ^ key.length;
    for (let i = 0; i < key.length; i++) {
      h = Math.imul(h ^ key[i], 0x01000193);
      h ^= h >>> 15;
    }
    return h;
  }
  equals(words: Int32Array, address: Address, key: Uint8Array): boolean {
    const length = words[address];
    if (key[length] !== undefined) return false;
    if (length > 0 && key[length - 1] === undefined) return false;
    for (let i = 0, at = address + 1; i < length; i += 4, at++) {
      // Bytes past the end read as undefined, hence as 0, like the padding.
      const word = key[i] | (key[i + 1] << 8) | (key[i + 2] << 16) |
        (key[i + 3] << 24);
      if (words[at] !== word) return false;
    }
    return true;
  }
  // Byte by byte; a beginning comes before what it begins.
  compare(words: Int32Array, address: Address, key: Uint8Array): number {
    const length = words[address++];
    for (let i = 0; i < length; i++) {
      const byte = (words[address + (i >>> 2)] >>> ((i & 3) << 3)) & 0xff;
      const other = key[i];
      if (byte !== other) return other === undefined ? 1 : byte - other;
    }
    return key[length] === undefined ? 0 : -1;
  }
}

function checkedBytes(value: Uint8Array, what?: Refused): Uint8Array {
  if (!(value instanceof Uint8Array)) {
    refuseType("bytes", "a Uint8Array", value, what);
  }
  // What another thread can change meanwhile, what can change its length, and what is not what
  // it says is copied, by a constructor that asks the object for nothing.
  const { buffer } = value;
  return !ArrayBuffer.isView(value) ||
      Object.getPrototypeOf(value) !== Uint8Array.prototype ||
      buffer instanceof SharedArrayBuffer || buffer.resizable ||
      // It would be taken for an empty one.
      (value[0] === undefined && buffer.detached)
    ? copyOf(value, what)
    : value;
}

function copyOf(value: Uint8Array, what?: Refused): Uint8Array {
  try {
    return new Uint8Array(value);
  } catch (cause) {
    if (!ArrayBuffer.isView(value) || !(cause instanceof TypeError)) {
      throw cause;
    }
    refuse(
      TypeError,
      "as bytes as its buffer must hold it: received one whose buffer is detached or has shrunk",
      { cause },
      what,
    );
  }
}

class Json<T> extends BlockCodec<T, string> {
  readonly schema = "json";
  readonly reusable = true;
  prepare(value: T): string {
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch (cause) {
      // A BigInt, or an object that contains itself; or what the caller's `toJSON` threw.
      if (!(cause instanceof TypeError)) throw cause;
      const [why] = cause.message.split("\n", 1);
      const received = `${show(value)} (${why})`;
      refuse(
        TypeError,
        `as json as JSON.stringify must take it: received ${received}`,
        { cause },
      );
    }
    if (text === undefined) refuseType("json", "a JSON value", value);
    return text!;
  }
  measure(text: string): number {
    return measureText(text);
  }
  wordsAt(words: Int32Array, address: Address): number {
    return textWords(words, address);
  }
  write(words: Int32Array, address: Address, text: string): void {
    writeText(words, address, text);
  }
  read(words: Int32Array, address: Address): T {
    return deepFreeze<T>(JSON.parse(readText(words, address)));
  }
  view(words: Int32Array, address: Address): T {
    return this.read(words, address);
  }
}

/**
 * Integers from 0 to 4,294,967,295, one word each.
 *
 * @example Counting
 * ```ts
 * import { Rcu, RcuCell, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 4294967295 });
 * assertEquals(cell.get(), 4294967295);
 * ```
 */
export const u32: KeyCodec<number> = new U32();

/**
 * Integers from -2,147,483,648 to 2,147,483,647, one word each.
 *
 * @example Signed
 * ```ts
 * import { i32, Rcu, RcuCell } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const cell = RcuCell.open(rcu, "n", { value: i32, initial: -1 });
 * assertEquals(cell.get(), -1);
 * ```
 */
export const i32: KeyCodec<number> = new I32();

/**
 * Any number, two words each. As a key, `NaN` equals itself and -0 equals 0.
 *
 * @example Keys as in a Map
 * ```ts
 * import { f64, Rcu, RcuMap } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const map = RcuMap.open(rcu, "m", { key: f64, value: f64 });
 * assertEquals(map.set(NaN, 0.5).get(NaN), 0.5);
 * ```
 */
export const f64: KeyCodec<number> = new F64();

/**
 * Strings of any length up to 536,870,911 UTF-16 units, lone surrogates
 * included: one byte a unit where all are below 256, else two.
 *
 * @example Any string
 * ```ts
 * import { Rcu, RcuCell, string } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const cell = RcuCell.open(rcu, "s", { value: string, initial: "" });
 * cell.set("grüße 👋");
 * assertEquals(cell.get(), "grüße 👋");
 * ```
 */
export const string: KeyCodec<string> = new Text();

/**
 * Byte arrays. `get` returns a copy; `view` shows the shared memory itself.
 *
 * @example A copy
 * ```ts
 * import { bytes, Rcu, RcuCell } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const initial = new Uint8Array([1, 2, 3]);
 * const cell = RcuCell.open(rcu, "b", { value: bytes, initial });
 * assertEquals(cell.get(), initial);
 * ```
 */
export const bytes: KeyCodec<Uint8Array> = new Bytes();

const anyJson = new Json<unknown>();

/**
 * Whatever `JSON.stringify` keeps: what comes out is what `JSON.parse` makes of
 * it, whatever the type says (a `Date` comes out as a string). A thread decodes
 * a value once per version, freezes it deeply, and gives the same object out
 * again: an update makes a new one, such as `{ ...old, n: 1 }`.
 *
 * @typeParam T The type of the values; not checked.
 * @returns The codec.
 *
 * @example Decoded once
 * ```ts
 * import { json, Rcu, RcuMap, string } from "@grace/rcu";
 * import { assertEquals, assertStrictEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const map = RcuMap.open(rcu, "users", {
 *   key: string,
 *   value: json<{ roles: string[] }>(),
 * });
 * map.set("ada", { roles: ["admin"] });
 * assertEquals(map.get("ada")?.roles, ["admin"]);
 * assertStrictEquals(map.get("ada"), map.get("ada"));
 * ```
 */
export function json<T>(): Codec<T> {
  return anyJson as unknown as Codec<T>;
}

function bytesAt(
  words: Int32Array,
  address: Address,
  length: number,
): Uint8Array {
  return new Uint8Array(words.buffer, address * 4, length);
}

/** A view that says so when it is used after its section. */
function guard(bytes: Uint8Array, check: () => void): Uint8Array {
  const shown = (value: unknown): unknown => {
    if (typeof value === "function") {
      return (...rest: unknown[]) => {
        check();
        return shown(value.apply(bytes, rest));
      };
    }
    const isView = value instanceof Uint8Array && value.buffer === bytes.buffer;
    return isView ? guard(value, check) : value;
  };
  return new Proxy(bytes, {
    get(target, property) {
      check();
      return shown(Reflect.get(target, property, target));
    },
    set(target, property, value) {
      check();
      return Reflect.set(target, property, value, target);
    },
    has(target, property) {
      check();
      return Reflect.has(target, property);
    },
    ownKeys(target) {
      check();
      return Reflect.ownKeys(target);
    },
    getOwnPropertyDescriptor(target, property) {
      check();
      return Reflect.getOwnPropertyDescriptor(target, property);
    },
  });
}

function deepFreeze<T>(root: T): T {
  // Not by recursion: JSON.parse takes more levels than the stack does.
  const left: unknown[] = [root];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== "object" || value === null) continue;
    Object.freeze(value);
    for (const part of Object.values(value)) left.push(part);
  }
  return root;
}

function refuseInteger(
  schema: string,
  least: number,
  most: number,
  value: unknown,
  what?: Refused,
): never {
  refuse(
    typeof value === "number" ? RangeError : TypeError,
    `as ${schema} as it must be an integer from ${least} to ${most}: received ${
      show(value)
    }`,
    {},
    what,
  );
}

function refuseType(
  schema: string,
  must: string,
  value: unknown,
  what?: Refused,
): never {
  refuse(
    TypeError,
    `as ${schema} as it must be ${must}: received ${show(value)}`,
    {},
    what,
  );
}
