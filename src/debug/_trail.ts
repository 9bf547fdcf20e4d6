// What was done to which block, by whom and where: a bounded record in shared memory, in debug mode.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";
import { measureText, readText, writeText } from "../memory/_text.ts";
import { acquire, release } from "../sync/_mutex.ts";
import { hasStack } from "../sync/_stack.ts";
import { Budget } from "./_budget.ts";
import { capture, framesOf } from "./_stacks.ts";

/** What was done to a block last. */
export const PUBLISHED = 1;
export const UNLINKED = 2;
export const DEFERRED = 3;
export const FREED = 4;

// The trail's own line.
/** Held while entries are read or written; whoever buries its holder gives it back (2). */
export const TRAIL_LOCK = 0;
/** How often a published block was forgotten for want of room. */
const LOST = 1;
/** The next free word among the texts. */
const TOP = 2;
/** 1 once there has been an entry: many domains hold structures of this package alone. */
const USED = 3;

// An entry: 8 words.
/** The block's tag, which is the block's alone; 0: the entry is vacant. */
const TAG = 0;
const STATE = 1;
/** The word that was made to point to it last. */
const POINTER = 2;
/** The period after which no reader finds it any more, modulo 2³². */
const COOKIE = 3;
/** Who published it, and where: a text, or the negative number of a stack that its thread keeps. */
const PUBLISHER = 4;
const PUBLISHED_AT = 5;
/** The same for what was done to it last. */
const ENDER = 6;
const ENDED_AT = 7;
const ENTRY_WORDS = 8;
/** Entries among which a block's is. */
const WAYS = 8;
const BUCKET_WORDS = WAYS * ENTRY_WORDS;

/** This part of a domain's pages, and so many at most. */
const PART = 16;
const MOST_PAGES = 256;

/** Longest wait for the trail, which is locked for some stores, in ms. */
const LOCK_TIMEOUT = 1_000;

/** Stacks that a thread keeps unread. */
const KEPT = 4_096;
/** These parts of a thread's time may go into taking stacks down, and into writing them for others. */
const CAPTURE_SHARE = 1 / 5;
const WRITE_SHARE = 1 / 20;

/**
 * How many pages at the end of a domain's memory the trail takes.
 *
 * @param pages Pages of the domain.
 * @returns Pages of the trail.
 */
export function trailPages(pages: number): number {
  return Math.min(Math.max(1, Math.floor(pages / PART)), MOST_PAGES);
}

/** Who did something to a block, and where. */
export interface Entered {
  /** The thread, as the holder of a lock. */
  owner: number;
  /** The frames of the stack, if they are known. */
  frames(): string | undefined;
}

/** What the trail knows about a block. */
export interface Entry {
  state: number;
  pointer: Address;
  cookie: number;
  published: Entered | undefined;
  ended: Entered | undefined;
}

/**
 * One thread's view of the trail.
 *
 * 1. A block has one entry at most, in the bucket of its tag. Entries of
 *    free blocks go first where room is wanted; when a published block has to, LOST says
 *    so, and nobody concludes from a missing entry that a block was never published.
 * 2. Entries are read and written under one lock, that is held for some stores and
 *    under which no other is taken. `forget` looks without it, at the entry of a block
 *    that its thread has just allocated and that nobody else may touch. A thread that
 *    does not get the lock goes on without the trail. Whoever buries its holder gives it
 *    back as it is: each store leaves an entry that says what is so, if less than there is to say.
 *    A new one gets its tag last. Where something else is noted about an old one, its stack
 *    goes first, and a state does not come before what is looked up in it, nor go after that.
 * 3. Stacks are what costs. A thread spends a fifth of its time on them at most: where more
 *    is done than that, an act is entered without one. Each stack is written once for each
 *    thread that has it. Writing one takes far longer than capturing it, and a twentieth of the
 *    time at most: what has not been written its thread keeps itself, and others see only
 *    whose it is.
 */
