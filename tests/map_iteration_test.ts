import { assert, assertEquals } from "@std/assert";
import { json, Rcu, RcuMap, string, u32 } from "../mod.ts";
import { keyAt, openMap, valueOf, versionIn } from "./_map_checks.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

function setUp() {
  const rcu = Rcu.create({ capacity: 2 ** 24, maxReaders: 8, debug: true });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  return { rcu, map, [Symbol.dispose]: () => rcu.close() };
}

function assertOnce(keys: Iterable<unknown>): void {
  const seen = new Set<unknown>();
  for (const key of keys) {
    assert(!seen.has(key), `${key} is shown twice`);
    seen.add(key);
  }
}

Deno.test("iteration shows what is there throughout while another thread lets the map grow and shrink", async () => {
  for (const key of ["u32", "string"] as const) {
    using rcu = Rcu.create({ capacity: 2 ** 26, maxReaders: 8, debug: true });
    const map = openMap(rcu, "m", key, "string");
    const stay = 300;
    for (let n = 0; n < stay; n++) {
      map.set(keyAt(key, n), valueOf("string", n, 1));
    }
    const stop = sharedWords(3);
    await withWorkers("_map_worker.ts", 1, async (worker) => {
      const churning = worker.call<number>("churn", {
        handle: rcu.handle,
        key,
        kind: "string",
        stop,
        first: 1000,
        count: 2500,
      });
      await until("it has begun", () => Atomics.load(stop, 2) > 0);
      const cycles = Atomics.load(stop, 2) + 4;
      for (let i = 0; i < 15 || Atomics.load(stop, 2) < cycles; i++) {
        const shown = new Map<unknown, unknown>();
        for (const [k, value] of map) {
          assert(!shown.has(k), `${k} is shown twice`);
          shown.set(k, value);
          const n = key === "u32" ? Number(k) : Number(`${k}`.slice(4));
          assert(versionIn("string", n, value) >= 0, `${k}: ${value}`);
        }
        for (let n = 0; n < stay; n++) {
          assertEquals(shown.get(keyAt(key, n)), valueOf("string", n, 1));
        }
      }
      tell(stop, 0);
      await churning;
    });
    assertEquals(map.size, stay);
  }
});

Deno.test("an iterator may be kept across awaits, and holds up no grace period", async () => {
  using t = setUp();
  for (let n = 0; n < 200; n++) t.map.set(n, n);
  const shown: number[] = [];
  let i = 0;
  for (const [key, value] of t.map) {
    assertEquals(value, key);
    shown.push(key);
    await t.rcu.synchronize({ expedited: true });
    // Grows and shrinks under the iterator.
    if (i++ % 2 === 0) { for (let n = 1000; n < 3000; n++) t.map.set(n, n); }
    else for (let n = 1000; n < 3000; n++) t.map.delete(n);
  }
  assertOnce(shown);
  assertEquals(
    shown.filter((key) => key < 200).sort((a, b) => a - b),
    Array.from({ length: 200 }, (_, n) => n),
  );
});

Deno.test("keys may be set and deleted while the map is iterated over", () => {
  using t = setUp();
  for (let n = 0; n < 500; n++) t.map.set(n, n);
  const shown: number[] = [];
  for (const [key] of t.map) {
    shown.push(key);
    if (key < 500) {
      t.map.set(key, key + 1000);
      t.map.set(key + 10_000, 1);
      if (key % 2 === 0) t.map.delete(key);
    }
  }
  assertOnce(shown);
  assertEquals(shown.filter((key) => key < 500).length, 500);
  assertEquals(t.map.size, 750);
  for (let n = 1; n < 500; n += 2) assertEquals(t.map.get(n), n + 1000);
});

Deno.test("forEach() may delete every key that it is shown", () => {
  using t = setUp();
  for (let n = 0; n < 500; n++) t.map.set(n, n);
  t.map.forEach((_, key, map) => assert(map.delete(key)));
  assertEquals([t.map.size, ...t.map], [0]);
});

Deno.test("clearing in the middle of an iteration ends it soon, and shows no key twice", () => {
  using t = setUp();
  for (let n = 0; n < 1000; n++) t.map.set(n, n);
  const shown: number[] = [];
  for (const key of t.map.keys()) {
    shown.push(key);
    if (shown.length === 100) {
      t.map.clear();
      t.map.set(5000, 1);
    }
  }
  assertOnce(shown);
  // What its last step had found already may still come.
  assert(shown.length < 200, `${shown.length} keys were shown`);
});

Deno.test("replacing all in the middle of an iteration shows keys of both at most once", () => {
  using t = setUp();
  for (let n = 0; n < 1000; n++) t.map.set(n, 1);
  for (const count of [10, 5000]) {
    const shown: number[] = [];
    for (const key of t.map.keys()) {
      shown.push(key);
      if (shown.length === 50) {
        t.map.replaceAll(
          Array.from({ length: count }, (_, n): [number, number] => [n, 2]),
        );
      }
    }
    assertOnce(shown);
    // Keys 0 to 9 are there throughout.
    for (let n = 0; n < 10; n++) assert(shown.includes(n), `${n} is missing`);
  }
});

Deno.test("an iteration inside a section sees one version of a map that is replaced", () => {
  using t = setUp();
  using member = Rcu.attach(t.rcu.handle);
  const other = RcuMap.open(member, "m", { key: u32, value: u32 });
  t.map.replaceAll(Array.from({ length: 500 }, (_, n) => [n, 1] as const));
  t.rcu.read(() => {
    let shown = 0;
    for (const [, value] of t.map) {
      if (shown++ === 100) other.replaceAll([[1, 2]]);
      assertEquals(value, 1);
    }
    assertEquals(shown, 500);
  });
  assertEquals([...t.map], [[1, 2]]);
});

Deno.test("many iterators at once do not disturb each other", () => {
  using t = setUp();
  for (let n = 0; n < 300; n++) t.map.set(n, n);
  const iterators = [t.map.keys(), t.map.keys(), t.map.keys()];
  const shown: number[][] = [[], [], []];
  for (let left = 3, i = 0; left > 0; i++) {
    const { done, value } = iterators[i % 3].next();
    if (done) left--;
    else shown[i % 3].push(value);
    if (i === 200) { for (let n = 300; n < 3000; n++) t.map.set(n, n); }
  }
  for (const keys of shown) {
    assertOnce(keys);
    assertEquals(keys.filter((key) => key < 300).length, 300);
  }
});

Deno.test("callbacks that update the map run between the steps of an iteration", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 24, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: json<number>() });
  for (let n = 0; n < 300; n++) map.set(`${n}`, n);
  const shown: string[] = [];
  for (const [key, value] of map) {
    shown.push(key);
    if (value < 300) rcu.callRcu(() => map.set(`new ${key}`, 300));
    await Promise.resolve();
    map.set("churn", 300);
  }
  assertOnce(shown);
  assertEquals(shown.filter((key) => /^\d/.test(key)).length, 300);
  await settle(rcu);
  assertEquals(map.size, 601);
});

Deno.test("the check of keys shown once notices a key that is shown twice", () => {
  assertOnce([1, 2, 3]);
  let noticed = false;
  try {
    assertOnce([1, 2, 1]);
  } catch {
    noticed = true;
  }
  assert(noticed);
});
