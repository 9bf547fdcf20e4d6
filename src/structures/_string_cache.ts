// A thread's memory of where string keys are, so that a key that repeats is not hashed and compared again.

import type { Address } from "../memory/arena.ts";
import { CHANGES, type Table, VALUE, VERSION_COUNT } from "./_table.ts";
import type { Values } from "./_values.ts";

/** Keys that a thread remembers, in each of its maps: what it keeps privately stays bounded. */
const LIMIT = 2 ** 16;

/**
 * Lookups after a change before it is looked what it has voided, which takes as long as some
 * ten of them: where changes follow each other closely, few of them pay for that.
 */
const PATIENCE = 16;

/** Where a key was found. */
interface Found {
  /** Where the key's version is. */
  at: Address;
  /** The version under which it was found. */
  version: number;
  /** What `get` needs: the value if it can be given out again, else the node. */
  what: unknown;
}

/** What a map keeps at hand for its `get`. */
export interface Calm {
  /** What was found for a key, and nothing has voided. */
  found: Map<string, unknown>;
  /** The changes that have been looked at: all that is in the map is right until there is another one. */
  seen: number;
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
 *   `Map` and one load of a word that all keys share. A change voids the keys of its version, and
 *   no others: some lookups later, the versions are compared with those under which the map was
 *   filled.
 *
 * Why the map is right while CHANGES is what was seen. 1. Whatever is in it was found under the
 * version of its slot in `#versions`, which is even, and was loaded after CHANGES. 2. A change that
 * had made its version odd before that load had also made it even, hence was over, and what was found
 * is what it left. 3. Any other one makes its version odd after that load, and then
 * moves CHANGES, before it replaces anything. 4. Catching up loads CHANGES first: a version that is
 * as before has not been made odd since, or is by a change that (3) applies to.
 */
export class StringCache<V> {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _table: Table<string>;
  declare private readonly _values: Values<V>;
  declare private readonly _words: Int32Array;
  declare private readonly _changes: Address;
  declare private readonly _reusable: boolean;

  /** The version of each slot under which keys are in the calm map; odd where none may be. */
  readonly #versions = new Int32Array(VERSION_COUNT).fill(-1);
  /** Those keys, by slot. */
  readonly #keys: string[][] = Array.from({ length: VERSION_COUNT }, () => []);
  /** Lookups since there was a change that has not been looked at. */
  #behind = PATIENCE;
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
    if (changes !== calm.seen && ++this.#behind > PATIENCE) {
      this.#catchUp(calm, changes);
      const still = calm.found.get(key);
      if (still !== undefined) return still;
    }
    const known = this.#entries.get(key) ?? this.#promote(key);
    const found = known !== undefined &&
        Atomics.load(this._words, known.at) === known.version
      ? known
      : this.#find(key, known);
    if (found === undefined) return undefined;
    if ((found.version & 1) === 0 && changes === calm.seen) {
      this.#calmDown(calm, key, found);
    }
    return found.what;
  }

  /** Takes out of the calm map what changes have voided. */
  #catchUp(calm: Calm, changes: number): void {
    this.#behind = 0;
    const first = this._table.versionAt(0);
    for (let slot = 0; slot < VERSION_COUNT; slot++) {
      // After CHANGES (4). Pairs with: `beginChange`, `endChange`.
      const version = Atomics.load(this._words, first + slot);
      if (version === this.#versions[slot]) continue;
      this.#versions[slot] = version;
      const keys = this.#keys[slot];
      for (let i = 0; i < keys.length; i++) calm.found.delete(keys[i]);
      keys.length = 0;
    }
    calm.seen = changes;
  }

  /** Puts a key into the calm map that was found just now, after CHANGES was loaded (1). */
  #calmDown(calm: Calm, key: string, { at, version, what }: Found): void {
    if (calm.found.size >= LIMIT) this.#startOver(calm);
    const slot = at - this._table.versionAt(0);
    const keys = this.#keys[slot];
    if (version !== this.#versions[slot]) {
      // A change was over just now: the next lookup finds that CHANGES has moved.
      if (keys.length > 0) return;
      this.#versions[slot] = version;
    }
    keys.push(key);
    calm.found.set(key, what);
  }

  #startOver(calm: Calm): void {
    calm.found = new Map();
    for (const keys of this.#keys) keys.length = 0;
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
