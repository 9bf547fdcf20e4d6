// A sorted map that all threads of a domain share.

import {
  checkFunction,
  checkIterable,
  checkPair,
  type OptionNames,
  uncloneable,
} from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import { WordCodec } from "../memory/_codec.ts";
import type { Address } from "../memory/arena.ts";
import type { Codec, KeyCodec } from "../memory/codec.ts";
import { RcuMemoryError } from "../memory/errors.ts";
import type { Reader } from "../readers/_reader.ts";
import * as reading from "../readers/_reader.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { probeStack } from "../sync/_stack.ts";
import { hideFields } from "./_hide.ts";
import { changesOf, type ChangesOptions } from "./changes.ts";
import { openRoot, takeOptions } from "./_open.ts";
import { OwnWrites } from "./_own_writes.ts";
import { keyCodec, keyOf } from "./_table.ts";
import {
  discardTree,
  makeTree,
  type Probe,
  Tree,
  WATCHED,
  WATCHERS,
} from "./_tree.ts";
import * as layout from "./_tree.ts";
import { emptyTree, TreeBuilder } from "./_tree_builder.ts";
import { ascend } from "./_tree_cursor.ts";
import { TreeWriter } from "./_tree_writer.ts";
import { Values } from "./_values.ts";
import { Watch } from "./_watch.ts";
import type { Expected } from "./_writer.ts";

// A copy for the hot path, as in RcuMap.
const { LEAF_READ, UNUSUAL } = reading;

// Copies for the hot path: an engine folds a constant of the same module into the code, but loads
// one of another module at each use.
const { KEY, LEFT, LINK, RIGHT, ROOT, TREE, VALUE } = layout;

const OPEN_OPTIONS: OptionNames<RcuSortedMapOptions<unknown, unknown>> = {
  key: true,
  value: true,
};

const UNCLONEABLE = uncloneable(
  "an RcuSortedMap, which other threads open by its name",
);

let kindOf: (
  key: KeyCodec<unknown, unknown>,
  value: Codec<unknown, unknown>,
) => unknown;

/**
 * How a sorted map is opened.
 *
 * @typeParam K Its keys.
 * @typeParam V Its values.
 * @typeParam View What a zero-copy view of a value is.
 *
 * @example A calendar
 * ```ts
 * import {
 *   f64,
 *   Rcu,
 *   RcuSortedMap,
 *   type RcuSortedMapOptions,
 *   string,
 * } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: RcuSortedMapOptions<number, string> = {
 *   key: f64,
 *   value: string,
 * };
 * using rcu = Rcu.create();
 * const calendar = RcuSortedMap.open(rcu, "calendar", options);
 * calendar.set(Date.UTC(2030, 0), "later").set(Date.UTC(2020, 0), "earlier");
 * assertEquals([...calendar.values()], ["earlier", "later"]);
 * ```
 */
export interface RcuSortedMapOptions<K, V, View = V> {
  /** How keys lie in memory, and in which order they are. */
  key: KeyCodec<K, unknown>;
  /** How values lie in memory. */
  value: Codec<V, View>;
}

