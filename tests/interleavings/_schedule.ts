// A schedule: where a run departs from what it would do by itself.

/** A departure from the default. */
export interface Choice {
  /** The step before which it happens, counted over all threads. */
  at: number;
  /** The thread that goes on instead. */
  to: number;
  /** What the history must have been until then; 0: anything. */
  hash: number;
}

/** Choices in the order of their steps; none is the default schedule. */
export type Schedule = readonly Choice[];

/** What stands for the schedule without choices. */
const DEFAULT = "default";

/**
 * Writes a schedule down.
 *
 * @param schedule The schedule.
 * @returns Its seed, such as `17:1,42:0`: thread 1 from step 17, thread 0 from step 42.
 */
export function seedOf(schedule: Schedule): string {
  if (schedule.length === 0) return DEFAULT;
  return schedule.map(({ at, to }) => `${at}:${to}`).join(",");
}

/**
 * Reads a seed.
 *
 * @param seed What {@linkcode seedOf} returned.
 * @returns The schedule.
 * @throws {RangeError} If it is none.
 */
export function scheduleOf(seed: string): Schedule {
  if (seed === DEFAULT) return [];
  return seed.split(",").map((choice) => {
    const [, at, to] = /^(\d+):(\d)$/.exec(choice) ?? [];
    if (at === undefined) {
      throw new RangeError(
        `Cannot replay as the schedule must be like 17:1,42:0: received ${seed}`,
      );
    }
    return { at: Number(at), to: Number(to), hash: 0 };
  });
}
