// The allocator: slab pages with a tag word a block, magazines a thread, a depot for all.

import { acquire, isHeldBy, release, tryAcquire } from "../sync/_mutex.ts";
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
import { CHAIN, HAND, PAGE, PROGRESS } from "./_work.ts";

// A tag says what a block is and links it to the next one of its list. Blocks
// start at multiples of 4 words, so the two low bits of a link are free.
/** Tag bits of a block on a free list: the link as it is. */
const FREE = 0;
/** The whole tag of a live block. */
export const LIVE = 1;
/** Tag bits of a block that waits for a grace period. */
const DEFERRED = 2;
const STATE = 3;
// Live blocks in the hands of a thread, whose index stands in the tag, too (Journal).
/** It was allocated and has not been published. */
export const HELD = 3;
/** The same; the update that the thread is making publishes it. */
export const JOINING: number = HELD | (1 << 20);
/** That update unlinks it. */
export const LEAVING: number = LIVE | (1 << 20);
/** Both: it was allocated for the update, and is not needed after all that the update does. */
export const PASSING: number = HELD | (1 << 21);
const INDEX_SHIFT = 2;
/** What stands for a thread that has left: no record has this index. */
const NOBODY = 0x1fff;

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

/** Pages that are looked at under one holding of the lock of the pages. */
const SWEPT_PAGES = 64;

/** Longest wait for a lock that is held for microseconds, in ms. */
const LOCK_TIMEOUT = 10_000;

