// Time in shared memory: ticks, one word.

import { show } from "../memory/_codec.ts";

/** A tick in ms: the jiffy of the 2002 kernel on the machines of its measurements. */
export const TICK = 10;

/** Longest time that an option may ask for, in ms: ages are compared modulo 2³² ticks. */
export const LONGEST_TIME = 2 ** 31 - 1;

/**
 * A clock that all threads of a domain share, in ms. `performance.now()` alone
 * would not do: it begins anew in every worker.
 */
export type Clock = () => number;

/**
 * The present.
 *
 * @param clock The clock.
 * @returns Ticks, modulo 2³².
 */
export function ticksOf(clock: Clock): number {
  return (clock() / TICK) | 0;
}

/**
 * The time between two moments.
 *
 * @param now The later one, in ticks.
 * @param then The earlier one.
 * @returns Ticks; 0 if the clock was set back in between.
 */
export function ticksSince(now: number, then: number): number {
  const ticks = (now - then) | 0;
  return ticks < 0 ? 0 : ticks;
}

/**
 * Takes a duration.
 *
 * @param value What the caller passed, in ms.
 * @param act What the caller was about to do, for the error.
 * @param what The option, for the error.
 * @returns Ticks, rounded.
 */
export function toTicks(value: number, act: string, what: string): number {
  if (typeof value !== "number") {
    throw new TypeError(
      `Cannot ${act} as its ${what} must be a number of ms: received ${
        show(value)
      }`,
    );
  }
  if (!(value >= 0 && value <= LONGEST_TIME)) {
    throw new RangeError(
      `Cannot ${act} as its ${what} must be from 0 to ${LONGEST_TIME} ms: received ${
        show(value)
      }`,
    );
  }
  return Math.round(value / TICK);
}

/**
 * Takes a clock.
 *
 * @param value What the caller passed, `undefined` for the system's.
 * @param act What the caller was about to do, for the error.
 * @returns The clock.
 */
export function toClock(value: Clock | undefined, act: string): Clock {
  if (value === undefined) return Date.now;
  if (typeof value === "function") return value;
  throw new TypeError(
    `Cannot ${act} as its now must be a function: received ${show(value)}`,
  );
}