export class Trail {
  /** Whether the block of a tag is free: its entry goes first. Set by the heap. */
  isFree: (tag: Address) => boolean = () => false;

  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #owner: number;
  readonly #onSlow: (() => void) | undefined;
  readonly #entries: Address;
  readonly #buckets: number;
  readonly #texts: Address;
  readonly #end: Address;
  readonly #written = new Map<string, Address>();
  /** The last stacks that are not written, by their number modulo KEPT. */
  readonly #kept: (Error | undefined)[] = [];
  #last = 0;
  #evicted = 0;
  readonly #captures = new Budget(CAPTURE_SHARE);
  readonly #writes = new Budget(WRITE_SHARE);
  #usable = true;

  /**
   * @param words The domain's words.
   * @param base Where the trail begins: it goes on to the end.
   * @param owner This thread, as the holder of a lock.
   * @param onSlow Called now and then while it waits for the trail's lock: its holder may be dead.
   */
  constructor(
    words: Int32Array,
    base: Address,
    owner: number,
    onSlow?: () => void,
  ) {
    this.#onSlow = onSlow;
    this.#words = words;
    this.#base = base;
    this.#owner = owner;
    const length = words.length - base - LINE;
    this.#entries = base + LINE;
    this.#buckets = Math.floor(length / 2 / BUCKET_WORDS);
    this.#texts = this.#entries + this.#buckets * BUCKET_WORDS;
    this.#end = words.length;
  }

  /** Whether a block without an entry has never been published, as far as anybody knows. */
  get complete(): boolean {
    return this.#usable &&
      Atomics.load(this.#words, this.#base + LOST) === 0;
  }

  /**
   * What is known about a block.
   *
   * @param tag The block's tag.
   * @returns The entry, if there is one.
   */
  find(tag: Address): Entry | undefined {
    // Most blocks have none: they are a structure's.
    if (this.#find(tag) === 0) return undefined;
    const words = this.#words;
    const copy = this.#locked(() => {
      const at = this.#find(tag);
      return at === 0 ? undefined : words.slice(at, at + ENTRY_WORDS);
    });
    return copy && {
      state: copy[STATE],
      pointer: copy[POINTER],
      cookie: copy[COOKIE],
      published: this.#entered(copy[PUBLISHER], copy[PUBLISHED_AT]),
      ended: this.#entered(copy[ENDER], copy[ENDED_AT]),
    };
  }

