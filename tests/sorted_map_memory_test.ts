// Memory that runs out at any allocation of an update: the map is as it was, and serves on.

import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Codec,
  json,
  type KeyCodec,
  Rcu,
  RcuMemoryError,
  RcuSortedMap,
  string,
  u32,
} from "../mod.ts";
import { STOCK_COUNT } from "../src/structures/_tree.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { assertBlocks, assertTree, treeOf } from "./_tree_checks.ts";

// deno-lint-ignore no-explicit-any -- any map
type AnyMap = RcuSortedMap<any, any>;

/**
 * Does something again and again, the heap being empty from the n-th allocation
 * on, until it succeeds.
 *
 * @param map The map.
 * @param act What is done.
 * @param after Checks, after each failure.
 * @param once Whether the heap fails once only.
 * @returns How often it failed, or, with `once`, was done.
 */
function atEveryAllocation(
  map: AnyMap,
  act: () => void,
  after: () => void,
  once = false,
): number {
  const { heap } = treeOf(map).membership;
  const { tryAllocate } = heap;
  for (let n = 0;; n++) {
    let calls = 0;
    let failed = 0;
    heap.tryAllocate = (size) => {
      const fails = once ? calls === n : calls >= n;
      calls++;
      if (fails) failed++;
      return fails ? 0 : tryAllocate.call(heap, size);
    };
    try {
      act();
      if (failed === 0 || !once) return n;
    } catch (error) {
      assert(error instanceof RcuMemoryError, String(error));
      assert(!once);
    } finally {
      heap.tryAllocate = tryAllocate;
    }
    after();
  }
}

const CODECS: [
  KeyCodec<unknown>,
  (n: number) => unknown,
  Codec<unknown>,
  (n: number) => unknown,
][] = [
  [u32 as KeyCodec<unknown>, (n) => n, u32 as Codec<unknown>, (n) => n],
  [
    string as KeyCodec<unknown>,
    (n) => `key ${n}`.padStart(12),
    json(),
    (n) => ({ n }),
  ],
];

for (const [key, keyOf, value, valueOf] of CODECS) {
  const of = `${key.schema} to ${value.schema}`;

  Deno.test(`an insertion into a map of ${of} that fails at any allocation changes nothing`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const map = RcuSortedMap.open(rcu, "m", { key, value });
    let live = await settle(rcu);
    let failures = 0;
    for (let n = 0; n < 60; n++) {
      const before = [...map];
      const after = () => {
        assertEquals([...map], before);
        assertTree(map);
        assertEquals(rcu.memory.audit().live, live);
      };
      const act = [
        () => map.set(keyOf(n), valueOf(n)),
        () => map.getOrInsert(keyOf(n), valueOf(n)),
        () => map.update(keyOf(n), () => valueOf(n)),
      ][n % 3];
      failures += atEveryAllocation(map, act, after);
      assertEquals(map.get(keyOf(n)), valueOf(n));
      assertBlocks(map);
      live = await settle(rcu);
    }
    assert(failures > 60 * 1.3, `${failures} failures`);
  });

  Deno.test(`an update of a map of ${of} that finds a block missing once gets it and is done`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const map = RcuSortedMap.open(rcu, "m", { key, value });
    const empty = await settle(rcu);
    let times = 0;
    for (let n = 0; n < 30; n++) {
      times += atEveryAllocation(
        map,
        () => map.set(keyOf(n), valueOf(n)),
        () => {
          assertEquals(map.get(keyOf(n)), valueOf(n));
          assert(map.delete(keyOf(n)));
          assertTree(map);
        },
        true,
      );
    }
    for (let n = 0; n < 30; n++) {
      times += atEveryAllocation(
        map,
        () => assert(map.delete(keyOf(n))),
        () => {
          map.set(keyOf(n), valueOf(n));
          assertTree(map);
        },
        true,
      );
    }
    assert(times > 35, `${times} times`);
    assertEquals(map.size, 0);
    assertEquals(await settle(rcu), empty);
    assertLists(rcu.memory.words);
  });

  Deno.test(`replaceAll() of a map of ${of} that fails at any allocation changes nothing`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const map = RcuSortedMap.open(rcu, "m", { key, value });
    for (let n = 0; n < 9; n++) map.set(keyOf(n), valueOf(n));
    const live = await settle(rcu);
    const before = [...map];
    const entries = [3, 1, 2, 1, 8, 3].map((n) =>
      [keyOf(n), valueOf(n + 50)] as const
    );
    const failures = atEveryAllocation(
      map,
      () => map.replaceAll(entries),
      () => {
        assertEquals([...map], before);
        assertTree(map);
        assertEquals(rcu.memory.audit().live, live);
      },
    );
    assert(failures > entries.length, `${failures} failures`);
    assertEquals(
      [...map],
      [1, 2, 3, 8].map((n) => [keyOf(n), valueOf(n + 50)]),
    );
    assertBlocks(map);
  });

  Deno.test(`opening a map of ${of} that fails at any allocation leaves nothing behind`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const any = RcuSortedMap.open(rcu, "any", { key, value });
    const live = await settle(rcu);
    const failures = atEveryAllocation(
      any,
      () => RcuSortedMap.open(rcu, "m", { key, value }),
      () => assertEquals(rcu.memory.audit().live, live),
    );
    assert(failures > 60, `${failures} failures`);
    RcuSortedMap.open(rcu, "m", { key, value }).set(keyOf(1), valueOf(1));
  });

  Deno.test(`a map of ${of} can be emptied without any memory, by the stock and what deletions give back`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const map = RcuSortedMap.open(rcu, "m", { key, value });
    const empty = await settle(rcu);
    const { membership, words, header } = treeOf(map);
    const { heap } = membership;
    const { tryAllocate } = heap;
    for (let n = 0; n < 300; n++) map.set(keyOf(n), valueOf(n));
    // In a section nothing comes back: the stock alone.
    heap.tryAllocate = () => 0;
    let deleted = 0;
    try {
      rcu.read(() => {
        for (; deleted < 300; deleted++) {
          const key = keyOf((deleted * 7) % 300);
          const before = map.size;
          try {
            assert(map.delete(key));
          } catch (error) {
            assert(error instanceof RcuMemoryError, String(error));
            assertEquals([map.size, map.has(key)], [before, true]);
            break;
          }
          assertTree(map);
        }
      });
      assert(deleted > 20 && deleted < 300, `${deleted} deletions`);
      assert(words[header + STOCK_COUNT] < 10);
    } finally {
      heap.tryAllocate = tryAllocate;
    }
    // The heap has no more than what deletions give back.
    const held: number[] = [];
    for (let size = 4096; size > 3; size >>= 1) {
      for (let block; (block = heap.tryAllocate(size)) !== 0;) held.push(block);
    }
    for (; deleted < 300; deleted++) {
      assert(map.delete(keyOf((deleted * 7) % 300)));
      assertTree(map);
    }
    for (const block of held) heap.free(block);
    // The stock is filled up by the next update.
    map.set(keyOf(1), valueOf(1)).delete(keyOf(1));
    assertEquals(await settle(rcu), empty);
    assertAddsUp(rcu.memory.audit());
    assertLists(words);
  });

  Deno.test(`a map of ${of} is cleared without any memory, at once`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    const map = RcuSortedMap.open(rcu, "m", { key, value });
    const empty = await settle(rcu);
    const { heap } = treeOf(map).membership;
    const { tryAllocate } = heap;
    for (let n = 0; n < 300; n++) map.set(keyOf(n), valueOf(n));
    heap.tryAllocate = () => 0;
    map.clear();
    assertEquals([map.size, [...map], map.first()], [0, [], undefined]);
    heap.tryAllocate = tryAllocate;
    assertEquals(await settle(rcu), empty);
    assertEquals(map.set(keyOf(1), valueOf(1)).get(keyOf(1)), valueOf(1));
    assertTree(map);
  });
}

