import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import {
  bytes,
  f64,
  i32,
  type KeyCodec,
  Rcu,
  RcuMap,
  string,
  u32,
} from "../mod.ts";
import { anyBytes, anyDouble, anyText } from "./_arbitrary.ts";

function open<K>(key: KeyCodec<K>) {
  const rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  const map = RcuMap.open<K, number>(rcu, "m", { key, value: u32 });
  return { rcu, map, [Symbol.dispose]: () => rcu.close() };
}

Deno.test("u32 and i32 keys reach from bound to bound", () => {
  using unsigned = open(u32);
  const most = 2 ** 32 - 1;
  for (const key of [0, 1, 2 ** 31 - 1, 2 ** 31, most]) {
    assertEquals(unsigned.map.set(key, 7).get(key), 7);
  }
  assert([...unsigned.map.keys()].includes(most));
  using signed = open(i32);
  for (const key of [-(2 ** 31), -1, 0, 2 ** 31 - 1]) {
    assertEquals(signed.map.set(key, 7).get(key), 7);
  }
  assertEquals(
    [...signed.map.keys()].sort((a, b) => a - b),
    [-(2 ** 31), -1, 0, 2 ** 31 - 1],
  );
});

Deno.test("a key that is out of range is an error in every method, not a miss", () => {
  using t = open(u32);
  for (const key of [-1, 2 ** 32, 0.5, NaN]) {
    const acts: (() => unknown)[] = [
      () => t.map.get(key),
      () => t.map.has(key),
      () => t.map.set(key, 1),
      () => t.map.delete(key),
      () => t.map.getOrInsert(key, 1),
      () => t.map.update(key, () => 1),
      () => t.rcu.read(() => t.map.view(key)),
      () => t.map.replaceAll([[key, 1]]),
    ];
    for (const act of acts) {
      assertThrows(act, RangeError, `received ${key}`);
    }
  }
  assertEquals(t.map.size, 0);
  t.rcu.synchronizeSync();
});

Deno.test("a key of another type is a TypeError in every method", () => {
  const cases: [KeyCodec<never>, unknown, string][] = [
    [u32, "1", 'received "1"'],
    [i32, null, "received null"],
    [f64, "1", 'received "1"'],
    [string, 1, "received 1"],
    [bytes, "a", 'received "a"'],
    [bytes, [1], "received an object of type Array"],
  ] as [KeyCodec<never>, unknown, string][];
  for (const [codec, wrong, message] of cases) {
    using t = open(codec);
    const key = wrong as never;
    const acts: (() => unknown)[] = [
      () => t.map.get(key),
      () => t.map.has(key),
      () => t.map.set(key, 1),
      () => t.map.delete(key),
      () => t.map.getOrInsert(key, 1),
      () => t.map.update(key, () => 1),
      () => t.rcu.read(() => t.map.view(key)),
      () => t.map.replaceAll([[key, 1]]),
    ];
    for (const act of acts) assertThrows(act, TypeError, message);
    t.rcu.synchronizeSync();
  }
});

Deno.test("NaN is one key, whatever its bits", () => {
  using t = open(f64);
  const odd = new Float64Array(1);
  new Uint32Array(odd.buffer).set([1, 0xfff80000]);
  t.map.set(NaN, 1).set(odd[0], 2);
  assertEquals(t.map.size, 1);
  assertEquals(t.map.get(NaN), 2);
  assert(t.map.delete(odd[0]));
});

Deno.test("-0 and 0 are one key, which is shown as 0, as in a Map", () => {
  using t = open(f64);
  for (const key of [0, -0]) {
    t.map.set(key, 1);
    assertEquals(t.map.size, 1);
    assertEquals([t.map.get(0), t.map.get(-0)], [1, 1]);
    assertStrictEquals([...t.map.keys()][0], 0);
    assertStrictEquals([...t.map.entries()][0][0], 0);
    assert(t.map.delete(-key));
    t.map.replaceAll([[key, 1]]);
    assertStrictEquals([...t.map.keys()][0], 0);
    t.map.clear();
    t.map.update(key, () => 1);
    assertStrictEquals([...t.map.keys()][0], 0);
    t.map.clear();
  }
  using words = open(i32);
  assertStrictEquals([...words.map.set(-0, 1).keys()][0], 0);
});

