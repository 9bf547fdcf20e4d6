// One thread's read side: a slot in shared memory and a few fields that only this thread sees.

import type { Address } from "../memory/arena.ts";
import { probeStack } from "../sync/_stack.ts";
import { isInsideSynchronousCode } from "./_turn.ts";

/** What is wrong with a section that outlived its turn. */
export const HELD_ACROSS_AWAIT =
  "Cannot hold a read section across an await: it must end in the turn in which it began";
/** What a leaf read, like an outermost section, takes of the budget. */
export const LEAF_READ = 2;
/** The bits of which none is set in a budget that is not used up while no section is open. */
export const UNUSUAL = -(2 ** 31) + 1;
/** As many as there are between two looks at the sequence. */
const BUDGET = 256 * LEAF_READ;
/** The budget inside a section: leaf reads in it count for nothing. It alone is odd. */
const UNLIMITED = 2 ** 30 + 1;

/**
 * The read side of one thread, with automatic quiescent states.
 *
 * JavaScript sections are synchronous, so a turn of the event loop bounds
 * them. The first section of a turn announces the thread; one microtask takes
 * it offline when the turn is over; a loop that stays in one turn announces a
 * quiescent state every {@linkcode BUDGET} sections if the sequence has moved.
 * After McKenney's and Desnoyers' quiescent-state-based reclamation ("User-level
 * implementations of read-copy update", IEEE TPDS 23(2), 2012).
 *
 * Why a grace period waits for every section that could have seen what it
 * reclaims. U is an updater that unlinks something and wants it back, R this
 * reader, S the sequence word.
 *
 * 1. U unlinks with `Atomics.store`, then moves S with `Atomics`, then loads
 *    R's slot with `Atomics`. R stores its slot with `Atomics`, then loads S
 *    with `Atomics`, then follows pointers. All four are sequentially consistent.
 * 2. If U's load of the slot sees R online with an older value, U waits.
 * 3. If it sees 0, it comes before R's store, so S had moved and the unlinking
 *    had happened before R's load of S: R cannot find what was unlinked.
 * 4. If it sees the value to which U moved S, or a later one, R stored that
 *    value between two sections, after loading it from S. Every earlier section
 *    is over, by (5), and every later one comes after the load of S that
 *    returned U's value, hence after the unlinking.
 * 5. The slot is stored with `Atomics`, so every load of the sections before
 *    it has been done (release).
 * 6. The load of S after the store is there for the loads behind it, which are
 *    plain: an ARM64 processor may let a plain load pass an earlier STLR, but
 *    not an earlier LDAR, and the LDAR does not pass the STLR. On x86-64 the
 *    store alone would do. It costs 5–10 ns, once a turn.
 */
export class Reader {
  /** Sections that are open. */
  depth = 0;
  /** Whether the slot is other than 0. */
  online = false;
  /**
   * Outermost sections until the next look at the sequence, times {@linkcode LEAF_READ}; at most 0
   * while offline; odd while a section is open. A *leaf read* is a section that runs no code but
   * its structure's own, and costs one countdown:
   * `if ((reader.budget -= LEAF_READ) < 0) reader.refill();` before its first load, and nothing
   * behind its last. One that does not look inside a section for what it finds outside tells both
   * by one test of the {@linkcode UNUSUAL} bits.
   */
  budget = 0;
  /** Counts outermost sections: tells one from the next. */
  section = 0;
  /** Called with an error when the turn ends while a section is open. */
  onHeldAcrossAwait: (error: Error) => void = () => {};
  /** Called with a sequence that is new to this thread, once the slot says that it has seen it. */
  onAnnounced: (sequence: number) => void = () => {};

  readonly #words: Int32Array;
  readonly #slot: Address;
  readonly #sequence: Address;
  /** The budget to go on with after the section. */
  #left = 0;
  /** What the slot holds while online. */
  #announced = 0;
  #turnEndQueued = false;
  /** The microtask found a section open; its end takes the thread offline. */
  #leavesAtExit = false;
  #held = false;
  #closed = false;

  constructor(words: Int32Array, slot: Address, sequence: Address) {
    this.#words = words;
    this.#slot = slot;
    this.#sequence = sequence;
  }

  /** Opens a section. */
  enter(): void {
    if (this.depth === 0) {
      if (!this.online) this.goOnline();
      this.section++;
      this.#left = this.budget;
      this.budget = UNLIMITED;
    }
    this.depth++;
  }

  /** Closes a section. */
  exit(): void {
    if (--this.depth === 0) this.leave();
  }

