// Errors about values that a codec does not take: they say which part of what it was.

import { show } from "./_codec.ts";

/** What a value was to be. */
export type Refused = "value" | "key";

interface Refusal {
  type: ErrorConstructor;
  /** The names of the fields that lead to what is wrong. */
  path: string[];
  /** The message from the codec on. */
  rest: string;
  options: ErrorOptions;
}

const refusals = new WeakMap<Error, Refusal>();

/**
 * Refuses a value.
 *
 * @param type The kind of error.
 * @param rest What it must be, and what it is: the message behind "Cannot use a value" or "a key".
 * @param options An optional cause.
 * @param what What it was to be.
 */
export function refuse(
  type: ErrorConstructor,
  rest: string,
  options: ErrorOptions = {},
  what: Refused = "value",
): never {
  throwRefusal({ type, path: [], rest, options }, what);
}

/**
 * Refuses a struct because one of its fields was refused.
 *
 * @param error What was caught; if it is no refusal, it is thrown as it is.
 * @param name The field.
 */
export function refuseField(error: unknown, name: string): never {
  const refusal = refusals.get(error as Error);
  if (refusal === undefined) throw error;
  throwRefusal({ ...refusal, path: [name, ...refusal.path] }, "value");
}

function throwRefusal(refusal: Refusal, what: Refused): never {
  const { type, path, rest, options } = refusal;
  const field = path.length === 0
    ? ""
    : `the field ${show(path.join("."))} of `;
  const error = new type(`Cannot use ${field}a ${what} ${rest}`, options);
  refusals.set(error, refusal);
  throw error;
}
