// Strings in words: the length with the width of a unit, then the units packed.

import type { Address } from "./arena.ts";

// Any string of UTF-16 units comes back as it was, lone surrogates included.
const ASCII = 0;
const LATIN1 = 1;
const UTF16 = 2;
const WIDTH_BITS = 2;

/** Units that are decoded with one call. */
const CHUNK = 4096;
/** From this length on, the platform's decoder is faster than a call with many arguments. */
const LONG_ASCII = 64;

/** Longest string in UTF-16 units: its length shares a word with its width. */
export const LONGEST_TEXT: number = 2 ** 29 - 1;

const utf8 = new TextDecoder();
const units: number[] = [];

function widthOf(text: string): number {
  let seen = 0;
  for (let i = 0; i < text.length; i++) seen |= text.charCodeAt(i);
  return seen < 0x80 ? ASCII : seen < 0x100 ? LATIN1 : UTF16;
}

function dataWords(length: number, width: number): number {
  return width === UTF16 ? (length + 1) >>> 1 : (length + 3) >>> 2;
}

/**
 * How much room a string needs.
 *
 * @param text The string.
 * @returns Words.
 */
export function measureText(text: string): number {
  return 1 + dataWords(text.length, widthOf(text));
}

/**
 * Writes a string into a record that is not published yet.
 *
 * @param words The arena's words.
 * @param address Where to.
 * @param text The string.
 * @returns The address behind it.
 */
export function writeText(
  words: Int32Array,
  address: Address,
  text: string,
): Address {
  const width = widthOf(text);
  const length = text.length;
  words[address++] = (length << WIDTH_BITS) | width;
  const end = address + dataWords(length, width);
  let i = 0;
  if (width === UTF16) {
    for (; address < end; i += 2) {
      const high = i + 1 < length ? text.charCodeAt(i + 1) : 0;
      words[address++] = text.charCodeAt(i) | (high << 16);
    }
    return end;
  }
  for (; i + 4 <= length; i += 4) {
    words[address++] = text.charCodeAt(i) | (text.charCodeAt(i + 1) << 8) |
      (text.charCodeAt(i + 2) << 16) | (text.charCodeAt(i + 3) << 24);
  }
  if (address < end) {
    let last = 0;
    for (let shift = 0; i < length; i++, shift += 8) {
      last |= text.charCodeAt(i) << shift;
    }
    words[address] = last;
  }
  return end;
}

/**
 * Reads a string from a published record.
 *
 * @param words The arena's words.
 * @param address Where it begins.
 * @returns The string.
 */
export function readText(words: Int32Array, address: Address): string {
  const head = words[address++];
  const length = head >>> WIDTH_BITS;
  const width = head & 3;
  if (width === ASCII && length >= LONG_ASCII) {
    // Decoders refuse shared memory: they get a copy.
    return utf8.decode(
      new Uint8Array(words.buffer, address * 4, length).slice(),
    );
  }
  let text = "";
  const perWord = width === UTF16 ? 2 : 4;
  for (let done = 0; done < length; done += CHUNK) {
    const count = Math.min(CHUNK, length - done);
    units.length = count;
    const from = address + done / perWord;
    if (width === UTF16) {
      for (let i = 0; i < count; i++) {
        units[i] = (words[from + (i >>> 1)] >>> ((i & 1) << 4)) & 0xffff;
      }
    } else {
      for (let i = 0; i < count; i++) {
        units[i] = (words[from + (i >>> 2)] >>> ((i & 3) << 3)) & 0xff;
      }
    }
    text += String.fromCharCode.apply(null, units);
  }
  return text;
}

/**
 * Compares a stored string with another one without decoding it.
 *
 * @param words The arena's words.
 * @param address Where the stored one begins.
 * @param text The other one.
 * @returns Whether they are equal.
 */
