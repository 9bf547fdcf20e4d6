// A hash map that all threads of a domain share.

import {
  checkFunction,
  checkIterable,
  checkPair,
  type OptionNames,
  refuseNumber,
  uncloneable,
} from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { show, WordCodec } from "../memory/_codec.ts";
import * as codec from "../memory/_codec.ts";
import type { Codec, KeyCodec } from "../memory/codec.ts";
import type { Reader } from "../readers/_reader.ts";
import * as reading from "../readers/_reader.ts";
import { RcuMemoryError } from "../memory/errors.ts";
import { equalsAscii, hashAscii, isAscii } from "../memory/_text.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { probeStack } from "../sync/_stack.ts";
import { Builder } from "./_builder.ts";
import { collect } from "./_cursor.ts";
import { hideFields } from "./_hide.ts";
import { changesOf, type ChangesOptions } from "./changes.ts";
import { openRoot, takeOptions } from "./_open.ts";
import { OwnWrites } from "./_own_writes.ts";
import { type Calm, StringCache } from "./_string_cache.ts";
import {
  bucketsFor,
  CHANGES,
  headerWords,
  keyCodec,
  keyOf,
  LEAST_MASK,
  type Probe,
  SEED,
  STRIPES,
  Table,
  tableWords,
  WATCHED,
  WATCHERS,
} from "./_table.ts";
import * as layout from "./_table.ts";
import { Values } from "./_values.ts";
import { Watch } from "./_watch.ts";
import { type Expected, Writer } from "./_writer.ts";

// Copies for the hot path: an engine folds a constant of the same module into the code, but loads
// one of another module at each use (measured: 11.1 against 9.1 ns a `get`).
const { HEADS, KEY, MASK, NEXT, NODE_WORDS, SUCCESSOR, TABLE, VALUE } = layout;
const { LEAF_READ, UNUSUAL } = reading;
const { mix } = codec;

/** A byte order mark is part of a key like anything else. */
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** A table that is made larger than that from the start had better prove that it has to be. */
const LARGEST_HINT = 2 ** 20;

const OPEN_OPTIONS: OptionNames<RcuMapOptions<unknown, unknown>> = {
  key: true,
  value: true,
  capacity: true,
};

const UNCLONEABLE = uncloneable(
  "an RcuMap, which other threads open by its name",
);

let kindOf: (
  key: KeyCodec<unknown, unknown>,
  value: Codec<unknown, unknown>,
) => unknown;

/**
 * How a map is opened.
 *
 * @typeParam K Its keys.
 * @typeParam V Its values.
 * @typeParam View What a zero-copy view of a value is.
 *
 * @example Room for many entries ahead
 * ```ts
 * import { Rcu, RcuMap, type RcuMapOptions, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: RcuMapOptions<number, number> = {
 *   key: u32,
 *   value: u32,
 *   capacity: 10_000,
 * };
 * using rcu = Rcu.create();
 * const map = RcuMap.open(rcu, "squares", options);
 * for (let n = 0; n < 10_000; n++) map.set(n, n * n);
 * assertEquals(map.get(99), 9801);
 * ```
 */
export interface RcuMapOptions<K, V, View = V> {
  /** How keys lie in memory. */
  key: KeyCodec<K, unknown>;
  /** How values lie in memory. */
  value: Codec<V, View>;
  /**
   * Entries to make room for ahead, for whoever creates the map; it grows by
   * itself and never shrinks below. From 0 to 268,435,456.
   *
   * @default {0}
   */
  capacity?: number;
}

/**
 * A map that all threads of a domain share: in one copy, read without locks.
 *
 * It behaves as a `Map` does, `NaN` and -0 as keys included, but for this:
 *
 * - Entries have no order.
 * - Iteration is weakly consistent: it never fails and shows each key at most
 *   once; keys that are there all the time are shown, keys that come or go
 *   meanwhile may be.
 * - `get` returns copies, or immutable objects that it may return again.
 * - Bad keys and values are errors, not misses.
 *
 * Any number of threads may write at once. A reader finds the old value of a
 * key or the new one, never a mixture and never neither. Resizing is the work
 * of the writer that caused it; readers do not notice.
 *
 * An explicit read section sees one generation of the map: once it has read,
 * another thread's `replaceAll` does not show in it, nor do then the section's
 * own writes, which go to the new generation.
 *
 * @typeParam K Its keys.
 * @typeParam V Its values.
 * @typeParam View What a zero-copy view of a value is.
 *
 * @example A table of routes
 * ```ts
 * import { json, Rcu, RcuMap, string } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const routes = RcuMap.open(rcu, "routes", {
 *   key: string,
 *   value: json<{ upstream: string }>(),
 * });
 * routes.set("/api", { upstream: "10.0.0.7" });
 * assertEquals(routes.get("/api")?.upstream, "10.0.0.7");
 * assertEquals(routes.size, 1);
 * ```
 */
