// Grace periods of sections that may await: two counters a thread, three phases a period.

import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";
import type { ReaderTable } from "../readers/_slots.ts";

/** The number of the period and its phase. */
const STATE = 0;
const PHASES = 2;
const PHASE = 3;

/** No period is in progress. */
const IDLE = 0;
/** Nothing has moved yet: stragglers of the period before are waited for. */
const STRAGGLERS = 1;
/** New sections count elsewhere: those that were open before are waited for. */
const MOVED = 2;

// A thread's line.
/** The membership whose sections are counted, as the record's generation; of another one's they are over. */
const OWNER = 0;
/** Open sections, by the index that they found. */
const COUNTS = 1;

/** A thread in the way: its reader index, and how many periods have begun since its section did, at least. */
export type Blocking = (reader: number, behind: number) => void;

/**
 * Words of a domain of sections.
 *
 * @param maxReaders Most threads at a time.
 * @returns Its size.
 */
export function srcuWords(maxReaders: number): number {
  return LINE * (1 + maxReaders);
}

/**
 * The sections of all threads and the periods that wait for them, after the
 * kernel's SRCU (Paul McKenney, "Sleepable RCU", 2006): a section adds one to
 * its thread's counter of the current index and takes it away when it ends.
 * A section ends in the thread in which it began, so that each counter has one
 * writer and says by itself whether sections are open.
 *
 * A period has three phases: it begins without moving anything (STRAGGLERS) and waits
 * until no counter of the index that is *not* current has sections; it makes that
 * one the current index (MOVED) and waits until none of the other has; it ends (IDLE).
 *
 * 1. A section counts before its first load, and counts until after its last one. The index
 *    that it uses may be old by any number of periods: it may have been loaded
 *    long before the count.
 * 2. Who waits from a moment M waits for the end of a period that began after M:
 *    the next one if none is in progress at M, otherwise the one after the next.
 * 3. Such a period looks at both counters of each thread, after M. A section that was counted
 *    at M is in one of them until it ends, so one of the two phases waits for it.
 *    A section that is counted only after the look at its counter loads after M: all
 *    accesses are sequentially consistent, and what was unlinked before M it cannot find.
 * 4. Periods end however many sections begin: during STRAGGLERS the counters that are looked at
 *    grow only by those who had loaded the index before it moved the last time, once each,
 *    and during MOVED likewise. A thread whose counter has been seen at 0 is not looked at again in a phase.
 * 5. Phases are moved by compare-and-exchange from the exact state in which the look began, so any thread
 *    may drive a period, several at once, and none is needed.
 * 6. A counter counts only while its OWNER is registered: sections die with their
 *    thread, whoever gets its record. A new owner sets its counters to 0 first and OWNER
 *    afterwards; who looks in between finds the old owner and skips a thread none of
 *    whose sections has begun (3).
 */
export class SrcuPeriods {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #readers: ReaderTable;
  readonly #line: Address;
  readonly #owner: number;
  /** The state in which the last look began, and the first reader that it has not seen at 0. */
  #looked = IDLE;
  #next = 0;

  /**
   * @param words The arena's words.
   * @param base Where the domain lies.
   * @param readers Who is registered.
   * @param reader The calling thread's reader index. It is registered.
   */
  constructor(
    words: Int32Array,
    base: Address,
    readers: ReaderTable,
    reader: number,
  ) {
    this.#words = words;
    this.#base = base;
    this.#readers = readers;
    this.#line = lineOf(base, reader);
    this.#owner = readers.generationOf(reader);
  }

