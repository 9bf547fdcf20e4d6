/** `open` and `close` on a path cache: files from the slab, freed after a grace period. */
import type { Address, Rcu } from "../mod.ts";
import type { PathCache } from "./_open_close_cache.ts";

// A file, in words; about as large as the kernel's `struct file` of 2009.
const FILE_WORDS = 48;
const DENTRY = 0;
const FLAGS = 1;
const MODE = 2;
const COUNT = 3;
const OWNER = 4;

/** Files that a thread has open at most. */
const FDS = 128;

/**
 * A thread's open files. Other threads may look at them in sections, so `close`
 * unlinks a file first and leaves its freeing to RCU.
 */
export class OpenFiles {
  declare private readonly _rcu: Rcu;
  declare private readonly _words: Int32Array;
  declare private readonly _cache: PathCache;
  declare private readonly _table: Address;
  /** No descriptor below it is free. */
  private _next = 0;

  constructor(rcu: Rcu, cache: PathCache) {
    this._rcu = rcu;
    this._words = rcu.memory.words;
    this._cache = cache;
    this._table = rcu.memory.allocate(FDS);
    this._words.fill(0, this._table, this._table + FDS);
  }

  /** Opens a path; returns its descriptor, or -1 if there is no such path. */
  open(path: string): number {
    const cache = this._cache;
    cache.parse(path, 0);
    const dentry = cache.walk(0);
    if (dentry === 0) return -1;
    cache.putParents(0);
    return this.install(this.create(dentry));
  }

  /** Closes a file. Its memory is used again after a grace period. */
  close(fd: number): void {
    const file = this.uninstall(fd);
    this._cache.put(this.dentryOf(file));
    this._rcu.deferFree(file);
  }

  /** As {@linkcode close}, but frees the memory at once: as if nobody could be looking. */
  closeAtOnce(fd: number): void {
    const file = this.uninstall(fd);
    this._cache.put(this.dentryOf(file));
    this._rcu.memory.free(file);
  }

  // The steps, for whoever times each of them

  /** Makes a file. It takes over the reference to its dentry. */
  create(dentry: Address): Address {
    const words = this._words;
    const file = this._rcu.memory.allocate(FILE_WORDS);
    words.fill(0, file, file + FILE_WORDS);
    words[file + DENTRY] = dentry;
    words[file + FLAGS] = 0x8000;
    words[file + MODE] = 0o644;
    words[file + COUNT] = 1;
    words[file + OWNER] = this._rcu.readerId;
    return file;
  }

  /** Publishes a file under the lowest free descriptor. */
  install(file: Address): number {
    const words = this._words;
    let fd = this._next;
    while (fd < FDS && words[this._table + fd] !== 0) fd++;
    if (fd === FDS) {
      throw new RangeError(
        `Cannot open a file as at most ${FDS} can be open at a time`,
      );
    }
    this._next = fd + 1;
    this._rcu.assignPointer(this._table + fd, file);
    return fd;
  }

  /** Unlinks a file; returns it. */
  uninstall(fd: number): Address {
    const file = fd >>> 0 < FDS ? this._words[this._table + fd] : 0;
    if (file === 0) {
      throw new RangeError(
        `Cannot close a file as it must be open: received descriptor ${fd}`,
      );
    }
    this._rcu.assignPointer(this._table + fd, 0);
    if (fd < this._next) this._next = fd;
    return file;
  }

  dentryOf(file: Address): Address {
    return this._words[file + DENTRY];
  }

  /** Gives the table of descriptors back. No file is open. */
  destroy(): void {
    this._rcu.deferFree(this._table);
  }
}
