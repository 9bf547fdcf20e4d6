// What must be true of a domain's memory whenever no thread is in the middle of something.

import { assert, assertEquals } from "@std/assert";
import { Rcu, type RcuOptions } from "../mod.ts";
import { CALLBACK_WORDS } from "../src/callbacks/_counters.ts";
import { createDomain } from "../src/_domain.ts";
import {
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
  magazinesOf,
  POISONS,
} from "../src/_layout.ts";
import { until } from "./_workers.ts";
import { membershipOf } from "../src/rcu.ts";
import type { Address, MemoryAudit } from "../src/memory/arena.ts";
import { HEAP_WORDS, PAGE_ENTRY_WORDS } from "../src/memory/_heap.ts";
import {
  CLASS_BLOCKS,
  CLASS_DATA,
  CLASS_WORDS,
  CLASSES,
  LINE,
  PAGE_SHIFT,
} from "../src/memory/_size_classes.ts";

// As in src/memory/_heap.ts, whose own these are.
const LARGE = 0x100;
const DEPOTS = HEAP_WORDS - CLASSES * LINE;

/**
 * Asserts that an audit adds up: at any moment, whatever other threads do.
 *
 * @param audit The audit.
 * @returns It.
 */
export function assertAddsUp(audit: MemoryAudit): MemoryAudit {
  const { capacity, live, deferred, free, overhead } = audit;
  for (const [part, bytes] of Object.entries(audit)) {
    assert(bytes >= 0 && bytes % 4 === 0, `${part} is ${bytes}`);
  }
  assertEquals(live + deferred + free + overhead, capacity, "the audit's sum");
  return audit;
}

/** Blocks by what their tags say. */
interface Tagged {
  free: Set<number>;
  deferred: Set<number>;
  /** Slab block → its class. */
  classes: Map<number, number>;
  /** Block → the address of its tag. */
  tags: Map<number, number>;
}

function readTags(words: Int32Array, mayBeHeld: boolean): Tagged {
  const { firstPage, endPage, pageTable } = placesOf(words);
  const free = new Set<number>();
  const deferred = new Set<number>();
  const classes = new Map<number, number>();
  const tags = new Map<number, number>();
  const see = (block: number, tag: number): void => {
    tags.set(block, tag);
    const state = words[tag] & 3;
    if (state === 0) free.add(block);
    else if (state === 2) deferred.add(block);
    // Nobody is in the middle of anything: what is live is public.
    else if (state !== 3 || !mayBeHeld) {
      assertEquals(words[tag], 1, `the tag of block ${block}`);
    }
  };
  for (let page = firstPage; page < endPage; page++) {
    const entry = pageTable + page * PAGE_ENTRY_WORDS;
    const kind = words[entry];
    const base = page << PAGE_SHIFT;
    if (kind === LARGE) {
      see(base, entry + 2);
      page += words[entry + 1] - 1;
    } else if (kind !== 0) {
      const c = kind - 1;
      for (let i = 0; i < CLASS_BLOCKS[c]; i++) {
        const block = base + CLASS_DATA[c] + i * CLASS_WORDS[c];
        classes.set(block, c);
        see(block, base + i);
      }
    }
  }
  return { free, deferred, classes, tags };
}

function placesOf(words: Int32Array): ReturnType<typeof layout> {
  return layout(
    words.length,
    words[HEADER_MAX_READERS],
    words[HEADER_DETECTOR],
  );
}

/**
 * The lock that keeps audits out.
 *
 * @param words The domain's words.
 * @returns Its address.
 */
export function pagesLock(words: Int32Array): Address {
  return placesOf(words).heap;
}

/**
 * Where a block's tag is.
 *
 * @param words The domain's words.
 * @param block The block.
 * @returns The address.
 */
export function tagOf(words: Int32Array, block: Address): Address {
  return readTags(words, true).tags.get(block)!;
}

/**
 * Asserts that every free block of a slab is on exactly one magazine or depot
 * chain of its class, that every deferred block is on exactly one deferred
 * list, that nothing else is on any, and that the counts beside the lists are
 * right. No thread may be allocating or freeing.
 *
 * @param words The domain's words.
 * @param mayBeHeld Whether a thread may still have blocks in hand that it has not published.
 */