/** Where the heap finds its parts; what says "this thread" differs from one to another. */
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
  /** This thread's index. */
  index: number;
  /** Where this thread writes down what it is in the middle of. */
  work: Address;
  /** The same, for threads that have left; what stands there is worth nothing. */
  scratch: Address;
  /** Called when a lock has not been given back for a while. */
  onSlow?: (() => void) | undefined;
  /** Longest wait for a lock in ms, where it is not the usual one. */
  patience?: number;
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
  #work: Address;
  #held: number;
  /** The same, as long as the thread was a member. */
  readonly #firstHeld: number;
  /** The thread's part of a mark. */
  #mark: number;
  /** Gets every block that is allocated, where somebody wants to know. */
  recording: Address[] | undefined = undefined;

  constructor(words: Int32Array, place: HeapPlace) {
    this.words = words;
    this.#place = place;
    this.#table = place.table;
    this.#magazines = place.magazines;
    this.#work = place.work;
    this.#mark = (place.index + 1) << INDEX_SHIFT;
    this.#held = this.mark(HELD);
    this.#firstHeld = this.#held;
  }

  /**
   * A tag that says that a live block is in this thread's hands.
   *
   * @param kind HELD, JOINING, LEAVING or PASSING.
   * @returns The tag.
   */
  mark(kind: number): number {
    return kind | this.#mark;
  }

  /**
   * Makes an allocated block public: it is no longer freed if this thread dies.
   *
   * @param block A block that this thread has allocated.
   */
  makePublic(block: Address): void {
    Atomics.store(this.words, this.tagOf(block), LIVE);
  }

  /**
   * Writes down which block is about to leave a list.
   *
   * @param block The block, or 0 once it is on another list.
   */
  takeInHand(block: Address): void {
    // Whoever has left shares these words with others that have, and dies of nothing any more.
    if (this.#detached) return;
    const words = this.words;
    const hand = this.#work + HAND;
    if (words[hand] !== 0 && words[hand] !== block && block !== 0) {
      this.settleHand();
    }
    words[hand] = block;
  }

  /** An exception left a block in hand: brings it to where it belongs. */
  settleHand(): void {
    this.#recoverHand();
    if (this.inHand !== 0) this.onInterrupted();
  }

  /** Gets to know that an exception left a deferred block in hand. */
  onInterrupted: () => void = () => {};

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
    // From here until the tag says so the block is in hand.
    const hand = this.#work + HAND;
    if (words[hand] !== 0) this.settleHand();
    words[hand] = block;
    words[magazine + LOADED] = words[tag];
    words[magazine + LOADED_COUNT]--;
    Atomics.store(words, tag, this.#held);
    words[hand] = 0;
    if (this.recording !== undefined) this.recording.push(block);
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
    if ((state & LIVE) === 0) {
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
    if ((state & LIVE) !== 0) return;
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
    this.takeInHand(block);
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
    words[this.#work + HAND] = 0;
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
   * Frees a block that this thread has allocated, unless it has become public.
   *
   * @param block The block, or 0.
   */
  discard(block: Address): void {
    const tag = block === 0 ? 0 : this.tagOf(block);
    const state = this.words[tag];
    // The thread may have left meanwhile.
    if (state === this.#held || (this.#detached && state === this.#firstHeld)) {
      this.release(block, tag);
    }
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
        this.#takeChain(chain);
        Atomics.store(words, depot + DEPOT_HEAD, words[chain]);
        Atomics.sub(words, depot + DEPOT_CHAINS, 1);
        if (this.#place.debug) words[chain] = POISON;
      }
      release(words, depot + DEPOT_LOCK);
      if (chain !== 0) {
        words[magazine + LOADED] = chain;
        words[this.#work + CHAIN] = 0;
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
    const previous = words[magazine + PREVIOUS];
    if (previous !== 0) {
      this.#takeChain(previous);
      words[magazine + PREVIOUS] = 0;
      words[magazine + PREVIOUS_COUNT] = 0;
      this.#deposit(c, previous);
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

  /** Writes down which chain is about to leave its place. */
  #takeChain(chain: Address): void {
    const words = this.words;
    const at = this.#work + CHAIN;
    if (words[at] !== 0 && words[at] !== chain) this.#recoverChain();
    words[at] = chain;
  }

  /** Gives a chain of free blocks, which is on no list, to the depot. */
  #deposit(c: number, chain: Address): void {
    const words = this.words;
    const depot = this.#place.control + DEPOTS + c * LINE;
    if (!this.#detached) words[this.#work + CHAIN] = chain;
    this.#lock(depot + DEPOT_LOCK);
    words[chain] = Atomics.load(words, depot + DEPOT_HEAD);
    Atomics.store(words, depot + DEPOT_HEAD, chain);
    // Under the lock: until it is given back, the chain can be found there.
    if (!this.#detached) words[this.#work + CHAIN] = 0;
    Atomics.add(words, depot + DEPOT_CHAINS, 1);
    release(words, depot + DEPOT_LOCK);
  }

  /** Gives all of this thread's magazines to the depot, for other threads or for good. */
  flush(): void {
    const words = this.words;
    for (let c = 0; c < CLASSES; c++) {
      const magazine = this.#magazines + (c << 2);
      for (let turn = 0; turn < 2; turn++) {
        const chain = words[magazine + LOADED];
        this.#takeChain(chain);
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
    this.#work = this.#place.scratch;
    this.#mark = NOBODY << INDEX_SHIFT;
    this.#held = this.mark(HELD);
  }

  #tag(c: number, block: Address): Address {
    const page = block & ~PAGE_MASK;
    return page + (((block - page - CLASS_DATA[c]) * CLASS_MAGIC[c]) >>> 20);
  }

  #lock(address: Address): void {
    const { onSlow, owner, patience = LOCK_TIMEOUT } = this.#place;
    if (tryAcquire(this.words, address, owner)) return;
    // An exception took this thread out of the middle of something.
    if (isHeldBy(this.words, address, owner)) this.recover();
    if (!acquire(this.words, address, owner, patience, onSlow)) {
      throw new Error(
        `Cannot take an allocator lock within ${patience} ms: its holder does not give it back`,
      );
    }
  }

  // Pages

  /** Turns a free page into a slab; the first magazine is loaded, the rest go to the depot. */
  #newSlab(c: number, magazine: Address): boolean {
    if (this.words[this.#work + PAGE] !== 0) this.recover();
    const page = this.#takePages(1, c + 1);
    if (page === 0) return false;
    this.#listSlab(c, page, 0, magazine);
    return true;
  }

  /**
   * Puts a slab's blocks on lists.
   *
   * @param c The slab's class.
   * @param page The slab.
   * @param from The first block that is on none.
   * @param magazine A magazine of the class whose loaded chain is empty, or 0.
   */
  #listSlab(c: number, page: number, from: number, magazine: Address): void {
    const words = this.words;
    const work = this.#work;
    const base = page << PAGE_SHIFT;
    const size = CLASS_WORDS[c];
    const blocks = CLASS_BLOCKS[c];
    const length = CLASS_MAGAZINE[c];
    let loaded = magazine;
    for (let first = from; first < blocks; first += length) {
      const last = Math.min(first + length, blocks) - 1;
      for (let i = first; i < last; i++) {
        Atomics.store(words, base + i, base + CLASS_DATA[c] + (i + 1) * size);
      }
      Atomics.store(words, base + last, 0);
      const chain = base + CLASS_DATA[c] + first * size;
      // In this order: a chain in hand that lies behind PROGRESS is counted in (`#recoverSlab`).
      words[work + CHAIN] = chain;
      words[work + PROGRESS] = last + 1;
      if (loaded !== 0) {
        words[loaded + LOADED] = chain;
        words[work + CHAIN] = 0;
        words[loaded + LOADED_COUNT] = last + 1 - first;
        loaded = 0;
      } else {
        this.#deposit(c, chain);
      }
    }
    words[work + PAGE] = 0;
  }

  #allocateLarge(size: number): Address {
    const pages = (size + PAGE_MASK) >>> PAGE_SHIFT;
    const block = this.#takePages(pages, LARGE) << PAGE_SHIFT;
    if (block !== 0 && this.recording !== undefined) this.recording.push(block);
    return block;
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
    // Under the lock: afterwards the page may be anybody's.
    words[this.#work + HAND] = 0;
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
      Atomics.store(words, entry + TAG, kind === LARGE ? this.#held : 0);
      if (kind !== LARGE) {
        this.#clearTags(found, kind - 1);
        words[this.#work + PROGRESS] = 0;
        words[this.#work + PAGE] = found;
      }
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
      let chain = Atomics.load(words, depot + DEPOT_HEAD);
      while (chain !== 0) {
        const next = words[chain];
        for (let b = chain; b !== 0; b = words[this.#tag(c, b)]) {
          const page = b >>> PAGE_SHIFT;
          counts.set(page, (counts.get(page) ?? 0) + 1);
        }
        chain = next;
      }
      let whole = false;
      for (const [page, count] of counts) {
        if (count !== CLASS_BLOCKS[c]) continue;
        whole = true;
        const entry = this.#table + (page << ENTRY_SHIFT);
        Atomics.store(words, entry + TAG, this.#held);
      }
      if (whole) this.#giveMarked(c, depot);
      release(words, depot + DEPOT_LOCK);
    }
  }

  /**
   * Gives the slabs of a class back that this thread has marked: all of their
   * blocks lie in the depot, whose lock it holds. Can be cut short at any store, and begun again.
   */
  #giveMarked(c: number, depot: Address): void {
    const { endPage, firstPage } = this.#place;
    this.#unlinkMarked(c, depot);
    this.#mergeChains(c, depot);
    for (let page = firstPage; page < endPage; page++) {
      if (this.#isMarked(page, c)) this.#givePage(page);
    }
  }

  #isMarked(page: number, c: number): boolean {
    const entry = this.#table + (page << ENTRY_SHIFT);
    // Another thread may be about to take a page that is free: no page of this class is.
    return Atomics.load(this.words, entry + KIND) === c + 1 &&
      Atomics.load(this.words, entry + TAG) === this.#held;
  }

  /** Takes the blocks of marked slabs out of the depot's chains, each by one store. */
  #unlinkMarked(c: number, depot: Address): void {
    const words = this.words;
    const skip = (block: Address): Address => {
      while (block !== 0 && this.#isMarked(block >>> PAGE_SHIFT, c)) {
        block = words[this.#tag(c, block)];
      }
      return block;
    };
    let before = 0;
    for (let chain = words[depot + DEPOT_HEAD]; chain !== 0;) {
      const next = words[chain];
      const first = skip(chain);
      if (first !== chain) {
        if (first !== 0) words[first] = next;
        const link = first !== 0 ? first : next;
        if (before !== 0) words[before] = link;
        else Atomics.store(words, depot + DEPOT_HEAD, link);
      }
      for (let block = first; block !== 0;) {
        const tag = this.#tag(c, block);
        const following = skip(words[tag]);
        if (following !== words[tag]) Atomics.store(words, tag, following);
        block = following;
      }
      if (first !== 0) before = first;
      chain = next;
    }
  }

  /** Joins chains that have become short. */
  #mergeChains(c: number, depot: Address): void {
    const words = this.words;
    for (let chain = words[depot + DEPOT_HEAD]; chain !== 0;) {
      const next = words[chain];
      if (
        next !== 0 &&
        this.#length(c, chain) + this.#length(c, next) <= CLASS_MAGAZINE[c]
      ) {
        let tail = this.#tag(c, chain);
        while (words[tail] !== 0) tail = this.#tag(c, words[tail]);
        words[this.#work + CHAIN] = next;
        words[chain] = words[next];
        Atomics.store(words, tail, next);
        words[this.#work + CHAIN] = 0;
      } else chain = next;
    }
    this.#countChains(depot);
  }

  #countChains(depot: Address): void {
    const words = this.words;
    let chains = 0;
    let chain = words[depot + DEPOT_HEAD];
    for (; chain !== 0; chain = words[chain]) chains++;
    Atomics.store(words, depot + DEPOT_CHAINS, chains);
  }

  #givePage(page: number): void {
    const control = this.#place.control;
    this.#lock(control + PAGES_LOCK);
    Atomics.store(this.words, this.#table + (page << ENTRY_SHIFT) + KIND, 0);
    if (page < this.words[control + ROVER]) this.words[control + ROVER] = page;
    release(this.words, control + PAGES_LOCK);
  }

  // For a thread that is dead, by whoever has taken its place

  /**
   * Puts what a dead thread had in the middle of an allocation or a release
   * back on lists, and gives the heap's locks back that it had. Every step can be
   * cut short, by the death of whoever does this, and begun again.
   *
   * Until a lock is given back the dead thread still has it, so everything behind it is as
   * it was left. What a word in hand says holds as long as the block or chain is on no
   * list: each step looks there first.
   */
  recover(): void {
    const words = this.words;
    const { control, owner } = this.#place;
    this.#recoverProgress();
    if (isHeldBy(words, control + PAGES_LOCK, owner)) this.#recoverPages();
    for (let c = 0; c < CLASSES; c++) {
      const depot = control + DEPOTS + c * LINE;
      if (isHeldBy(words, depot + DEPOT_LOCK, owner)) {
        this.#recoverDepot(c, depot);
      }
      const magazine = this.#magazines + (c << 2);
      if (words[magazine + PREVIOUS] === words[magazine + LOADED]) {
        words[magazine + PREVIOUS] = 0;
      }
    }
    this.#recoverChain();
    const page = words[this.#work + PAGE];
    if (page !== 0) {
      const c = this.#kindOf(page) - 1;
      this.#listSlab(c, page, words[this.#work + PROGRESS], 0);
    }
    this.#recoverHand();
  }

  /** A page that is not a slab yet is free; and a chain in hand counts as listed. */
  #recoverProgress(): void {
    const words = this.words;
    const work = this.#work;
    const page = words[work + PAGE];
    if (page === 0) return;
    const kind = this.#kindOf(page);
    if (kind === 0) {
      words[work + PAGE] = 0;
      return;
    }
    const chain = words[work + CHAIN];
    if (chain >>> PAGE_SHIFT !== page) return;
    const c = kind - 1;
    const first = this.#tag(c, chain) - (page << PAGE_SHIFT);
    const end = Math.min(first + CLASS_MAGAZINE[c], CLASS_BLOCKS[c]);
    if (end > words[work + PROGRESS]) words[work + PROGRESS] = end;
  }

  #recoverPages(): void {
    const words = this.words;
    const { control } = this.#place;
    const block = words[this.#work + HAND];
    if (block !== 0) {
      const entry = this.#table + ((block >>> PAGE_SHIFT) << ENTRY_SHIFT);
      // The release of a large block: it is whole, or all but whole.
      if (words[entry + KIND] === LARGE && words[entry + TAG] === FREE) {
        Atomics.store(words, entry + KIND, 0);
      }
      if (words[entry + KIND] === 0) words[this.#work + HAND] = 0;
    }
    words[control + ROVER] = 0;
    release(words, control + PAGES_LOCK);
  }

  #recoverDepot(c: number, depot: Address): void {
    const words = this.words;
    const { endPage, firstPage } = this.#place;
    const inHand = words[this.#work + CHAIN];
    if (inHand !== 0 && this.#kindOf(inHand >>> PAGE_SHIFT) === c + 1) {
      let chain = words[depot + DEPOT_HEAD];
      for (; chain !== 0; chain = words[chain]) {
        let block = chain;
        while (block !== 0 && block !== inHand) {
          block = words[this.#tag(c, block)];
        }
        if (block === inHand) {
          words[this.#work + CHAIN] = 0;
          break;
        }
      }
    }
    let marked = false;
    for (let page = firstPage; page < endPage && !marked; page++) {
      marked = this.#isMarked(page, c);
    }
    if (marked) this.#giveMarked(c, depot);
    else this.#countChains(depot);
    release(words, depot + DEPOT_LOCK);
  }

  #recoverChain(): void {
    const words = this.words;
    const chain = words[this.#work + CHAIN];
    if (chain === 0) return;
    const c = this.#kindOf(chain >>> PAGE_SHIFT) - 1;
    const magazine = this.#magazines + (c << 2);
    if (
      words[magazine + LOADED] === chain || words[magazine + PREVIOUS] === chain
    ) words[this.#work + CHAIN] = 0;
    else this.#deposit(c, chain);
  }

  #recoverHand(): void {
    const words = this.words;
    const block = words[this.#work + HAND];
    if (block === 0) return;
    const tag = this.tagOf(block);
    // A deferred block is for the deferred lists; one that is live is where it belongs.
    if ((words[tag] & STATE) === DEFERRED) return;
    if ((words[tag] & STATE) === FREE) {
      const c = this.#kindOf(block >>> PAGE_SHIFT) - 1;
      const magazine = this.#magazines + (c << 2);
      if (words[magazine + LOADED] !== block) {
        Atomics.store(words, tag, words[magazine + LOADED] | FREE);
        words[magazine + LOADED] = block;
      }
    }
    words[this.#work + HAND] = 0;
  }

  /** The deferred block that a dead thread had in hand, or 0. */
  get inHand(): Address {
    return this.words[this.#work + HAND];
  }

  /**
   * Finds every live block that bears this thread's mark, in a few pages at a time.
   *
   * @param visit Gets each block, and HELD, JOINING, LEAVING or PASSING.
   */
  forEachMarked(visit: (block: Address, kind: number) => void): void {
    const { control, endPage, firstPage } = this.#place;
    const words = this.words;
    const kinds = new Map(
      [HELD, JOINING, LEAVING, PASSING].map((kind) => [this.mark(kind), kind]),
    );
    const found: { block: Address; kind: number }[] = [];
    const see = (tag: Address, block: Address): void => {
      const kind = kinds.get(Atomics.load(words, tag));
      if (kind !== undefined) found.push({ block, kind });
    };
    for (let begin = firstPage; begin < endPage; begin += SWEPT_PAGES) {
      const end = Math.min(begin + SWEPT_PAGES, endPage);
      // Pages do not change hands meanwhile: what stands where tags are is tags.
      this.#lock(control + PAGES_LOCK);
      for (let page = begin; page < end; page++) {
        const kind = this.#kindOf(page);
        const base = page << PAGE_SHIFT;
        if (kind === LARGE) {
          see(this.#table + (page << ENTRY_SHIFT) + TAG, base);
        } else if (kind !== 0) {
          const c = kind - 1;
          for (let i = 0; i < CLASS_BLOCKS[c]; i++) {
            see(base + i, base + CLASS_DATA[c] + i * CLASS_WORDS[c]);
          }
        }
      }
      release(words, control + PAGES_LOCK);
      for (const { block, kind } of found.splice(0)) visit(block, kind);
    }
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
        if ((state & LIVE) !== 0) live += run * PAGE_WORDS;
        else if (state === DEFERRED) deferred += run * PAGE_WORDS;
        else free += run * PAGE_WORDS;
        page += run;
      } else {
        const size = CLASS_WORDS[kind - 1];
        const base = page << PAGE_SHIFT;
        for (let i = 0; i < CLASS_BLOCKS[kind - 1]; i++) {
          const state = Atomics.load(words, base + i) & STATE;
          if ((state & LIVE) !== 0) live += size;
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
