// The detector of userspace RCU: whoever wants the period polls the slots.

import type { ReaderTable } from "../readers/_slots.ts";
import { type Detector, isBehind } from "./_detector.ts";

/**
 * Polls the slots. Readers do nothing beyond announcing; a poll that finds a
 * reader in the way costs one load the next time, because it starts there.
 */
export class ScanDetector implements Detector {
  readonly #words: Int32Array;
  readonly #readers: ReaderTable;
  /** The reader that was in the way the last time, and the period it was asked about. */
  #suspect = 0;
  #sequence = 0;

  constructor(words: Int32Array, readers: ReaderTable) {
    this.#words = words;
    this.#readers = readers;
  }

  passed(sequence: number): boolean {
    const readers = this.#readers;
    // Readers before the suspect have passed this period already, and that stays so.
    const start = this.#sequence === sequence ? this.#suspect : 0;
    const count = readers.count;
    for (let reader = start; reader < count; reader++) {
      if (this.#blocks(readers.slot(reader), sequence)) {
        this.#suspect = reader;
        this.#sequence = sequence;
        return false;
      }
    }
    this.#sequence = sequence;
    this.#suspect = count;
    return true;
  }

  blocking(
    sequence: number,
    visit: (reader: number, announced: number) => void,
  ): void {
    for (let reader = 0; reader < this.#readers.count; reader++) {
      const slot = this.#readers.slot(reader);
      const announced = Atomics.load(this.#words, slot);
      if (isBehind(announced, sequence)) visit(reader, announced);
    }
  }

  /** Nothing: the next poll finds what the slot says. */
  report(): void {}

  #blocks(slot: number, sequence: number): boolean {
    // Pairs with: the slot stores in Reader. If our load comes first, the reader goes online
    // after the sequence moved and sees what was published; if its store comes first, we wait.
    return isBehind(Atomics.load(this.#words, slot), sequence);
  }
}
