// What a grace period needs to know about readers, however it finds out.

import type { Address } from "../memory/arena.ts";
import type { ReaderTable } from "../readers/_slots.ts";
import type { Sequence } from "./_sequence.ts";

/**
 * Finds out when the readers of a period have all passed a quiescent state.
 * Nothing above this folder can tell which detector is in use.
 */
export interface Detector {
  /**
   * Whether every reader that was online when the sequence moved to a value
   * has been offline or has announced that value since. Never waits.
   *
   * @param sequence The value.
   * @returns `true` once that is so; it stays so.
   */
  passed(sequence: number): boolean;

  /**
   * Calls back for every reader that a period still waits for.
   *
   * @param sequence The value to which the sequence moved when it began.
   * @param visit Receives the reader and what it announced last.
   */
  blocking(
    sequence: number,
    visit: (reader: number, announced: number) => void,
  ): void;

  /**
   * What a thread does when its slot has just announced a sequence that had
   * moved. Never waits.
   *
   * @param sequence The value that it announced.
   */
  report(sequence: number): void;
}

/** What a detector works with. */
export interface DetectorParts {
  /** The domain's words. */
  readonly words: Int32Array;
  /** Where the detector's own words are, all of them 0 in a fresh domain. */
  readonly base: Address;
  /** Reader slots of the domain. */
  readonly maxReaders: number;
  /** Everybody's slots. */
  readonly readers: ReaderTable;
  /** The domain's sequence. */
  readonly sequence: Sequence;
  /** This thread's reader. */
  readonly reader: number;
  /** The name under which this thread takes locks. */
  readonly owner: number;
}

/**
 * Whether a slot's value holds up a period.
 *
 * @param announced The value: 0 while its thread is offline.
 * @param sequence The value to which the sequence moved when the period began.
 * @returns `true` if the thread has announced nothing since.
 */
export function isBehind(announced: number, sequence: number): boolean {
  return announced !== 0 && ((announced - sequence) | 0) < 0;
}
