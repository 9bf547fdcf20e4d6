// What options of a domain must be.

import { show } from "./memory/_codec.ts";

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
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(
      `Cannot create a domain as ${what} must be an integer from ${least} to ${most}: received ${
        show(value)
      }`,
    );
  }
}

/**
 * Throws unless an option is a boolean.
 *
 * @param what The option's name.
 * @param value What came in.
 */
export function checkBoolean(what: string, value: boolean): void {
  if (typeof value !== "boolean") {
    throw new TypeError(
      `Cannot create a domain as ${what} must be a boolean: received ${
        show(value)
      }`,
    );
  }
}
