// Addresses and other small arguments, as one word each.

import { show } from "../memory/_codec.ts";
import { scanAddress } from "./_prefix.ts";

/** The largest number of 32 bits. */
export const LARGEST_U32 = 0xffff_ffff;

/**
 * Takes an address in either form.
 *
 * @param value Dotted text, or an unsigned 32-bit integer.
 * @param act What the caller was about to do, for the error.
 * @param what What the address is to it, for the error.
 * @returns Its 32 bits as a signed integer.
 */
export function toIpv4(
  value: string | number,
  act: string,
  what: string,
): number {
  if (typeof value === "number") {
    if (value >>> 0 === value) return value | 0;
  } else if (typeof value === "string") {
    const address = scanAddress(value, 0, value.length);
    if (address >= 0) return address | 0;
  }
  const message =
    `Cannot ${act} as its ${what} must be an IPv4 address, dotted or an unsigned 32-bit integer: received ${
      show(value)
    }`;
  throw typeof value === "number" || typeof value === "string"
    ? new RangeError(message)
    : new TypeError(message);
}

/**
 * Takes an unsigned integer.
 *
 * @param value What the caller passed.
 * @param least The smallest that it may be.
 * @param most The largest that it may be, at most {@linkcode LARGEST_U32}.
 * @param act What the caller was about to do, for the error.
 * @param what What the number is to it, for the error.
 * @param limit What the largest is called in the error.
 * @returns Its 32 bits as a signed integer.
 */
export function toUnsigned(
  value: number,
  least: number,
  most: number,
  act: string,
  what: string,
  limit = `${most}`,
): number {
  // The type first: a BigInt cannot even be tried.
  if (
    typeof value === "number" && value >>> 0 === value && value >= least &&
    value <= most
  ) return value | 0;
  const message =
    `Cannot ${act} as its ${what} must be an integer from ${least} to ${limit}: received ${
      show(value)
    }`;
  throw typeof value === "number"
    ? new RangeError(message)
    : new TypeError(message);
}
