/**
 * The part of `@std/assert` that this project uses, for machines that cannot
 * reach JSR. Names, signatures and meanings are those of the package; only the
 * wording of failures is free, and its differences come from `node:assert`.
 */
import { AssertionError as NodeAssertionError } from "node:assert";
import { inspect, stripVTControlCharacters } from "node:util";
import { equal } from "./equal.ts";
import { matches } from "./object_match.ts";

export { equal };

/** Any constructor, of an abstract class too. */
// deno-lint-ignore no-explicit-any
export type AnyConstructor = abstract new (...args: any[]) => any;

/** What a constructor makes. */
export type GetConstructorType<T extends AnyConstructor> = InstanceType<T>;

/** Anything with elements and a length that is not a string. */
export type ArrayLikeArg<T> = ArrayLike<T> & object;

// deno-lint-ignore no-explicit-any
type ErrorConstructorOf<E extends Error> = abstract new (...args: any[]) => E;

/** Thrown by every assertion that fails. */
export class AssertionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AssertionError";
  }
}

function failure(what: string, msg: string | undefined): AssertionError {
  return new AssertionError(msg ? `${what}: ${msg}` : `${what}.`);
}

function difference(actual: unknown, expected: unknown): string {
  const operator = "deepStrictEqual";
  return new NodeAssertionError({ actual, expected, operator }).message;
}

export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) throw new AssertionError(msg);
}

export function assertFalse(expr: unknown, msg = ""): asserts expr is false {
  if (expr) throw new AssertionError(msg);
}

export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  if (equal(actual, expected)) return;
  const { message } = failure("Values are not equal", msg);
  throw new AssertionError(`${message}\n${difference(actual, expected)}`);
}

export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  if (!equal(actual, expected)) return;
  throw failure(
    `Expected actual: ${inspect(actual)} not to be: ${inspect(expected)}`,
    msg,
  );
}

export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  if (Object.is(actual, expected)) return;
  const { message } = failure("Values are not strictly equal", msg);
  throw new AssertionError(`${message}\n${difference(actual, expected)}`);
}

export function assertNotStrictEquals<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (!Object.is(actual, expected)) return;
  throw failure(
    `Expected "actual" to not be strictly equal to: ${inspect(actual)}`,
    msg,
  );
}

export function assertExists<T>(
  actual: T,
  msg?: string,
): asserts actual is NonNullable<T> {
  if (actual !== undefined && actual !== null) return;
  throw failure(
    `Expected actual: "${actual}" to not be null or undefined`,
    msg,
  );
}

export function assertInstanceOf<T extends AnyConstructor>(
  actual: unknown,
  expectedType: T,
  msg = "",
): asserts actual is GetConstructorType<T> {
  if (actual instanceof expectedType) return;
  throw failure(
    `Expected object to be an instance of "${expectedType.name}" but was ${
      inspect(actual)
    }`,
    msg,
  );
}

export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (actual > expected) return;
  throw new AssertionError(
    msg ?? `Expect ${inspect(actual)} > ${inspect(expected)}`,
  );
}

export function assertGreaterOrEqual<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (actual >= expected) return;
  throw new AssertionError(
    msg ?? `Expect ${inspect(actual)} >= ${inspect(expected)}`,
  );
}

export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (actual < expected) return;
  throw new AssertionError(
    msg ?? `Expect ${inspect(actual)} < ${inspect(expected)}`,
  );
}

export function assertLessOrEqual<T>(
  actual: T,
  expected: T,
  msg?: string,
): void {
  if (actual <= expected) return;
  throw new AssertionError(
    msg ?? `Expect ${inspect(actual)} <= ${inspect(expected)}`,
  );
}

export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance?: number,
  msg?: string,
): void {
  if (Object.is(actual, expected)) return;
  // One part in ten million of what is expected, if nothing else is said.
  tolerance ??= Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7;
  if (Math.abs(expected - actual) <= tolerance) return;
  throw failure(
    `Expected actual: "${actual}" to be within ${tolerance} of "${expected}"`,
    msg,
  );
}