export class RcuMap<K, V, View = V> implements Iterable<[K, V]> {
  // Not `#` fields: those are first set to undefined and then to their value, after which an
  // engine no longer takes them for constants of a constant map (measured: 9.1 against 6.8 ns).
  declare private readonly _uncloneable: symbol;
  declare private readonly _membership: Membership;
  declare private readonly _reader: Reader;
  declare private readonly _words: Int32Array;
  declare private readonly _header: Address;
  declare private readonly _table: Table<K>;
  declare private readonly _values: Values<V>;
  declare private readonly _writer: Writer<K, V>;
  declare private readonly _seed: number;
  /** The key codec of maps whose keys are words. */
  declare private readonly _wordKey: WordCodec<K> | undefined;
  /** The value codec of maps whose values are words. */
  declare private readonly _wordValue: WordCodec<V> | undefined;

  #watch: Watch | undefined;

  static {
    hideFields(this, (map) => `RcuMap(${map.size})`);
  }

  private constructor(
    membership: Membership,
    header: Address,
    options: RcuMapOptions<K, V, View>,
    values: Values<V>,
  ) {
    this._uncloneable = UNCLONEABLE;
    this._membership = membership;
    this._reader = membership.reader;
    this._words = membership.words;
    this._header = header;
    this._values = values;
    this._table = new Table(membership, header, options.key);
    this._seed = this._table.seed;
    this._writer = new Writer(this._table, values);
    this._wordKey = this._table.wordKey;
    this._wordValue = options.value instanceof WordCodec
      ? options.value
      : undefined;
  }

  /**
   * Finds the map of a name, or creates it.
   *
   * @typeParam K Its keys.
   * @typeParam V Its values.
   * @typeParam View What a zero-copy view of a value is.
   * @param rcu The calling thread's membership.
   * @param name The map's name, any string.
   * @param options Its codecs and capacity.
   * @returns The calling thread's view of the map.
   * @throws {TypeError} If the name is taken with another schema, or an
   * argument is of the wrong type.
   * @throws {RangeError} If the capacity is out of range.
   * @throws {RcuMemoryError} If the map does not fit.
   *
   * @example A second schema is refused
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertThrows } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * assertThrows(
   *   () => RcuMap.open(rcu, "m", { key: u32, value: string }),
   *   TypeError,
   *   'Cannot open "m" as map<u32,string>: it was opened as map<u32,u32>',
   * );
   * ```
   */
  static open<K, V, View = V>(
    rcu: Rcu,
    name: string,
    options: RcuMapOptions<K, V, View>,
  ): RcuMap<K, V, View> {
    const membership = membershipOf(rcu, "open a map");
    const must = "name a key and a value codec";
    const taken = takeOptions(options, must, OPEN_OPTIONS);
    const { key, value, capacity = 0 } = taken;
    keyCodec(key);
    const values = new Values<V>(membership, value);
    if (!Number.isInteger(capacity) || capacity < 0 || capacity > 2 ** 28) {
      refuseNumber(
        "Cannot open a map as its capacity must be an integer from 0 to 268435456",
        capacity,
      );
    }
    const words = membership.words;
    const header = openRoot(
      membership,
      name,
      `map<${key.schema},${value.schema}>`,
      () => makeMap(membership, key, capacity),
      (made) => {
        membership.heap.free(words[made + TABLE]);
        membership.heap.free(made);
      },
    );
    const kind = kindOf(key, value) as typeof RcuMap<K, V, View>;
    return new kind(membership, header, taken, values);
  }

  /**
   * Reads the value of a key.
   *
   * @param key The key.
   * @returns A copy of the value, or something immutable; `undefined` if the key is not there.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {Error} If the membership is closed.
   *
   * @example A hit and a miss
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * assertEquals([map.get(1), map.get(2)], [10, undefined]);
   * ```
   */
  get(key: K): V | undefined {
    const node = this.#find(key);
    return node === 0 ? undefined : this.#valueOf(node);
  }

