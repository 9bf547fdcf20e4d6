// Options that the first to open a structure settles for all.

import { show } from "../memory/_codec.ts";
import type { Address } from "../memory/arena.ts";

/** An option as it lies in memory. */
export interface SharedOption {
  /** Its name. */
  name: string;
  /** Where it is, from the structure's first word. */
  at: number;
  /** What it is for whoever makes the structure. */
  word: number;
  /** Whether the caller asked for it, or took the default. */
  given: boolean;
  /** What the word times this is what the caller passes. */
  unit: number;
}

/**
 * Stores options in a structure that is not published yet.
 *
 * @param words The arena's words.
 * @param header The structure.
 * @param options The options.
 */
export function writeOptions(
  words: Int32Array,
  header: Address,
  options: SharedOption[],
): void {
  for (const { at, word } of options) words[header + at] = word;
}

/**
 * Checks that what the caller asked for is what the structure was made with.
 *
 * @param words The arena's words.
 * @param header The structure.
 * @param options The options.
 * @param name The structure's name.
 */
export function checkAgreed(
  words: Int32Array,
  header: Address,
  options: SharedOption[],
  name: string,
): void {
  for (const { name: option, at, word, given, unit } of options) {
    const settled = words[header + at];
    if (given && settled !== word) {
      throw new TypeError(
        `Cannot open ${show(name)} with ${option} ${
          word * unit
        } as it must be what it was opened with first: ${settled * unit}`,
      );
    }
  }
}
