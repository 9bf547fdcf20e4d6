// The allocator: slab pages with a tag word a block, magazines a thread, a depot for all.

import { acquire, release } from "../sync/_mutex.ts";
import type { Address, MemoryAudit } from "./arena.ts";
import { show } from "./_codec.ts";
import {
  CLASS_BLOCKS,
  CLASS_DATA,
  CLASS_MAGAZINE,
  CLASS_MAGIC,
  CLASS_WORDS,
  CLASSES,
  classOf,
  LARGEST_SLAB,
  LINE,
  PAGE_MASK,
  PAGE_SHIFT,
  PAGE_WORDS,
} from "./_size_classes.ts";

// A tag says what a block is and links it to the next one of its list. Blocks
// start at multiples of 4 words, so the two low bits of a link are free.
/** Tag bits of a block on a free list: the link as it is. */
const FREE = 0;
/** The whole tag of a live block. */
const LIVE = 1;
/** Tag bits of a block that waits for a grace period. */
const DEFERRED = 2;
const STATE = 3;

// The page table: 4 words a page.
/** 0: free, or inside a large block; class + 1: a slab; LARGE: the first page of a large block. */
const KIND = 0;
/** Pages of a large block. */
const RUN = 1;
/** The tag of a large block. */
const TAG = 2;
const ENTRY_SHIFT = 2;
const LARGE = 0x100;

// The heap's own lines.
const PAGES_LOCK = 0;
/** No page below this one is free. */
const ROVER = LINE;
const DEPOTS = 2 * LINE;
// A depot: a line a class. Chains of one magazine each, linked through their first block's first word.
const DEPOT_LOCK = 0;
const DEPOT_HEAD = 1;
const DEPOT_CHAINS = 2;

// A thread's magazines: 4 words a class. "Loaded" serves; "previous" is empty or full, so
// that a thread at the edge of a magazine does not go to the depot on every call.
const LOADED = 0;
const LOADED_COUNT = 1;
const PREVIOUS = 2;
const PREVIOUS_COUNT = 3;

/** What fills freed blocks in debug mode. */
export const POISON = 0x6b6b6b6b;

/** Words of the heap's own lines. */
export const HEAP_WORDS: number = DEPOTS + CLASSES * LINE;
/** Words of one thread's magazines. */
export const MAGAZINE_WORDS: number = (CLASSES * 4 + LINE - 1) & -LINE;
/** Words of the page table for each page. */
export const PAGE_ENTRY_WORDS: number = 1 << ENTRY_SHIFT;

/** Longest wait for a lock that is held for microseconds, in ms. */
const LOCK_TIMEOUT = 10_000;

/** Where the heap finds its parts; all but the last three are the same in every thread. */
export interface HeapPlace {
  /** The heap's own lines, {@linkcode HEAP_WORDS}. */
  control: Address;
  /** The page table. */
  table: Address;
  /** First page that blocks may use. */
  firstPage: number;
  /** One past the last page. */
  endPage: number;
  /** This thread's magazines. */
  magazines: Address;
  /** This thread's name as a lock holder. */
  owner: number;
  /** Whether freed blocks are poisoned. */
  debug: boolean;
}

/**
 * One thread's view of the shared heap.
 *
 * Ownership is what makes the plain accesses safe:
 *
 * 1. A block on a magazine belongs to the magazine's thread; a block in the
 *    depot belongs to whoever holds the depot's lock; a live block to whoever
 *    allocated it; a deferred one to the thread that deferred it or took it
 *    over. A block changes hands only through a lock, through publication or
 *    through the atomic push and take of a list, so its tag has one writer at a time.
 * 2. Tags are stored with `Atomics` all the same, because `audit` reads them
 *    from any thread. The owner reads back its own store plainly.
 * 3. A page's kind changes only under the page lock, and only while every one
 *    of its blocks is free and on no thread's magazine. Whoever holds a block
 *    may therefore read its page's kind plainly.
 */
