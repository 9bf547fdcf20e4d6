// The read side in debug mode: it knows where sections end, and whose they are.

import type { Address } from "../memory/arena.ts";
import { HELD_ACROSS_AWAIT, Reader } from "../readers/_reader.ts";
import { type Act, blame, capture, framesOf } from "./_stacks.ts";

/** The end of a section that somebody wants to know about. */
interface Noted {
  end: Error | undefined;
}

/** The read sides of this thread that are open. */
const mine = new Set<DebugReader>();

/**
 * The read side of a thread in debug mode. A class of its own, so that the one
 * that is used otherwise has nothing to ask.
 */
export class DebugReader extends Reader {
  readonly #name: string;
  /** Of the section that is open. */
  #noted: Noted | undefined;
  /** Where the explicit section that is open, or was open last, began. */
  #opened: Error | undefined;
  #closed: Error | undefined;

  /**
   * @param words The domain's words.
   * @param slot The thread's slot.
   * @param sequence The address of the sequence word.
   * @param name What errors call it.
   */
  constructor(
    words: Int32Array,
    slot: Address,
    sequence: Address,
    name: string,
  ) {
    super(words, slot, sequence);
    this.#name = name;
    mine.add(this);
  }

  override leave(): void {
    const noted = this.#noted;
    super.leave();
    if (noted === undefined) return;
    noted.end = capture();
    this.#noted = undefined;
  }

  override close(): void {
    super.close();
    this.#closed = capture();
    mine.delete(this);
  }

  override noteOpening(): void {
    if (this.depth === 0) this.#opened = capture();
  }

  override heldAcrossAwait(): Error {
    const opened = this.#opened;
    return opened === undefined ? super.heldAcrossAwait() : blame(
      HELD_ACROSS_AWAIT,
      [{ who: "this thread", what: "began it", frames: framesOf(opened) }],
    );
  }

  override outside(message: string): Error {
    const others = [...mine].filter((other) =>
      other !== this && other.depth !== 0
    );
    return others.length === 0 ? super.outside(message) : new Error(
      `${message}; the section that is open is of another Rcu, ${
        others.map((other) => other.#name).join(", ")
      }, and protects what is read with that one`,
    );
  }

  override afterClose(act: string): Error {
    const error = super.afterClose(act);
    const closed = this.#closed;
    return closed === undefined ? error : blame(error.message, [
      { who: "this thread", what: "closed it", frames: framesOf(closed) },
    ]);
  }

  /**
   * Checks what is valid in the section that is open, and in no other.
   *
   * @returns Throws once the section is over.
   */
  sectionCheck(): () => void {
    const { section } = this;
    const noted = this.#noted ??= { end: undefined };
    return () => {
      if (this.depth !== 0 && this.section === section) return;
      const acts: Act[] = noted.end === undefined ? [] : [{
        who: "this thread",
        what: "ended that section",
        frames: framesOf(noted.end),
      }];
      throw blame(
        "Cannot use a view outside the read section in which it was taken",
        acts,
      );
    };
  }
}
