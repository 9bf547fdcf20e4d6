// Where everything lies in the buffer: a pure function of its length, the number of readers and the
// detector.

import { ORPHAN_WORDS } from "./callbacks/_orphans.ts";
import { trailPages } from "./debug/_trail.ts";
import { detectorWords, SCAN } from "./grace_periods/_detectors.ts";
import { CALLBACK_WORDS } from "./callbacks/_counters.ts";
import { HANDOVER_WORDS } from "./callbacks/_handover.ts";
import { SEQUENCE_WORDS } from "./grace_periods/_sequence.ts";
import type { Address } from "./memory/arena.ts";
import {
  HEAP_WORDS,
  MAGAZINE_WORDS,
  PAGE_ENTRY_WORDS,
} from "./memory/_heap.ts";
import { WORK_WORDS } from "./memory/_journal.ts";
import { ROOT_WORDS } from "./memory/_roots.ts";
import { alignLine, LINE, PAGE_WORDS } from "./memory/_size_classes.ts";
import { obituaryWords } from "./readers/_obituaries.ts";
import { readerTableWords } from "./readers/_slots.ts";

/** Changes with every change of what lies where. */
export const LAYOUT_VERSION = 5;
/** What the first used word of a domain's buffer holds: "RCU1". */
export const MAGIC = 0x52435531;

// The header. Word 0 is never used: its address is null.
export const HEADER_MAGIC = 1;
export const HEADER_VERSION = 2;
export const HEADER_WORDS_LOW = 3;
export const HEADER_MAX_READERS = 4;
export const HEADER_HIGH_WATER = 5;
export const HEADER_STALL_TIMEOUT = 6;
/** 0; CHECKS in debug mode; POISONS where freed memory is poisoned and nothing else, for measurements. */
export const HEADER_DEBUG = 7;
export const CHECKS = 1;
export const POISONS = 2;
/** The domain's id: 4 words. */
export const HEADER_ID = 8;
/** Which detector: a kind of `_detectors.ts`. */
export const HEADER_DETECTOR = 12;
/** The callback policy and its two numbers. */
export const HEADER_POLICY = 13;
export const HEADER_POLICY_FIRST = 14;
export const HEADER_POLICY_SECOND = 15;
/** Counts lives: threads that have joined, or tried to. */
export const HEADER_LIVES = 16;
const HEADER_LENGTH = 2 * LINE;

/** Addresses of a domain's parts. */
export interface Layout {
  readonly sequence: Address;
  readonly roots: Address;
  readonly orphans: Address;
  readonly handover: Address;
  readonly readers: Address;
  readonly callbacks: Address;
  readonly heap: Address;
  readonly magazines: Address;
  /** A thread's own words for what it is in the middle of; one more for threads that have left. */
  readonly work: Address;
  readonly obituaries: Address;
  readonly detector: Address;
  readonly pageTable: Address;
  readonly firstPage: number;
  readonly endPage: number;
  /** What debug mode records, from here to the end; `undefined` without it. */
  readonly trail: Address | undefined;
}

/**
 * Lays a domain out.
 *
 * @param length Words of the buffer.
 * @param maxReaders Reader slots.
 * @param detector The word of the header that says which one.
 * @param debug Whether the domain is in debug mode.
 * @returns Where its parts are; `endPage` is not above `firstPage` if nothing is left for blocks.
 */
export function layout(
  length: number,
  maxReaders: number,
  detector: number = SCAN,
  debug: boolean = false,
): Layout {
  let top = HEADER_LENGTH;
  const take = (words: number): Address => {
    const address = top;
    top += alignLine(words);
    return address;
  };
  const sequence = take(SEQUENCE_WORDS);
  const roots = take(ROOT_WORDS);
  const orphans = take(ORPHAN_WORDS);
  const handover = take(HANDOVER_WORDS);
  const readers = take(readerTableWords(maxReaders));
  const callbacks = take(maxReaders * CALLBACK_WORDS);
  const heap = take(HEAP_WORDS);
  const magazines = take(maxReaders * MAGAZINE_WORDS);
  const work = take((maxReaders + 1) * WORK_WORDS);
  const obituaries = take(obituaryWords(maxReaders));
  const detectorAt = take(detectorWords(detector, maxReaders));
  const pages = Math.floor(length / PAGE_WORDS);
  const pageTable = take(pages * PAGE_ENTRY_WORDS);
  const endPage = pages - (debug ? trailPages(pages) : 0);
  const firstPage = Math.ceil(top / PAGE_WORDS);
  return {
    sequence,
    roots,
    orphans,
    handover,
    readers,
    callbacks,
    heap,
    magazines,
    work,
    obituaries,
    detector: detectorAt,
    pageTable,
    firstPage,
    endPage,
    trail: debug ? endPage * PAGE_WORDS : undefined,
  };
}

/**
 * Where a reader's magazines are.
 *
 * @param places The domain's layout.
 * @param reader The reader.
 * @returns The address.
 */
export function magazinesOf(places: Layout, reader: number): Address {
  return places.magazines + reader * MAGAZINE_WORDS;
}

/**
 * Where a reader writes down what it is in the middle of.
 *
 * @param places The domain's layout.
 * @param reader The reader; `maxReaders` for threads that have left.
 * @returns The address.
 */
export function workOf(places: Layout, reader: number): Address {
  return places.work + reader * WORK_WORDS;
}