/**
 * A map in the order of its keys that all threads of a domain share: in one
 * copy, read without locks.
 *
 * It has what `RcuMap` has, except `capacity` and `getUtf8`, and in addition `first`, `last`,
 * `floor`, `ceiling` and `range`. A lookup takes at most 2·log₂(n + 1)
 * comparisons; where no order is needed, `RcuMap` is faster.
 *
 * The order is ascending: numbers by value, `NaN` after all others, -0 being
 * 0; strings by UTF-16 units, as the operator `<` compares them; bytes by their
 * unsigned values, a beginning before what it begins.
 *
 * Iteration is weakly consistent: it never fails, goes strictly upwards and
 * shows each key at most once; keys that are there all the time are shown, keys
 * that come or go meanwhile may be. Each step is a section and a search of its
 * own, so that a value is as it is when it is shown, and an iterator may be kept
 * across an `await`.
 *
 * Any number of threads may write; they take turns. A reader finds the old value
 * of a key or the new one, never a mixture and never neither, wherever it is on
 * its way down the tree while nodes are inserted, deleted or rotated. `floor`,
 * `ceiling`, `first` and `last` never pass over a key that is there all the time.
 *
 * An explicit read section sees one generation of the map: once it has read,
 * another thread's `replaceAll` does not show in it, nor do then the section's
 * own writes, which go to the new generation.
 *
 * A red-black tree after Howard and Walpole, "Relativistic red-black trees"
 * (2014), and that of userspace RCU (Desnoyers, 2011). An insertion copies at most
 * two nodes; a deletion O(log n) at worst, and 1.3 on average in random order.
 * Neither waits for a grace period.
 *
 * @typeParam K Its keys.
 * @typeParam V Its values.
 * @typeParam View What a zero-copy view of a value is.
 *
 * @example Which range an address is in
 * ```ts
 * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const owners = RcuSortedMap.open(rcu, "owners", { key: u32, value: string });
 * owners.set(100, "a").set(300, "c").set(200, "b");
 * assertEquals(owners.floor(250), [200, "b"]);
 * assertEquals([...owners.range(100, 300)], [[100, "a"], [200, "b"]]);
 * ```
 */
export class RcuSortedMap<K, V, View = V> implements Iterable<[K, V]> {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _uncloneable: symbol;
  declare private readonly _membership: Membership;
  declare private readonly _reader: Reader;
  declare private readonly _words: Int32Array;
  declare private readonly _header: Address;
  declare private readonly _tree: Tree<K>;
  declare private readonly _values: Values<V>;
  declare private readonly _writer: TreeWriter<K, V>;
  /** What makes a key's word one in order. */
  declare private readonly _bias: number;
  /** The key codec of maps whose keys are words. */
  declare private readonly _wordKey: WordCodec<K> | undefined;
  /** The value codec of maps whose values are words. */
  declare private readonly _wordValue: WordCodec<V> | undefined;

  #watch: Watch | undefined;

  static {
    hideFields(this, (map) => `RcuSortedMap(${map.size})`);
  }

  private constructor(
    membership: Membership,
    header: Address,
    options: RcuSortedMapOptions<K, V, View>,
    values: Values<V>,
  ) {
    this._uncloneable = UNCLONEABLE;
    this._membership = membership;
    this._reader = membership.reader;
    this._words = membership.words;
    this._header = header;
    this._values = values;
    this._tree = new Tree(membership, header, options.key);
    this._bias = this._tree.bias;
    this._writer = new TreeWriter(this._tree, values);
    this._wordKey = this._tree.wordKey;
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
   * @param options Its codecs.
   * @returns The calling thread's view of the map.
   * @throws {TypeError} If the name is taken with another schema, or an
   * argument is of the wrong type.
   * @throws {RcuMemoryError} If the map does not fit.
   *
   * @example A second schema is refused
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertThrows } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * assertThrows(
   *   () => RcuSortedMap.open(rcu, "m", { key: u32, value: string }),
   *   TypeError,
   *   'Cannot open "m" as sortedMap<u32,string>: it was opened as sortedMap<u32,u32>',
   * );
   * ```
   */
  static open<K, V, View = V>(
    rcu: Rcu,
    name: string,
    options: RcuSortedMapOptions<K, V, View>,
  ): RcuSortedMap<K, V, View> {
    const membership = membershipOf(rcu, "open a map");
    const must = "name a key and a value codec";
    const taken = takeOptions(options, must, OPEN_OPTIONS);
    const { key, value } = taken;
    keyCodec(key);
    const values = new Values<V>(membership, value);
    const header = openRoot(
      membership,
      name,
      `sortedMap<${key.schema},${value.schema}>`,
      () => makeTree(membership),
      (made) => discardTree(membership, made),
    );
    const kind = kindOf(key, value) as typeof RcuSortedMap<K, V, View>;
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
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * assertEquals([map.get(1), map.get(2)], [10, undefined]);
   * ```
   */
  get(key: K): V | undefined {
    const node = this.#find(key);
    return node === 0 ? undefined : this.#valueOf(node);
  }

