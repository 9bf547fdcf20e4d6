// Which detector a domain has: a word of its header says it, everything else follows from that.

import { ClassicDetector, classicWords } from "./_classic.ts";
import type { Detector, DetectorParts } from "./_detector.ts";
import { ScanDetector } from "./_scan.ts";
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
