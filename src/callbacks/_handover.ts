// Where threads hand deferred blocks over to the reclaimer.

import type { Address } from "../memory/arena.ts";
import type { Heap } from "../memory/_heap.ts";
import { LINE } from "../memory/_size_classes.ts";
import { SharedList, type Taken } from "./_shared_list.ts";

// One line for those who hand over.
/** The stack: its first block. */
const HEAD = 0;
/** Blocks handed over whose taker has not counted them yet. */
const COUNT = 1;
/** 1 while the reclaimer sleeps or is about to: whoever moves it to 0 wakes it. */
const WAITING = 2;
/** Who is the reclaimer, as the holder of a lock; 0: nobody. */
const CLAIM = 3;
/** Held while a list is pushed or the stack is taken. */
const LOCK = 4;
/** 1 while somebody is ready to start a reclaimer: whoever moves it to 0 has it started. */
const WANTED = 5;
// Another one for what the reclaimer alone writes.
/** Moves while the reclaimer lives. */
const BEAT = LINE;

/** Words of the stack and what belongs to it. */
export const HANDOVER_WORDS: number = 2 * LINE;

/** A reclaimer whose heart has not beaten for so long counts as gone, in ms. */
export const SILENCE = 2_000;

/** Between two beats of a reclaimer that sleeps, in ms. */
export const BEAT_INTERVAL = 100;

/**
 * The stack of deferred blocks between threads that defer and the reclaimer.
 *
 * 1. A list is pushed as a whole and the stack is taken as a whole, under LOCK;
 *    what that rests on, and what becomes of a thread that dies meanwhile, stands
 *    at {@linkcode SharedList}.
 * 2. Who pushes waits for nobody: where the lock is taken it keeps what it has, and tries
 *    again later; in overload it reclaims it itself.
 * 3. Who takes waits if it must know afterwards that every block whose push was over
 *    before is counted as some thread's own.
 * 4. No wake-up is lost. The reclaimer stores WAITING, then looks at HEAD, and
 *    sleeps only if that is 0, only while WAITING is 1. A pusher moves HEAD,
 *    then looks at WAITING. If its load returns 0, the reclaimer's store comes
 *    later, and its look at HEAD finds the push. If it returns 1, one pusher moves it to 0 and
 *    notifies: the reclaimer is woken, or has not begun to sleep and will not.
 *    One notification a sleep, however many push.
 * 5. Nothing is left behind. A reclaimer that goes clears CLAIM, then takes the stack.
 *    A pusher looks at CLAIM again after its push. Either the reclaimer
 *    finds the push, or the pusher finds CLAIM to be 0 and takes the stack back.
 * 6. A reclaimer that was terminated leaves CLAIM as it was, but BEAT stops.
 *    Silence is no proof of death: it only means that threads reclaim for themselves,
 *    and take from the stack what is there. What the silent reclaimer has taken stays its own,
 *    until it is proven dead and buried.
 */
export class Handover {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #list: SharedList;
  #beat: number;
  /** When the heart was heard last, and when somebody was told that it was not. */
  #heard = performance.now();
  #told = 0;

