// What debug mode says about a misuse: the acts before it, and where they were.

import { assert, assertMatch, assertThrows } from "@std/assert";

/**
 * Asserts that a misuse throws, and that the error names the acts that led to it.
 *
 * @param misuse What is wrong.
 * @param message The beginning of the error's message.
 * @param acts What was done before, the first act first: the words, and the function in which it was.
 */
export function assertBlames(
  misuse: () => unknown,
  message: string,
  acts: readonly (readonly [what: string, where: string])[],
): void {
  const error = assertThrows(misuse, Error);
  assertNames(error, message, acts);
}

/**
 * Asserts that an error names the acts that led to it.
 *
 * @param error The error.
 * @param message The beginning of its message.
 * @param acts As of {@linkcode assertBlames}.
 */
export function assertNames(
  error: Error,
  message: string,
  acts: readonly (readonly [what: string, where: string])[],
): void {
  assert(error.message.startsWith(message), error.message);
  let last: Error = error;
  for (const [what, where] of acts.toReversed()) {
    assert(error.message.includes(`; ${what} at file:`), error.message);
    last = last.cause as Error;
    assert(last instanceof Error, `no cause of ${what}`);
    assert(last.message === what, last.message);
    const [first, frame] = last.stack!.split("\n");
    assert(first === `Error: ${what} here:`, first);
    // Not one of the package's own.
    assertMatch(frame, new RegExp(`^    at .*\\b${where}\\b`));
    assertMatch(frame, /\/tests\//);
  }
  assert(last.cause === undefined, `one cause more: ${last.cause}`);
}
