// Random histories of all methods, against a sorted array. Two members of the domain alternate.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  bytes,
  type Codec,
  f64,
  i32,
  json,
  type KeyCodec,
  Rcu,
  RcuSortedMap,
  string,
  struct,
  u32,
} from "../mod.ts";
import { anyBytes, anyDouble, anyJson, anyText } from "./_arbitrary.ts";
import { settle } from "./_settle.ts";
import { assertBlocks, assertTree } from "./_tree_checks.ts";

// deno-lint-ignore no-explicit-any -- any codec's
type Any = any;

type SortedMap = RcuSortedMap<unknown, unknown>;

/** Keys of a codec: few, so that histories meet them again, and their order. */
interface Keys {
  codec: KeyCodec<Any>;
  any: fc.Arbitrary<Any>;
  compare: (a: Any, b: Any) => number;
}

const byValue = (a: number, b: number): number =>
  Object.is(a, b) || a === b
    ? 0
    : Number.isNaN(a)
    ? 1
    : Number.isNaN(b)
    ? -1
    : a - b;

const byUnits = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0;

/** Not as the codec does it: as text. */
const byBytes = (a: Uint8Array, b: Uint8Array): number =>
  byUnits(String.fromCharCode(...a), String.fromCharCode(...b));

const KEYS: Record<string, Keys> = {
  u32: {
    codec: u32,
    any: fc.nat(60).map((n) => (n * 0x04400001) >>> 0),
    compare: byValue,
  },
  i32: {
    codec: i32,
    any: fc.oneof(fc.integer({ min: -25, max: 25 }), fc.constant(-(2 ** 31))),
    compare: byValue,
  },
  f64: {
    codec: f64,
    any: fc.oneof(
      fc.constantFrom(0, -0, NaN, Infinity, -Infinity, -1e300, 5e-324),
      fc.nat(30).map((n) => n / 4 - 3),
    ),
    compare: byValue,
  },
  string: {
    codec: string,
    any: fc.oneof(
      fc.constantFrom("", "\0", "é", "š", "\ud800", "\uffff", "k".repeat(99)),
      fc.string({ unit: fc.constantFrom("a", "b", "ÿ", "Ā"), maxLength: 3 }),
    ),
    compare: byUnits,
  },
  bytes: {
    codec: bytes,
    any: fc.uint8Array({ max: 2, maxLength: 5 })
      .map((key) => key.map((byte) => byte * 0x7f)),
    compare: byBytes,
  },
};

// Short ones: what a history defers stays until the turn ends.
const someText = anyText.map((text) => text.slice(0, 200));
const someJson = anyJson.filter((value) => JSON.stringify(value).length < 500);

const VALUES: Record<string, [Codec<Any, Any>, fc.Arbitrary<Any>]> = {
  u32: [u32, fc.integer({ min: 0, max: 2 ** 32 - 1 })],
  f64: [f64, anyDouble],
  string: [string, someText],
  json: [json(), someJson],
  struct: [
    struct({ n: u32, text: string, data: bytes }),
    fc.record({
      n: fc.nat(),
      text: someText,
      data: anyBytes.map((value) => Uint8Array.from(value)),
    }),
  ],
};

interface Step {
  act: string;
  key: unknown;
  more: unknown[];
  value: unknown;
}

function anyHistory(
  keys: fc.Arbitrary<unknown>,
  values: fc.Arbitrary<unknown>,
): fc.Arbitrary<Step[]> {
  const act = fc.constantFrom(
    ...["set", "set", "set", "set", "delete", "delete", "get", "beside"],
    ...["getOrInsert", "update", "clear", "replaceAll", "iterate", "fill"],
    ...["drain", "section", "range"],
  );
  const more = fc.array(keys, { maxLength: 30, size: "max" });
  const step = fc.record({ act, key: keys, more, value: values });
  return fc.array(step, { minLength: 5, maxLength: 50 });
}

/** A map that is as simple as can be. */
class Twin {
  entries: [unknown, unknown][] = [];
  readonly #compare: Keys["compare"];

