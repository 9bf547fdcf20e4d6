// A quick look at the lists of blocks, after each of many runs.

import { assertLists } from "../_audit.ts";
import { CALLBACK_WORDS } from "../../src/callbacks/_counters.ts";
import {
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
  magazinesOf,
} from "../../src/_layout.ts";
import {
  HEAP_WORDS,
  MAGAZINE_WORDS,
  PAGE_ENTRY_WORDS,
} from "../../src/memory/_heap.ts";
import {
  CLASS_BLOCKS,
  CLASS_DATA,
  CLASS_WORDS,
  CLASSES,
  LINE,
  PAGE_MASK,
  PAGE_SHIFT,
} from "../../src/memory/_size_classes.ts";

// As in src/memory/_heap.ts, whose own this is.
const LARGE = 0x100;

/** By block: the look that found it on a list. */
const seen = new Uint32Array(2 ** 20);
let looks = 0;

/**
 * Asserts what `assertLists` does of a domain in which nothing is deferred, in
 * a hundredth of the time.
 *
 * @param words The domain's words.
 */
export function assertListsQuickly(words: Int32Array): void {
  const maxReaders = words[HEADER_MAX_READERS];
  const places = layout(words.length, maxReaders, words[HEADER_DETECTOR]);
  const { callbacks, endPage, firstPage, heap, pageTable } = places;
  const look = ++looks;
  let listed = 0;
  let right = true;

  const tagOf = (block: number): number => {
    const page = block >>> PAGE_SHIFT;
    const c = words[pageTable + page * PAGE_ENTRY_WORDS] - 1;
    if (c < 0 || c >= CLASSES) return 0;
    return (page << PAGE_SHIFT) +
      ((block & PAGE_MASK) - CLASS_DATA[c]) / CLASS_WORDS[c];
  };
  const walk = (first: number): void => {
    for (let block = first; block !== 0 && right; listed++) {
      right = seen[block] !== look;
      seen[block] = look;
      const tag = words[tagOf(block)];
      right &&= (tag & 3) === 0;
      block = tag;
    }
  };

  for (let reader = 0; reader < maxReaders; reader++) {
    const magazines = magazinesOf(places, reader);
    for (let at = 0; at < MAGAZINE_WORDS; at += 2) walk(words[magazines + at]);
    for (let list = 0; list < 3; list++) {
      right &&= words[callbacks + reader * CALLBACK_WORDS + list] === 0;
    }
  }
  for (let c = 0; c < CLASSES && right; c++) {
    const depot = heap + HEAP_WORDS - (CLASSES - c) * LINE;
    for (let chain = words[depot + 1]; chain !== 0 && right;) {
      walk(chain);
      chain = words[chain];
    }
  }
  for (let page = firstPage; page < endPage; page++) {
    const entry = pageTable + page * PAGE_ENTRY_WORDS;
    const kind = words[entry];
    if (kind === LARGE) page += words[entry + 1] - 1;
    else if (kind !== 0) {
      for (let i = 0; i < CLASS_BLOCKS[kind - 1]; i++) {
        const state = words[(page << PAGE_SHIFT) + i] & 3;
        if (state === 0) listed--;
      }
    }
  }
  if (right && listed === 0) return;
  assertLists(words);
  throw new Error("The lists of blocks must be in order: they are not");
}