Deno.test("a sorted map that fills memory is as it was after every failure, and serves on", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 21, maxReaders: 4, debug: true });
  const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
  const empty = await settle(rcu);
  for (let round = 0; round < 2; round++) {
    let count = 0;
    const { requested } = assertThrows(() => {
      for (;; count++) map.set(`${count}`.padStart(9), "x".repeat(99));
    }, RcuMemoryError) as RcuMemoryError;
    assert(requested > 0 && count > 1000, `${count} entries`);
    const live = await settle(rcu);
    const long = "y".repeat(2 ** 21);
    const acts = [
      () => map.set(long, "a"),
      () => map.set("a", long),
      () => map.set(" ".repeat(8) + "0", long),
      () => map.update(long, () => "a"),
      () => map.getOrInsert("a", long),
      () => map.replaceAll([...map]),
    ];
    for (const act of acts) {
      assertThrows(act, RcuMemoryError, "Cannot allocate");
    }
    assertEquals(await settle(rcu), live);
    assertEquals(assertTree(map).nodes.length, count);
    // Each needs the block that the one before has deferred.
    map.delete(`${count - 1}`.padStart(9));
    for (let n = 0; n < 200; n++) {
      map.set(`${n}`.padStart(9), `${n}`.repeat(20).padEnd(99));
    }
    for (let n = 0; n < count - 1; n++) assert(map.delete(`${n}`.padStart(9)));
    assertEquals(map.size, 0);
    map.set("a", "b").clear();
    assertEquals(await settle(rcu), empty);
    assertLists(rcu.memory.words);
  }
});

Deno.test("a callback that updates the map in the middle of an update that waits for memory harms neither", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
  const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
  const empty = await settle(rcu);
  const { heap } = treeOf(map).membership;
  const { tryAllocate } = heap;
  for (let n = 0; n < 30; n++) map.set(`${n}`, "x");
  for (let fail = 0; fail < 6; fail++) {
    let calls = 0;
    let ran = 0;
    rcu.callRcu(() => {
      heap.tryAllocate = tryAllocate;
      for (let n = 0; n < 20; n++) map.set(`in ${fail} ${n}`, "y");
      for (let n = 0; n < 10; n++) map.delete(`in ${fail} ${n}`);
      ran++;
    });
    // Waits for the callback's period, and runs it, in the middle of the update.
    heap.tryAllocate = (size) =>
      calls++ >= fail ? 0 : tryAllocate.call(heap, size);
    // Something to wait for.
    map.set("0", "z");
    map.set(`out ${fail}`, "z");
    heap.tryAllocate = tryAllocate;
    assertEquals(map.get(`out ${fail}`), "z");
    await settle(rcu);
    assertEquals(ran, 1);
    assertBlocks(map);
  }
  assertEquals(map.size, 30 + 6 * 11);
  map.clear();
  assertEquals(await settle(rcu), empty);
  assertLists(rcu.memory.words);
});
