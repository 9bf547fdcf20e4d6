// Readers in other threads while nodes are inserted, deleted and rotated; several writers.

import { assert, assertEquals } from "@std/assert";
import { Rcu } from "../mod.ts";
import { type Kind, valueOf } from "./_map_checks.ts";
import {
  openSorted,
  type SortedFound,
  sortedKey,
  SortedWatcher,
} from "./_sorted_checks.ts";
import { settle } from "./_settle.ts";
import { assertBlocks, assertTree } from "./_tree_checks.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";

const COMBINATIONS: ["u32" | "string", Kind][] = [
  ["u32", "u32"],
  ["u32", "json"],
  ["string", "struct"],
];

function domain(): Rcu {
  return Rcu.create({ capacity: 2 ** 26, maxReaders: 8, debug: true });
}

for (const [key, kind] of COMBINATIONS) {
  Deno.test(`while a tree of ${key} to ${kind} is turned over, readers find every key that stays, in order, and nothing mixed up`, async () => {
    using rcu = domain();
    const map = openSorted(rcu, { key, kind });
    const empty = await settle(rcu);
    const [keys, every] = [300, 3];
    for (let n = 0; n < keys; n += every) {
      map.set(sortedKey(key, n), valueOf(kind, n, 0));
    }
    const stop = sharedWords(2);
    const found = await withWorkers("_sorted_worker.ts", 2, async (...ws) => {
      const task = { handle: rcu.handle, key, kind, stop, keys, every };
      const watching = ws.map((w) => w.call<SortedFound>("watch", task));
      await until("both readers read", () => Atomics.load(stop, 1) === 2);
      for (let round = 1; round < 120; round++) {
        // In various orders, so that every kind of rotation happens.
        const stride = [1, 7, 101, 299][round & 3];
        for (let i = 0, n = 0; i < keys; i++, n = (n + stride) % keys) {
          const version = round & 0xff;
          if (n % every === 0) {
            if (i % 8 === 0) {
              map.set(sortedKey(key, n), valueOf(kind, n, version));
            }
          } else if ((round & 4) === 0) {
            map.set(sortedKey(key, n), valueOf(kind, n, version));
          } else map.delete(sortedKey(key, n));
        }
        if (round % 8 === 0) assertTree(map);
        if (round % 50 === 0) map.replaceAll([...map]);
      }
      tell(stop, 0);
      return await Promise.all(watching);
    });
    for (const { reads, ...wrong } of found) {
      assert(reads > 2000, `only ${reads} reads`);
      assertEquals(wrong, { missing: 0, wrong: 0, misplaced: 0 });
    }
    assertBlocks(map);
    map.clear();
    assertEquals(await settle(rcu), empty);
  });
}

for (const [key, kind] of [["u32", "u32"], ["string", "json"]] as const) {
  Deno.test(`three writers of ${key} to ${kind} lose nothing, and leave a red-black tree`, async () => {
    using rcu = domain();
    const map = openSorted(rcu, { key, kind });
    const empty = await settle(rcu);
    const [shared, own, times] = [5, 80, 61];
    await withWorkers("_sorted_worker.ts", 2, async (...workers) => {
      const task = { handle: rcu.handle, key, kind, own, shared, times };
      const writing = workers.map((worker, me) =>
        worker.call("write", { ...task, me })
      );
      for (let i = 0; i < times * shared; i++) {
        map.update(sortedKey(key, i % shared), (old) => {
          const of = (value: unknown) =>
            kind === "u32"
              ? Number(value ?? 0)
              : (value as { n: number } | undefined)?.n ?? 0;
          return kind === "u32" ? of(old) + 1 : { n: of(old) + 1 };
        });
      }
      await Promise.all(writing);
    });
    const expected: [unknown, unknown][] = [];
    for (let n = 0; n < shared; n++) {
      const total = times * 3;
      expected.push([sortedKey(key, n), kind === "u32" ? total : { n: total }]);
    }
    for (let i = 0; i < own; i++) {
      // The last round deleted the even ones.
      if (i % 2 === 0) continue;
      for (const n of [shared + i * 2, shared + i * 2 + 1]) {
        expected.push([sortedKey(key, n), valueOf(kind, n, times - 1)]);
      }
    }
    assertEquals([...map], expected);
    assertBlocks(map);
    map.clear();
    assertEquals(await settle(rcu), empty);
  });
}

Deno.test("the watcher of sorted maps notices keys that are missing, values that are mixed up and a wrong order", () => {
  using rcu = domain();
  const task = { key: "u32", kind: "u32" } as const;
  const map = openSorted(rcu, task);
  for (let n = 0; n < 30; n++) {
    map.set(sortedKey("u32", n), valueOf("u32", n, 1));
  }
  const watch = (act: (watcher: SortedWatcher) => void) => {
    const watcher = new SortedWatcher(map, task, 30, 3);
    act(watcher);
    const { reads, ...wrong } = watcher.found;
    assert(reads > 0);
    return wrong;
  };
  const all = (watcher: SortedWatcher) => {
    watcher.get();
    watcher.beside();
    watcher.walk(map, 0, 30);
    watcher.range(5, 25);
  };
  assertEquals(watch(all), { missing: 0, wrong: 0, misplaced: 0 });
  map.delete(sortedKey("u32", 7));
  assertEquals(watch(all), { missing: 0, wrong: 0, misplaced: 0 });
  map.delete(sortedKey("u32", 9));
  assertEquals(watch((w) => w.get()).missing, 1);
  assertEquals(watch((w) => w.walk(map, 0, 30)).missing, 1);
  assertEquals(watch((w) => w.range(9, 12)).missing, 1);
  assert(watch((w) => w.beside()).misplaced > 0);
  map.set(sortedKey("u32", 9), valueOf("u32", 8, 1));
  assertEquals(watch((w) => w.get()).wrong, 1);
  map.set(sortedKey("u32", 9), valueOf("u32", 9, 1));
  const entries = [...map];
  assert(watch((w) => w.walk(entries.toReversed(), 0, 30)).misplaced > 0);
  assert(watch((w) => w.walk(entries, 0, 20)).misplaced > 0);
});
