/**
 * A path cache in shared memory, as the kernel's of 2009: dentries in one hash
 * by directory and name, found without a lock, each with a count of who uses it.
 */
import type { Address, Rcu } from "../mod.ts";

// A dentry: one cache line, as what a lookup touched of the kernel's was. All but NEXT and COUNT
// is immutable once it is published.
const NEXT = 0;
const PARENT = 1;
const HASH = 2;
const LENGTH = 3;
const COUNT = 4;
const NAME = 5;
const NAME_WORDS = 8;
const DENTRY_WORDS = 16;

// The cache's head.
const BUCKETS = 0;
const ROOT = 1;
const HEAD_WORDS = 4;

/** Bits of a bucket's number: two buckets to a dentry, or nearly. */
const BITS = 13;
const SHIFT = 32 - BITS;
/** Spreads numbers (Knuth's multiplicative hashing). */
const SPREAD = 0x9e3779b1 | 0;

const SLASH = 47;
/** Components of a path at most. */
const DEPTH = 6;
/** Characters of a name at most: 4 to a word. */
const LONGEST_NAME = NAME_WORDS * 4;
/** What is kept of a name that has been read from a path: its hash, its length, its characters. */
const PARSED_WORDS = 2 + NAME_WORDS;
/** What is kept of a path. */
const PATH_WORDS = DEPTH * PARSED_WORDS;
/** What is kept of a walk: how many dentries, and which. */
const CHAIN_WORDS = 1 + DEPTH + 1;

/**
 * One thread's view of a path cache. A thread works on several paths at once,
 * each in a slot of its own: that is how each step can be timed for many.
 *
 * Whoever finds a dentry has a reference to it; dentries go away when there is
 * none left and a grace period has passed, which is why a walk is a section.
 * In this cache they stay until {@linkcode destroy}.
 */
export class PathCache {
  declare private readonly _rcu: Rcu;
  declare private readonly _words: Int32Array;
  declare private readonly _head: Address;
  declare private readonly _root: Address;
  declare private readonly _buckets: Address;
  declare private readonly _parsed: Int32Array;
  /** Of each slot, how many components its path has. */
  declare private readonly _depths: Int32Array;
  declare private readonly _chains: Int32Array;
  declare private readonly _walk: () => Address;
  /** The slot that is being walked. */
  private _slot = 0;

  /**
   * @param rcu The thread's membership.
   * @param head What {@linkcode PathCache.create} returned.
   * @param slots On how many paths the thread works at once.
   */
  constructor(rcu: Rcu, head: Address, slots: number) {
    this._rcu = rcu;
    this._words = rcu.memory.words;
    this._head = head;
    this._root = this._words[head + ROOT];
    this._buckets = this._words[head + BUCKETS];
    this._parsed = new Int32Array(slots * PATH_WORDS);
    this._depths = new Int32Array(slots);
    this._chains = new Int32Array(slots * CHAIN_WORDS);
    // Made once: a section is run for every path.
    this._walk = () => this._follow();
  }

  /** Makes an empty cache: its root directory. Returns its head. */
  static create(rcu: Rcu): Address {
    const { memory } = rcu;
    const { words } = memory;
    const buckets = memory.allocate(2 ** BITS);
    words.fill(0, buckets, buckets + 2 ** BITS);
    const root = memory.allocate(DENTRY_WORDS);
    words.fill(0, root, root + DENTRY_WORDS);
    const head = memory.allocate(HEAD_WORDS);
    words[head + BUCKETS] = buckets;
    words[head + ROOT] = root;
    return head;
  }

  /** Enters a path and the directories that lead to it. One thread at a time. */
  insert(path: string): void {
    const words = this._words;
    const depth = this.parse(path, 0);
    let parent = this._root;
    for (let component = 0; component < depth; component++) {
      const name = component * PARSED_WORDS;
      const found = this._rcu.read(() => this._lookup(parent, name));
      if (found !== 0) {
        this.put(found);
        parent = found;
        continue;
      }
      const hash = this._parsed[name];
      const dentry = this._rcu.memory.allocate(DENTRY_WORDS);
      const bucket = this._bucket(parent, hash);
      words[dentry + NEXT] = words[bucket];
      words[dentry + PARENT] = parent;
      words[dentry + HASH] = hash;
      words[dentry + LENGTH] = this._parsed[name + 1];
      words[dentry + COUNT] = 0;
      for (let i = 0; i < NAME_WORDS; i++) {
        words[dentry + NAME + i] = this._parsed[name + 2 + i];
      }
      this._rcu.assignPointer(bucket, dentry);
      parent = dentry;
    }
  }