export function assertLists(words: Int32Array, mayBeHeld = false): void {
  const places = placesOf(words);
  const maxReaders = words[HEADER_MAX_READERS];
  const { free, deferred, classes, tags } = readTags(words, mayBeHeld);
  const listed = new Set<number>();

  const walk = (
    head: number,
    of: Set<number>,
    where: string,
    c?: number,
  ): number => {
    let length = 0;
    for (let block = head; block !== 0; length++) {
      assert(of.has(block), `${where}: block ${block} is not tagged so`);
      assert(!listed.has(block), `${where}: block ${block} is listed twice`);
      if (c !== undefined) assertEquals(classes.get(block), c, where);
      listed.add(block);
      block = words[tags.get(block)!] & ~3;
    }
    return length;
  };

  for (let c = 0; c < CLASSES; c++) {
    for (let reader = 0; reader < maxReaders; reader++) {
      for (const at of [0, 2]) {
        const magazine = magazinesOf(places, reader) + c * 4 + at;
        const where = `class ${c}, magazine ${at} of reader ${reader}`;
        const length = walk(words[magazine], free, where, c);
        assertEquals(words[magazine + 1], length, `${where}: count`);
      }
    }
    const depot = places.heap + DEPOTS + c * LINE;
    const where = `class ${c}, depot`;
    assertEquals(words[depot], 0, `${where}: lock`);
    let chains = 0;
    for (let chain = words[depot + 1]; chain !== 0; chain = words[chain]) {
      chains++;
      walk(chain, free, where, c);
    }
    assertEquals(words[depot + 2], chains, `${where}: chains`);
  }
  assertEquals(listed.size, free.size, "blocks tagged free, blocks listed");

  for (let reader = 0; reader < maxReaders; reader++) {
    const line = places.callbacks + reader * CALLBACK_WORDS;
    for (let list = 0; list < 3; list++) {
      walk(words[line + list], deferred, `reader ${reader}, list ${list}`);
    }
  }
  // As in src/callbacks/_handover.ts.
  const handedOver = walk(words[places.handover], deferred, "handed over");
  assertEquals(words[places.handover + 1], handedOver, "handed over: count");
  const orphans = walk(words[places.orphans + 1], deferred, "orphans");
  assertEquals(words[places.orphans + 2], orphans, "orphans: count");
  assertEquals(
    listed.size,
    free.size + deferred.size,
    "blocks tagged free or deferred, blocks listed",
  );
}

/**
 * Who is the reclaimer.
 *
 * @param words The domain's words.
 * @returns Its index, or -1.
 */
export function claimOf(words: Int32Array): number {
  // As in src/callbacks/_handover.ts.
  return (Atomics.load(words, placesOf(words).handover + 3) & 0x1fff) - 1;
}

/** How often to look before something is left for good: some seconds. */
const LOOKS = 100;

/** What a domain of a test is like. */
export interface TestDomainOptions extends RcuOptions {
  /** Whether freed memory is poisoned, with the classes that are there without `debug`. */
  poisons?: boolean;
}

function create({ poisons = false, ...options }: TestDomainOptions): Rcu {
  if (!poisons) return Rcu.create(options);
  const { handle, words, name } = createDomain({ ...options, debug: false });
  words[HEADER_DEBUG] = POISONS;
  return Rcu.attach(handle, { name });
}

/**
 * Runs a scenario in a domain of its own, and asserts afterwards that nothing
 * of it is left: no callback, no live block, no list out of order, no other
 * thread. The scenario frees what it allocates; roots are made in `before`.
 *
 * @param options The domain's options; 4 MiB and 8 readers unless they say so.
 * @param use The scenario; it may return how many bytes stay live on purpose.
 * @param before What may leave live blocks behind.
 */
export async function withDomain(
  options: TestDomainOptions,
  use: (rcu: Rcu) => void | number | Promise<void | number>,
  before?: (rcu: Rcu) => void,
): Promise<void> {
  using rcu = create({ capacity: 2 ** 22, maxReaders: 8, ...options });
  before?.(rcu);
  const { live } = assertAddsUp(rcu.memory.audit());
  const kept = await use(rcu) ?? 0;
  await rcu.barrier();
  if (rcu.stats().callbacks.pending === 0 && isOffloaded(rcu)) {
    // A reclaimer ends with the last other thread, and only then has it left nothing.
    rcu.close();
    await until("no reclaimer", () => claimOf(rcu.memory.words) < 0);
    using last = Rcu.attach(rcu.handle);
    const alone = () => last.stats().readers.length === 1;
    await until("no reclaimer", alone);
    // This thread may have been in the way of the last thing that the reclaimer left: its name.
    await last.barrier();
    await assertNothingIsLeft(last, live + kept);
  } else {
    assertNothingLeft(rcu, live + kept);
  }
}

/** Looks again where a reclaimer whose worker was slow to start comes only now, looks around and goes. */
async function assertNothingIsLeft(rcu: Rcu, live: number): Promise<void> {
  for (let looks = 0;; looks++) {
    try {
      return assertNothingLeft(rcu, live);
    } catch (error) {
      if (looks === LOOKS) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, looks));
    await rcu.barrier();
  }
}

function isOffloaded(rcu: Rcu): boolean {
  return membershipOf(rcu, "audit").handover !== undefined;
}

function assertNothingLeft(rcu: Rcu, live: number): void {
  const { callbacks, memory, readers } = rcu.stats();
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
  assertEquals(
    { live: memory.live, deferred: memory.deferred, ...callbacks },
    { ...callbacks, live, deferred: 0, pending: 0 },
  );
  assertEquals(readers.map(({ id }) => id), [rcu.readerId]);
}
