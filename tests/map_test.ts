import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { f64, json, Rcu, RcuMap, string, u32 } from "../mod.ts";
import { settle } from "./_settle.ts";

function setUp() {
  const rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  return { rcu, map, [Symbol.dispose]: () => rcu.close() };
}

Deno.test("RcuMap.get() returns what was set last, and undefined for other keys", () => {
  using t = setUp();
  t.map.set("a", 1).set("b", 2).set("a", 3);
  assertEquals(t.map.get("a"), 3);
  assertEquals(t.map.get("b"), 2);
  assertStrictEquals(t.map.get("c"), undefined);
});

Deno.test("RcuMap.set() returns the map", () => {
  using t = setUp();
  assertStrictEquals(t.map.set("a", 1), t.map);
});

Deno.test("RcuMap.has() tells keys that are there from those that are not", () => {
  using t = setUp();
  t.map.set("a", 0);
  assertStrictEquals(t.map.has("a"), true);
  assertStrictEquals(t.map.has("b"), false);
  t.map.delete("a");
  assertStrictEquals(t.map.has("a"), false);
});

Deno.test("RcuMap.delete() says whether the key was there", () => {
  using t = setUp();
  t.map.set("a", 1);
  assertStrictEquals(t.map.delete("b"), false);
  assertStrictEquals(t.map.delete("a"), true);
  assertStrictEquals(t.map.delete("a"), false);
  assertEquals(t.map.get("a"), undefined);
  t.map.set("a", 2);
  assertEquals(t.map.get("a"), 2);
});

Deno.test("RcuMap.size counts entries", () => {
  using t = setUp();
  assertEquals(t.map.size, 0);
  t.map.set("a", 1).set("b", 2).set("a", 3);
  assertEquals(t.map.size, 2);
  t.map.delete("a");
  t.map.delete("c");
  assertEquals(t.map.size, 1);
});

Deno.test("RcuMap.clear() empties the map, which then serves on", () => {
  using t = setUp();
  for (let i = 0; i < 1000; i++) t.map.set(`${i}`, i);
  t.map.clear();
  assertEquals(t.map.size, 0);
  assertEquals([...t.map], []);
  assertEquals(t.map.get("5"), undefined);
  assertEquals(t.map.set("5", 6).get("5"), 6);
});

Deno.test("RcuMap.keys(), values(), entries() and iteration show every entry once", () => {
  using t = setUp();
  const entries: [string, number][] = [];
  for (let i = 0; i < 500; i++) entries.push([`key ${i}`, i * 2]);
  for (const [key, value] of entries) t.map.set(key, value);
  assertEquals([...t.map.keys()].sort(), entries.map(([key]) => key).sort());
  assertEquals(
    [...t.map.values()].sort((a, b) => a - b),
    entries.map(([, value]) => value),
  );
  const byValue = (a: [string, number], b: [string, number]) => a[1] - b[1];
  assertEquals([...t.map.entries()].sort(byValue), entries);
  assertEquals([...t.map].sort(byValue), entries);
});

Deno.test("an empty map iterates over nothing", () => {
  using t = setUp();
  assertEquals([...t.map.keys()], []);
  assertEquals(t.map.values().next(), { done: true, value: undefined });
});

Deno.test("RcuMap.forEach() calls with value, key, map and thisArg", () => {
  using t = setUp();
  t.map.set("a", 1).set("b", 2);
  const seen: [string, number][] = [];
  const self = {};
  t.map.forEach(function (this: unknown, value, key, map) {
    assertStrictEquals(this, self);
    assertStrictEquals(map, t.map);
    seen.push([key, value]);
  }, self);
  assertEquals(new Map(seen), new Map([["a", 1], ["b", 2]]));
});

Deno.test("RcuMap.forEach() lets an error of its callback through", () => {
  using t = setUp();
  t.map.set("a", 1);
  const mine = new Error("mine");
  const got = assertThrows(() =>
    t.map.forEach(() => {
      throw mine;
    })
  );
  assertStrictEquals(got, mine);
  t.rcu.synchronizeSync();
});

