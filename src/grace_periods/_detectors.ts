// Which detector a domain has: a word of its header says it, everything else follows from that.

import { ClassicDetector, classicWords } from "./_classic.ts";
import type { Detector, DetectorParts } from "./_detector.ts";
import { ScanDetector } from "./_scan.ts";
import type { Address } from "../memory/arena.ts";
import { LINE } from "../memory/_size_classes.ts";
import { TreeDetector, treeWords } from "./_tree.ts";

// The word: one of these, or the fanout of a tree, from 2.
export const SCAN = 0;
export const CLASSIC = 1;

/** Fewest children of a tree's nodes. */
export const SMALLEST_FANOUT = 2;
/** Most children of a tree's nodes: the bits of a word. */
export const LARGEST_FANOUT = 32;
/** Those of a tree whose creator did not say how many. */
export const DEFAULT_FANOUT = 16;

/**
 * Words of a domain's detector.
 *
 * @param kind The word of the header.
 * @param maxReaders Reader slots of the domain.
 * @returns Its size.
 */
export function detectorWords(kind: number, maxReaders: number): number {
  if (kind === SCAN) return 0;
  if (kind === CLASSIC) return classicWords(maxReaders);
  return treeWords(maxReaders, kind);
}

/**
 * A thread's view of its domain's detector.
 *
 * @param kind The word of the header.
 * @param parts What it works with.
 * @returns The detector.
 */
export function openDetector(kind: number, parts: DetectorParts): Detector {
  if (kind === SCAN) return new ScanDetector(parts.words, parts.readers);
  if (kind === CLASSIC) return new ClassicDetector(parts);
  return new TreeDetector(parts, kind);
}

/**
 * Gives the locks of masks back that a dead thread has. What stands in a node
 * is right wherever its holder stopped (see MaskNodes).
 *
 * @param kind The word of the header.
 * @param words The domain's words.
 * @param base Where the detector's words are.
 * @param maxReaders Reader slots of the domain.
 * @param owner The dead thread, as the holder of a lock.
 */
export function releaseMasks(
  kind: number,
  words: Int32Array,
  base: Address,
  maxReaders: number,
  owner: number,
): void {
  if (kind === SCAN) return;
  // A lock stands at the beginning of a line, the only one of a node if its mask is one word.
  const first = base + LINE;
  const end = kind === CLASSIC
    ? first + 1
    : base + detectorWords(kind, maxReaders);
  for (let lock = first; lock < end; lock += LINE) {
    Atomics.compareExchange(words, lock, owner, 0);
  }
}
