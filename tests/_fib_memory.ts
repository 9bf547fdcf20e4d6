import type { Fib, Rcu } from "../mod.ts";
import {
  CLASS_WORDS,
  classOf,
  LARGEST_SLAB,
  PAGE_WORDS,
} from "../src/memory/_size_classes.ts";
import { FIRST_NUMBER, RECORD_WORDS } from "../src/routing/_fib_record.ts";
import { BUCKET_MASK, CHUNKS } from "../src/routing/_fib_trie.ts";
import { lookupOf } from "../src/routing/fib.ts";

/** The buckets that an empty table has. */
const FEWEST_BUCKETS = 64;

/** What a Fib keeps for the records of later routes, in bytes, beyond what an empty one has. */
export function keptBytes(rcu: Rcu, fib: Fib): number {
  const at = lookupOf(fib, "test").fib;
  const { words } = rcu.memory;
  let kept = blockBytes(words[at + BUCKET_MASK] + 1) -
    blockBytes(FEWEST_BUCKETS);
  for (let first = 2 * FIRST_NUMBER; first < 2 ** 31; first *= 2) {
    const block = words[at + CHUNKS + Math.log2(first)];
    if (block !== 0) kept += blockBytes(RECORD_WORDS * first);
  }
  return kept;
}

function blockBytes(words: number): number {
  return 4 *
    (words <= LARGEST_SLAB
      ? CLASS_WORDS[classOf(words)]
      : Math.ceil(words / PAGE_WORDS) * PAGE_WORDS);
}
