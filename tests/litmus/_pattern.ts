// What a litmus test is: a few accesses of a few threads, and an outcome that says something.

import type { Rcu } from "../../mod.ts";
import type { Address } from "../../src/memory/arena.ts";

/** Instances of a pattern that threads walk through in a round: a power of two. */
export const INSTANCES = 1024;

/** What one thread does. */
export interface Part {
  /**
   * Brings an instance to its start, one phase after the other; between two
   * phases every thread waits for all others.
   */
  readonly prepare: readonly ((instance: number, round: number) => void)[];
  /**
   * Does its accesses.
   *
   * @param instance The instance.
   * @returns What it saw: an index into {@linkcode Pattern.sees}.
   */
  act(instance: number): number;
}

/** A litmus test. */
export interface Pattern {
  readonly name: string;
  /**
   * "never": the outcome is forbidden, and seeing it once is a fault. "may": the
   * language allows it, and a machine that reorders shows it, which proves that
   * the harness can see such a thing.
   */
  readonly weak: "never" | "may";
  /** For each thread what it can see, at most four things. */
  readonly sees: readonly (readonly string[])[];
  /** Whether an outcome, what each thread saw, is the one in question. */
  isWeak(seen: readonly number[]): boolean;
  /** Words of an instance. */
  readonly words: number;
  /** Phases of every thread's preparation. */
  readonly phases: number;
  /** Lays an instance out, once and before any thread begins. */
  setUp?(words: Int32Array, instance: Address): void;
  /**
   * What a thread does.
   *
   * @param rcu The thread's membership of the domain in which the instances lie.
   * @param base Where they begin.
   * @param thread Which thread.
   */
  part(rcu: Rcu, base: Address, thread: number): Part;
}

/** What was seen in all instances of all rounds. */
export interface Counts {
  pattern: Pattern;
  instances: number;
  /** How often each outcome was seen, by the outcome's {@linkcode indexOf}. */
  outcomes: number[];
}

/** Bits of what a thread sees. */
const BITS = 2;

/**
 * A number for an outcome.
 *
 * @param seen What each thread saw.
 * @returns The number.
 */
export function indexOf(seen: ArrayLike<number>): number {
  let index = 0;
  for (let thread = 0; thread < seen.length; thread++) {
    index |= seen[thread] << (BITS * thread);
  }
  return index;
}

/**
 * The outcome of a number.
 *
 * @param pattern The pattern.
 * @param index The number.
 * @returns What each thread saw.
 */
export function seenIn({ sees }: Pattern, index: number): number[] {
  return sees.map((_, thread) => index >> (BITS * thread) & (2 ** BITS - 1));
}

/**
 * How many different numbers there are.
 *
 * @param pattern The pattern.
 * @returns One more than the largest.
 */
export function outcomesOf({ sees }: Pattern): number {
  return 2 ** (BITS * sees.length);
}

/**
 * How often the outcome in question was seen.
 *
 * @param counts What was seen.
 * @returns The number.
 */
export function weakIn({ pattern, outcomes }: Counts): number {
  return outcomes.reduce(
    (sum, count, index) =>
      pattern.isWeak(seenIn(pattern, index)) ? sum + count : sum,
    0,
  );
}
