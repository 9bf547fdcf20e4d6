// A segment of a thread's callbacks.

import type { GracePeriodCookie } from "../grace_periods/cookie.ts";
import type { Address } from "../memory/arena.ts";

/** A segment that waits: its blocks hang on a word of the line, its closures here. */
export interface Segment {
  readonly head: Address;
  cookie: GracePeriodCookie | undefined;
  closures: (() => void)[];
  /** Closures that have been run already. */
  done: number;
  frees: number;
}

/**
 * A segment that nothing is in.
 *
 * @param head The word on which its blocks hang.
 * @returns The segment.
 */
export function emptySegment(head: Address): Segment {
  return { head, cookie: undefined, closures: [], done: 0, frees: 0 };
}

/**
 * How much of a segment has not been done.
 *
 * @param segment The segment.
 * @returns Closures and frees.
 */
export function leftIn(segment: Segment): number {
  return segment.frees + segment.closures.length - segment.done;
}
