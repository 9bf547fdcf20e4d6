// What the threads of a run have counted.

/** Grace periods that an element lives through after it was unlinked, and the last bucket. */
export const PIPE = 10;

/** Counts of one thread, or of several added up. */
export interface Tally {
  /** Elements that sections looked at, by the grace periods that these had seen end: at most 1 is right. */
  ages: number[];
  /** Elements whose memory had been freed. */
  poisoned: number;
  /** Elements that had become others. */
  reused: number;
  /** Periods that ended inside a section that they had to wait for. */
  ended: number;
  /** Values of cells and maps that nobody had written. */
  torn: number;
  /** What was thrown and should not have been. */
  errors: string[];
  /** How often something was done, by its name. */
  did: Record<string, number>;
}

/** Nothing counted yet. */
export function emptyTally(): Tally {
  return {
    ages: new Array(PIPE + 1).fill(0),
    poisoned: 0,
    reused: 0,
    ended: 0,
    torn: 0,
    errors: [],
    did: {},
  };
}

/** Counts that something was done. */
export function count(tally: Tally, what: string, times = 1): void {
  tally.did[what] = (tally.did[what] ?? 0) + times;
}

/** Adds one tally to another. */
export function add(to: Tally, from: Tally): void {
  from.ages.forEach((times, age) => to.ages[age] += times);
  to.poisoned += from.poisoned;
  to.reused += from.reused;
  to.ended += from.ended;
  to.torn += from.torn;
  to.errors.push(...from.errors);
  for (const [what, times] of Object.entries(from.did)) count(to, what, times);
}

/** Elements that were older than they may be. */
export function tooOld(tally: Tally): number {
  return tally.ages.slice(2).reduce((sum, times) => sum + times, 0);
}

/** What readers found that they must never find. */
export function violations(tally: Tally): number {
  const { poisoned, reused, ended, torn } = tally;
  return tooOld(tally) + poisoned + reused + ended + torn;
}

/** Whether anything was wrong. */
export function isBad(tally: Tally): boolean {
  return violations(tally) > 0 || tally.errors.length > 0;
}