  /** A leaf read, or part of one: `Tree.find` for keys that are words, without a probe. */
  #findWord(word: number): Address {
    const words = this._words;
    const budget = this._reader.budget -= LEAF_READ;
    // As in RcuMap. The dependent load.
    const tree = (budget & UNUSUAL) === 0
      ? words[this._header + TREE]
      : this.#treeFor(budget);
    let node = words[tree + ROOT];
    while (node !== 0) {
      const at = words[node + KEY];
      if (at === word) return node;
      // LEFT or RIGHT, which is the word behind it. Computed: a processor mispredicts a branch
      // every other time. Measured 18 % faster with 1,000 keys.
      node = words[node + LEFT + Number(at < word)] & LINK;
    }
    return 0;
  }

  /** The tree to search, if the budget is used up or a section is open. */
  #treeFor(budget: number): Address {
    if (budget < 0) this._reader.refill();
    return this._tree.tree();
  }

  /** Finds a node, as a leaf read or part of one. */
  #find(key: K): Address {
    if (this._wordKey !== undefined) {
      return this.#findWord(this._wordKey.toKeyWord(key) ^ this._bias);
    }
    const reader = this._reader;
    // First: a caller's object may run code when it is looked at.
    const probe = this._tree.probe(key);
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this._tree.find(this._tree.tree(), probe);
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
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: u32 });
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
   * @param key The key.
   * @returns The view, or `undefined` if the key is not there.
   * @throws {Error} Outside a read section.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   *
   * @example Without a copy
   * ```ts
   * import { bytes, Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: bytes });
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
   * import { Rcu, RcuSortedMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
   * map.set("a", "1").set("b", "2");
   * assertEquals(map.size, 2);
   * ```
   */
  set(key: K, value: V): this {
    this._membership.assertOpen("set an entry");
    const probe = this._tree.probe(key, true);
    this._writer.put(probe, this._values.store(value), undefined);
    return this;
  }

  /**
   * Takes a key out. The few nodes that this copies come from a stock of the
   * map's own where memory is full.
   *
   * @param key The key.
   * @returns Whether it was there.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {RcuMemoryError} If memory is full, the stock is used up, and what
   * deletions gave back still waits for a grace period; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Once
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 1);
   * assertEquals([map.delete(1), map.delete(1)], [true, false]);
   * ```
   */
  delete(key: K): boolean {
    this._membership.assertOpen("delete an entry");
    return this._writer.delete(this._tree.probe(key, true));
  }

  /**
   * Takes every key out, at once. As `replaceAll([])` does; where memory is so
   * full that not even an empty tree fits, open sections see the map go empty.
   *
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Emptying
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 1).clear();
   * assertEquals(map.size, 0);
   * ```
   */
  clear(): void {
    try {
      this.replaceAll([]);
    } catch (error) {
      if (!(error instanceof RcuMemoryError)) throw error;
      emptyTree(this._tree, this._values);
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
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: u32 });
   * map.set("old", 1);
   * map.replaceAll([["new", 2]]);
   * assertEquals([...map], [["new", 2]]);
   * ```
   */
  replaceAll(entries: Iterable<readonly [K, V]>): void {
    const act = "replace all entries";
    this._membership.assertOpen(act);
    checkIterable(entries, act);
    const builder = new TreeBuilder(this._tree, this._values);
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
   * import { Rcu, RcuSortedMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
   * assertEquals(map.getOrInsert("leader", "a"), "a");
   * assertEquals(map.getOrInsert("leader", "b"), "a");
   * ```
   */
  getOrInsert(key: K, value: V): V {
    this._membership.assertOpen("insert an entry");
    const probe = this._tree.probe(key, true);
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
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const squares = RcuSortedMap.open(rcu, "squares", { key: u32, value: u32 });
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
   * @param fn Computes the new value from the current one, `undefined` if there is none.
   * @returns The new value.
   * @throws {Error} If the function writes the entry itself, again and again.
   * @throws {TypeError} If the key or the result is of the wrong type.
   * @throws {RangeError} If the key or the result is out of its codec's range.
   * @throws {RcuMemoryError} If it does not fit; the map is as it was.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Counting
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: u32 });
   * map.update("hits", (n = 0) => n + 1);
   * assertEquals(map.update("hits", (n = 0) => n + 1), 2);
   * ```
   */
  update(key: K, fn: (old: V | undefined) => V): V {
    this._membership.assertOpen("update an entry");
    checkFunction(fn, "callback", "update an entry");
    const probe = this._tree.probe(key, true);
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
  #peek(probe: Probe): { expected: Expected; value: V | undefined } {
    const { reader } = this._membership;
    probeStack();
    reader.enter();
    try {
      // The current tree, not the section's: a writer must see what it replaces.
      const node = this._tree.find(this._words[this._header + TREE], probe);
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
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals(map.set(1, 1).size, 1);
   * ```
   */
  get size(): number {
    return this._tree.count();
  }

  /**
   * The entry with the smallest key.
   *
   * @returns Key and value, or `undefined` if the map is empty.
   * @throws {Error} If the membership is closed.
   *
   * @example The earliest
   * ```ts
   * import { f64, Rcu, RcuSortedMap, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: f64, value: string });
   * assertEquals(map.first(), undefined);
   * map.set(2.5, "b").set(-1, "a");
   * assertEquals(map.first(), [-1, "a"]);
   * ```
   */
  first(): [K, V] | undefined {
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this.#entryOf(this._tree.end(LEFT));
  }

  /**
   * The entry with the greatest key.
   *
   * @returns Key and value, or `undefined` if the map is empty.
   * @throws {Error} If the membership is closed.
   *
   * @example The latest
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: string });
   * map.set(7, "a").set(4294967295, "b");
   * assertEquals(map.last(), [4294967295, "b"]);
   * ```
   */
  last(): [K, V] | undefined {
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this.#entryOf(this._tree.end(RIGHT));
  }

  /**
   * The entry with the greatest key that is not above a given one.
   *
   * @param key The key.
   * @returns Key and value, or `undefined` if all keys are above it.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {Error} If the membership is closed.
   *
   * @example What was valid at a moment
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: string });
   * map.set(10, "a").set(20, "b");
   * assertEquals(map.floor(15), [10, "a"]);
   * assertEquals(map.floor(9), undefined);
   * ```
   */
  floor(key: K): [K, V] | undefined {
    const probe = this._tree.probe(key);
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this.#entryOf(this._tree.upTo(probe));
  }

  /**
   * The entry with the smallest key that is not below a given one.
   *
   * @param key The key.
   * @returns Key and value, or `undefined` if all keys are below it.
   * @throws {TypeError} If the key is of the wrong type.
   * @throws {RangeError} If the key is out of the codec's range.
   * @throws {Error} If the membership is closed.
   *
   * @example What comes next
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: u32 });
   * map.set("b", 1).set("d", 2);
   * assertEquals(map.ceiling("c"), ["d", 2]);
   * assertEquals(map.ceiling("b"), ["b", 1]);
   * ```
   */
  ceiling(key: K): [K, V] | undefined {
    const probe = this._tree.probe(key);
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this.#entryOf(this._tree.from(probe, false));
  }

  #entryOf(node: Address): [K, V] | undefined {
    if (node === 0) return undefined;
    const tree = this._tree;
    return [tree.keyOf(tree.probeOf(node)), this.#valueOf(node)];
  }

  /**
   * The entries from one key, included, up to another one, not included, in
   * ascending order; weakly consistent. Nothing if `to` is not above `from`.
   *
   * @param from Where to begin; `undefined` for the first key.
   * @param to Where to end; `undefined` for behind the last key.
   * @returns An iterator of pairs.
   * @throws {TypeError} If a key is of the wrong type.
   * @throws {RangeError} If a key is out of the codec's range.
   *
   * @example A page
   * ```ts
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: string, value: u32 });
   * map.set("a/1", 1).set("a/2", 2).set("b/1", 3);
   * assertEquals([...map.range("a/", "a0")], [["a/1", 1], ["a/2", 2]]);
   * assertEquals([...map.range("a/2")], [["a/2", 2], ["b/1", 3]]);
   * ```
   */
  range(from?: K, to?: K): MapIterator<[K, V]> {
    const bound = (key: K | undefined) =>
      key === undefined ? undefined : this._tree.probe(key, true);
    return this.#ascend(bound(from), bound(to));
  }

  /**
   * The entries, in ascending order of their keys; weakly consistent. Each step is a read section
   * of its own, so the iterator may be kept across an `await`.
   *
   * @returns An iterator of pairs.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * assertEquals([...map.entries()], [[1, 10]]);
   * ```
   */
  entries(): MapIterator<[K, V]> {
    return this.#ascend(undefined, undefined);
  }

  #ascend(from: Probe | undefined, to: Probe | undefined): MapIterator<[K, V]> {
    return ascend(
      this._tree,
      from,
      to,
      (probe, node) => [this._tree.keyOf(probe), this.#valueOf(node)],
    );
  }

  /**
   * The keys in ascending order; weakly consistent.
   *
   * @returns An iterator.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals([...map.set(1, 10).keys()], [1]);
   * ```
   */
  keys(): MapIterator<K> {
    const tree = this._tree;
    return ascend(tree, undefined, undefined, (probe) => tree.keyOf(probe));
  }

  /**
   * The values, in ascending order of their keys; weakly consistent.
   *
   * @returns An iterator.
   *
   * @example All of them
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * assertEquals([...map.set(1, 10).values()], [10]);
   * ```
   */
  values(): MapIterator<V> {
    return ascend(
      this._tree,
      undefined,
      undefined,
      (_, node) => this.#valueOf(node),
    );
  }

  #valueOf(node: Address): V {
    return this._values.load(this._words[node + VALUE]);
  }

  /**
   * Calls a function for every entry, in ascending order of their keys; weakly consistent.
   *
   * @param callback Receives the value, the key and the map.
   * @param thisArg What `this` is in it.
   * @throws {TypeError} If `callback` is not a function.
   *
   * @example A sum
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
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
   * As {@linkcode RcuSortedMap.entries}.
   *
   * @returns An iterator of pairs.
   *
   * @example A loop
   * ```ts
   * import { Rcu, RcuSortedMap, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
   * map.set(1, 10);
   * for (const [key, value] of map) assertEquals(value, key * 10);
   * ```
   */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  // As in RcuMap: `get` for each kind of map, small enough to be inlined into its caller's loop.
  static {
    class WordMap<K, V, View> extends RcuSortedMap<K, V, View> {
      override get(key: K): V | undefined {
        const word = this._wordKey!.toKeyWord(key) ^ this._bias;
        let value: V | undefined;
        const node = this.#findWord(word);
        if (node !== 0) {
          value = this._wordValue!.fromWord(this._words[node + VALUE]);
        }
        return value;
      }
    }

    class WordKeyMap<K, V, View> extends RcuSortedMap<K, V, View> {
      override get(key: K): V | undefined {
        const word = this._wordKey!.toKeyWord(key) ^ this._bias;
        let value: V | undefined;
        const node = this.#findWord(word);
        if (node !== 0) value = this._values.load(this._words[node + VALUE]);
        return value;
      }
    }

    kindOf = (key, value) =>
      key instanceof WordCodec
        ? value instanceof WordCodec ? WordMap : WordKeyMap
        : RcuSortedMap;
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
   * import { Rcu, RcuSortedMap, string, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const limits = RcuSortedMap.open(rcu, "limits", { key: string, value: u32 });
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

  /** `"RcuSortedMap"`. */
  get [Symbol.toStringTag](): string {
    return "RcuSortedMap";
  }
}
