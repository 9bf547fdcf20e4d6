import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import {
  bytes,
  type Codec,
  f64,
  i32,
  json,
  type KeyCodec,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  string,
  struct,
  u32,
} from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { assertTree } from "./_tree_checks.ts";

function setUp() {
  const rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 8, debug: true });
  const member = Rcu.attach(rcu.handle);
  const options = { key: string, value: u32 };
  const map = RcuSortedMap.open(rcu, "m", options);
  const other = RcuSortedMap.open(member, "m", options);
  return {
    rcu,
    member,
    map,
    other,
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

// Opening

Deno.test("a sorted map that is opened again by its name is the same map", () => {
  using t = setUp();
  t.map.set("a", 1);
  const again = RcuSortedMap.open(t.rcu, "m", { key: string, value: u32 });
  assertEquals([again.get("a"), t.other.get("a")], [1, 1]);
  const more = RcuSortedMap.open(t.rcu, "n", { key: string, value: u32 });
  assertEquals(more.get("a"), undefined);
});

Deno.test("a name with another schema or kind is refused by both, and nothing is left behind", () => {
  using t = setUp();
  RcuMap.open(t.rcu, "hash", { key: string, value: u32 });
  RcuCell.open(t.rcu, "cell", { value: f64, initial: 1 });
  const { live } = t.rcu.memory.audit();
  const cases: [() => unknown, string][] = [
    [
      () => RcuSortedMap.open(t.rcu, "m", { key: u32, value: u32 }),
      'Cannot open "m" as sortedMap<u32,u32>: it was opened as sortedMap<string,u32>',
    ],
    [
      () => RcuMap.open(t.rcu, "m", { key: string, value: u32 }),
      'Cannot open "m" as map<string,u32>: it was opened as sortedMap<string,u32>',
    ],
    [
      () => RcuSortedMap.open(t.rcu, "hash", { key: string, value: u32 }),
      'Cannot open "hash" as sortedMap<string,u32>: it was opened as map<string,u32>',
    ],
    [
      () => RcuSortedMap.open(t.rcu, "cell", { key: string, value: u32 }),
      'Cannot open "cell" as sortedMap<string,u32>: it was opened as cell<f64>',
    ],
  ];
  for (const [open, message] of cases) assertThrows(open, TypeError, message);
  assertEquals(t.rcu.memory.audit().live, live);
});

Deno.test("bad arguments of RcuSortedMap.open() are refused by what was received, and leave nothing behind", () => {
  using t = setUp();
  const { live } = t.rcu.memory.audit();
  const open =
    (options: unknown, rcu: unknown = t.rcu, name: unknown = "x") => () =>
      RcuSortedMap.open(
        rcu as Rcu,
        name as string,
        options as { key: KeyCodec<1>; value: Codec<1> },
      );
  const good = { key: u32, value: u32 };
  const cases: [() => unknown, string][] = [
    [open(undefined), "must name a key and a value codec"],
    [open(null), "received null"],
    [open({}), "its key must be one of the codecs"],
    [open({ key: json(), value: u32 }), "received json"],
    [open({ key: struct({}), value: u32 }), "received struct{}"],
    [open({ key: "u32", value: u32 }), 'received "u32"'],
    [open({ key: u32 }), "its value must be a codec: received undefined"],
    [open({ key: u32, value: json }), "its value must be a codec: received"],
    [open(good, {}), "its first argument must be an Rcu: received"],
    [open(good, t.rcu, 5), "its name must be a string: received 5"],
  ];
  for (const [act, message] of cases) assertThrows(act, TypeError, message);
  assertEquals(t.rcu.memory.audit().live, live);
});

Deno.test("a closed Rcu opens no sorted map, and one that is open serves no longer", () => {
  const rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 }).set(1, 1);
  const texts = RcuSortedMap.open(rcu, "t", { key: string, value: string });
  texts.set("a", "b");
  const iterator = map.entries();
  rcu.close();
  const acts: (() => unknown)[] = [
    () => RcuSortedMap.open(rcu, "n", { key: u32, value: u32 }),
    () => map.get(1),
    () => texts.get("a"),
    () => texts.has("a"),
    () => map.has(1),
    () => map.set(1, 2),
    () => map.delete(1),
    () => map.update(1, () => 2),
    () => map.getOrInsert(1, 2),
    () => map.getOrInsertComputed(2, () => 2),
    () => map.replaceAll([]),
    () => map.clear(),
    () => map.first(),
    () => map.last(),
    () => map.floor(1),
    () => map.ceiling(1),
    () => [...map.range(0, 9)],
    () => [...map],
    () => iterator.next(),
  ];
  for (const act of acts) assertThrows(act, Error, "closed", String(act));
});

