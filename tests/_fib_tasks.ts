// What the workers of the Fib's tests are asked, and what they answer.

import type { RcuHandle } from "../mod.ts";

// Words of the control block.
/** Set to end the readers. */
export const STOP = 0;
/** Rounds that the reader has made. */
export const ROUNDS = 1;
/** Different metrics that it has seen. */
export const SEEN = 2;

/** What a reader is asked to do. */
export interface ReaderTask {
  handle: RcuHandle;
  control: Int32Array;
  /** Addresses, each with the metrics that its route may have. */
  addresses: { address: number; metrics: number[] }[];
  /** Whether the metrics that it finds, in whatever order of addresses, never go down. */
  monotonic: boolean;
}

/** What a reader found. */
export interface ReaderReport {
  rounds: number;
  wrong: string[];
  /** How many different metrics it saw. */
  seen: number;
}

/** What a writer is asked to do. */
export interface WriterTask {
  handle: RcuHandle;
  /** The writer's own third octet, and seed. */
  own: number;
  updates: number;
}