  /**
   * Reads a path: the hash and the characters of each name.
   *
   * @param path An absolute path, in ASCII.
   * @param slot Where that goes.
   * @returns How many components it has.
   * @throws {RangeError} If it has more than 6, or one of more than 32 characters.
   */
  parse(path: string, slot: number): number {
    const parsed = this._parsed;
    const end = path.length;
    let depth = 0;
    let hash = 0;
    let length = 0;
    let word = 0;
    let name = slot * PATH_WORDS;
    for (let i = 0; i <= end; i++) {
      const code = i < end ? path.charCodeAt(i) : SLASH;
      if (code !== SLASH) {
        if (depth === DEPTH || length === LONGEST_NAME) throw tooLong(path);
        hash = Math.imul(hash ^ code, SPREAD);
        word |= code << ((length & 3) << 3);
        if ((++length & 3) === 0) {
          parsed[name + 1 + (length >> 2)] = word;
          word = 0;
        }
      } else if (length > 0) {
        parsed[name] = hash;
        parsed[name + 1] = length;
        if ((length & 3) !== 0) parsed[name + 2 + (length >> 2)] = word;
        for (let w = (length + 3) >> 2; w < NAME_WORDS; w++) {
          parsed[name + 2 + w] = 0;
        }
        depth++;
        name += PARSED_WORDS;
        hash = length = word = 0;
      }
    }
    this._depths[slot] = depth;
    return depth;
  }

  /**
   * Walks to the path that a slot holds, in one section. Takes a reference to
   * every dentry on the way, the root's included: see {@linkcode putParents}.
   *
   * @param slot The slot.
   * @returns The path's dentry, or 0 if there is none: then no reference is held.
   */
  walk(slot: number): Address {
    this._slot = slot;
    const dentry = this._rcu.read(this._walk);
    if (dentry === 0) this._putChain(slot, 0);
    return dentry;
  }

  private _follow(): Address {
    const slot = this._slot;
    const chain = slot * CHAIN_WORDS;
    const chains = this._chains;
    const depth = this._depths[slot];
    let name = slot * PATH_WORDS;
    let dentry = this._root;
    Atomics.add(this._words, dentry + COUNT, 1);
    chains[chain] = 1;
    chains[chain + 1] = dentry;
    for (let i = 0; i < depth; i++, name += PARSED_WORDS) {
      dentry = this._lookup(dentry, name);
      if (dentry === 0) return 0;
      chains[chain] = i + 2;
      chains[chain + i + 2] = dentry;
    }
    return dentry;
  }

  /** The dentry of a name in a directory, with a reference to it, or 0. */
  private _lookup(parent: Address, name: number): Address {
    const words = this._words;
    const hash = this._parsed[name];
    let dentry = this._rcu.dereference(this._bucket(parent, hash));
    while (dentry !== 0) {
      if (
        words[dentry + HASH] === hash && words[dentry + PARENT] === parent &&
        this._isNamed(dentry, name)
      ) {
        Atomics.add(words, dentry + COUNT, 1);
        return dentry;
      }
      dentry = this._rcu.dereference(dentry + NEXT);
    }
    return 0;
  }

  private _bucket(parent: Address, hash: number): Address {
    return this._buckets + (Math.imul(hash ^ parent, SPREAD) >>> SHIFT);
  }

  private _isNamed(dentry: Address, name: number): boolean {
    const words = this._words;
    const parsed = this._parsed;
    const length = parsed[name + 1];
    if (words[dentry + LENGTH] !== length) return false;
    for (let i = 0, end = (length + 3) >> 2; i < end; i++) {
      if (words[dentry + NAME + i] !== parsed[name + 2 + i]) return false;
    }
    return true;
  }

  /** Gives back the references to all dentries of a slot's walk but the last one. */
  putParents(slot: number): void {
    this._putChain(slot, 1);
  }

  private _putChain(slot: number, kept: number): void {
    const chains = this._chains;
    const chain = slot * CHAIN_WORDS;
    const end = chain + chains[chain] - kept;
    for (let at = chain + 1; at <= end; at++) this.put(chains[at]);
  }

  /** Gives back a reference. */
  put(dentry: Address): void {
    Atomics.sub(this._words, dentry + COUNT, 1);
  }

  /** How many dentries there are, and how many references are held. */
  count(): { dentries: number; references: number } {
    let dentries = 0;
    let references = 0;
    for (const dentry of this._all()) {
      dentries++;
      references += Atomics.load(this._words, dentry + COUNT);
    }
    return { dentries, references };
  }

  /** Frees everything after a grace period. Nobody opens a path any more. */
  destroy(): void {
    const blocks = [...this._all(), this._buckets, this._head];
    for (const block of blocks) this._rcu.deferFree(block);
  }

  private _all(): Address[] {
    const all = [this._root];
    this._rcu.read(() => {
      for (let bucket = 0; bucket < 2 ** BITS; bucket++) {
        let dentry = this._rcu.dereference(this._buckets + bucket);
        while (dentry !== 0) {
          all.push(dentry);
          dentry = this._rcu.dereference(dentry + NEXT);
        }
      }
    });
    return all;
  }
}

function tooLong(path: string): RangeError {
  return new RangeError(
    `Cannot read a path as it must have at most ${DEPTH} names of at most ${LONGEST_NAME} characters: received ${
      JSON.stringify(path)
    }`,
  );
}

/** Some thousands of paths like those of a Unix system, four and five names deep. */
export function somePaths(): string[] {
  const tops = ["usr", "opt", "var", "srv"];
  const kinds = ["lib", "share", "include", "local"];
  const paths: string[] = [];
  for (const top of tops) {
    for (const kind of kinds) {
      for (let d = 0; d < 12; d++) {
        for (let f = 0; f < 12; f++) {
          paths.push(`/${top}/${kind}/x${d}/y${f}.so`);
          paths.push(`/${top}/${kind}/x${d}/plugins/z${f}.so.1`);
        }
      }
    }
  }
  return paths;
}
