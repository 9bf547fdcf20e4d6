// Errors about values that a codec does not take: they say which part of what it was.

import { show } from "./_codec.ts";

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
 * @param rest What it must be, and what it is: the message behind "Cannot use a value".
 * @param options An optional cause.
 */
export function refuse(
  type: ErrorConstructor,
  rest: string,
  options: ErrorOptions = {},
): never {
  throwRefusal({ type, path: [], rest, options }, "value");
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

/**
 * Refuses a key because it was refused as a value.
 *
 * @param error What was caught; if it is no refusal, it is thrown as it is.
 */
export function refuseKey(error: unknown): never {
  const refusal = refusals.get(error as Error);
  if (refusal === undefined) throw error;
  throwRefusal(refusal, "key");
}

function throwRefusal(refusal: Refusal, what: string): never {
  const { type, path, rest, options } = refusal;
  const field = path.length === 0
    ? ""
    : `the field ${show(path.join("."))} of `;
  const error = new type(`Cannot use ${field}a ${what} ${rest}`, options);
  refusals.set(error, refusal);
  throw error;
}
