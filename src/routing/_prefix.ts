// IPv4 addresses and prefixes as text and as numbers.

import { show } from "../memory/_codec.ts";
import type { Prefix } from "./route.ts";

const DOT = 46;
const SLASH = 47;
const ZERO = 48;

const LARGEST_ADDRESS = 0xffff_ffff;

/** Room for a length in a prefix's key. */
const LENGTHS = 64;

/**
 * A prefix in one number, 2⁶ · address + length: keys in ascending order are
 * prefixes by address, each before the longer ones that it covers.
 */
export type PrefixKey = number;

/**
 * The key of a prefix.
 *
 * @param address Its first address.
 * @param length Its length.
 * @returns The key.
 */
export function prefixKey(address: number, length: number): PrefixKey {
  return address * LENGTHS + length;
}

/**
 * The first address of a prefix.
 *
 * @param key The prefix.
 * @returns An unsigned integer.
 */
export function addressOf(key: PrefixKey): number {
  return Math.floor(key / LENGTHS);
}

/**
 * The length of a prefix.
 *
 * @param key The prefix.
 * @returns From 0 to 32.
 */
export function lengthOf(key: PrefixKey): number {
  return key % LENGTHS;
}

/**
 * Reads a dotted address out of a string: four decimal octets without leading
 * zeros, which some programs take for octal.
 *
 * @param text The string.
 * @param at Where the address begins.
 * @param end Where it must end.
 * @returns The address, or -1.
 */
export function scanAddress(text: string, at: number, end: number): number {
  let address = 0;
  for (let octet = 0; octet < 4; octet++) {
    if (octet > 0 && text.charCodeAt(at++) !== DOT) return -1;
    const length = digitsAt(text, at, Math.min(at + 3, end));
    if (length === 0) return -1;
    let value = 0;
    for (const stop = at + length; at < stop; at++) {
      value = value * 10 + text.charCodeAt(at) - ZERO;
    }
    if (value > 255) return -1;
    address = address * 256 + value;
  }
  return at === end ? address : -1;
}

/** How many digits there are, or 0 if the number that they form has a leading zero. */
function digitsAt(text: string, at: number, end: number): number {
  let stop = at;
  for (; stop < end; stop++) {
    const digit = text.charCodeAt(stop) - ZERO;
    if (digit < 0 || digit > 9) break;
  }
  const length = stop - at;
  return length > 1 && text.charCodeAt(at) === ZERO ? 0 : length;
}

/**
 * An address as a number.
 *
 * @param address A dotted address or an unsigned 32-bit integer.
 * @returns The number.
 * @throws {RangeError} If it is malformed or out of range.
 * @throws {TypeError} If it is neither a string nor a number.
 */
export function parseAddress(address: string | number): number {
  const must =
    "Cannot look up an address as it must be dotted IPv4 or an integer from 0 to 4294967295";
  if (typeof address === "number") {
    if (address >>> 0 === address) return address;
    throw new RangeError(`${must}: received ${show(address)}`);
  }
  if (typeof address !== "string") {
    throw new TypeError(`${must}: received ${show(address)}`);
  }
  const parsed = scanAddress(address, 0, address.length);
  if (parsed < 0) {
    throw new RangeError(`${must}: received ${show(address)}`);
  }
  return parsed;
}

/**
 * A prefix as a number.
 *
 * @param prefix Such as "10.0.0.0/8", or its numbers.
 * @returns Its key.
 * @throws {RangeError} If it is malformed, out of range, or has host bits set.
 * @throws {TypeError} If it is neither a string nor an object with numbers.
 */
export function parsePrefix(prefix: string | Prefix): PrefixKey {
  if (typeof prefix === "string") return parseText(prefix);
  if (typeof prefix !== "object" || prefix === null) {
    throw new TypeError(
      `Cannot use a prefix as it must be a string or have address and length: received ${
        show(prefix)
      }`,
    );
  }
  const { address, length } = prefix;
  checkNumber("address", address, LARGEST_ADDRESS);
  checkNumber("length", length, 32);
  // -0 would make another key.
  return checkHostBits(address + 0, length + 0);
}

function checkNumber(part: keyof Prefix, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  const message =
    `Cannot use a prefix as its ${part} must be an integer from 0 to ${most}: received ${
      show(value)
    }`;
  throw typeof value === "number"
    ? new RangeError(message)
    : new TypeError(message);
}

function parseText(text: string): PrefixKey {
  const end = text.length;
  const slash = end > 2 && text.charCodeAt(end - 2) === SLASH
    ? end - 2
    : end - 3;
  const address = slash > 0 && text.charCodeAt(slash) === SLASH
    ? scanAddress(text, 0, slash)
    : -1;
  const digits = address < 0 ? 0 : digitsAt(text, slash + 1, end);
  const length = digits > 0 && digits === end - slash - 1
    ? Number(text.slice(slash + 1))
    : 33;
  if (length > 32) {
    throw new RangeError(
      `Cannot use a prefix as it must be a dotted IPv4 address, a slash and a length from 0 to 32: received ${
        show(text)
      }`,
    );
  }
  return checkHostBits(address, length);
}

function checkHostBits(address: number, length: number): PrefixKey {
  const host = address % 2 ** (32 - length);
  if (host !== 0) {
    throw new RangeError(
      `Cannot use a prefix as the bits behind its length must be 0, as in ${
        formatPrefix(prefixKey(address - host, length))
      }: received ${formatPrefix(prefixKey(address, length))}`,
    );
  }
  return prefixKey(address, length);
}

/**
 * An address in dotted form.
 *
 * @param address An unsigned 32-bit integer.
 * @returns The text.
 */
export function formatAddress(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${
    (address >>> 8) & 255
  }.${address & 255}`;
}

/**
 * A prefix in dotted form.
 *
 * @param key The prefix.
 * @returns The text.
 */
export function formatPrefix(key: PrefixKey): string {
  return `${formatAddress(addressOf(key))}/${lengthOf(key)}`;
}
