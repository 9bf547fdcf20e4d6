// A thread decodes a json value once per version; what it gives out again is the right one.

import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { json, Rcu, RcuCell, RcuMap, string, u32 } from "../mod.ts";
import { settle } from "./_settle.ts";

interface Value {
  n: number;
  list?: number[];
}

function setUp<K>(key: Parameters<typeof RcuMap.open<K, Value>>[2]["key"]) {
  const rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  const member = Rcu.attach(rcu.handle);
  const options = { key, value: json<Value>() };
  return {
    rcu,
    map: RcuMap.open<K, Value>(rcu, "m", options),
    other: RcuMap.open<K, Value>(member, "m", options),
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

/** Reads a key in every way. */
function reads<K>(rcu: Rcu, map: RcuMap<K, Value>, key: K): unknown[] {
  const inIteration = [...map].find(([k]) => k === key)?.[1];
  const seenByUpdate: unknown[] = [];
  assertThrows(() =>
    map.update(key, (old) => {
      seenByUpdate.push(old);
      throw new Error("only looking");
    })
  );
  return [
    map.get(key),
    map.get(key),
    rcu.read(() => map.get(key)),
    rcu.read(() => map.view(key)),
    inIteration,
    map.getOrInsert(key, { n: -1 }),
    ...seenByUpdate,
  ];
}

for (
  const [name, codec, keys] of [
    ["u32", u32, [1, 2, 3]],
    ["string", string, ["a", "b", "c"]],
  ] as const
) {
  const open = () => setUp<unknown>(codec as never);

  Deno.test(`a json value of a ${name} key is one object, however it is read`, () => {
    using t = open();
    t.map.set(keys[0], { n: 1, list: [1, 2] });
    const [first, ...more] = reads(t.rcu, t.map, keys[0]);
    for (const again of more) assertStrictEquals(again, first);
    for (let i = 0; i < 5000; i++) {
      assertStrictEquals(t.map.get(keys[0]), first);
    }
    assert(Object.isFrozen(first));
    assertThrows(() => (first as Value).list!.push(3), TypeError);
  });

  Deno.test(`another set of a ${name} key gives another object, even of the same text`, () => {
    using t = open();
    const seen = new Set<unknown>();
    for (const map of [t.map, t.other, t.map, t.map]) {
      map.set(keys[0], { n: 1 });
      const got = t.map.get(keys[0]);
      assertEquals(got, { n: 1 });
      assert(!seen.has(got), "an old object was given out again");
      seen.add(got);
    }
  });

  Deno.test(`the object of a ${name} key stays through other keys' updates and resizes`, () => {
    using t = open();
    t.map.set(keys[0], { n: 1 });
    const first = t.map.get(keys[0]);
    t.other.set(keys[1], { n: 2 });
    assertStrictEquals(t.map.get(keys[0]), first);
    for (let i = 0; i < 3000; i++) {
      t.other.set(name === "u32" ? 100 + i : `key ${i}`, { n: i });
      if (i % 100 === 0) assertStrictEquals(t.map.get(keys[0]), first);
    }
    for (let i = 0; i < 3000; i++) {
      t.other.delete(name === "u32" ? 100 + i : `key ${i}`);
      if (i % 100 === 0) assertStrictEquals(t.map.get(keys[0]), first);
    }
    for (const again of reads(t.rcu, t.map, keys[0])) {
      assertStrictEquals(again, first);
    }
  });

  Deno.test(`replacing all makes new objects of ${name} keys`, () => {
    using t = open();
    t.map.set(keys[0], { n: 1 });
    const first = t.map.get(keys[0]);
    t.other.replaceAll([[keys[0], { n: 1 }], [keys[1], { n: 2 }]]);
    assertNotStrictEquals(t.map.get(keys[0]), first);
    assertEquals(t.map.get(keys[0]), { n: 1 });
    assertEquals(t.map.get(keys[1]), { n: 2 });
  });

  Deno.test(`a value of a ${name} key never shows for another key that gets its memory`, async () => {
    using t = open();
    // Blocks come round quickly when one entry at a time is there.
    for (let i = 0; i < 400; i++) {
      const key = name === "u32" ? i : `key ${i}`;
      t.map.set(key, { n: i });
      assertEquals(t.map.get(key), { n: i });
      assertEquals(t.rcu.read(() => t.map.get(key)), { n: i });
      assertEquals([...t.map], [[key, { n: i }]]);
      t.map.delete(key);
      await settle(t.rcu);
    }
  });

  Deno.test(`a value of a ${name} key never shows for another key after a replacement of all`, async () => {
    using t = open();
    for (let i = 0; i < 200; i++) {
      const entries = Array.from({ length: 5 }, (_, j): [unknown, Value] => {
        const n = i * 5 + j;
        return [name === "u32" ? n : `key ${n}`, { n }];
      });
      t.map.replaceAll(entries);
      for (const [key, value] of entries) assertEquals(t.map.get(key), value);
      t.map.clear();
      await settle(t.rcu);
    }
  });
}

Deno.test("a string value never shows for another key that gets its memory", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: u32, value: string });
  for (let i = 0; i < 400; i++) {
    assertEquals(map.set(i, `value ${i}`).get(i), `value ${i}`);
    map.delete(i);
    await settle(rcu);
  }
});

Deno.test("structures that share memory one after the other do not mix their values up", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const a = RcuMap.open(rcu, "a", { key: u32, value: json<Value>() });
  const b = RcuMap.open(rcu, "b", { key: u32, value: json<Value>() });
  const cell = RcuCell.open(rcu, "c", {
    value: json<Value>(),
    initial: { n: -1 },
  });
  for (let i = 0; i < 200; i++) {
    for (const [n, map] of [[i, a], [i + 1000, b]] as const) {
      map.set(i, { n });
      assertEquals(map.get(i), { n });
      map.delete(i);
      await settle(rcu);
    }
    cell.set({ n: i });
    assertEquals(cell.get(), { n: i });
  }
});

Deno.test("more values than a thread remembers are still all right", () => {
  using rcu = Rcu.create({ capacity: 2 ** 26 });
  for (const [name, key] of [["u", u32], ["s", string]] as const) {
    const map = RcuMap.open<unknown, Value>(rcu, name, {
      key: key as never,
      value: json<Value>(),
    });
    const count = 100_000;
    const keyOf = (n: number) => name === "u" ? n : `key ${n}`;
    const entries = Array.from(
      { length: count },
      (_, n): [unknown, Value] => [keyOf(n), { n }],
    );
    map.replaceAll(entries);
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < count; n++) {
        if (map.get(keyOf(n))!.n !== n) assertEquals(map.get(keyOf(n)), { n });
      }
      map.set(keyOf(round), { n: round });
    }
    map.clear();
  }
});
