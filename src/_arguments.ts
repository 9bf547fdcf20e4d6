// Checks of what callers pass, for errors that say what must hold.

import { show } from "./memory/_codec.ts";

/** The names of all options that an interface has, so that none can be forgotten. */
export type OptionNames<T> = { readonly [P in keyof Required<T>]: true };

/**
 * Takes options: an object of which each is one that exists.
 *
 * @param options What the caller passed.
 * @param names The options that there are.
 * @param act What the caller was about to do, for the error.
 * @param must What they must be, for the error.
 * @returns A copy, each of them read once: an object may answer differently the next time.
 */
export function takeOptions<T extends object>(
  options: T,
  names: OptionNames<NoInfer<T>>,
  act: string,
  must = "be an object",
): T {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(
      `Cannot ${act} as its options must ${must}: received ${show(options)}`,
    );
  }
  checkNames(options, names, act);
  return readOnce(options, names);
}

/**
 * Reads each property of a caller's object once.
 *
 * @param object The object.
 * @param names The properties' names.
 * @returns A copy, of those that are there.
 */
function readOnce<T extends object>(
  object: T,
  names: Readonly<Record<string, true>>,
): T {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(names)) {
    const { [name]: value } = object as Record<string, unknown>;
    if (value !== undefined) copy[name] = value;
  }
  return copy as T;
}

/**
 * Checks that each option is one that exists.
 *
 * @param options An object.
 * @param names The options that there are.
 * @param act What the caller was about to do, for the error.
 */
export function checkNames(
  options: object,
  names: Readonly<Record<string, true>>,
  act: string,
): void {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    throw new TypeError(
      `Cannot ${act} as its options must be among ${
        Object.keys(names).join(", ")
      }: received ${show(name)}`,
    );
  }
}

/**
 * Checks a function.
 *
 * @param value What the caller passed.
 * @param what What it is to the caller, for the error.
 * @param act What the caller was about to do, for the error.
 */
export function checkFunction(value: unknown, what: string, act: string): void {
  if (typeof value === "function") return;
  throw new TypeError(
    `Cannot ${act} as the ${what} must be a function: received ${show(value)}`,
  );
}

/**
 * Checks a signal.
 *
 * @param signal What the caller passed.
 * @param act What the caller was about to do, for the error.
 */
export function checkSignal(signal: unknown, act: string): void {
  if (signal === undefined || isSignal(signal)) return;
  throw new TypeError(
    `Cannot ${act} as the signal must be an AbortSignal: received ${
      show(signal)
    }`,
  );
}

/** Asks a signal itself, without any code of its owner's: what only looks like one throws. */
const abortedOf = Object.getOwnPropertyDescriptor(
  AbortSignal.prototype,
  "aborted",
)!.get!;

function isSignal(value: unknown): boolean {
  if (!(value instanceof AbortSignal)) return false;
  try {
    abortedOf.call(value);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks the entries of a map or a table before the first one is looked at.
 *
 * @param entries What the caller passed.
 * @param act What the caller was about to do, for the error.
 */
export function checkIterable(entries: unknown, act: string): void {
  const { [Symbol.iterator]: iterator } = Object(entries);
  if (typeof iterator === "function") return;
  throw new TypeError(
    `Cannot ${act} as the entries must be iterable: received ${show(entries)}`,
  );
}

/**
 * Checks an entry of a map or a table.
 *
 * @param entry What the caller passed.
 * @param must What it must be a pair of.
 * @param act What the caller was about to do, for the error.
 */
export function checkPair(entry: unknown, must: string, act: string): void {
  if (typeof entry === "object" && entry !== null) return;
  throw new TypeError(
    `Cannot ${act} as each must be a pair of ${must}: received ${show(entry)}`,
  );
}

/**
 * A value for the first field of a class whose instances cannot be posted to
 * another thread: posting one is an error that names it.
 *
 * @param what What is posted, and what to do instead.
 * @returns The value.
 */
export function uncloneable(what: string): symbol {
  return Symbol(what);
}

/**
 * Throws unless an option is an integer within its range.
 *
 * @param what The option's name.
 * @param value What came in.
 * @param least The smallest allowed.
 * @param most The largest allowed.
 */
export function checkInteger(
  what: string,
  value: number,
  least: number,
  most: number,
): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  refuseNumber(
    `Cannot create a domain as ${what} must be an integer from ${least} to ${most}`,
    value,
  );
}

/**
 * Refuses what a number was to be.
 *
 * @param message What failed, and what must hold.
 * @param value What came in: a number out of range, or something else, which is of the wrong type.
 */
export function refuseNumber(message: string, value: unknown): never {
  const text = `${message}: received ${show(value)}`;
  throw typeof value === "number" ? new RangeError(text) : new TypeError(text);
}

/**
 * Throws unless an option is a boolean.
 *
 * @param what The option's name.
 * @param value What came in.
 * @param act What the caller was about to do, for the error.
 */
export function checkBoolean(
  what: string,
  value: boolean,
  act: string,
): void {
  if (typeof value !== "boolean") {
    throw new TypeError(
      `Cannot ${act} as ${what} must be a boolean: received ${show(value)}`,
    );
  }
}