Deno.test("an iterator that is left early holds up no grace period", () => {
  using t = setUp();
  for (let i = 0; i < 100; i++) t.map.set(`${i}`, i);
  for (const [key] of t.map) {
    assert(key);
    break;
  }
  t.rcu.synchronizeSync();
});

Deno.test("values that are falsy are values", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const numbers = RcuMap.open(rcu, "n", { key: string, value: u32 });
  const texts = RcuMap.open(rcu, "t", { key: string, value: string });
  const any = RcuMap.open(rcu, "j", { key: string, value: json() });
  // Often enough for every way in which a thread may remember a value.
  for (let i = 0; i < 5000; i++) {
    assertStrictEquals(numbers.getOrInsert("k", 0), 0);
    assertStrictEquals(texts.getOrInsert("k", ""), "");
    assertStrictEquals(numbers.get("k"), 0);
    assertStrictEquals(texts.get("k"), "");
    for (const value of [null, false, 0, ""]) {
      const key = `${value} ${typeof value}`;
      assertStrictEquals(any.getOrInsert(key, value), value);
      assertStrictEquals(any.get(key), value);
    }
  }
});

Deno.test("a value of f64 keeps the sign of zero and NaN", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: f64 });
  assert(Object.is(map.set(1, -0).get(1), -0));
  assert(Object.is(map.set(1, 0).get(1), 0));
  assert(Number.isNaN(map.set(1, NaN).get(1)));
  assert(Object.is([...map.set(1, -0).values()][0], -0));
});

Deno.test("a set that is refused changes nothing and leaves nothing behind", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  map.set("a", "1");
  const { live } = rcu.memory.audit();
  const odd = 5 as unknown as string;
  assertThrows(() => map.set("a", odd), TypeError, "received 5");
  assertThrows(() => map.set("b", odd), TypeError, "received 5");
  assertThrows(() => map.set(odd, "b"), TypeError, "received 5");
  assertThrows(() => map.getOrInsert("b", odd), TypeError, "received 5");
  assertThrows(() => map.update("a", () => odd), TypeError, "received 5");
  assertThrows(() => map.delete(odd), TypeError, "received 5");
  assertThrows(
    () => map.replaceAll([["x", "y"], ["z", odd]]),
    TypeError,
    "received 5",
  );
  assertEquals([...map], [["a", "1"]]);
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("clearing and a barrier give back all that a map's entries took", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: json() });
  const { live } = rcu.memory.audit();
  for (let i = 0; i < 3000; i++) {
    map.set(`key ${i}`, { i, text: "x".repeat(i) });
  }
  for (let i = 0; i < 3000; i += 2) map.set(`key ${i}`, i);
  for (let i = 0; i < 1000; i++) map.delete(`key ${i}`);
  map.clear();
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
  assertEquals(rcu.memory.audit().deferred, 0);
});

Deno.test("deleting every key and a barrier give back all that the entries took", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  // Room for all from the start: the table itself stays as it is.
  const options = { key: u32, value: string, capacity: 8192 };
  const map = RcuMap.open(rcu, "m", options);
  const { live } = rcu.memory.audit();
  for (let i = 0; i < 3000; i++) map.set(i, `value ${i}`);
  for (let i = 0; i < 3000; i++) assert(map.delete(i));
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("a closed Rcu's map can neither be read nor written", () => {
  const rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  for (let i = 0; i < 5000; i++) map.set("a", 1).get("a");
  const iterator = map.keys();
  rcu.close();
  const acts: (() => unknown)[] = [
    () => map.get("a"),
    () => map.has("a"),
    () => map.set("a", 2),
    () => map.delete("a"),
    () => map.clear(),
    () => map.replaceAll([]),
    () => map.getOrInsert("a", 1),
    () => map.update("a", () => 1),
    () => [...map],
    () => iterator.next(),
    () => map.forEach(() => {}),
  ];
  for (const act of acts) assertThrows(act, Error, "closed", String(act));
});

Deno.test("a map shows itself with its size", () => {
  using t = setUp();
  t.map.set("a", 1);
  assertEquals(Deno.inspect(t.map), "RcuMap(1)");
  assertEquals(Object.prototype.toString.call(t.map), "[object RcuMap]");
});