// As a map

Deno.test("get, has, set, delete and size of a sorted map are those of a Map", () => {
  using t = setUp();
  const { map } = t;
  assertEquals([map.get("a"), map.has("a"), map.size], [undefined, false, 0]);
  assertStrictEquals(map.set("a", 1), map);
  map.set("b", 0).set("a", 2);
  assertEquals([map.get("a"), map.get("b"), map.size], [2, 0, 2]);
  assertEquals([map.has("b"), t.other.has("b"), t.other.size], [true, true, 2]);
  assertEquals([map.delete("c"), map.delete("a"), map.delete("a")], [
    false,
    true,
    false,
  ]);
  assertEquals([map.get("a"), map.size], [undefined, 1]);
  map.clear();
  map.clear();
  assertEquals([map.size, [...map], map.get("b")], [0, [], undefined]);
  assertEquals(map.set("b", 3).get("b"), 3);
});

Deno.test("a sorted map shows nothing of its insides", () => {
  using t = setUp();
  t.map.set("a", 1);
  assertEquals(String(t.map), "[object RcuSortedMap]");
  assertEquals(Deno.inspect(t.map), "RcuSortedMap(1)");
  assertEquals(JSON.stringify(t.map), "{}");
  const numbers = RcuSortedMap.open(t.rcu, "n", { key: u32, value: u32 });
  assertEquals(Deno.inspect({ numbers }), "{ numbers: RcuSortedMap(0) }");
  assert(numbers instanceof RcuSortedMap);
});

Deno.test("keys, values, entries, forEach and the iterator go in ascending order", () => {
  using t = setUp();
  const { map } = t;
  map.set("b", 2).set("c", 3).set("a", 1);
  assertEquals([...map.keys()], ["a", "b", "c"]);
  assertEquals([...map.values()], [1, 2, 3]);
  assertEquals([...map.entries()], [["a", 1], ["b", 2], ["c", 3]]);
  assertEquals([...map], [["a", 1], ["b", 2], ["c", 3]]);
  const seen: unknown[] = [];
  const self = {};
  map.forEach(function (this: unknown, value, key, whole) {
    seen.push([key, value, whole === map, this === self]);
  }, self);
  assertEquals(seen, [
    ["a", 1, true, true],
    ["b", 2, true, true],
    ["c", 3, true, true],
  ]);
  assertThrows(
    () => map.forEach(undefined as never),
    TypeError,
    "Cannot call for each entry as the callback must be a function: received undefined",
  );
});

Deno.test("first, last, floor and ceiling find the entries beside a key", () => {
  using t = setUp();
  const { map } = t;
  const empty = [map.first(), map.last(), map.floor("a"), map.ceiling("a")];
  assertEquals(empty, [undefined, undefined, undefined, undefined]);
  map.set("b", 2).set("d", 4).set("f", 6);
  assertEquals([map.first(), map.last()], [["b", 2], ["f", 6]]);
  const keys = ["a", "b", "c", "d", "e", "f", "g"];
  const keyOf = (entry: [string, number] | undefined) => entry?.[0] ?? "-";
  assertEquals(keys.map((key) => keyOf(map.floor(key))).join(""), "-bbddff");
  assertEquals(keys.map((key) => keyOf(map.ceiling(key))).join(""), "bbddff-");
});