  constructor(compare: Keys["compare"]) {
    this.#compare = compare;
  }
  before(key: unknown): [unknown, unknown][] {
    return this.entries.filter(([other]) => this.#compare(other, key) < 0);
  }
  from(key: unknown): [unknown, unknown][] {
    return this.entries.filter(([other]) => this.#compare(other, key) >= 0);
  }
  upTo(key: unknown): [unknown, unknown][] {
    return this.entries.filter(([other]) => this.#compare(other, key) <= 0);
  }
  get(key: unknown): [unknown, unknown] | undefined {
    return this.entries.find(([other]) => this.#compare(other, key) === 0);
  }
  delete(key: unknown): boolean {
    const found = this.get(key);
    this.entries = this.entries.filter((entry) => entry !== found);
    return found !== undefined;
  }
  set(key: unknown, value: unknown): void {
    const found = this.get(key);
    if (found !== undefined) found[1] = value;
    else {
      // A map shows -0 as 0.
      const entry: [unknown, unknown] = [key === 0 ? 0 : key, value];
      this.entries = [...this.before(key), entry, ...this.from(key)];
    }
  }
}

function apply(
  { act, key, more, value }: Step,
  map: SortedMap,
  twin: Twin,
  rcu: Rcu,
): void {
  switch (act) {
    case "set":
      map.set(key, value);
      return twin.set(key, value);
    case "delete":
      assertEquals(map.delete(key), twin.delete(key));
      return;
    case "get":
      assertEquals(map.get(key), twin.get(key)?.[1]);
      assertEquals(map.has(key), twin.get(key) !== undefined);
      return;
    case "beside":
      assertEquals(map.floor(key), twin.upTo(key).at(-1));
      assertEquals(map.ceiling(key), twin.from(key)[0]);
      assertEquals(map.first(), twin.entries[0]);
      assertEquals(map.last(), twin.entries.at(-1));
      return;
    case "range": {
      const [from = key, to] = more;
      const expected = to === undefined
        ? twin.from(from)
        : twin.from(from).filter((entry) => twin.before(to).includes(entry));
      assertEquals([...map.range(from, to)], expected);
      assertEquals([...map.range(undefined, key)], twin.before(key));
      return;
    }
    case "getOrInsert":
      if (twin.get(key) === undefined) twin.set(key, value);
      assertEquals(map.getOrInsert(key, value), twin.get(key)![1]);
      return;
    case "update":
      map.update(key, (old) => {
        assertEquals(old, twin.get(key)?.[1]);
        return value;
      });
      return twin.set(key, value);
    case "clear":
      map.clear();
      twin.entries = [];
      return;
    case "replaceAll":
      map.replaceAll(more.map((key) => [key, value]));
      twin.entries = [];
      for (const key of more) twin.set(key, value);
      return;
    case "iterate":
      return assertSame(map, twin);
    case "fill":
      for (const key of more) {
        map.set(key, value);
        twin.set(key, value);
        assertTree(map);
      }
      return;
    case "drain":
      for (const key of more) {
        assertEquals(map.delete(key), twin.delete(key));
        assertTree(map);
      }
      return;
    case "section":
      rcu.read(() => {
        assertEquals(map.get(key), twin.get(key)?.[1]);
        map.set(key, value);
        twin.set(key, value);
        assertEquals(map.get(key), value);
        assertSame(map, twin);
      });
  }
}

function assertSame(map: SortedMap, twin: Twin): void {
  assertEquals(map.size, twin.entries.length);
  assertEquals([...map], twin.entries);
  assertEquals([...map.keys()], twin.entries.map(([key]) => key));
  assertEquals([...map.values()], twin.entries.map(([, value]) => value));
}

for (const [keyName, keys] of Object.entries(KEYS)) {
  for (const [valueName, [value, values]] of Object.entries(VALUES)) {
    Deno.test(`a sorted map of ${keyName} to ${valueName} does in two members what a sorted array does`, async () => {
      await fc.assert(
        fc.asyncProperty(anyHistory(keys.any, values), async (history) => {
          using rcu = Rcu.create({ capacity: 2 ** 24, debug: true });
          using member = Rcu.attach(rcu.handle);
          const options = { key: keys.codec, value };
          const views: [SortedMap, Rcu][] = [
            [RcuSortedMap.open(rcu, "m", options), rcu],
            [RcuSortedMap.open(member, "m", options), member],
          ];
          const { live } = rcu.memory.audit();
          const twin = new Twin(keys.compare);
          for (const [i, step] of history.entries()) {
            const [map, owner] = views[i % 2];
            apply(step, map, twin, owner);
            assertTree(views[(i + 1) % 2][0]);
          }
          for (const [map] of views) assertSame(map, twin);
          assertBlocks(views[0][0]);
          views[1][0].clear();
          await settle(member);
          const { live: left, deferred } = rcu.memory.audit();
          assertEquals({ left, deferred }, { left: live, deferred: 0 });
        }),
        { numRuns: 20, interruptAfterTimeLimit: 20_000 },
      );
    });
  }
}

Deno.test("the twin notices a wrong order and a lost entry", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map: SortedMap = RcuSortedMap.open<Any, Any>(rcu, "m", {
    key: f64,
    value: u32,
  });
  const twin = new Twin((a, b) => b - a);
  for (const key of [1, 2]) {
    map.set(key, key);
    twin.set(key, key);
  }
  let noticed = 0;
  for (const entries of [twin.entries, [[1, 1]], [[1, 1], [2, 3]]]) {
    twin.entries = entries as [unknown, unknown][];
    try {
      assertSame(map, twin);
    } catch {
      noticed++;
    }
  }
  assert(noticed === 3);
});