export function equalsText(
  words: Int32Array,
  address: Address,
  text: string,
): boolean {
  const head = words[address++];
  const length = head >>> WIDTH_BITS;
  if (length !== text.length) return false;
  if ((head & 3) === UTF16) {
    for (let i = 0; i < length; i++) {
      const unit = (words[address + (i >>> 1)] >>> ((i & 1) << 4)) & 0xffff;
      if (unit !== text.charCodeAt(i)) return false;
    }
    return true;
  }
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    if ((a | b | c | d) > 0xff) return false;
    if (words[address++] !== (a | (b << 8) | (c << 16) | (d << 24))) {
      return false;
    }
  }
  for (let shift = 0; i < length; i++, shift += 8) {
    if (((words[address] >>> shift) & 0xff) !== text.charCodeAt(i)) {
      return false;
    }
  }
  return true;
}

/**
 * Orders a stored string and another one by their UTF-16 units, without decoding.
 *
 * @param words The arena's words.
 * @param address Where the stored one begins.
 * @param text The other one.
 * @returns Below 0 if the stored one comes first, above 0 if the other one does, 0 if they are equal.
 */
export function compareText(
  words: Int32Array,
  address: Address,
  text: string,
): number {
  const head = words[address++];
  const length = head >>> WIDTH_BITS;
  const common = Math.min(length, text.length);
  if ((head & 3) === UTF16) {
    for (let i = 0; i < common; i++) {
      const unit = (words[address + (i >>> 1)] >>> ((i & 1) << 4)) & 0xffff;
      const other = text.charCodeAt(i);
      if (unit !== other) return unit - other;
    }
  } else {
    for (let i = 0; i < common; i++) {
      const unit = (words[address + (i >>> 2)] >>> ((i & 3) << 3)) & 0xff;
      const other = text.charCodeAt(i);
      if (unit !== other) return unit - other;
    }
  }
  return length - text.length;
}

/**
 * How long a stored string is.
 *
 * @param words The arena's words.
 * @param address Where it begins.
 * @returns Words.
 */
export function textWords(words: Int32Array, address: Address): number {
  const head = words[address];
  return 1 + dataWords(head >>> WIDTH_BITS, head & 3);
}

/**
 * Hashes a string by its UTF-16 units.
 *
 * @param text The string.
 * @param seed The table's secret.
 * @returns 32 bits.
 */
export function hashText(text: string, seed: number): number {
  let h = seed ^ text.length;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    h ^= h >>> 15;
  }
  return h;
}

/**
 * Whether bytes are ASCII, so that each is a UTF-16 unit.
 *
 * @param bytes The bytes.
 * @param length How many there are: an object may say something else of itself.
 * @returns Whether they are.
 */
export function isAscii(bytes: Uint8Array, length: number): boolean {
  let seen = 0;
  for (let i = 0; i < length; i++) seen |= bytes[i];
  return seen < 0x80;
}

/**
 * {@linkcode hashText} of ASCII, without making a string of it.
 *
 * @param ascii Its bytes.
 * @param length How many there are.
 * @param seed The table's secret.
 * @returns 32 bits.
 */
export function hashAscii(
  ascii: Uint8Array,
  length: number,
  seed: number,
): number {
  let h = seed ^ length;
  for (let i = 0; i < length; i++) {
    h = Math.imul(h ^ ascii[i], 0x01000193);
    h ^= h >>> 15;
  }
  return h;
}

/**
 * {@linkcode equalsText} of ASCII, without making a string of it.
 *
 * @param words The arena's words.
 * @param address Where the stored string begins.
 * @param ascii The other one's bytes.
 * @param length How many there are.
 * @returns Whether they are equal.
 */
export function equalsAscii(
  words: Int32Array,
  address: Address,
  ascii: Uint8Array,
  length: number,
): boolean {
  if (words[address++] !== ((length << WIDTH_BITS) | ASCII)) return false;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const packed = ascii[i] | (ascii[i + 1] << 8) | (ascii[i + 2] << 16) |
      (ascii[i + 3] << 24);
    if (words[address++] !== packed) return false;
  }
  for (let shift = 0; i < length; i++, shift += 8) {
    if (((words[address] >>> shift) & 0xff) !== ascii[i]) return false;
  }
  return true;
}