Deno.test("range() goes from its first bound, included, to its second, not included", () => {
  using t = setUp();
  const { map } = t;
  for (const [i, key] of [..."bdfhj"].entries()) map.set(key, i);
  const range = (from?: string, to?: string) =>
    [...map.range(from, to)].map(([key]) => key).join("");
  assertEquals(range("b", "h"), "bdf");
  assertEquals(range("c", "i"), "dfh");
  assertEquals(range("d", "d"), "");
  assertEquals(range("h", "b"), "");
  assertEquals(range("k", "z"), "");
  assertEquals(range("", "c"), "b");
  assertEquals(range("f"), "fhj");
  assertEquals(range(undefined, "f"), "bd");
  assertEquals(range(), "bdfhj");
  assertEquals([...map.range("d", "f")], [["d", 1]]);
});

Deno.test("range() checks its bounds when it is called, and keeps them", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuSortedMap.open(rcu, "m", { key: bytes, value: u32 });
  for (let n = 0; n < 9; n++) map.set(Uint8Array.of(n), n);
  assertThrows(() => map.range("1" as never), TypeError, "a Uint8Array");
  assertThrows(() => map.range(undefined, 1 as never), TypeError);
  const [from, to] = [Uint8Array.of(2), Uint8Array.of(4)];
  const range = map.range(from, to);
  from[0] = to[0] = 9;
  assertEquals([...range].map(([, value]) => value), [2, 3]);
});

Deno.test("an iterator shows what comes ahead of it meanwhile, and each value as it is then", () => {
  using t = setUp();
  const { map } = t;
  map.set("b", 1).set("d", 1).set("f", 1);
  const iterator = map.entries();
  assertEquals(iterator.next().value, ["b", 1]);
  t.other.set("a", 2);
  t.other.set("c", 2);
  t.other.set("f", 3);
  t.other.delete("d");
  assertEquals([...iterator], [["c", 2], ["f", 3]]);
  for (const key of map.keys()) map.delete(key);
  assertEquals(map.size, 0);
});

Deno.test("keys that an iterator has shown may be changed by the caller", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuSortedMap.open(rcu, "m", { key: bytes, value: u32 });
  for (let n = 0; n < 5; n++) map.set(Uint8Array.of(n), n);
  const values: number[] = [];
  for (const [key, value] of map) {
    values.push(value);
    key.fill(0);
  }
  map.first()![0].fill(7);
  assertEquals(values, [0, 1, 2, 3, 4]);
  assertEquals([...map.keys()].map(([n]) => n), [0, 1, 2, 3, 4]);
});

// Order

const NAN =
  new Float64Array(new BigUint64Array([0xfff8_0000_0000_0007n]).buffer)[0];

// deno-lint-ignore no-explicit-any -- any codec's keys, in order
const IN_ORDER: [KeyCodec<any>, any[]][] = [
  [u32, [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]],
  [i32, [-(2 ** 31), -2, -1, 0, 1, 2 ** 31 - 1]],
  [f64, [-Infinity, -1e300, -0.5, 0, 5e-324, 1, 1.5, Infinity, NaN]],
  [string, [
    "",
    "\0",
    "\0\0",
    "A",
    "Z",
    "a",
    "a\0",
    "aa",
    "ab",
    "a" + "b".repeat(70),
    "\x7f",
    "é",
    "ÿ",
    "Ā",
    "\ud800",
    "👋",
    "👋a",
    "\ue000",
    "\uffff",
  ]],
  [
    bytes,
    [
      [],
      [0],
      [0, 0],
      [0, 0, 0, 0, 1],
      [1],
      [1, 2, 3, 4],
      [
        1,
        2,
        3,
        4,
        0,
      ],
      [1, 2, 3, 5],
      [0x7f],
      [0x80],
      [0xff],
      [0xff, 0],
    ].map((key) => Uint8Array.from(key)),
  ],
];

