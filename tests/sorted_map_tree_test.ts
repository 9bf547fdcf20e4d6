// The tree after every operation, and what its checker is worth.

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Rcu, RcuSortedMap, string, u32 } from "../mod.ts";
import {
  KEY,
  LEFT,
  RED,
  RIGHT,
  SIZE,
  stockAt,
  VALUE,
} from "../src/structures/_tree.ts";
import { withDomain } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { assertBlocks, assertTree, rootLink, treeOf } from "./_tree_checks.ts";

const OPTIONS = { key: u32, value: u32 };

/** Bytes of a node. */
const NODE = 16;

Deno.test("after every insertion and deletion in ascending, descending and mixed order the tree is a red-black tree", () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, maxReaders: 4, debug: true });
  const orders: ((n: number) => number)[] = [
    (n) => n,
    (n) => 511 - n,
    (n) => (n * 197) & 511,
    (n) => (n & 1) === 0 ? n >> 1 : 511 - (n >> 1),
  ];
  orders.forEach((insert, i) => {
    orders.forEach((remove, j) => {
      const map = RcuSortedMap.open(rcu, `${i} ${j}`, OPTIONS);
      for (let n = 0; n < 512; n++) {
        map.set(insert(n), n);
        assertTree(map);
      }
      for (let n = 0; n < 512; n++) {
        assert(map.delete(remove(n)));
        assertTree(map);
      }
      assertEquals(map.size, 0);
    });
  });
});

Deno.test("after every operation of a random history the tree is a red-black tree, and memory is exact", async () => {
  const step = fc.record({
    key: fc.nat(60),
    act: fc.constantFrom("set", "set", "delete", "delete", "replaceAll"),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { size: "max", maxLength: 250 }),
      async (steps) => {
        await withDomain({ debug: true }, async (rcu) => {
          const map = RcuSortedMap.open(rcu, "m", OPTIONS);
          const empty = await settle(rcu);
          const twin = new Map<number, number>();
          for (const [i, { act, key }] of steps.entries()) {
            if (act === "set") {
              map.set(key, i);
              twin.set(key, i);
            } else if (act === "delete") {
              assertEquals(map.delete(key), twin.delete(key));
            } else if (key < 6) {
              map.replaceAll([...twin].reverse());
            }
            const { nodes } = assertTree(map);
            assertEquals(nodes.length, twin.size);
          }
          assertBlocks(map);
          assertEquals([...map], [...twin].sort(([a], [b]) => a - b));
          assertEquals(await settle(rcu) - empty, twin.size * NODE);
          map.clear();
        }, (rcu) => {
          RcuSortedMap.open(rcu, "m", OPTIONS);
        });
      },
    ),
    { numRuns: 60, interruptAfterTimeLimit: 20_000 },
  );
});

Deno.test("replaceAll() of any number of entries makes a red-black tree that can be changed", () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, maxReaders: 4, debug: true });
  const map = RcuSortedMap.open(rcu, "m", OPTIONS);
  for (let size = 0; size < 140; size++) {
    map.replaceAll(
      Array.from({ length: size }, (_, n) => [n * 2, n] as const).reverse(),
    );
    assertEquals(assertTree(map).nodes.length, size);
    for (let n = 0; n < size; n += 3) {
      map.set(n * 2 + 1, n);
      assertTree(map);
      map.delete(n * 2);
      assertTree(map);
    }
  }
});

Deno.test("an insertion copies two nodes at most, a deletion few on average", () => {
  using rcu = Rcu.create({ capacity: 2 ** 25, maxReaders: 4 });
  const map = RcuSortedMap.open(rcu, "m", OPTIONS);
  const tree = treeOf(map);
  const { membership } = tree;
  let retired = 0;
  const { retire } = membership;
  membership.retire = (block) => {
    retired++;
    retire.call(membership, block);
  };
  const keys = Array.from(
    { length: 20_000 },
    (_, n) => Math.imul(n, 0x9e3779b1) >>> 0,
  );
  let most = 0;
  for (const key of keys) {
    const before = retired;
    map.set(key, 1);
    most = Math.max(most, retired - before);
  }
  assertEquals(most, 2);
  assert(retired < keys.length, `${retired} copies by ${keys.length} sets`);
  retired = 0;
  for (const key of keys.reverse()) map.delete(key);
  // A deletion retires as many nodes as it copies, and one.
  const copies = retired / keys.length - 1;
  assert(copies < 2, `${copies} copies by a deletion`);
});

Deno.test("the check of trees notices every kind of damage", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
  const map = RcuSortedMap.open(rcu, "m", OPTIONS);
  for (let n = 0; n < 40; n++) map.set(n, n);
  const tree = treeOf(map);
  const { words, header } = tree;
  const { nodes } = assertTree(map);
  const root = words[rootLink(tree)];
  const spoil = (at: number, value: number) => {
    const kept = words[at];
    assert(kept !== value, `word ${at} is ${value} already`);
    words[at] = value;
    assertThrows(() => assertTree(map), Error, undefined, `word ${at}`);
    words[at] = kept;
    assertTree(map);
  };
  for (const [i, node] of nodes.entries()) {
    // Its colour, its key, its links.
    spoil(node + LEFT, words[node + LEFT] ^ RED);
    spoil(node + KEY, words[nodes[(i + 1) % nodes.length] + KEY]);
    spoil(node + RIGHT, node);
    spoil(node + RIGHT, root);
    if (words[node + RIGHT] !== 0) spoil(node + RIGHT, 0);
  }
  spoil(header + SIZE, 39);
  spoil(stockAt(header, 5), root);
  spoil(rootLink(tree), words[root + RIGHT]);
});

Deno.test("the check of blocks notices one that was freed and one that has two owners", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
  const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
  for (let n = 0; n < 9; n++) map.set(`${n}`, `${n}`);
  assertBlocks(map);
  const { words } = rcu.memory;
  const [first, second] = assertTree(map).nodes;
  const kept = words[first + VALUE];
  words[first + VALUE] = words[second + VALUE];
  assertThrows(() => assertBlocks(map), Error, "two owners");
  words[first + VALUE] = kept;
  assertBlocks(map);
  rcu.memory.free(kept);
  assertThrows(() => assertBlocks(map), Error, "the tag of block");
});