  constructor(
    words: Int32Array,
    base: Address,
    heap: Heap,
    owner: number,
    line: Address,
    work: Address,
    onSlow?: () => void,
    patience?: number,
  ) {
    this.#words = words;
    this.#base = base;
    this.#list = new SharedList(words, heap, {
      lock: base + LOCK,
      head: base + HEAD,
      count: base + COUNT,
      departures: 0,
      owner,
      line,
      work,
      onSlow,
      ...(patience === undefined ? {} : { patience }),
    });
    this.#beat = Atomics.load(words, base + BEAT);
  }

  /** Blocks that no thread counts as its own. */
  get count(): number {
    return Atomics.load(this.#words, this.#base + COUNT);
  }

  /**
   * Hands a list over. O(1). Waits for nobody.
   *
   * @param head Its first block.
   * @param tail The tag of its last block.
   * @param count How many there are.
   * @param from The word on which it hangs, which becomes 0; 0: none.
   * @returns Whether it has been handed over: not while another thread pushes or takes.
   */
  push(
    head: Address,
    tail: Address,
    count: number,
    from: Address,
  ): boolean {
    return this.#list.give(head, tail, count, from, false);
  }

  /**
   * Takes all blocks, and puts them before those of a thread's NEXT. They were
   * deferred at unknown times: the taker defers them anew.
   *
   * @param line The thread's line.
   * @param wait Whether to wait for a thread that pushes or takes now.
   * @param count Counts them as the taker's, before they are no longer counted here.
   * @returns What was taken, or `undefined` if there was nothing.
   */
  take(
    line: Address,
    wait: boolean,
    count: (blocks: number) => void,
  ): Taken | undefined {
    return this.#list.take(line, wait, count);
  }

  /**
   * Brings what a dead thread was doing here to an end, by whoever has taken its place.
   *
   * @param line The dead thread's line.
   */
  recover(line: Address): void {
    this.#list.recover(line);
  }

  // The clients' view of the reclaimer

  /**
   * Whether a domain has a reclaimer, for a thread that is no member.
   *
   * @param words The domain's words.
   * @param base Where its stack is.
   * @returns Whether the claim is taken.
   */
  static hasReclaimer(words: Int32Array, base: Address): boolean {
    return Atomics.load(words, base + CLAIM) !== 0;
  }

  /**
   * What moves while a domain's reclaimer lives, for a thread that is no member.
   *
   * @param words The domain's words.
   * @param base Where its stack is.
   * @returns The count.
   */
  static beatOf(words: Int32Array, base: Address): number {
    return Atomics.load(words, base + BEAT);
  }

  /** Who is the reclaimer, as the holder of a lock, or 0. */
  get holder(): number {
    return Atomics.load(this.#words, this.#base + CLAIM);
  }

  /** The reclaimer's index, or -1. */
  get reclaimer(): number {
    return (this.holder & 0x1fff) - 1;
  }

  /** Whether there is a reclaimer and its heart has beaten within {@linkcode SILENCE}. */
  get alive(): boolean {
    if (this.holder === 0) return false;
    const beat = Atomics.load(this.#words, this.#base + BEAT);
    const now = performance.now();
    if (beat !== this.#beat) {
      this.#beat = beat;
      this.#heard = now;
    }
    return now - this.#heard <= SILENCE;
  }

  /** Whether it is time to ask if a silent reclaimer is dead: now and then while it is silent. */
  get isDoubtful(): boolean {
    if (this.alive || this.holder === 0) return false;
    const now = performance.now();
    if (now - this.#told < SILENCE / 10) return false;
    this.#told = now;
    return true;
  }

  /** Wakes the reclaimer if it sleeps. */
  wake(): void {
    const at = this.#base + WAITING;
    // Pairs with: `prepareToSleep` (4).
    if (
      Atomics.load(this.#words, at) === 1 &&
      Atomics.compareExchange(this.#words, at, 1, 0) === 1
    ) Atomics.notify(this.#words, at);
  }

  /** Has a reclaimer started if somebody is ready to. */
  want(): void {
    const at = this.#base + WANTED;
    // Pairs with: `wanted`.
    if (
      Atomics.load(this.#words, at) === 1 &&
      Atomics.compareExchange(this.#words, at, 1, 0) === 1
    ) Atomics.notify(this.#words, at);
  }

  /**
   * Waits until a reclaimer is wanted. Keeps no process alive.
   *
   * @param timeout Longest wait in ms.
   * @returns Whether one is.
   */
  async wanted(timeout: number): Promise<boolean> {
    const at = this.#base + WANTED;
    Atomics.store(this.#words, at, 1);
    const sleep = Atomics.waitAsync(this.#words, at, 1, timeout);
    if (sleep.async) await sleep.value;
    return Atomics.load(this.#words, at) === 0;
  }

  // The reclaimer's side

  /**
   * Makes a thread the reclaimer if there is none.
   *
   * @param owner The thread, as the holder of a lock.
   * @returns Whether it is.
   */
  claim(owner: number): boolean {
    this.beat();
    return Atomics.compareExchange(
      this.#words,
      this.#base + CLAIM,
      0,
      owner,
    ) === 0;
  }

  /**
   * Ends a reclaimer's time. Whoever calls this takes the stack afterwards (5).
   *
   * @param owner The reclaimer.
   */
  resign(owner: number): void {
    this.cancelSleep();
    // Pairs with: the second look of a pusher.
    Atomics.compareExchange(this.#words, this.#base + CLAIM, owner, 0);
  }

  /** Shows that the reclaimer lives. */
  beat(): void {
    Atomics.add(this.#words, this.#base + BEAT, 1);
  }

  /**
   * Announces a sleep.
   *
   * @returns Whether there is nothing to take: only then may the reclaimer sleep.
   */
  prepareToSleep(): boolean {
    this.announceSleep();
    // Pairs with: `push`, then `wake` (4).
    if (Atomics.load(this.#words, this.#base + HEAD) === 0) return true;
    this.cancelSleep();
    return false;
  }

  /** Lets others know that they have to wake it. */
  announceSleep(): void {
    Atomics.store(this.#words, this.#base + WAITING, 1);
  }

  /** Whether somebody still has to wake it. */
  get isAwaited(): boolean {
    return Atomics.load(this.#words, this.#base + WAITING) === 1;
  }

  /** Takes the announcement back. */
  cancelSleep(): void {
    Atomics.store(this.#words, this.#base + WAITING, 0);
  }

  /**
   * Sleeps until somebody calls {@linkcode wake}, the event loop turning meanwhile.
   *
   * @param timeout Longest sleep in ms.
   */
  async sleep(timeout: number): Promise<void> {
    const at = this.#base + WAITING;
    const sleep = Atomics.waitAsync(this.#words, at, 1, timeout);
    if (sleep.async) {
      // The sleep itself does not keep the event loop alive.
      const timer = setTimeout(() => {}, 2 * timeout);
      await sleep.value;
      clearTimeout(timer);
    }
    this.cancelSleep();
  }
}