for (const [key, keys] of IN_ORDER) {
  Deno.test(`keys of ${key.schema} are in the documented order, however they were inserted`, () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
    const expected = [...keys.entries()].map(([i, key]) => [key, i]);
    for (let shift = 1; shift < keys.length; shift++) {
      const map = RcuSortedMap.open(rcu, `${shift}`, { key, value: u32 });
      const order = keys.map((_, i) => (i * 7 + shift) % keys.length);
      if (new Set(order).size < keys.length) order.sort((a, b) => b - a);
      for (const i of order) map.set(keys[i], i);
      assertTree(map);
      assertEquals([...map], expected);
      assertEquals([map.first(), map.last()], [expected[0], expected.at(-1)]);
      for (const [i, key] of keys.entries()) {
        assertEquals(map.get(key), i);
        assertEquals(map.has(key), true);
        assertEquals(map.floor(key), [key, i]);
        assertEquals(map.ceiling(key), [key, i]);
        assertEquals([...map.range(key)], expected.slice(i));
        assertEquals([...map.range(undefined, key)], expected.slice(0, i));
      }
      map.delete(keys[shift]);
      assertEquals(map.get(keys[shift]), undefined);
      assertEquals(map.floor(keys[shift]), expected[shift - 1]);
      assertEquals(map.ceiling(keys[shift]), expected[shift + 1]);
      map.replaceAll(order.map((i) => [keys[i], i]));
      assertEquals([...map], expected);
    }
  });
}

Deno.test("strings are in the order of the operator <", () => {
  const keys = IN_ORDER.find(([codec]) => codec.schema === "string")![1];
  assertEquals([...keys].sort(), keys);
});

Deno.test("NaN is one key whatever its bits, after all others, and -0 is 0", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuSortedMap.open(rcu, "m", { key: f64, value: string });
  map.set(NaN, "a").set(NAN, "b").set(-0, "c").set(0, "d").set(Infinity, "e");
  assertEquals([...map], [[0, "d"], [Infinity, "e"], [NaN, "b"]]);
  assertStrictEquals(map.first()![0], 0);
  assertEquals([map.get(-0), map.get(NAN)], ["d", "b"]);
  assertEquals(map.ceiling(NaN), [NaN, "b"]);
  assertEquals([...map.range(0, NaN)].length, 2);
  assert(map.delete(NAN));
  assertEquals([map.floor(NaN)?.[0], map.ceiling(NaN)], [Infinity, undefined]);
});

Deno.test("keys and values of a wrong type or out of range are errors, and change nothing", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
  map.set(1, 1);
  const acts: ((key: number) => unknown)[] = [
    (key) => map.get(key),
    (key) => map.has(key),
    (key) => map.set(key, 1),
    (key) => map.set(1, key),
    (key) => map.delete(key),
    (key) => map.getOrInsert(key, 1),
    (key) => map.getOrInsert(2, key),
    (key) => map.update(key, () => 1),
    (key) => map.update(1, () => key),
    (key) => map.floor(key),
    (key) => map.ceiling(key),
    (key) => map.range(key),
    (key) => map.range(0, key),
    (key) => map.replaceAll([[5, 5], [key, 1]]),
    (key) => map.replaceAll([[5, 5], [1, key]]),
  ];
  for (const act of acts) {
    assertThrows(() => act("1" as never), TypeError, 'received "1"');
    assertThrows(() => act(-1), RangeError, "received -1");
    assertThrows(() => act(0.5), RangeError, "received 0.5");
  }
  assertThrows(() => map.replaceAll([5] as never), TypeError, "received 5");
  assertEquals([...map], [[1, 1]]);
});

// Conditional writes

