import { assert, assertEquals } from "@std/assert";
import { Rcu, RcuMap, string, u32 } from "../mod.ts";
import {
  type Found,
  keyAt,
  type Kind,
  openMap,
  valueOf,
  versionIn,
  Watcher,
} from "./_map_checks.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

type KeyName = "u32" | "string";

const COMBINATIONS: [KeyName, Kind][] = [
  ["u32", "u32"],
  ["u32", "string"],
  ["u32", "json"],
  ["string", "u32"],
  ["string", "json"],
];

function domain(debug = true): Rcu {
  return Rcu.create({ capacity: 2 ** 26, maxReaders: 8, debug });
}

for (const [key, kind] of COMBINATIONS) {
  Deno.test(`updates of ${kind} values under ${key} keys by three threads are all counted`, async () => {
    using rcu = domain(false);
    const map = openMap(rcu, "counters", key, kind);
    const live = await settle(rcu);
    const [keys, times] = [3, 6000];
    await withWorkers("_map_worker.ts", 2, async (...workers) => {
      const task = { handle: rcu.handle, key, kind, keys, times };
      const done = workers.map((worker) => worker.call("increment", task));
      const of = (value: unknown) =>
        Number((value as { n?: number } | undefined)?.n ?? value ?? 0);
      const as = (n: number) =>
        kind === "json" ? { n } : kind === "string" ? `${n}` : n;
      for (let i = 0; i < times; i++) {
        map.update(keyAt(key, i % keys), (old) => as(of(old) + 1));
      }
      await Promise.all(done);
      for (let n = 0; n < keys; n++) {
        assertEquals(of(map.get(keyAt(key, n))), times * 3 / keys);
      }
    });
    assertEquals(map.size, keys);
    map.clear();
    assertEquals(await settle(rcu), live);
  });
}

for (const [key, kind] of [...COMBINATIONS, ["string", "struct"]] as const) {
  Deno.test(`two writers and two readers of ${key} to ${kind}: nothing is lost, mixed up or misread`, async () => {
    using rcu = domain();
    const map = openMap(rcu, "m", key, kind);
    const live = await settle(rcu);
    const [shared, own, times] = [10, 60, 120];
    for (let n = 0; n < shared; n++) {
      map.set(keyAt(key, n), valueOf(kind, n, 0));
    }
    const stop = sharedWords(2);
    const found = await withWorkers("_map_worker.ts", 4, async (a, b, c, d) => {
      const task = { handle: rcu.handle, key, kind };
      const look = { ...task, stop, always: shared, some: 2 * own };
      const watching = [c, d].map((w) => w.call<Found>("watch", look));
      await until("both readers read", () => Atomics.load(stop, 1) === 2);
      await Promise.all(
        [a, b].map((writer, me) =>
          writer.call("write", { ...task, me, own, shared, times })
        ),
      );
      tell(stop, 0);
      return await Promise.all(watching);
    });
    for (const { reads, ...wrong } of found) {
      assert(reads > 1000, `only ${reads} reads`);
      assertEquals(wrong, { missing: 0, wrong: 0, older: 0 });
    }
    const expected = new Map<unknown, unknown>();
    for (let n = 0; n < shared + 2 * own; n++) {
      if (n >= shared && n % 3 === 0) continue;
      expected.set(keyAt(key, n), valueOf(kind, n, times));
    }
    assertEquals(new Map(map), expected);
    assertEquals(map.size, expected.size);
    map.clear();
    assertEquals(await settle(rcu), live);
  });
}

Deno.test("the watcher notices a key that is missing for a moment", () => {
  using rcu = domain();
  const map = openMap(rcu, "m", "u32", "json");
  map.set(1, valueOf("json", 1, 1));
  const watcher = new Watcher(map, "u32", "json");
  watcher.look(1, true);
  map.delete(1);
  watcher.look(1, true);
  map.set(1, valueOf("json", 1, 2));
  watcher.look(1, true);
  assertEquals(watcher.found, { reads: 3, missing: 1, wrong: 0, older: 0 });
});

Deno.test("the watcher notices a value that was overtaken", () => {
  using rcu = domain();
  const map = openMap(rcu, "m", "string", "string");
  const watcher = new Watcher(map, "string", "string");
  for (const version of [1, 3, 2]) {
    map.set("key 5", valueOf("string", 5, version));
    watcher.look(5, true);
  }
  assertEquals(watcher.found, { reads: 3, missing: 0, wrong: 0, older: 1 });
});