export class Heap {
  readonly words: Int32Array;
  readonly #place: HeapPlace;
  readonly #table: Address;
  readonly #magazines: Address;
  #detached = false;

  constructor(words: Int32Array, place: HeapPlace) {
    this.words = words;
    this.#place = place;
    this.#table = place.table;
    this.#magazines = place.magazines;
  }

  /** The largest block that fits an empty arena, in words. */
  get largest(): number {
    return (this.#place.endPage - this.#place.firstPage) * PAGE_WORDS;
  }

  /**
   * Allocates a block if that is possible without waiting for a grace period.
   *
   * @param size Words, from 1 to {@linkcode largest}.
   * @returns The block, or 0.
   */
  tryAllocate(size: number): Address {
    if (size > LARGEST_SLAB) {
      return size <= this.largest ? this.#allocateLarge(size) : 0;
    }
    const c = classOf(size);
    const words = this.words;
    const magazine = this.#magazines + (c << 2);
    let block = words[magazine + LOADED];
    if (block === 0) {
      if (!this.#load(c, magazine)) return 0;
      block = words[magazine + LOADED];
    }
    const page = block & ~PAGE_MASK;
    const tag = page +
      (((block - page - CLASS_DATA[c]) * CLASS_MAGIC[c]) >>> 20);
    words[magazine + LOADED] = words[tag];
    words[magazine + LOADED_COUNT]--;
    Atomics.store(words, tag, LIVE);
    return block;
  }

  /**
   * Where a block's tag is. The caller holds the block.
   *
   * @param block An address that a thread allocated.
   * @returns The address of its tag, or 0 if no block begins there.
   */
  tagOf(block: Address): Address {
    const page = block >>> PAGE_SHIFT;
    const entry = this.#table + (page << ENTRY_SHIFT);
    const kind = this.words[entry + KIND];
    if (kind === LARGE) return (block & PAGE_MASK) === 0 ? entry + TAG : 0;
    if (kind === 0) return 0;
    const c = kind - 1;
    const offset = (block & PAGE_MASK) - CLASS_DATA[c];
    if (offset < 0) return 0;
    const index = (offset * CLASS_MAGIC[c]) >>> 20;
    if (index * CLASS_WORDS[c] !== offset || index >= CLASS_BLOCKS[c]) return 0;
    return (page << PAGE_SHIFT) + index;
  }

  /**
   * Finds the tag of a live block, or says what is wrong with the address.
   *
   * @param block What the caller claims to be a live block.
   * @param act What the caller was about to do, for the error.
   * @returns The address of the block's tag.
   */
  liveTagOf(block: Address, act: string): Address {
    const { firstPage, endPage } = this.#place;
    const known = Number.isInteger(block) && block >= firstPage * PAGE_WORDS &&
      block < endPage * PAGE_WORDS;
    const tag = known ? this.tagOf(block) : 0;
    if (tag === 0) {
      throw new RangeError(
        `Cannot ${act} a block as its address must be one that allocate() returned: received ${
          show(block)
        }`,
      );
    }
    const state = Atomics.load(this.words, tag);
    if (state !== LIVE) {
      const is = (state & STATE) === DEFERRED ? "deferred" : "free";
      throw this.misuse(
        `Cannot ${act} a block as it must be live: block ${block} is already ${is}`,
        tag,
      );
    }
    return tag;
  }

  /**
   * Checks that a word lies in a block, for debug mode.
   *
   * @param word What the caller claims to be the address of such a word.
   * @param what What it is to the caller, for the error.
   * @param deferred Whether the block may also wait for a grace period.
   * @param act What the caller was about to do, for the error.
   */
  checkWord(word: Address, what: string, deferred: boolean, act: string): void {
    const tag = this.tagAround(word);
    if (tag === 0) {
      throw new RangeError(
        `Cannot ${act} as its ${what} must be a word of a block that allocate() returned: received ${
          show(word)
        }`,
      );
    }
    const state = Atomics.load(this.words, tag);
    if (state === LIVE) return;
    const isDeferred = (state & STATE) === DEFERRED;
    if (isDeferred && deferred) return;
    throw this.misuse(
      `Cannot ${act} as its ${what} must be a word of a live block: that of word ${word} is already ${
        isDeferred ? "deferred" : "free"
      }`,
      tag,
    );
  }

  /**
   * An error about a block that is not live.
   *
   * @param message What it says.
   * @param _tag The block's tag.
   * @returns The error.
   */
  protected misuse(message: string, _tag: Address): Error {
    return new Error(message);
  }

  /**
   * Whether a block is free.
   *
   * @param tag Its tag.
   * @returns `false` while it is live or deferred.
   */
  protected isFree(tag: Address): boolean {
    return (Atomics.load(this.words, tag) & STATE) === FREE;
  }

  /**
   * Finds the block in which a word lies.
   *
   * @param word Any value.
   * @returns The address of the block's tag, or 0.
   */
  protected tagAround(word: Address): Address {
    const { firstPage, endPage } = this.#place;
    const words = this.words;
    if (
      !Number.isInteger(word) || word < firstPage * PAGE_WORDS ||
      word >= endPage * PAGE_WORDS
    ) return 0;
    const page = word >>> PAGE_SHIFT;
    const kind = this.#kindOf(page);
    if (kind !== 0 && kind !== LARGE) {
      const c = kind - 1;
      const offset = (word & PAGE_MASK) - CLASS_DATA[c];
      const index = (offset / CLASS_WORDS[c]) | 0;
      return offset < 0 || index >= CLASS_BLOCKS[c]
        ? 0
        : (page << PAGE_SHIFT) + index;
    }
    // In a large block all pages but the first one are of kind 0, as free ones are.
    let first = page;
    while (first > firstPage && this.#kindOf(first) === 0) first--;
    const entry = this.#table + (first << ENTRY_SHIFT);
    return this.#kindOf(first) === LARGE && page - first < words[entry + RUN]
      ? entry + TAG
      : 0;
  }

  #kindOf(page: number): number {
    return Atomics.load(
      this.words,
      this.#table + (page << ENTRY_SHIFT) + KIND,
    );
  }

  /**
   * Frees a live or deferred block at once.
   *
   * @param block The block.
   * @param tag Its tag.
   */
  release(block: Address, tag: Address): void {
    const words = this.words;
    const kind = words[this.#table + ((block >>> PAGE_SHIFT) << ENTRY_SHIFT)];
    if (kind === LARGE) return this.#releaseLarge(block);
    const c = kind - 1;
    if (this.#place.debug) {
      words.fill(POISON, block, block + CLASS_WORDS[c]);
    }
    if (this.#detached) {
      Atomics.store(words, tag, FREE);
      return this.#deposit(c, block);
    }
    const magazine = this.#magazines + (c << 2);
    if (words[magazine + LOADED_COUNT] >= CLASS_MAGAZINE[c]) {
      this.#unload(c, magazine);
    }
    Atomics.store(words, tag, words[magazine + LOADED] | FREE);
    words[magazine + LOADED] = block;
    words[magazine + LOADED_COUNT]++;
  }

  /**
   * Frees a block that its thread holds and has not deferred.
   *
   * @param block A live block.
   */
  free(block: Address): void {
    this.release(block, this.tagOf(block));
  }

  /**
   * Marks a live block as deferred and puts it before `head`.
   *
   * @param tag The block's tag.
   * @param head The first block of a deferred list, or 0.
   */
  linkDeferred(tag: Address, head: Address): void {
    Atomics.store(this.words, tag, head | DEFERRED);
  }

  /**
   * The block after one on a deferred list.
   *
   * @param tag The tag of a deferred block.
   * @returns The next block, or 0.
   */
  nextDeferred(tag: Address): Address {
    return this.words[tag] & ~STATE;
  }

  // Magazines and depot

  /** Gets a class's magazine some blocks: the previous one, a chain of the depot's, a new page. */
  #load(c: number, magazine: Address): boolean {
    const words = this.words;
    if (words[magazine + PREVIOUS] !== 0) {
      this.#swap(magazine);
      return true;
    }
    const depot = this.#place.control + DEPOTS + c * LINE;
    if (Atomics.load(words, depot + DEPOT_HEAD) !== 0) {
      this.#lock(depot + DEPOT_LOCK);
      const chain = Atomics.load(words, depot + DEPOT_HEAD);
      if (chain !== 0) {
        Atomics.store(words, depot + DEPOT_HEAD, words[chain]);
        Atomics.sub(words, depot + DEPOT_CHAINS, 1);
        if (this.#place.debug) words[chain] = POISON;
      }
      release(words, depot + DEPOT_LOCK);
      if (chain !== 0) {
        words[magazine + LOADED] = chain;
        words[magazine + LOADED_COUNT] = this.#length(c, chain);
        return true;
      }
    }
    return this.#newSlab(c, magazine);
  }

  /** The length of a chain: a magazine's, but for the last one of a page and what a thread left behind. */
  #length(c: number, chain: Address): number {
    let count = 0;
    for (
      let block = chain;
      block !== 0;
      block = this.words[this.#tag(c, block)]
    ) count++;
    return count;
  }

  /** Makes room in the loaded magazine, which is full. */
  #unload(c: number, magazine: Address): void {
    const words = this.words;
    if (words[magazine + PREVIOUS] !== 0) {
      this.#deposit(c, words[magazine + PREVIOUS]);
    }
    words[magazine + PREVIOUS] = words[magazine + LOADED];
    words[magazine + PREVIOUS_COUNT] = words[magazine + LOADED_COUNT];
    words[magazine + LOADED] = 0;
    words[magazine + LOADED_COUNT] = 0;
  }

  #swap(magazine: Address): void {
    const words = this.words;
    words[magazine + LOADED] = words[magazine + PREVIOUS];
    words[magazine + LOADED_COUNT] = words[magazine + PREVIOUS_COUNT];
    words[magazine + PREVIOUS] = 0;
    words[magazine + PREVIOUS_COUNT] = 0;
  }

  /** Gives a chain of free blocks to the depot. */
  #deposit(c: number, chain: Address): void {
    const words = this.words;
    const depot = this.#place.control + DEPOTS + c * LINE;
    this.#lock(depot + DEPOT_LOCK);
    words[chain] = Atomics.load(words, depot + DEPOT_HEAD);
    Atomics.store(words, depot + DEPOT_HEAD, chain);
    Atomics.add(words, depot + DEPOT_CHAINS, 1);
    release(words, depot + DEPOT_LOCK);
  }

