import {
  assert,
  assertEquals,
  AssertionError,
  assertRejects,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import { Rcu } from "../mod.ts";
import { POISON } from "../src/memory/_heap.ts";
import {
  CLASS_WORDS,
  classOf,
  LARGEST_SLAB,
  PAGE_WORDS,
} from "../src/memory/_size_classes.ts";
import { membershipOf } from "../src/rcu.ts";
import {
  assertAddsUp,
  assertLists,
  pagesLock,
  tagOf,
  withDomain,
} from "./_audit.ts";
import { show } from "../src/memory/_codec.ts";
import { atEveryStep } from "./_steps.ts";

/** The bytes that a block of a size takes, by the rules of the size classes. */
function bytesOf(size: number): number {
  return 4 *
    (size <= LARGEST_SLAB
      ? CLASS_WORDS[classOf(size)]
      : Math.ceil(size / PAGE_WORDS) * PAGE_WORDS);
}

Deno.test("allocate() gives every size from 1 to 5,000 words aligned room of its own", () =>
  withDomain({ capacity: 2 ** 27 }, ({ memory }) => {
    const { words } = memory;
    const blocks: number[] = [];
    for (let size = 1; size <= 5_000; size++) {
      const block = memory.allocate(size);
      assertEquals(block % 4, 0, `${size} words at ${block}`);
      words.fill(size, block, block + size);
      blocks.push(block);
    }
    blocks.forEach((block, i) => {
      for (let word = 0; word <= i; word++) {
        if (words[block + word] !== i + 1) {
          throw new Error(`Word ${word} of ${i + 1} was overwritten`);
        }
      }
      memory.free(block);
    });
  }));

Deno.test("allocate() gives large blocks whole pages, the whole arena at most", () =>
  withDomain({ capacity: 2 ** 24 }, (rcu) => {
    const { largest } = membershipOf(rcu, "test").heap;
    const { memory } = rcu;
    for (const pages of [1, 2, 3, 100, largest / PAGE_WORDS]) {
      const block = memory.allocate(pages * PAGE_WORDS);
      assertEquals(block % PAGE_WORDS, 0);
      assertEquals(assertAddsUp(memory.audit()).live, pages * PAGE_WORDS * 4);
      memory.words.fill(1, block, block + pages * PAGE_WORDS);
      assertEquals(memory.audit().live, pages * PAGE_WORDS * 4);
      memory.free(block);
    }
  }));

Deno.test("allocate() wants an integer number of words that the arena could have", () =>
  withDomain({}, ({ memory }) => {
    const wrong = [0, -1, 1.5, NaN, Infinity, memory.words.length + 1, "4"];
    for (const size of wrong) {
      assertThrows(
        () => memory.allocate(size as number),
        RangeError,
        `from 1 to ${memory.words.length}: received ${show(size)}`,
      );
    }
  }));

const MISTAKES = {
  "free() of": (rcu: Rcu, block: number) => rcu.memory.free(block),
  "deferFree() of": (rcu: Rcu, block: number) => rcu.deferFree(block),
};

for (const [name, act] of Object.entries(MISTAKES)) {
  Deno.test(`${name} what is no block's address is an error that names it`, () =>
    withDomain({}, (rcu) => {
      const { memory } = rcu;
      const small = memory.allocate(8);
      const large = memory.allocate(3 * PAGE_WORDS);
      const page = small & -PAGE_WORDS;
      const wrong = [0, -4, NaN, 1.5, small + 1, small + 4, page, page + 1];
      wrong.push(large + 4, large + PAGE_WORDS, memory.words.length, 2 ** 40);
      wrong.push(memory.words.length - PAGE_WORDS, 16);
      for (const address of [...wrong, "8" as unknown as number]) {
        assertThrows(
          () => act(rcu, address),
          RangeError,
          `must be one that allocate() returned: received ${show(address)}`,
        );
      }
      assertEquals(memory.audit().live, 32 + 3 * PAGE_WORDS * 4);
      memory.free(small);
      memory.free(large);
    }));

  Deno.test(`${name} a free block is an error that names it`, () =>
    withDomain({}, (rcu) => {
      const small = rcu.memory.allocate(8);
      rcu.memory.free(small);
      assertThrows(
        () => act(rcu, small),
        Error,
        `must be live: block ${small} is already free`,
      );
      const large = rcu.memory.allocate(PAGE_WORDS);
      rcu.memory.free(large);
      assertThrows(() => act(rcu, large), RangeError, `received ${large}`);
    }));

  Deno.test(`${name} a deferred block is an error that names it`, () =>
    withDomain({}, (rcu) => {
      for (const size of [8, PAGE_WORDS]) {
        const block = rcu.memory.allocate(size);
        rcu.deferFree(block);
        assertThrows(
          () => act(rcu, block),
          Error,
          `must be live: block ${block} is already deferred`,
        );
      }
      assertEquals(rcu.stats().callbacks.pending, 2);
    }));
}

Deno.test("with debug, freed memory is poisoned to its last word", () =>
  withDomain({ debug: true }, async (rcu) => {
    const { words } = rcu.memory;
    for (const size of [4, 100, 3 * PAGE_WORDS]) {
      for (const deferred of [false, true]) {
        const block = rcu.memory.allocate(size);
        words.fill(1, block, block + size);
        if (deferred) {
          rcu.deferFree(block);
          assertEquals(words[block], 1, "not before its time");
          await rcu.barrier();
        } else {
          rcu.memory.free(block);
        }
        const poisoned = words.subarray(block, block + size)
          .every((word) => word === POISON && word === 0x6b6b6b6b);
        assert(poisoned, `${size} words, deferred: ${deferred}`);
      }
    }
  }));

type Step =
  | { kind: "allocate"; by: number; size: number }
  | { kind: "free" | "defer"; by: number; which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 80 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 12_000 }) },
).chain((size) =>
  fc.record({
    kind: fc.constantFrom("allocate", "allocate", "free", "defer"),
    by: fc.nat(1),
    size: fc.constant(size),
    which: fc.nat(),
  })
) as fc.Arbitrary<Step>;

