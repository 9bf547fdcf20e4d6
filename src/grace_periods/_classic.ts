// The detector of classic RCU: one global mask.

import type { DetectorParts } from "./_detector.ts";
import { TreeDetector, treeWords } from "./_tree.ts";

/**
 * Words of the mask.
 *
 * @param maxReaders Reader slots of the domain.
 * @returns Its size.
 */
export function classicWords(maxReaders: number): number {
  return treeWords(maxReaders, maxReaders);
}

/**
 * One global mask of the readers that have reported: the last one to report
 * ends the wait. As in the kernels of 2002 to 2008 (`rcupdate`; McKenney,
 * Sarma and Soni, "Scaling dcache with RCU", Linux Journal, 2004). It is the
 * tree that has no node but its root, with the same proof. Every reader writes
 * to the same line, once per period: cheap for a few readers, and what the
 * tree was invented against where there are many.
 */
export class ClassicDetector extends TreeDetector {
  constructor(parts: DetectorParts) {
    super(parts, parts.maxReaders);
  }
}