  /**
   * What is to be done when the outermost section has been closed. Where a caller's own code may have
   * left no room on the stack for a call, it counts `depth` down itself, and then calls this: if that
   * fails, the section is closed all the same, and the end of the turn does the rest.
   */
  leave(): void {
    this.budget = this.#left - LEAF_READ;
    if (this.budget <= 0) this.checkQuiescentState();
  }

  /** Prepares a leaf read for which the budget does not suffice, and those after it. */
  refill(): void {
    if (this.depth !== 0) {
      this.budget = UNLIMITED;
      return;
    }
    this.checkQuiescentState();
    if (!this.online) this.goOnline();
  }

  /** Announces the thread and sees to it that the end of the turn takes it back. */
  goOnline(): void {
    if (this.#closed) {
      // Or so many reads would be refused that the budget looked like one that suffices.
      this.budget = 0;
      throw this.afterClose("read");
    }
    // First: if there is no room on the stack, nothing has happened.
    probeStack();
    if (!this.#turnEndQueued) {
      queueMicrotask(this.#endOfTurn);
      this.#turnEndQueued = true;
    }
    const words = this.#words;
    const sequence = Atomics.load(words, this.#sequence);
    // Pairs with: the scan of the slots. If our store comes first, the updater waits for us; if
    // its load comes first, our load of the sequence, and all that follow, see its publication.
    Atomics.store(words, this.#slot, sequence);
    // Orders the plain loads of the section behind the store (6).
    Atomics.load(words, this.#sequence);
    this.online = true;
    this.budget = BUDGET;
    if (sequence !== this.#announced) {
      this.#announced = sequence;
      this.onAnnounced(sequence);
    }
  }

  /** Announces, between two sections, that the thread holds no reference. Does nothing inside a section. */
  goOffline(): void {
    if (!this.online || this.depth !== 0) return;
    // Release: every load of the sections before comes first (5). And before the fields: if the
    // stack has no room for the call, nothing has happened.
    Atomics.store(this.#words, this.#slot, 0);
    this.budget = 0;
    this.online = false;
  }

  /**
   * Looks at the sequence and announces a quiescent state if it moved. Does
   * nothing inside a section.
   */
  checkQuiescentState(): void {
    if (this.depth !== 0 || !this.online) return;
    this.budget = BUDGET;
    if (this.#leavesAtExit) {
      this.#leavesAtExit = false;
      this.#held = false;
      this.goOffline();
      return;
    }
    const sequence = Atomics.load(this.#words, this.#sequence);
    if (sequence !== this.#announced) {
      // Release: every load of the sections before comes first (5). No barrier is needed
      // behind it: the slot is never 0 in between, so (4) rests on the load above.
      Atomics.store(this.#words, this.#slot, sequence);
      this.#announced = sequence;
      this.onAnnounced(sequence);
    }
  }

  /**
   * Ends the read side for good; no section is open. The slot is not written any
   * more: {@linkcode goOnline} refuses, and everything else writes it only while online.
   */
  close(): void {
    // Whatever `online` says, as at the end of a turn.
    this.online = true;
    this.goOffline();
    this.#closed = true;
  }

  /**
   * An error about what must be in a section.
   *
   * @param message What it says.
   * @returns The error.
   */
  outside(message: string): Error {
    return new Error(message);
  }

  /** An explicit section is about to be opened. */
  noteOpening(): void {}

  /**
   * What is wrong with a section that outlived its turn.
   *
   * @returns The error.
   */
  heldAcrossAwait(): Error {
    return new Error(HELD_ACROSS_AWAIT);
  }

  /**
   * An error about a use after the membership has ended.
   *
   * @param act What was about to be done.
   * @returns The error.
   */
  afterClose(act: string): Error {
    return new Error(`Cannot ${act} as the Rcu must be open: it is closed`);
  }

  readonly #endOfTurn = (): void => {
    this.#turnEndQueued = false;
    // The slot may be another thread's by now.
    if (this.#closed) return;
    if (this.depth === 0) {
      // Whatever `online` says: going online may have been cut short by an overflow of the stack.
      this.online = true;
      this.goOffline();
      return;
    }
    // Going offline would let a grace period reclaim what the section holds: the section keeps
    // its protection, and its end takes the thread offline.
    this.#leavesAtExit = true;
    this.#left = LEAF_READ;
    if (isInsideSynchronousCode()) return;
    this.#held = true;
    this.onHeldAcrossAwait(this.heldAcrossAwait());
  };

  /** Whether the section that is open has been held across an `await`. */
  get held(): boolean {
    return this.#held;
  }
}