Deno.test("RcuSortedMap.update() passes the current value, and is tried again when another writer was faster", () => {
  using t = setUp();
  assertEquals(t.map.update("a", (n = 10) => n + 1), 11);
  const seen: unknown[] = [];
  const result = t.map.update("a", (old) => {
    seen.push(old);
    if (seen.length === 1) t.other.set("a", 50);
    if (seen.length === 2) t.other.delete("a");
    if (seen.length === 3) t.other.set("a", 60);
    return (old ?? 0) + 1;
  });
  assertEquals([seen, result, t.other.get("a")], [
    [11, 50, undefined, 60],
    61,
    61,
  ]);
});

Deno.test("RcuSortedMap.update() sees that a block value was replaced by an equal one", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuSortedMap.open(rcu, "m", { key: u32, value: string });
  map.set(1, "a");
  let calls = 0;
  map.update(1, (old) => {
    if (calls++ === 0) map.set(1, "b").set(1, "a");
    return old + "!";
  });
  assertEquals([calls, map.get(1)], [2, "a!"]);
});

Deno.test("RcuSortedMap.update() whose function throws or changes the map leaves everything in order", async () => {
  await withDomain({ debug: true }, (rcu) => {
    const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
    map.set("a", "1");
    const mine = new Error("mine");
    for (const key of ["a", "b"]) {
      const got = assertThrows(() =>
        map.update(key, () => {
          map.set("c", "3").delete("c");
          throw mine;
        })
      );
      assertStrictEquals(got, mine);
      assertThrows(() => map.update(key, () => 5 as never), TypeError);
    }
    assertEquals([...map], [["a", "1"]]);
    map.update("a", (old) => map.update("b", () => `${old}2`) + "3");
    assertEquals([...map], [["a", "123"], ["b", "12"]]);
    assertTree(map);
    map.clear();
  }, (rcu) => {
    RcuSortedMap.open(rcu, "m", { key: string, value: string });
  });
});

Deno.test("RcuSortedMap.getOrInsert() and getOrInsertComputed() insert once", () => {
  using t = setUp();
  assertEquals([t.map.getOrInsert("a", 1), t.other.getOrInsert("a", 2)], [
    1,
    1,
  ]);
  let computed = 0;
  const compute = (key: string) => (computed++, key.length);
  assertEquals(t.map.getOrInsertComputed("abc", compute), 3);
  assertEquals(t.map.getOrInsertComputed("abc", compute), 3);
  // Another writer is faster.
  const found = t.map.getOrInsertComputed("d", () => {
    t.other.set("d", 7);
    return 8;
  });
  assertEquals([computed, found, t.map.size], [1, 7, 3]);
});

// Replacing, sections, views

Deno.test("RcuSortedMap.replaceAll() keeps the last entry of a key, and loses nothing to a bad one", async () => {
  await withDomain({ debug: true }, async (rcu) => {
    const map = RcuSortedMap.open(rcu, "m", { key: string, value: string });
    const empty = await settle(rcu);
    map.replaceAll([["b", "1"], ["a", "2"], ["b", "3"], ["c", "4"], [
      "b",
      "5",
    ]]);
    assertEquals([...map], [["a", "2"], ["b", "5"], ["c", "4"]]);
    assertTree(map);
    const before = await settle(rcu);
    function* failing(): Generator<[string, string]> {
      yield ["x", "1"];
      map.set("d", "6");
      yield ["y", "1"];
      throw new Error("mine");
    }
    assertThrows(() => map.replaceAll(failing()), Error, "mine");
    assertEquals(map.get("d"), "6");
    map.delete("d");
    assertEquals(await settle(rcu), before);
    map.replaceAll(new Map([["z", "1"]]));
    assertEquals([[...map], map.size], [[["z", "1"]], 1]);
    map.replaceAll([]);
    assertEquals([map.size, map.first()], [0, undefined]);
    assertEquals(await settle(rcu), empty);
  }, (rcu) => {
    RcuSortedMap.open(rcu, "m", { key: string, value: string });
  });
});

