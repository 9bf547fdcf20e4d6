import { assert, assertEquals, assertThrows } from "@std/assert";
import { json, Rcu, RcuMap, string, u32 } from "../mod.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

function setUp() {
  const rcu = Rcu.create({ capacity: 2 ** 24, maxReaders: 8, debug: true });
  const member = Rcu.attach(rcu.handle);
  const options = { key: string, value: u32 };
  return {
    rcu,
    map: RcuMap.open(rcu, "m", options),
    other: RcuMap.open(member, "m", options),
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

function generation(n: number, keys: number): [string, number][] {
  return Array.from({ length: keys }, (_, i) => [`${i}`, n]);
}

Deno.test("replaceAll() replaces everything; the last entry of a key counts", () => {
  using t = setUp();
  t.map.set("old", 1).set("both", 1);
  t.map.replaceAll([["a", 1], ["both", 2], ["a", 3], ["a", 4]]);
  assertEquals(new Map(t.map), new Map([["both", 2], ["a", 4]]));
  assertEquals(t.other.size, 2);
  assertEquals(t.other.get("old"), undefined);
});

Deno.test("replaceAll() takes any iterable: a Map, a generator, an RcuMap, the map itself", () => {
  using t = setUp();
  t.map.replaceAll(new Map([["a", 1]]));
  t.map.replaceAll(t.map);
  assertEquals([...t.map], [["a", 1]]);
  t.map.replaceAll(function* (): Generator<[string, number]> {
    for (let i = 0; i < 3000; i++) yield [`${i}`, i];
  }());
  assertEquals(t.map.size, 3000);
  t.map.replaceAll(t.other);
  for (let i = 0; i < 3000; i++) assertEquals(t.map.get(`${i}`), i);
  t.map.replaceAll([]);
  assertEquals([...t.map], []);
});

Deno.test("replaceAll() with entries that throw, or are bad, leaves the map as it was and nothing behind", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: json() });
  map.set("a", [1]);
  const { live } = rcu.memory.audit();
  const mine = new Error("mine");
  const failing = function* (): Generator<[string, unknown]> {
    for (let i = 0; i < 1000; i++) yield [`${i}`, { i }];
    throw mine;
  };
  assertEquals(assertThrows(() => map.replaceAll(failing())), mine);
  const bad = [["x", 1], ["y", undefined]] as [string, unknown][];
  assertThrows(() => map.replaceAll(bad), TypeError, "received undefined");
  assertThrows(() => map.replaceAll(5 as unknown as []), TypeError);
  assertThrows(
    () => map.replaceAll([["x", 1], null] as unknown as []),
    TypeError,
  );
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
  assertEquals([...map], [["a", [1]]]);
});

Deno.test("what is written while entries are being read is lost with the old contents", () => {
  using t = setUp();
  t.map.set("a", 1);
  t.map.replaceAll(function* (): Generator<[string, number]> {
    t.map.set("a", 2);
    t.other.set("b", 2);
    yield ["c", 3];
    t.other.delete("a");
  }());
  assertEquals([...t.map], [["c", 3]]);
});

Deno.test("within a section a reader sees all of the old or all of the new", () => {
  using t = setUp();
  t.map.replaceAll(generation(1, 100));
  t.rcu.read(() => {
    assertEquals(t.map.get("0"), 1);
    t.other.replaceAll(generation(2, 5));
    t.other.replaceAll(generation(3, 5000));
    // The replacement, and a resize of the new table, pass the section by.
    for (let i = 0; i < 3000; i++) t.other.set(`extra ${i}`, 3);
    for (let i = 0; i < 100; i++) {
      assertEquals(t.map.get(`${i}`), 1);
      assert(t.map.has(`${i}`));
      assertEquals(t.map.view(`${i}`), 1);
    }
    assertEquals([...t.map].length, 100);
    assertEquals(t.map.get("100"), undefined);
    t.rcu.read(() => assertEquals(t.map.get("1"), 1));
  });
  assertEquals([t.map.get("0"), t.map.get("4999")], [3, 3]);
});

Deno.test("without a section two reads may see two generations: the check can fail", () => {
  using t = setUp();
  t.map.replaceAll(generation(1, 2));
  const first = t.map.get("0");
  t.other.replaceAll(generation(2, 2));
  assertEquals([first, t.map.get("1")], [1, 2]);
});

Deno.test("sections of workers see one generation each while all is replaced and resized", async () => {
  using t = setUp();
  const keys = 40;
  const live = t.rcu.memory.audit().live;
  t.map.replaceAll(generation(0, keys));
  const stop = sharedWords(2);
  await withWorkers("_map_worker.ts", 2, async (...workers) => {
    const watching = workers.map((worker) =>
      worker.call<{ sections: number; generations: number; mixed: number }>(
        "watchGenerations",
        { handle: t.rcu.handle, stop, keys },
      )
    );
    await until("both read", () => Atomics.load(stop, 1) === 2);
    for (let n = 1; n <= 300; n++) {
      const entries = generation(n, keys);
      // Of very different sizes, so that bucket counts differ.
      for (let i = 0; i < (n % 5) * 150; i++) entries.push([`extra ${i}`, n]);
      t.map.replaceAll(entries);
      // And resized in place.
      const more = n % 7 === 0 ? 1500 : 20;
      for (let i = 0; i < more; i++) t.other.set(`extra more ${i}`, n);
      if (n % 2 === 0) {
        for (let i = 0; i < more; i++) t.other.delete(`extra more ${i}`);
      }
    }
    tell(stop, 0);
    for (const seen of await Promise.all(watching)) {
      assertEquals(seen.mixed, 0);
      assert(seen.sections > 50, `only ${seen.sections} sections`);
      assert(seen.generations > 5, `only ${seen.generations} generations`);
    }
  });
  assertEquals(t.map.get("0"), 300);
  t.map.clear();
  await settle(t.rcu);
  assertEquals(t.rcu.memory.audit().live, live);
});

Deno.test("two threads that replace all at once leave the contents of one of them", async () => {
  using t = setUp();
  const { live } = t.rcu.memory.audit();
  await withWorkers("_map_worker.ts", 2, async (...workers) => {
    await Promise.all(
      workers.map((worker, me) =>
        worker.call("replace", { handle: t.rcu.handle, me, times: 300 })
      ),
    );
  });
  const values = new Set(t.map.values());
  assertEquals(values.size, 1);
  const [value] = values;
  assertEquals(t.map.size, value % 2 === 0 ? 50 : 700);
  t.map.clear();
  await settle(t.rcu);
  assertEquals(t.rcu.memory.audit().live, live);
});

Deno.test("replaceAll() refuses an entry that is no pair, and leaves the map as it was", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  map.set("a", "1");
  assertThrows(
    () => map.replaceAll(["kv"] as never),
    TypeError,
    'each must be a pair of key and value: received "kv"',
  );
  assertEquals([...map], [["a", "1"]]);
});