for (const kind of ["string", "json", "struct", "u32"] as const) {
  Deno.test(`the watcher notices a ${kind} value of which any one word is somebody else's`, () => {
    using rcu = domain();
    const map = openMap(rcu, "m", "u32", kind);
    const { words } = rcu.memory;
    const before = words.slice(0, 2 ** 18);
    const value = valueOf(kind, 7, 4);
    map.set(7, value);
    const isOfValue = (word: number) =>
      kind === "u32"
        ? word === value
        : [0, 8, 16, 24].every((at) => ((word >>> at) & 0x7f) >= 0x20);
    let spoiled = 0;
    for (let i = 0; i < before.length; i++) {
      const kept = words[i];
      if (kept === before[i] || !isOfValue(kept)) continue;
      spoiled++;
      words[i] = kept ^ 0x00010000;
      // A view of its own, which has decoded nothing yet.
      const watcher = new Watcher(openMap(rcu, "m", "u32", kind), "u32", kind);
      let refused = 0;
      try {
        watcher.look(7, true);
      } catch {
        refused++; // No JSON any more.
      }
      assertEquals(watcher.found.wrong + refused, 1, `word ${i}`);
      words[i] = kept;
    }
    assert(spoiled >= 1);
    const poisoned = kind === "u32" ? 0x6b6b6b6b : "k".repeat(20);
    assertEquals(versionIn(kind, 7, poisoned), -1);
  });
}

Deno.test("the watcher notices a value whose block was freed while it could be found", () => {
  using rcu = domain();
  const map = openMap(rcu, "m", "u32", "struct");
  const { words } = rcu.memory;
  map.set(7, valueOf("struct", 7, 4));
  // "7:4|": before it, the value's version, its four fields, the text's length.
  const block = words.indexOf(0x7c343a37) - 6;
  const watcher = new Watcher(map, "u32", "struct");
  watcher.look(7, true);
  assertEquals(watcher.found.wrong, 0);
  rcu.memory.free(block);
  watcher.look(7, true);
  assertEquals(watcher.found.wrong, 1);
});

Deno.test("a loop of nothing but reads sees what another thread sets", async () => {
  using rcu = domain();
  const numbers = RcuMap.open(rcu, "n", { key: u32, value: u32 });
  const texts = RcuMap.open(rcu, "t", { key: string, value: string });
  numbers.set(1, 6);
  texts.set("a", "a");
  await withWorkers("_map_worker.ts", 1, async (worker) => {
    const ready = sharedWords(2);
    const done = worker.call<boolean>("spin", { handle: rcu.handle, ready });
    await until("it spins", () => Atomics.load(ready, 0) === 1);
    // Long enough for its loop to be compiled and whatever can be hoisted to be hoisted.
    for (let i = 0; i < 100_000; i++) numbers.set(2, i);
    numbers.set(1, 7);
    await until("it spins on", () => Atomics.load(ready, 1) === 1);
    for (let i = 0; i < 100_000; i++) texts.set("b", "c");
    texts.set("a", "b");
    assert(await done);
  });
});

for (const [key, kind] of [["u32", "string"], ["string", "json"]] as const) {
  Deno.test(`heavy setting and deleting of ${kind} values never shows a reader freed memory`, async () => {
    using rcu = domain();
    const map = openMap(rcu, "m", key, kind);
    const live = await settle(rcu);
    const stop = sharedWords(3);
    await withWorkers("_map_worker.ts", 2, async (reader, writer) => {
      // Few keys and short values: every block is soon another one's.
      const task = { handle: rcu.handle, stop, key, kind };
      const look = { ...task, always: 0, some: 8 };
      const watching = reader.call<Found>("watch", look);
      await until("the reader reads", () => Atomics.load(stop, 1) === 1);
      const churn = { ...task, first: 0, count: 8 };
      const churning = writer.call<number>("churn", churn);
      for (let i = 0; i < 40_000; i++) {
        map.set(keyAt(key, i & 7), valueOf(kind, i & 7, i & 0xff));
        if ((i & 15) === 0) map.delete(keyAt(key, (i >>> 4) & 7));
      }
      await until("the writer wrote", () => Atomics.load(stop, 2) > 200);
      tell(stop, 0);
      const { reads, ...found } = await watching;
      assert(reads > 10_000, `only ${reads} reads`);
      assertEquals(found, { missing: 0, wrong: 0, older: 0 });
      await churning;
    });
    map.clear();
    assertEquals(await settle(rcu), live);
  });
}

Deno.test("threads that insert the same keys at once agree on the values", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  await withWorkers("_map_worker.ts", 2, async (...workers) => {
    const words = sharedWords(4);
    const [a, b] = await Promise.all(
      workers.map((worker, me) =>
        worker.call<string[]>("agree", {
          handle: rcu.handle,
          words,
          me,
          keys: 3000,
        })
      ),
    );
    assertEquals(a, b);
    assertEquals(map.size, 3000);
    a.forEach((value, n) => assertEquals(map.get(`key ${n}`), value));
  });
});