Deno.test("a section sees all of another thread's replaceAll() or nothing of it", () => {
  using t = setUp();
  for (let n = 0; n < 9; n++) t.map.set(`${n}`, 1);
  t.rcu.read(() => {
    assertEquals(t.map.get("0"), 1);
    t.other.replaceAll([["5", 2]]);
    t.other.set("6", 2);
    assertEquals([...t.map.values()], [1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assertEquals([t.map.get("5"), t.map.last()], [1, ["8", 1]]);
    // A writer sees what it changes.
    assertEquals(t.map.update("5", (old) => old! + 1), 3);
    assertEquals(t.map.get("5"), 1);
    t.map.replaceAll([["7", 4]]);
    assertEquals([...t.map], [["7", 4]]);
  });
  assertEquals([...t.map], [["7", 4]]);
});

Deno.test("a section sees its own writes and those of others", () => {
  using t = setUp();
  t.rcu.read(() => {
    for (let n = 0; n < 40; n++) {
      t.map.set(`${n}`, n);
      t.other.set(`${n}+`, n);
      assertEquals([t.map.get(`${n}`), t.map.get(`${n}+`)], [n, n]);
    }
    for (let n = 0; n < 40; n++) {
      t.map.delete(`${n}`);
      assertEquals([t.map.get(`${n}`), t.map.get(`${n}+`)], [undefined, n]);
    }
  });
  assertEquals(assertTree(t.map).nodes.length, 40);
});

Deno.test("RcuSortedMap.view() looks without copying, inside a section", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuSortedMap.open(rcu, "m", { key: u32, value: bytes });
  map.set(1, Uint8Array.of(1, 2));
  const [late] = rcu.read(() => {
    assertEquals(map.view(2), undefined);
    const view = map.view(1)!;
    assertStrictEquals(view.buffer as unknown, rcu.handle.buffer);
    map.set(1, Uint8Array.of(3));
    map.delete(1);
    assertEquals([...view], [1, 2]);
    return [view];
  });
  assertThrows(() => late[0], Error, "outside the read section");
  assertThrows(() => map.view(1), Error, "outside a read section");
});

Deno.test("json values of a sorted map are decoded once, and again when they change", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuSortedMap.open(rcu, "m", {
    key: u32,
    value: json<{ n: number }>(),
  });
  for (let n = 0; n < 30; n++) map.set(n, { n });
  const first = map.get(7);
  assert(Object.isFrozen(first));
  // Its node is copied meanwhile; the value is the same.
  for (let n = 0; n < 30; n++) if (n !== 7) map.delete(n);
  assertStrictEquals(map.get(7), first);
  assertStrictEquals(map.floor(9)![1], first);
  map.set(7, { n: 8 });
  assertEquals(map.get(7), { n: 8 });
});

Deno.test("what is put into a sorted map and taken out leaves nothing behind, whatever its codecs", async () => {
  const values: [Codec<unknown>, unknown][] = [
    [u32 as Codec<unknown>, 5],
    [string as Codec<unknown>, "text"],
    [json(), { a: [1] }],
    [struct({ x: f64, y: string }) as Codec<unknown>, { x: 1, y: "b" }],
  ];
  for (const [key, keys] of IN_ORDER) {
    for (const [value, one] of values) {
      const options = { key, value };
      await withDomain({ debug: true }, (rcu) => {
        const map = RcuSortedMap.open(rcu, "m", options);
        for (const k of keys) map.set(k, one).set(k, one);
        for (const k of keys) map.update(k, () => one);
        for (const k of keys) assertEquals(map.get(k), one);
        for (const k of keys) assert(map.delete(k));
      }, (rcu) => {
        RcuSortedMap.open(rcu, "m", options);
      });
    }
  }
});