/** Plays a history of two threads beside a model; a reader keeps deferred blocks deferred. */
function play(history: Step[]): void {
  using rcu = Rcu.create({ capacity: 2 ** 23, maxReaders: 4, highWater: 1e6 });
  using second = Rcu.attach(rcu.handle);
  using reader = Rcu.attach(rcu.handle);
  const threads = [rcu, second];
  const { words } = rcu.memory;
  const live = new Map<number, number>();
  let deferred = 0;
  using _section = reader.readLock();
  for (const event of history) {
    if (event.kind === "allocate") {
      const block = threads[event.by].memory.allocate(event.size);
      for (const [other, size] of live) {
        assert(
          block + event.size <= other || other + size <= block,
          `${event.size} words at ${block}, ${size} at ${other}`,
        );
      }
      live.set(block, event.size);
      words.fill(block, block, block + event.size);
    } else if (live.size > 0) {
      const [block, size] = [...live][event.which % live.size];
      const kept = words.subarray(block, block + size);
      assert(kept.every((word) => word === block), `block ${block}`);
      live.delete(block);
      if (event.kind === "free") threads[event.by].memory.free(block);
      else {
        threads[event.by].deferFree(block);
        deferred += bytesOf(size);
      }
    }
    const audit = assertAddsUp(rcu.memory.audit());
    const expected = [...live.values()].reduce((sum, s) => sum + bytesOf(s), 0);
    assertEquals([audit.live, audit.deferred], [expected, deferred]);
  }
  _section[Symbol.dispose]();
  reader.threadOffline();
  for (const block of live.keys()) rcu.memory.free(block);
  second.close();
  rcu.barrierSync();
  assertLists(words);
  const { live: left, deferred: waiting } = rcu.memory.audit();
  assertEquals([left, waiting], [0, 0]);
}

Deno.test("histories of two threads agree with a model at every step", () => {
  const histories = fc.array(step, { minLength: 1, maxLength: 150 });
  fc.assert(fc.property(histories, play), { numRuns: 60 });
});

Deno.test("an audit between any two steps of an allocation or a free sees one state or the other", () =>
  withDomain({ capacity: 2 ** 24 }, (rcu) => {
    using other = Rcu.attach(rcu.handle);
    const { memory } = rcu;
    const lock = pagesLock(memory.words);
    let looks = 0;
    for (const size of [1, 60, 700, 2_000, 3 * PAGE_WORDS]) {
      let least = memory.audit().live;
      const look = (): void => {
        // Whoever holds the lock of the pages keeps audits out.
        if (memory.words[lock] !== 0) return;
        const { live } = assertAddsUp(other.memory.audit());
        assert(live === least || live === least + bytesOf(size));
        looks++;
      };
      const blocks: number[] = [];
      for (let i = 0; i < 70; i++) {
        atEveryStep(() => blocks.push(memory.allocate(size)), look);
        least += bytesOf(size);
      }
      for (const block of blocks) {
        least -= bytesOf(size);
        atEveryStep(() => memory.free(block), look);
      }
      atEveryStep(() => membershipOf(rcu, "test").heap.scavenge(), () => {
        if (memory.words[lock] === 0) assertAddsUp(other.memory.audit());
      });
    }
    assert(looks > 600);
  }));

Deno.test("the checks of these tests notice a lost block, a forged tag and a leak", async () => {
  await withDomain({}, ({ memory: { words, ...memory } }) => {
    const [kept, lost] = [memory.allocate(8), memory.allocate(8)];
    memory.free(kept);
    memory.free(lost);
    const magazine = [...words.keys()].find((at) =>
      words[at] === lost && words[at + 1] > 1
    )!;
    // Lost: the magazine skips its first block.
    words[magazine] = kept;
    assertThrows(() => assertLists(words), Error, "count");
    words[magazine] = lost;
    // Forged: a listed block says that it is live.
    const tag = tagOf(words, lost);
    const link = words[tag];
    words[tag] = 1;
    assertThrows(() => assertLists(words), Error, "is not tagged so");
    assertEquals(memory.audit().live, 32);
    words[tag] = link;
    assertLists(words);
  });
  await assertRejects(
    () => withDomain({}, ({ memory }) => void memory.allocate(8)),
    AssertionError,
    "live",
  );
});
