// What threads do in a round, and how it is written down: shared by the threads and the checker.

/** What one thread does in one step. */
export type Action =
  | "get"
  | "has"
  | "set"
  | "delete"
  | "getOrInsert"
  | "update"
  | "version"
  | "replaceAll"
  | "clear"
  | "section"
  | "stir";

/** One step of one thread. */
export interface Step {
  action: Action;
  /** The key, or with `replaceAll` which keys there are then, a bit each. */
  key: number;
  /** With `section`: the keys that are read in it. */
  keys: number[];
  /** How long to dawdle before it: so many looks at a word. */
  pause: number;
}

/** What all threads do in a round. */
export interface Plan {
  /** Which keys are there when it begins, a bit each. */
  present: number;
  /** The steps of each thread. */
  threads: Step[][];
}

/** Keys that operations are about. */
export const KEYS = 3;

/**
 * Whether a set of keys has one.
 *
 * @param set The set, a bit for each key.
 * @param key The key.
 * @returns Whether it has.
 */
export function isPresent(set: number, key: number): boolean {
  return (set >> key & 1) === 1;
}

/** What an operation answers that finds nothing. */
export const ABSENT = -1;
/** What an operation answers that finds something that nobody has written. */
export const GARBAGE = -2;

/** Rounds whose values differ. */
const ROUNDS = 2 ** 13;
/** Most steps of a thread. */
export const MOST_STEPS = 6;
const UPDATE = 1024;

/**
 * The value of a key at the beginning of a round. No two values that are
 * written in a round are equal, nor in any two rounds that follow each other
 * closely, nor of two keys: whoever reads one can tell where it comes from.
 *
 * @param round The round.
 * @param key The key.
 * @returns The value.
 */
export function initialValue(round: number, key: number): number {
  return (round % ROUNDS) * 2 ** 18 + key;
}

/**
 * The value that a step writes.
 *
 * @param round The round.
 * @param thread The thread.
 * @param step The number of its step.
 * @param key The key.
 * @returns The value.
 */
export function valueOf(
  round: number,
  thread: number,
  step: number,
  key: number,
): number {
  return initialValue(round, key) + numberOf(thread, step) * (KEYS + 1);
}

/**
 * What an update makes of a value.
 *
 * @param old The value, or {@linkcode ABSENT}.
 * @param round The round.
 * @param thread The thread.
 * @param step The number of its step.
 * @param key The key.
 * @returns The new value.
 */
export function updated(
  old: number,
  round: number,
  thread: number,
  step: number,
  key: number,
): number {
  const from = old === ABSENT ? initialValue(round, key) + UPDATE / 2 : old;
  return from + UPDATE * numberOf(thread, step);
}

function numberOf(thread: number, step: number): number {
  return thread * MOST_STEPS + step + 1;
}

/** Words of the log for each thing that a thread has done: two tickets and the answer. */
export const ENTRY = 3;

/**
 * How many things a step writes down.
 *
 * @param step The step.
 * @returns Entries of the log.
 */
export function entriesOf(step: Step): number {
  if (step.action === "stir") return 0;
  return step.action === "section" ? step.keys.length : 1;
}

/** What a thread shares with the others and with the checker, besides the domain. */
export interface Shared {
  /** A gate, and a ticket counter in a line of its own behind it. */
  control: Int32Array;
  /** What this thread has done, round after round. */
  log: Int32Array;
}