  /**
   * Reads the value of a string key that is at hand as UTF-8, fresh from the network say, without
   * decoding it where it is ASCII. If another thread writes to them meanwhile, they
   * stand for what some of them were before and others after that.
   *
   * @param key The key's bytes; what is no UTF-8 stands for U+FFFD, as a `TextDecoder`
   * with `ignoreBOM: true` has it.
   * @returns As {@linkcode RcuMap.get}.
   * @throws {TypeError} If the map's keys are no strings, or `key` is no `Uint8Array`, or one whose
   * buffer is detached or has shrunk.
   * @throws {Error} If the membership is closed.
   *
   * @example A host name out of a packet
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const ports = RcuMap.open(rcu, "ports", { key: string, value: u32 });
   * ports.set("example.org", 8080);
   * const packet = new TextEncoder().encode("GET example.org");
   * assertEquals(ports.getUtf8(packet.subarray(4)), 8080);
   * ```
   */
  getUtf8(key: Uint8Array): V | undefined {
    throw new TypeError(
      `Cannot look UTF-8 up as the map's keys must be strings: received ${
        show(key)
      } for a map of ${
        this._table.wordKey?.schema ?? this._table.blockKey?.schema
      }`,
    );
  }

  /** A leaf read, or part of one: `Table.find` for keys that are words, without a probe. */
  #findWord(word: number): Address {
    const words = this._words;
    const hash = mix(word ^ this._seed);
    const budget = this._reader.budget -= LEAF_READ;
    // One test for what is rare, both of it: measured 2 % of the whole. The dependent load.
    let table = (budget & UNUSUAL) === 0
      ? words[this._header + TABLE]
      : this.#rootFor(budget);
    while (true) {
      let node = words[table + HEADS + (hash & words[table + MASK])];
      while (node > 0) {
        if (words[node + KEY] === word) return node;
        node = words[node + NEXT];
      }
      if (node === 0) return 0;
      table = words[table + SUCCESSOR];
    }
  }

  /** The table to start from, if the budget is used up or a section is open. */
  #rootFor(budget: number): Address {
    if (budget < 0) this._reader.refill();
    return this._table.root();
  }

  /** Finds a node, as a leaf read or part of one. */
  #find(key: K): Address {
    if (this._wordKey !== undefined) {
      return this.#findWord(this._wordKey.toKeyWord(key));
    }
    const reader = this._reader;
    // First: a caller's object may run code when it is looked at.
    const probe = this._table.probe(key);
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this._table.find(this._table.root(), probe);
  }

  /**
   * Whether a key is there.
   *
   * @param key The key.
   * @returns Whether it is.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {Error} If the membership is closed.
   *
   * @example Asking
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
   * assertEquals(map.set("a", 1).has("a"), true);
   * ```
   */
  has(key: K): boolean {
    return this.#find(key) !== 0;
  }

  /**
   * Looks at the value of a key without copying it. The view is valid until
   * the enclosing read section ends; in debug mode a later use throws.
   *
   * `bytes` shows the shared memory, which is not to be written; `struct` decodes each field when it is
   * looked at; other codecs show what `get` returns.
   *
   * In debug mode the view of a `bytes` value is a `Proxy`, which native functions
   * refuse (`TextDecoder.decode`, `Deno.stdout.writeSync`, `ArrayBuffer.isView`);
   * `view.slice()` is a copy that they take.
   *
   * @param key The key.
   * @returns The view, or `undefined` if the key is not there.
   * @throws {Error} Outside a read section.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   *
   * @example Without a copy
   * ```ts
   * import { bytes, Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: bytes });
   * map.set(1, new Uint8Array([7, 8]));
   * assertEquals(rcu.read(() => map.view(1)?.[1]), 8);
   * ```
   */
  view(key: K): View | undefined {
    const node = this.#find(key);
    // Afterwards: a caller's object may have ended the section when it was looked at.
    if (this._reader.depth === 0) {
      throw this._reader.outside(
        "Cannot view a value outside a read section: the view would outlive it",
      );
    }
    return node === 0
      ? undefined
      : this._values.view(this._words[node + VALUE]) as View;
  }

  /**
   * Puts a value under a key.
   *
   * @param key The key.
   * @param value The value.
   * @returns The map.
   * @throws {TypeError} If the key or the value is of the wrong type.
   * @throws {RangeError} If the key or the value is out of its codec's range.
   * @throws {RcuMemoryError} If it does not fit; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Chaining
   * ```ts
   * import { Rcu, RcuMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: string, value: string });
   * map.set("a", "1").set("b", "2");
   * assertEquals(map.size, 2);
   * ```
   */
  set(key: K, value: V): this {
    this._membership.assertOpen("set an entry");
    const probe = this._table.probe(key, true);
    this._writer.put(probe, this._values.store(value), undefined);
    return this;
  }

  /**
   * Takes a key out.
   *
   * @param key The key.
   * @returns Whether it was there.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Once
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 1);
   * assertEquals([map.delete(1), map.delete(1)], [true, false]);
   * ```
   */
  delete(key: K): boolean {
    this._membership.assertOpen("delete an entry");
    return this._writer.delete(this._table.probe(key, true));
  }

  /**
   * Takes every key out: at once, or one by one where memory is so full that
   * not even an empty table fits.
   *
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Emptying
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 1).clear();
   * assertEquals(map.size, 0);
   * ```
   */
  clear(): void {
    try {
      this.replaceAll([]);
    } catch (error) {
      if (!(error instanceof RcuMemoryError)) throw error;
      for (const key of this.keys()) this.delete(key);
    }
  }

  /**
   * Replaces the whole contents by one store: within a read section a reader
   * sees all of the old or all of the new. The new contents are built aside
   * first; readers and writers go on meanwhile, and what writers do until the
   * replacement is lost with the old contents. Inside a read section of its own,
   * the calling thread goes on with the new contents.
   *
   * @param entries The new entries; the last one of a key counts.
   * @throws {TypeError} If a key or a value is of the wrong type; the map is as it was.
   * @throws {RangeError} If a key or a value is out of its codec's range; the map is as it was.
   * @throws {RcuMemoryError} If old and new do not fit together; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way; the map is as it was.
   *
   * @example Reloading
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
   * map.set("old", 1);
   * map.replaceAll([["new", 2]]);
   * assertEquals([...map], [["new", 2]]);
   * ```
   */
  replaceAll(entries: Iterable<readonly [K, V]>): void {
    const act = "replace all entries";
    this._membership.assertOpen(act);
    checkIterable(entries, act);
    const builder = new Builder(
      this._table,
      this._values,
      sizeHint(entries),
    );
    try {
      for (const entry of entries) {
        checkPair(entry, "key and value", act);
        builder.add(entry[0], entry[1]);
      }
    } catch (error) {
      builder.discard();
      throw error;
    }
    builder.publish();
  }

  /**
   * Reads the value of a key, or puts one there if there is none.
   *
   * @param key The key.
   * @param value The value to put.
   * @returns The value that was there, or else `value`.
   * @throws {TypeError} If the key or the value is of the wrong type.
   * @throws {RangeError} If the key or the value is out of its codec's range.
   * @throws {RcuMemoryError} If it does not fit; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example The first one wins
   * ```ts
   * import { Rcu, RcuMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: string, value: string });
   * assertEquals(map.getOrInsert("leader", "a"), "a");
   * assertEquals(map.getOrInsert("leader", "b"), "a");
   * ```
   */
  getOrInsert(key: K, value: V): V {
    this._membership.assertOpen("insert an entry");
    const probe = this._table.probe(key, true);
    while (true) {
      const { expected, value: found } = this.#peek(probe);
      if (expected.present) return found as V;
      if (this._writer.put(probe, this._values.store(value), expected)) {
        return value;
      }
    }
  }

  /**
   * Reads the value of a key, or puts one there that is computed if there is
   * none. No lock is held meanwhile; if another writer was faster, its value
   * counts.
   *
   * @param key The key.
   * @param compute Computes the value to put from the key.
   * @returns The value that was there, or else the computed one.
   * @throws {TypeError} If the key or the value is of the wrong type.
   * @throws {RangeError} If the key or the value is out of its codec's range.
   * @throws {RcuMemoryError} If it does not fit; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Computed once
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const squares = RcuMap.open(rcu, "squares", { key: u32, value: u32 });
   * assertEquals(squares.getOrInsertComputed(12, (n) => n * n), 144);
   * assertEquals(squares.getOrInsertComputed(12, () => 0), 144);
   * ```
   */
  getOrInsertComputed(key: K, compute: (key: K) => V): V {
    checkFunction(compute, "callback", "insert an entry");
    const found = this.get(key);
    return found !== undefined ? found : this.getOrInsert(key, compute(key));
  }

  /**
   * Replaces the value of a key by one that depends on it. Atomic among
   * writers: if another one was faster, the function is called again with what
   * that one wrote, so it should do nothing else than compute. No lock is held
   * meanwhile.
   *
   * @param key The key.
   * @param fn Computes the new value from the current one, `undefined` if there
   * is none. It may write other entries.
   * @returns The new value.
   * @throws {Error} If the function writes the entry itself, again and again.
   * @throws {TypeError} If the key or the result is of the wrong type.
   * @throws {RangeError} If the key or the result is out of its codec's range.
   * @throws {RcuMemoryError} If it does not fit; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Counting
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
   * map.update("hits", (n = 0) => n + 1);
   * assertEquals(map.update("hits", (n = 0) => n + 1), 2);
   * ```
   */
  update(key: K, fn: (old: V | undefined) => V): V {
    this._membership.assertOpen("update an entry");
    checkFunction(fn, "callback", "update an entry");
    const probe = this._table.probe(key, true);
    let own: OwnWrites | undefined;
    while (true) {
      let expected: Expected;
      let next: V;
      let word: number;
      try {
        const found = this.#peek(probe);
        expected = found.expected;
        next = fn(found.value);
        word = this._values.store(next);
      } finally {
        own?.end();
      }
      if (this._writer.put(probe, word, expected)) return next;
      // From the second attempt on only, as in RcuCell.
      own ??= new OwnWrites(this._membership, this._header, keyOf(probe));
      own.beginAgain("update an entry");
    }
  }

  /** What is there now, and how to tell that it still is. */
  #peek(
    probe: Probe,
  ): { expected: Expected; value: V | undefined } {
    const { reader } = this._membership;
    probeStack();
    reader.enter();
    try {
      // The current table, not the section's: a writer must see what it replaces.
      const table = this._words[this._header + TABLE];
      const node = this._table.find(table, probe);
      if (node === 0) {
        const expected = { present: false, word: 0, version: 0 };
        return { expected, value: undefined };
      }
      const word = this._words[node + VALUE];
      const version = this._values.versionOf(word);
      const value = this._values.load(word);
      return { expected: { present: true, word, version }, value };
    } finally {
      reader.exit();
    }
  }

  /**
   * How many entries there are. While others write, a number close to that.
   *
   * @example Counting
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals(map.set(1, 1).size, 1);
   * ```
   */
  get size(): number {
    return this._table.count();
  }

  /**
   * The entries, in no order; weakly consistent. Each step is a read section
   * of its own, so the iterator may be kept across an `await`.
   *
   * @returns An iterator of pairs.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * assertEquals([...map.entries()], [[1, 10]]);
   * ```
   */
  entries(): MapIterator<[K, V]> {
    return collect(
      this._table,
      (node) => [this._table.keyOf(node), this.#valueOf(node)],
    );
  }

  /**
   * The keys, in no order; weakly consistent.
   *
   * @returns An iterator.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals([...map.set(1, 10).keys()], [1]);
   * ```
   */
  keys(): MapIterator<K> {
    return collect(this._table, (node) => this._table.keyOf(node));
  }

  /**
   * The values, in no order; weakly consistent.
   *
   * @returns An iterator.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals([...map.set(1, 10).values()], [10]);
   * ```
   */
  values(): MapIterator<V> {
    return collect(this._table, (node) => this.#valueOf(node));
  }

  #valueOf(node: Address): V {
    return this._values.load(this._words[node + VALUE]);
  }

  /**
   * Calls a function for every entry, in no order; weakly consistent.
   *
   * @param callback Receives the value, the key and the map.
   * @param thisArg What `this` is in it.
   * @throws {TypeError} If `callback` is not a function.
   *
   * @example A sum
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10).set(2, 20);
   * let sum = 0;
   * map.forEach((value) => sum += value);
   * assertEquals(sum, 30);
   * ```
   */
  forEach(
    callback: (value: V, key: K, map: this) => void,
    thisArg?: unknown,
  ): void {
    checkFunction(callback, "callback", "call for each entry");
    for (const [key, value] of this.entries()) {
      callback.call(thisArg, value, key, this);
    }
  }

  /**
   * As {@linkcode RcuMap.entries}.
   *
   * @returns An iterator of pairs.
   *
   * @example A loop
   * ```ts
   * import { Rcu, RcuMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * for (const [key, value] of map) assertEquals(value, key * 10);
   * ```
   */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  // `get` for each kind of map, so that it is small enough to be inlined into its caller's loop
  // whatever other maps a thread reads (measured: 0.75 against 0.45 of a Map's time). The classes
  // stand in here because a class's own body may use its private members.
  static {
    class WordMap<K, V, View> extends RcuMap<K, V, View> {
      override get(key: K): V | undefined {
        const word = this._wordKey!.toKeyWord(key);
        let value: V | undefined;
        const node = this.#findWord(word);
        if (node !== 0) {
          value = this._wordValue!.fromWord(this._words[node + VALUE]);
        }
        return value;
      }
    }

    class WordKeyMap<K, V, View> extends RcuMap<K, V, View> {
      override get(key: K): V | undefined {
        const word = this._wordKey!.toKeyWord(key);
        let value: V | undefined;
        const node = this.#findWord(word);
        if (node !== 0) value = this._values.load(this._words[node + VALUE]);
        return value;
      }
    }

    class StringMap<K, V, View> extends RcuMap<K, V, View> {
      // `#` fields, as the caller may freeze the map; they are no constants anyway.
      #found = new Map<string, unknown>();
      #seen = -1;
      declare readonly _calm: Calm;
      declare readonly _changes: Address;
      declare readonly _reusable: boolean;
      declare readonly _strings: StringCache<V>;

      constructor(
        membership: Membership,
        header: Address,
        options: RcuMapOptions<K, V, View>,
        values: Values<V>,
      ) {
        super(membership, header, options, values);
        this._calm = StringMap.#calmOf(this);
        this._changes = header + CHANGES;
        this._reusable = values.reusable;
        const table = this._table as unknown as Table<string>;
        this._strings = new StringCache(table, values);
      }

      override get(key: K): V | undefined {
        const reader = this._reader;
        const budget = reader.budget -= LEAF_READ;
        // A key needs no conversion: what is no string is refused before anything is looked at.
        if ((budget & UNUSUAL) !== 0) {
          if (reader.depth !== 0) return super.get(key);
          reader.refill();
        }
        let what: unknown;
        // Plain is enough: if it returns an old number, the section began before the change.
        if (this._words[this._changes] === this.#seen) {
          what = this.#found.get(key as string);
        }
        if (what === undefined) {
          what = this._strings.recall(key as string, this._calm);
        }
        if (!this._reusable && what !== undefined) {
          what = this._values.load(this._words[what as Address + VALUE]);
        }
        return what as V | undefined;
      }

      /** What the cache of strings sees of a map's fields. */
      static #calmOf<K, V, View>(map: StringMap<K, V, View>): Calm {
        return {
          get found() {
            return map.#found;
          },
          set found(found) {
            map.#found = found;
          },
          get seen() {
            return map.#seen;
          },
          set seen(seen) {
            map.#seen = seen;
          },
        };
      }

      override getUtf8(key: Uint8Array): V | undefined {
        if (!(key instanceof Uint8Array)) {
          throw new TypeError(
            `Cannot look UTF-8 up as the key must be a Uint8Array: received ${
              show(key)
            }`,
          );
        }
        // The elements of a typed array are read without any code of its owner's, whatever it has
        // been made to look like. Its length is asked for once, and has to fit them.
        const { length } = key;
        if (
          !ArrayBuffer.isView(key) || typeof length !== "number" ||
          key[length] !== undefined || key[length - 1] === undefined
        ) {
          // No bytes at all, or a Proxy, whose code runs here and not in the lookup.
          return this.get(utf8.decode(copyOf(key)) as K);
        }
        // Copied, for decoders refuse shared memory.
        if (!isAscii(key, length)) {
          return this.get(utf8.decode(new Uint8Array(key)) as K);
        }
        const reader = this._reader;
        if ((reader.budget -= LEAF_READ) < 0) reader.refill();
        const node = this.#findAscii(key, length);
        return node === 0 ? undefined : this.#valueOf(node);
      }

      /** `Table.find` for a string that is at hand as ASCII, without a probe. */
      #findAscii(key: Uint8Array, length: number): Address {
        const words = this._words;
        const hash = hashAscii(key, length, this._seed);
        let table = this._table.root();
        while (true) {
          let node = words[table + HEADS + (hash & words[table + MASK])];
          while (node > 0) {
            if (
              words[node + KEY] === hash &&
              equalsAscii(words, node + NODE_WORDS, key, length)
            ) return node;
            node = words[node + NEXT];
          }
          if (node === 0) return 0;
          table = words[table + SUCCESSOR];
        }
      }
    }

    kindOf = (key, value) =>
      key instanceof WordCodec
        ? value instanceof WordCodec ? WordMap : WordKeyMap
        : key.schema === "string"
        ? StringMap
        : RcuMap;
  }

  /**
   * Watches the map from now on: yields a number, other than the one before, whenever something has
   * changed since the last one, in any thread. However much changes while nobody asks is one change.
   * It does not poll, and does not keep the process alive by itself.
   *
   * A change may be yielded that has been seen already, and one that changed nothing.
   *
   * @param options A signal to end it, and whether to keep the process alive.
   * @returns The changes. Leaving a `for await` loop ends them; until then writers wake this thread.
   * @throws {TypeError} If an option is of the wrong type.
   * @throws {Error} If the membership is closed; the iteration throws then too, and
   * the signal's reason if it is aborted.
   *
   * @example Reloading what depends on it
   * ```ts
   * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const limits = RcuMap.open(rcu, "limits", { key: string, value: u32 });
   * const alive = setInterval(() => limits.update("/api", (n = 0) => n + 1), 1);
   *
   * // Before the first look: what changes after it is then a change that is yielded.
   * const changes = limits.changes();
   * let limit = limits.get("/api") ?? 0;
   * if (limit < 3) {
   *   for await (const _ of changes) {
   *     limit = limits.get("/api") ?? 0;
   *     if (limit >= 3) break;
   *   }
   * }
   * clearInterval(alive);
   * assertEquals(limit >= 3, true);
   * ```
   */
  changes(
    options: ChangesOptions = {},
  ): AsyncIterableIterator<number, void, void> {
    this.#watch ??= new Watch(
      this._membership,
      this._header + WATCHERS,
      this._header + WATCHED,
    );
    return changesOf(this._membership, this.#watch, options);
  }

  /** `"RcuMap"`. */
  get [Symbol.toStringTag](): string {
    return "RcuMap";
  }
}

