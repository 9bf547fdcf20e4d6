// Memory that runs out in the middle of something: the map is as it was, and serves on.

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertThrows,
} from "@std/assert";
import {
  type Codec,
  json,
  Rcu,
  RcuMap,
  RcuMemoryError,
  string,
  u32,
} from "../mod.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { settle } from "./_settle.ts";

function domain(): Rcu {
  return Rcu.create({ capacity: 2 ** 21, maxReaders: 4, debug: true });
}

/** Puts keys in until memory runs out. */
function fill<V>(
  map: RcuMap<string, V>,
  twin: Map<string, V>,
  value: (n: number) => V,
): RcuMemoryError {
  for (let n = 0;; n++) {
    try {
      map.set(`key ${n}`, value(n));
    } catch (error) {
      assert(error instanceof RcuMemoryError, String(error));
      return error;
    }
    twin.set(`key ${n}`, value(n));
  }
}

function assertSame<V>(map: RcuMap<string, V>, twin: Map<string, V>): void {
  assertEquals(map.size, twin.size);
  assertEquals(new Map(map), twin);
  for (const [key, value] of twin) assertEquals(map.get(key), value);
}

async function settled(rcu: Rcu): Promise<number> {
  await settle(rcu);
  const audit = assertAddsUp(rcu.memory.audit());
  assertEquals(audit.deferred, 0);
  assertLists(rcu.memory.words);
  return audit.live;
}

const KINDS: [string, Codec<unknown>, (n: number) => unknown][] = [
  ["string", string as Codec<unknown>, (n) => `${n}`.padEnd(100, "x")],
  ["json", json(), (n) => ({ n, text: "y".repeat(n % 50) })],
  ["u32", u32 as Codec<unknown>, (n) => n],
];

for (const [name, value, make] of KINDS) {
  Deno.test(`a map of ${name} that finds no memory is as it was, and serves on after deleting`, async () => {
    using rcu = domain();
    const map = RcuMap.open(rcu, "m", { key: string, value });
    const empty = await settled(rcu);
    for (let round = 0; round < 2; round++) {
      const twin = new Map<string, unknown>();
      const error = fill(map, twin, make);
      assert(error.requested > 0 && error.available >= 0);
      assert(twin.size > 1000, `only ${twin.size} entries fitted`);
      assertSame(map, twin);
      const live = await settled(rcu);

      // Each of these needs more than there is.
      const long = (text: string) => text.repeat(2 ** 21);
      const acts: (() => unknown)[] = [
        () => map.set(long("k"), make(1)),
        () => map.getOrInsert(long("k"), make(1)),
        () => map.update(long("k"), () => make(1)),
        () => map.replaceAll(twin),
        () => map.replaceAll([...twin, ...twin]),
        () =>
          RcuMap.open(rcu, "n", { key: u32, value: u32, capacity: 2 ** 18 }),
      ];
      if (name !== "u32") {
        acts.push(
          () => map.set("key 0", long("v")),
          () => map.set("another", long("v")),
          () => map.getOrInsert("another", long("v")),
          () => map.update("key 0", () => long("v")),
          () => map.replaceAll([["key 0", make(7)], ["key 1", long("v")]]),
        );
      }
      for (const act of acts) {
        assertThrows(act, RcuMemoryError, "Cannot allocate", String(act));
      }
      assertEquals(await settled(rcu), live, "live bytes after failures");
      assertSame(map, twin);

      for (let n = 0; n < twin.size / 2; n++) {
        assert(map.delete(`key ${n}`));
        twin.delete(`key ${n}`);
      }
      for (let n = 0; n < 100; n++) {
        map.set(`new ${n}`, make(n));
        twin.set(`new ${n}`, make(n));
        map.update(`new ${n}`, () => make(n + 1));
        twin.set(`new ${n}`, make(n + 1));
      }
      assertSame(map, twin);
      for (const key of twin.keys()) assert(map.delete(key));
      map.clear();
      assertEquals(await settled(rcu), empty, "live bytes of the empty map");
    }
  });
}

Deno.test("existing keys can be set while memory holds only one more value", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  const twin = new Map<string, string>();
  fill(map, twin, (n) => `${n}`.padEnd(200, "x"));
  map.delete("key 0");
  twin.delete("key 0");
  // Each set needs the block that the one before has deferred: it waits for the grace period.
  for (let round = 0; round < 2; round++) {
    for (const key of twin.keys()) {
      const value = `${round} ${key}`.padEnd(200, "y");
      map.set(key, value);
      twin.set(key, value);
    }
  }
  assertSame(map, twin);
  await settled(rcu);
});

Deno.test("a map can be cleared while memory has no room for an empty table", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  fill(map, new Map<string, string>(), (n) => `${n}`);
  // Whatever is left, in blocks of every size.
  for (let words = 4096; words > 0; words = Math.floor(words / 2)) {
    try {
      while (true) rcu.memory.allocate(words);
    } catch (error) {
      assertInstanceOf(error, RcuMemoryError);
    }
  }
  map.clear();
  assertEquals([map.size, [...map]], [0, []]);
  assertEquals(map.set("a", "1").get("a"), "1");
  await settled(rcu);
});

Deno.test("inside a section a map that finds no memory says why it cannot wait", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  const twin = new Map<string, string>();
  fill(map, twin, (n) => `${n}`.padEnd(200, "x"));
  rcu.read(() => {
    assertEquals(map.get("key 1"), twin.get("key 1"));
    // What the section itself defers cannot come back before its end.
    const { message } = assertThrows(() => {
      for (const key of twin.keys()) {
        map.set(key, "z".repeat(200));
        twin.set(key, "z".repeat(200));
      }
    }, RcuMemoryError);
    assert(message.includes("inside a read section"), message);
  });
  assertSame(map, twin);
  for (const key of twin.keys()) assert(map.delete(key));
  await settled(rcu);
});

Deno.test("a table that finds no memory to grow goes on with longer chains, and grows later", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const empty = await settled(rcu);
  // All but a few pages, so that nodes fit and tables do not.
  const pages = Array.from({ length: 4 }, () => rcu.memory.allocate(2 ** 12));
  const held: number[] = [];
  for (let size = 2 ** 18; size >= 2 ** 12; size /= 2) {
    while (true) {
      try {
        held.push(rcu.memory.allocate(size));
      } catch {
        break;
      }
    }
  }
  for (const page of pages) rcu.memory.free(page);
  let count = 0;
  try {
    for (;; count++) map.set(count, count);
  } catch (error) {
    assert(error instanceof RcuMemoryError);
  }
  assert(count > 1000, `${count} entries`);
  for (let i = 0; i < count; i++) assertEquals(map.get(i), i);
  assertEquals([...map.keys()].sort((a, b) => a - b)[count - 1], count - 1);
  for (const block of held) rcu.memory.free(block);
  for (let i = count; i < 2 * count; i++) map.set(i, i);
  for (let i = 0; i < 2 * count; i++) assertEquals(map.get(i), i);
  assertEquals(map.size, 2 * count);
  map.clear();
  assertEquals(await settled(rcu), empty);
});