Deno.test("empty, megabyte and nearly equal strings are keys of their own", () => {
  using t = open(string);
  const long = "k".repeat(2 ** 20);
  const keys = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "\ud800",
    "\udfff",
    "é",
    "e\u0301",
    "š",
    "a".repeat(64),
    long,
    long + "k",
    long.slice(1) + "l",
    "__proto__",
  ];
  keys.forEach((key, i) => t.map.set(key, i));
  keys.forEach((key, i) => assertEquals(t.map.get(key), i));
  assertEquals(t.map.size, keys.length);
  assertEquals([...t.map.keys()].sort(), [...keys].sort());
  for (const key of keys) assert(t.map.delete(key));
});

Deno.test("bytes as keys go by content, not by identity or buffer", () => {
  using t = open(bytes);
  const key = new Uint8Array([9, 1, 2, 3, 9]).subarray(1, 4);
  t.map.set(key, 1);
  const shared = new Uint8Array(new SharedArrayBuffer(3));
  shared.set(key);
  assertEquals(t.map.get(Uint8Array.of(1, 2, 3)), 1);
  assertEquals(t.map.get(shared), 1);
  for (const other of [[1, 2], [1, 2, 3, 0], [1, 2, 4], []]) {
    assertEquals(t.map.get(Uint8Array.from(other)), undefined);
  }
  key[0] = 7;
  assertEquals(t.map.get(key), undefined);
  assertEquals([...t.map.keys()], [Uint8Array.of(1, 2, 3)]);
});

Deno.test("bytes that an iterator shows as keys are copies", () => {
  using t = open(bytes);
  t.map.set(Uint8Array.of(1, 2), 1);
  for (const key of t.map.keys()) key[0] = 9;
  assertEquals(t.map.get(Uint8Array.of(1, 2)), 1);
});

function holds<K>(
  key: KeyCodec<K>,
  keys: fc.Arbitrary<K>,
  identity: (key: K) => unknown,
): void {
  fc.assert(
    fc.property(fc.array(keys, { maxLength: 100 }), (list) => {
      using t = open(key);
      const twin = new Map<unknown, number>();
      list.forEach((key, i) => {
        t.map.set(key, i);
        twin.set(identity(key), i);
      });
      for (const key of list) {
        assertEquals(t.map.get(key), twin.get(identity(key)));
        assert(t.map.has(key));
      }
      const shown = [...t.map].map(([key, value]) =>
        [identity(key), value] as const
      );
      assertEquals(shown.length, twin.size);
      assertEquals(new Map(shown), twin);
    }),
    { numRuns: 40 },
  );
}

Deno.test("any u32 and i32 are keys", () => {
  const same = (key: number) => key;
  holds(u32, fc.integer({ min: 0, max: 2 ** 32 - 1 }), same);
  holds(i32, fc.integer().map((n) => n | 0), same);
});

Deno.test("any doubles are keys, as in a Map", () => {
  holds(f64, anyDouble, (key) => key);
});

Deno.test("any strings are keys", () => holds(string, anyText, (key) => key));

Deno.test("any bytes are keys", () => {
  holds(bytes, anyBytes, (key) => key.join());
});

Deno.test("keys in regular steps do not pile up in few buckets", () => {
  // A walk down one chain of all of them would take minutes.
  for (const step of [1, 16, 256, 65536]) {
    using t = open(u32);
    for (let i = 0; i < 20_000; i++) t.map.set((i * step) >>> 0, i);
    for (let i = 0; i < 20_000; i++) {
      assertEquals(t.map.get((i * step) >>> 0), i);
    }
  }
});