/** What a key of bytes holds, whatever it says. */
function copyOf(key: Uint8Array): Uint8Array {
  try {
    return new Uint8Array(key);
  } catch (cause) {
    if (!ArrayBuffer.isView(key) || !(cause instanceof TypeError)) throw cause;
    throw new TypeError(
      "Cannot look UTF-8 up as the key's buffer must hold it: received one whose buffer is detached or has shrunk",
      { cause },
    );
  }
}

/** How many entries there will be, if the caller's object says so believably; else 0. */
function sizeHint(entries: unknown): number {
  let said: unknown;
  try {
    if (Array.isArray(entries)) said = entries.length;
    else if (entries instanceof Map) said = entries.size;
  } catch {
    // It is no Map, or does not say: what comes is counted anyway.
  }
  return Number.isSafeInteger(said) && (said as number) > 0
    ? Math.min(said as number, LARGEST_HINT)
    : 0;
}

function makeMap(
  membership: Membership,
  key: KeyCodec<unknown, unknown>,
  capacity: number,
): Address {
  const { words } = membership;
  const buckets = bucketsFor(capacity, STRIPES);
  const size = tableWords(buckets);
  const table = membership.allocate(size);
  let header: Address;
  try {
    header = membership.allocate(headerWords(key));
  } catch (error) {
    membership.heap.free(table);
    throw error;
  }
  words.fill(0, table, table + size);
  words[table + MASK] = buckets - 1;
  words.fill(0, header, header + headerWords(key));
  words[header + TABLE] = table;
  words[header + LEAST_MASK] = buckets - 1;
  // A secret of the map's own: whoever chooses the keys cannot choose their buckets.
  words[header + SEED] = crypto.getRandomValues(new Int32Array(1))[0];
  return header;
}