  /**
   * Enters that a block can be found.
   *
   * @param tag The block's tag.
   * @param pointer The word that is about to point to it.
   * @param stack Where that is, from {@linkcode here}.
   */
  publish(tag: Address, pointer: Address, stack: number): void {
    this.#locked(() => {
      const at = this.#make(tag);
      // In this order, here and below (2).
      this.#write(at + STATE, PUBLISHED);
      this.#write(at + PUBLISHED_AT, 0);
      this.#write(at + PUBLISHER, this.#owner);
      this.#write(at + POINTER, pointer);
      this.#write(at + PUBLISHED_AT, stack);
      this.#write(at + ENDER, 0);
      this.#write(at + TAG, tag);
    });
  }

  /**
   * Enters that a block is not found any more where it was published last.
   *
   * @param tag The block's tag.
   * @param pointer The word that has pointed to it.
   * @param cookie The period after which no reader has it.
   * @param stack Where that is, from {@linkcode here}.
   */
  unlink(tag: Address, pointer: Address, cookie: number, stack: number): void {
    this.#locked(() => {
      const words = this.#words;
      const at = this.#find(tag);
      if (at === 0) return;
      const state = words[at + STATE];
      const was = state === PUBLISHED && words[at + POINTER] === pointer;
      // It may have been found in more than one way.
      if (was || state === UNLINKED) this.#note(at, UNLINKED, cookie, stack);
    });
  }

  /**
   * Enters that a block is freed, or will be.
   *
   * @param tag The block's tag.
   * @param state DEFERRED or FREED.
   * @param cookie A period after which no reader has it, if it was never published.
   */
  end(tag: Address, state: number, cookie: number): void {
    const stack = this.here();
    this.#locked(() => {
      const words = this.#words;
      const at = this.#make(tag);
      const known = words[at + STATE] === UNLINKED;
      this.#note(at, state, known ? words[at + COOKIE] : cookie, stack);
      this.#write(at + TAG, tag);
    });
  }

  /**
   * Forgets a block that has just been allocated.
   *
   * @param tag The block's tag.
   */
  forget(tag: Address): void {
    if (this.#find(tag) === 0) return;
    this.#locked(() => {
      const at = this.#find(tag);
      if (at !== 0) this.#write(at + TAG, 0);
    });
  }

  #write(at: Address, word: number): void {
    Atomics.store(this.#words, at, word);
  }

  #note(at: Address, state: number, cookie: number, stack: number): void {
    this.#write(at + ENDED_AT, 0);
    this.#write(at + ENDER, this.#owner);
    this.#write(at + COOKIE, cookie | 0);
    this.#write(at + ENDED_AT, stack);
    this.#write(at + STATE, state);
  }

  #bucket(tag: Address): Address {
    const hash = Math.imul(tag ^ (tag >>> 15), 0x9e3779b1) >>> 0;
    return this.#entries + (hash % this.#buckets) * BUCKET_WORDS;
  }

  #find(tag: Address): Address {
    if (Atomics.load(this.#words, this.#base + USED) === 0) return 0;
    const bucket = this.#bucket(tag);
    for (let way = 0; way < WAYS; way++) {
      const at = bucket + way * ENTRY_WORDS;
      if (Atomics.load(this.#words, at + TAG) === tag) return at;
    }
    return 0;
  }

  /** Finds a block's entry, or room for it (1), where the tag is still to be written. */
  #make(tag: Address): Address {
    const found = this.#find(tag);
    if (found !== 0) return found;
    const words = this.#words;
    const bucket = this.#bucket(tag);
    let chosen = bucket + (this.#evicted++ % WAYS) * ENTRY_WORDS;
    for (let way = 0; way < WAYS; way++) {
      const at = bucket + way * ENTRY_WORDS;
      if (words[at + TAG] === 0) {
        chosen = at;
        break;
      }
      if (this.isFree(words[at + TAG])) chosen = at;
    }
    if (words[chosen + TAG] !== 0 && !this.isFree(words[chosen + TAG])) {
      Atomics.add(words, this.#base + LOST, 1);
    }
    this.#write(chosen + TAG, 0);
    words.fill(0, chosen, chosen + ENTRY_WORDS);
    this.#write(this.#base + USED, 1);
    return chosen;
  }

  #locked<T>(act: () => T): T | undefined {
    // It can do without, and is in the middle of somebody else's act.
    if (!this.#usable || !hasStack()) return undefined;
    const lock = this.#base + TRAIL_LOCK;
    if (
      !acquire(this.#words, lock, this.#owner, LOCK_TIMEOUT, this.#onSlow)
    ) {
      this.#usable = false;
      return undefined;
    }
    try {
      return act();
    } finally {
      release(this.#words, lock);
    }
  }

  // Stacks (3)

  #entered(owner: number, stack: number): Entered | undefined {
    if (owner === 0) return undefined;
    const isKept = owner === this.#owner && stack < 0 &&
      this.#last + stack < KEPT;
    const kept = isKept ? this.#kept[-stack % KEPT] : undefined;
    // Only for an error: both take long.
    const frames = () =>
      stack > 0 ? readText(this.#words, stack) : kept && framesOf(kept);
    return { owner, frames };
  }

  /**
   * Takes down where the caller is.
   *
   * @returns The stack, for an entry; 0 if too much is going on.
   */
  here(): number {
    if (this.#captures.isSpent) return 0;
    const start = performance.now();
    const captured = capture();
    const end = performance.now();
    this.#captures.spend(end - start);
    if (!this.#writes.isSpent) {
      const text = this.#writeText(framesOf(captured));
      this.#writes.spend(performance.now() - end);
      if (text !== 0) return text;
    }
    this.#kept[++this.#last % KEPT] = captured;
    return -this.#last;
  }

  /** Returns the address of the text, or 0 if there is no room for it. */
  #writeText(frames: string): Address {
    const known = this.#written.get(frames);
    if (known !== undefined) return known;
    const words = this.#words;
    const size = measureText(frames);
    const offset = Atomics.add(words, this.#base + TOP, size);
    const at = this.#texts + offset;
    if (offset < 0 || at + size > this.#end) {
      Atomics.sub(words, this.#base + TOP, size);
      return 0;
    }
    // Nobody looks before it is entered, under the lock.
    writeText(words, at, frames);
    this.#written.set(frames, at);
    return at;
  }
}
