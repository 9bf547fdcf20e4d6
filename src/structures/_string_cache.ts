// A thread's memory of where string keys are, so that a key that repeats is not hashed and compared again.

import type { Address } from "../memory/arena.ts";
import { CHANGES, type Table, VALUE } from "./_table.ts";
import type { Values } from "./_values.ts";

/** Keys that a thread remembers, in each of its maps: what it keeps privately stays bounded. */
const LIMIT = 2 ** 16;

/** Fewest lookups without a change after which keys are remembered for as long as there is none. */
const CALM = 2 ** 11;

/** Where a key was found. */
interface Found {
  /** Where the key's version is. */
  at: Address;
  /** The version under which it was found. */
  version: number;
  /** What `get` needs: the value if it can be given out again, else the node. */
  what: unknown;
}

/** What a map keeps in its own fields, where its `get` is fastest to find it. */
export interface Calm {
  /** While nothing changes: what was found for a key. */
  _calm: Map<string, unknown>;
  /** The changes under which that was filled. */
  _seen: number;
}

/**
 * Looks string keys up, remembering, in two ways that invariant 6 of Table
 * allows:
 *
 * - `entries`: a key's finding serves as long as the key's version is the one
 *   under which it was made. What others write to keys with other versions does
 *   not void it. In two generations: the older one is dropped when the younger
 *   one is full, and what is used moves to the younger one.
 * - {@linkcode Calm}: while nothing at all changes, one lookup in a private
 *   `Map` and one load of a word that all keys share. Not worth filling while
 *   changes follow each other closely: it begins after as many lookups as there
 *   are entries.
 */
export class StringCache<V> {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _table: Table<string>;
  declare private readonly _values: Values<V>;
  declare private readonly _words: Int32Array;
  declare private readonly _changes: Address;
  declare private readonly _reusable: boolean;

  #lookups = 0;
  #entries = new Map<string, Found>();
  #older = new Map<string, Found>();

  constructor(table: Table<string>, values: Values<V>) {
    this._table = table;
    this._values = values;
    this._words = table.words;
    this._changes = table.header + CHANGES;
    this._reusable = values.reusable;
  }

  /**
   * Looks a key up that is not in a calm map; the caller is online and in no
   * explicit section.
   *
   * @param key The key, as the caller passed it.
   * @param calm The caller's calm map.
   * @returns What was found: the value if it can be given out again, else the
   * node; `undefined` if the key is not there.
   */
  recall(key: string, calm: Calm): unknown {
    // Acquire: before the version, whether remembered or new. Pairs with: `beginChange`.
    const changes = Atomics.load(this._words, this._changes);
    if (changes !== calm._seen || calm._calm.size >= LIMIT) {
      calm._seen = changes;
      this.#lookups = 0;
      if (calm._calm.size > 0) calm._calm = new Map();
    }
    const known = this.#entries.get(key) ?? this.#promote(key);
    const found = known !== undefined &&
        Atomics.load(this._words, known.at) === known.version
      ? known
      : this.#find(key, known);
    if (found === undefined) return undefined;
    if (
      (found.version & 1) === 0 &&
      ++this.#lookups > Math.max(CALM, this.#entries.size)
    ) calm._calm.set(key, found.what);
    return found.what;
  }

  #promote(key: string): Found | undefined {
    const found = this.#older.get(key);
    if (found !== undefined) this.#keep(key, found);
    return found;
  }

  #keep(key: string, found: Found): void {
    if (this.#entries.size >= LIMIT) {
      this.#older = this.#entries;
      this.#entries = new Map();
    }
    this.#entries.set(key, found);
  }

  #find(key: string, known: Found | undefined): Found | undefined {
    const table = this._table;
    const probe = table.probe(key);
    const at = table.versionAt(probe.hash);
    // Acquire: before the table and what it leads to. Pairs with: `beginChange`, `endChange`.
    const version = Atomics.load(this._words, at);
    const node = table.find(table.root(), probe);
    if (node === 0) return undefined;
    const what = this._reusable
      ? this._values.load(this._words[node + VALUE])
      : node;
    if ((version & 1) !== 0) return { at, version, what };
    if (known === undefined) {
      const found = { at, version, what };
      this.#keep(key, found);
      return found;
    }
    known.version = version;
    known.what = what;
    return known;
  }
}