  /**
   * Counts a section that begins.
   *
   * @returns What `exit` needs.
   */
  enter(): Address {
    const words = this.#words;
    const line = this.#line;
    if (Atomics.load(words, line + OWNER) !== this.#owner) {
      Atomics.store(words, line + COUNTS, 0);
      Atomics.store(words, line + COUNTS + 1, 0);
      // In this order (6). Pairs with: the loads in `#open`.
      Atomics.store(words, line + OWNER, this.#owner);
    }
    const counter = line + COUNTS +
      indexOf(Atomics.load(words, this.#base + STATE));
    // Before anything that the section loads (1). Pairs with: the loads in `#open`.
    Atomics.add(words, counter, 1);
    return counter;
  }

  /**
   * Counts a section that ends.
   *
   * @param counter What `enter` returned.
   */
  exit(counter: Address): void {
    // After all that the section has loaded (1). Pairs with: the loads in `#open`.
    Atomics.sub(this.#words, counter, 1);
  }

  /** Ends all sections of this membership: it is about to end itself. */
  exitAll(): void {
    const words = this.#words;
    const line = this.#line;
    if (Atomics.load(words, line + OWNER) !== this.#owner) return;
    Atomics.store(words, line + COUNTS, 0);
    Atomics.store(words, line + COUNTS + 1, 0);
  }

  /**
   * What to wait for (2).
   *
   * @returns The number of the period that must have ended, modulo 2³⁰.
   */
  start(): number {
    // What has been seen goes back less far than the numbers of periods reach.
    this.#looked = IDLE;
    const state = Atomics.load(this.#words, this.#base + STATE);
    return periodOf(state) + ((state & PHASE) === IDLE ? 1 : 2);
  }

  /**
   * Drives periods as far as they go without waiting.
   *
   * @param target What `start` returned.
   * @returns Whether that period has ended.
   */
  poll(target: number): boolean {
    const at = this.#base + STATE;
    while (true) {
      const state = Atomics.load(this.#words, at);
      if (((periodOf(state) - target) << PHASES) >= 0) return true;
      if ((state & PHASE) !== IDLE && !this.#passed(state)) return false;
      // Whoever comes too late does nothing (5).
      Atomics.compareExchange(this.#words, at, state, after(state));
    }
  }

  /** Whether each thread's counter of a phase has been at 0 since the phase began. */
  #passed(state: number): boolean {
    if (this.#looked !== state) {
      this.#looked = state;
      this.#next = 0;
    }
    // Pairs with: the raise of the count in `ReaderTable.register`. Who registers after this load
    // begins its sections after it (3).
    const { count } = this.#readers;
    while (this.#next < count && this.#open(this.#next, state) === 0) {
      this.#next++;
    }
    return this.#next >= count;
  }

  /** The sections of a thread for which a phase waits. */
  #open(reader: number, state: number): number {
    const words = this.#words;
    const line = lineOf(this.#base, reader);
    // Pairs with: the stores and the counting in `enter`, `exit`.
    const owner = Atomics.load(words, line + OWNER);
    const open = Atomics.load(words, line + COUNTS + awaited(state));
    return open !== 0 && this.#readers.isHeldBy(reader, owner) ? open : 0;
  }

  /**
   * Says who is in the way of the period in progress.
   *
   * @param found Called for each thread.
   */
  blocking(found: Blocking): void {
    const state = Atomics.load(this.#words, this.#base + STATE);
    if ((state & PHASE) === IDLE) return;
    const behind = (state & PHASE) === MOVED ? 1 : 2;
    for (let reader = 0; reader < this.#readers.count; reader++) {
      if (this.#open(reader, state) !== 0) found(reader, behind);
    }
  }
}

function lineOf(base: Address, reader: number): Address {
  return base + LINE * (1 + reader);
}

function periodOf(state: number): number {
  return state >>> PHASES;
}

/** The state that follows, in the order of the phases. */
function after(state: number): number {
  switch (state & PHASE) {
    case IDLE:
      return state | STRAGGLERS;
    case STRAGGLERS:
      return state + (MOVED - STRAGGLERS);
    default:
      return (periodOf(state) + 1) << PHASES;
  }
}

/** The index under which sections count that begin now. */
function indexOf(state: number): number {
  return (periodOf(state) + ((state & PHASE) >> 1)) & 1;
}

/** The index whose sections a phase waits for: always the one that is not current. */
function awaited(state: number): number {
  return indexOf(state) ^ 1;
}