export function assertStringIncludes(
  actual: string,
  expected: string,
  msg?: string,
): void {
  if (actual.includes(expected)) return;
  throw failure(
    `Expected actual: "${actual}" to contain: "${expected}"`,
    msg,
  );
}

export function assertMatch(
  actual: string,
  expected: RegExp,
  msg?: string,
): void {
  if (expected.test(actual)) return;
  throw failure(`Expected actual: "${actual}" to match: "${expected}"`, msg);
}

export function assertNotMatch(
  actual: string,
  expected: RegExp,
  msg?: string,
): void {
  if (!expected.test(actual)) return;
  throw failure(
    `Expected actual: "${actual}" to not match: "${expected}"`,
    msg,
  );
}

export function assertArrayIncludes<T>(
  actual: ArrayLikeArg<T>,
  expected: ArrayLikeArg<T>,
  msg?: string,
): void {
  const found = Array.from(actual);
  const missing = Array.from(expected).filter((item) =>
    !found.some((candidate) => equal(candidate, item))
  );
  if (missing.length === 0) return;
  throw failure(
    `Expected actual: ${inspect(actual)} to include: ${
      inspect(expected)
    }, missing: ${inspect(missing)}`,
    msg,
  );
}

export function assertObjectMatch(
  // deno-lint-ignore no-explicit-any
  actual: Record<PropertyKey, any>,
  expected: Record<PropertyKey, unknown>,
  msg?: string,
): void {
  if (matches(actual, expected)) return;
  const { message } = failure("Values are not equal", msg);
  throw new AssertionError(`${message}\n${difference(actual, expected)}`);
}

export function assertIsError<E extends Error = Error>(
  error: unknown,
  ErrorClass?: ErrorConstructorOf<E>,
  msgMatches?: string | RegExp,
  msg?: string,
): asserts error is E {
  if (!(error instanceof Error)) {
    throw failure(`Expected "error" to be an Error object`, msg);
  }
  if (ErrorClass && !(error instanceof ErrorClass)) {
    throw failure(
      `Expected error to be instance of "${ErrorClass.name}", but was ${
        inspect(error)
      }`,
      msg,
    );
  }
  if (!msgMatches) return;
  const message = stripVTControlCharacters(error.message);
  const matches = typeof msgMatches === "string"
    ? message.includes(stripVTControlCharacters(msgMatches))
    : msgMatches.test(message);
  if (matches) return;
  throw failure(
    `Expected error message to include ${inspect(msgMatches)}, but got ${
      inspect(error.message)
    }`,
    msg,
  );
}

export function assertThrows(fn: () => unknown, msg?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: ErrorConstructorOf<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  classOrMsg?: ErrorConstructorOf<E> | string,
  msgIncludes?: string,
  msg?: string,
): unknown {
  const why = typeof classOrMsg === "string" ? classOrMsg : msg;
  try {
    fn();
  } catch (error) {
    if (typeof classOrMsg === "function") {
      assertIsError(error, classOrMsg, msgIncludes, msg);
    }
    return error;
  }
  throw failure("Expected function to throw", why);
}

export function assertRejects(
  fn: () => PromiseLike<unknown>,
  msg?: string,
): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: ErrorConstructorOf<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  classOrMsg?: ErrorConstructorOf<E> | string,
  msgIncludes?: string,
  msg?: string,
): Promise<unknown> {
  const why = typeof classOrMsg === "string" ? classOrMsg : msg;
  let promise: PromiseLike<unknown> | undefined;
  try {
    promise = fn();
  } catch {
    // Throwing is not rejecting: told below, as for a missing promise.
  }
  if (typeof promise?.then !== "function") {
    throw failure("Function throws when expected to reject", why);
  }
  try {
    await promise;
  } catch (error) {
    if (typeof classOrMsg === "function") {
      assertIsError(error, classOrMsg, msgIncludes, msg);
    }
    return error;
  }
  throw failure("Expected function to reject", why);
}

export function fail(msg?: string): never {
  throw failure("Failed assertion", msg);
}

export function unreachable(msg?: string): never {
  throw failure("Unreachable", msg);
}