  /** Gives all of this thread's magazines to the depot, for other threads or for good. */
  flush(): void {
    this.flushFor(this.#magazines);
  }

  /**
   * Gives a thread's magazines to the depot.
   *
   * @param magazines They are this thread's, or those of one that is dead.
   */
  flushFor(magazines: Address): void {
    const words = this.words;
    for (let c = 0; c < CLASSES; c++) {
      const magazine = magazines + (c << 2);
      for (let turn = 0; turn < 2; turn++) {
        const chain = words[magazine + LOADED];
        words[magazine + LOADED] = 0;
        words[magazine + LOADED_COUNT] = 0;
        if (chain !== 0) this.#deposit(c, chain);
        this.#swap(magazine);
      }
    }
  }

  /**
   * Gives the magazines up: another thread may get them. What is freed after
   * that goes to the depot at once.
   */
  detach(): void {
    this.flush();
    this.#detached = true;
  }

  #tag(c: number, block: Address): Address {
    const page = block & ~PAGE_MASK;
    return page + (((block - page - CLASS_DATA[c]) * CLASS_MAGIC[c]) >>> 20);
  }

  #lock(address: Address): void {
    if (!acquire(this.words, address, this.#place.owner, LOCK_TIMEOUT)) {
      throw new Error(
        `Cannot take an allocator lock within ${LOCK_TIMEOUT} ms: its holder does not give it back`,
      );
    }
  }

  // Pages

  /** Turns a free page into a slab; the first magazine is loaded, the rest go to the depot. */
  #newSlab(c: number, magazine: Address): boolean {
    const words = this.words;
    const page = this.#takePages(1, c + 1);
    if (page === 0) return false;
    const base = page << PAGE_SHIFT;
    const size = CLASS_WORDS[c];
    const blocks = CLASS_BLOCKS[c];
    const length = CLASS_MAGAZINE[c];
    for (let first = 0; first < blocks; first += length) {
      const last = Math.min(first + length, blocks) - 1;
      for (let i = first; i < last; i++) {
        Atomics.store(words, base + i, base + CLASS_DATA[c] + (i + 1) * size);
      }
      Atomics.store(words, base + last, 0);
      const chain = base + CLASS_DATA[c] + first * size;
      if (first === 0) {
        words[magazine + LOADED] = chain;
        words[magazine + LOADED_COUNT] = last + 1;
      } else {
        this.#deposit(c, chain);
      }
    }
    return true;
  }

  #allocateLarge(size: number): Address {
    const pages = (size + PAGE_MASK) >>> PAGE_SHIFT;
    return this.#takePages(pages, LARGE) << PAGE_SHIFT;
  }

  #releaseLarge(block: Address): void {
    const words = this.words;
    const page = block >>> PAGE_SHIFT;
    const entry = this.#table + (page << ENTRY_SHIFT);
    const run = words[entry + RUN];
    if (this.#place.debug) {
      words.fill(POISON, block, block + run * PAGE_WORDS);
    }
    const control = this.#place.control;
    this.#lock(control + PAGES_LOCK);
    Atomics.store(words, entry + TAG, FREE);
    Atomics.store(words, entry + KIND, 0);
    if (page < words[control + ROVER]) words[control + ROVER] = page;
    release(words, control + PAGES_LOCK);
  }

  /**
   * Takes the first run of free pages that is long enough. Pages inside a
   * large block keep kind 0 and are skipped by its length, so that giving it
   * back is one store.
   */
  #takePages(count: number, kind: number): number {
    const { control, endPage, firstPage } = this.#place;
    const words = this.words;
    this.#lock(control + PAGES_LOCK);
    let rover = words[control + ROVER];
    if (rover === 0) rover = firstPage;
    let page = rover;
    let lowest = 0; // the first free page seen
    let found = 0;
    while (page + count <= endPage) {
      let run = 0;
      let entry = this.#table + (page << ENTRY_SHIFT);
      while (run < count && words[entry + KIND] === 0) {
        run++;
        entry += PAGE_ENTRY_WORDS;
      }
      if (run > 0 && lowest === 0) lowest = page;
      if (run === count) {
        found = page;
        break;
      }
      const stop = words[entry + KIND];
      page += run + (stop === LARGE ? words[entry + RUN] : 1);
    }
    if (found !== 0) {
      const entry = this.#table + (found << ENTRY_SHIFT);
      Atomics.store(words, entry + RUN, count);
      Atomics.store(words, entry + TAG, LIVE);
      if (kind !== LARGE) this.#clearTags(found, kind - 1);
      Atomics.store(words, entry + KIND, kind);
      if (lowest === found) lowest += count;
    }
    if (lowest !== 0) words[control + ROVER] = lowest;
    release(words, control + PAGES_LOCK);
    return found;
  }

  /** A page may hold anything from its last use; until its blocks are listed an audit must see them free. */
  #clearTags(page: number, c: number): void {
    const base = page << PAGE_SHIFT;
    for (let i = 0; i < CLASS_BLOCKS[c]; i++) {
      Atomics.store(this.words, base + i, FREE);
    }
  }

  /**
   * Gives slabs whose every block lies in the depot back to the pages. Called
   * when an allocation found no page; costs time in proportion to the depot.
   */
  scavenge(): void {
    this.flush();
    const words = this.words;
    const counts = new Map<number, number>();
    for (let c = 0; c < CLASSES; c++) {
      const depot = this.#place.control + DEPOTS + c * LINE;
      this.#lock(depot + DEPOT_LOCK);
      counts.clear();
      const blocks: Address[] = [];
      let chain = Atomics.load(words, depot + DEPOT_HEAD);
      while (chain !== 0) {
        const next = words[chain];
        for (let b = chain; b !== 0; b = words[this.#tag(c, b)]) {
          blocks.push(b);
          const page = b >>> PAGE_SHIFT;
          counts.set(page, (counts.get(page) ?? 0) + 1);
        }
        chain = next;
      }
      const whole = (b: Address) =>
        counts.get(b >>> PAGE_SHIFT) === CLASS_BLOCKS[c];
      const kept = blocks.filter((b) => !whole(b));
      if (kept.length < blocks.length) {
        this.#rebuildDepot(c, depot, kept);
        for (const [page, count] of counts) {
          if (count === CLASS_BLOCKS[c]) this.#givePage(page);
        }
      }
      release(words, depot + DEPOT_LOCK);
    }
  }

  #rebuildDepot(c: number, depot: Address, blocks: Address[]): void {
    const words = this.words;
    const length = CLASS_MAGAZINE[c];
    let head = 0;
    let chains = 0;
    for (let first = 0; first < blocks.length; first += length) {
      const end = Math.min(first + length, blocks.length);
      for (let i = first; i < end; i++) {
        const next = i + 1 < end ? blocks[i + 1] : 0;
        Atomics.store(words, this.#tag(c, blocks[i]), next);
      }
      words[blocks[first]] = head;
      head = blocks[first];
      chains++;
    }
    Atomics.store(words, depot + DEPOT_HEAD, head);
    Atomics.store(words, depot + DEPOT_CHAINS, chains);
  }

  #givePage(page: number): void {
    const control = this.#place.control;
    this.#lock(control + PAGES_LOCK);
    Atomics.store(this.words, this.#table + (page << ENTRY_SHIFT) + KIND, 0);
    if (page < this.words[control + ROVER]) this.words[control + ROVER] = page;
    release(this.words, control + PAGES_LOCK);
  }

  /**
   * Accounts for every byte by looking at every block. Pages cannot change
   * hands meanwhile; blocks can, and each is counted once, in the state in
   * which it was seen.
   *
   * @returns The account, in bytes.
   */
  audit(): MemoryAudit {
    const { control, endPage, firstPage } = this.#place;
    const words = this.words;
    let live = 0;
    let deferred = 0;
    let free = 0;
    // What lies before the first page and after the last one.
    let overhead = words.length - (endPage - firstPage) * PAGE_WORDS;
    this.#lock(control + PAGES_LOCK);
    for (let page = firstPage; page < endPage;) {
      const entry = this.#table + (page << ENTRY_SHIFT);
      const kind = words[entry + KIND];
      if (kind === 0) {
        free += PAGE_WORDS;
        page++;
      } else if (kind === LARGE) {
        const run = words[entry + RUN];
        const state = Atomics.load(words, entry + TAG) & STATE;
        if (state === LIVE) live += run * PAGE_WORDS;
        else if (state === DEFERRED) deferred += run * PAGE_WORDS;
        else free += run * PAGE_WORDS;
        page += run;
      } else {
        const size = CLASS_WORDS[kind - 1];
        const base = page << PAGE_SHIFT;
        for (let i = 0; i < CLASS_BLOCKS[kind - 1]; i++) {
          const state = Atomics.load(words, base + i) & STATE;
          if (state === LIVE) live += size;
          else if (state === DEFERRED) deferred += size;
          else free += size;
        }
        overhead += PAGE_WORDS - CLASS_BLOCKS[kind - 1] * size;
        page++;
      }
    }
    release(words, control + PAGES_LOCK);
    return {
      capacity: words.length * 4,
      live: live * 4,
      deferred: deferred * 4,
      free: free * 4,
      overhead: overhead * 4,
    };
  }
}
