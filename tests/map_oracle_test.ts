// Random histories of all methods, against a plain Map. Two members of the domain alternate.

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
  RcuMap,
  string,
  struct,
  u32,
} from "../mod.ts";
import { anyBytes, anyDouble, anyJson, anyText } from "./_arbitrary.ts";
import { settle } from "./_settle.ts";

// deno-lint-ignore no-explicit-any -- any codec's
type Any = any;

/** Keys of a codec: few, so that histories meet them again, and how many one likes. */
interface Keys {
  codec: KeyCodec<Any>;
  any: fc.Arbitrary<Any>;
  nth: (n: number) => unknown;
}

const KEYS: Record<string, Keys> = {
  u32: {
    codec: u32,
    any: fc.nat(30).map((n) => n * 0x04000001),
    nth: (n) => 0x80000000 + n * 16,
  },
  i32: {
    codec: i32,
    any: fc.integer({ min: -9, max: 9 }),
    nth: (n) => -n - 10,
  },
  f64: {
    codec: f64,
    any: fc.constantFrom(0, -0, NaN, 0.1, Infinity, -1e300, 5e-324, 7, 8),
    nth: (n) => n + 0.5,
  },
  string: {
    codec: string,
    any: fc.constantFrom(
      "",
      "a",
      "b",
      "\0",
      "é",
      "š",
      "\ud800",
      "k".repeat(99),
    ),
    nth: (n) => `key ${n}`,
  },
  bytes: {
    codec: bytes,
    any: fc.uint8Array({ max: 1, maxLength: 4 }),
    nth: (n) => Uint8Array.of(2, n, n >>> 8),
  },
};

// Short ones: what a history defers stays until the turn ends.
const someText = anyText.map((text) => text.slice(0, 200));
const someJson = anyJson.filter((value) => JSON.stringify(value).length < 500);

const VALUES: Record<string, [Codec<Any, Any>, fc.Arbitrary<Any>]> = {
  u32: [u32, fc.integer({ min: 0, max: 2 ** 32 - 1 })],
  f64: [f64, anyDouble],
  string: [string, someText],
  bytes: [bytes, anyBytes.map((value) => Uint8Array.from(value))],
  json: [json(), someJson],
  struct: [
    struct({ n: u32, text: string, more: struct({ x: f64, data: bytes }) }),
    fc.record({
      n: fc.nat(),
      text: someText,
      more: fc.record({
        x: fc.double({ noNaN: true }),
        data: anyBytes.map((value) => Uint8Array.from(value)),
      }),
    }),
  ],
};

type Step = { act: string; key: unknown; value: unknown; count: number };

function anyHistory(
  keys: fc.Arbitrary<unknown>,
  values: fc.Arbitrary<unknown>,
): fc.Arbitrary<Step[]> {
  const act = fc.constantFrom(
    ...["set", "set", "set", "set", "delete", "delete", "get", "get"],
    ...["getOrInsert", "update", "clear", "replaceAll", "iterate", "fill"],
    ...["drain", "section"],
  );
  const step = fc.record({ act, key: keys, value: values, count: fc.nat(120) });
  return fc.array(step, { minLength: 5, maxLength: 50 });
}

/** What makes two keys one. */
function identity(key: unknown): unknown {
  return key instanceof Uint8Array ? key.join() : key;
}

class Twin {
  readonly map = new Map<unknown, [unknown, unknown]>();
  set(key: unknown, value: unknown): void {
    // A Map shows -0 as 0.
    this.map.set(identity(key), [Object.is(key, -0) ? 0 : key, value]);
  }
  get(key: unknown): unknown {
    return this.map.get(identity(key))?.[1];
  }
}

function apply(
  { act, key, value, count }: Step,
  map: RcuMap<unknown, unknown>,
  twin: Twin,
  { nth }: Keys,
  rcu: Rcu,
): void {
  switch (act) {
    case "set":
      map.set(key, value);
      return twin.set(key, value);
    case "delete":
      assertEquals(map.delete(key), twin.map.delete(identity(key)));
      return;
    case "get":
      assertEquals(map.get(key), twin.get(key));
      assertEquals(map.has(key), twin.map.has(identity(key)));
      return;
    case "getOrInsert":
      if (!twin.map.has(identity(key))) twin.set(key, value);
      assertEquals(map.getOrInsert(key, value), twin.get(key));
      return;
    case "update":
      map.update(key, (old) => {
        assertEquals(old, twin.get(key));
        return value;
      });
      return twin.set(key, value);
    case "clear":
      map.clear();
      return twin.map.clear();
    case "replaceAll": {
      const all = Array.from({ length: count }, (_, n) => [nth(n), value]);
      map.replaceAll([...all, [key, value]] as [unknown, unknown][]);
      twin.map.clear();
      for (const [k, v] of [...all, [key, value]]) twin.set(k, v);
      return;
    }
    case "iterate":
      return assertSame(map, twin);
    case "fill":
      for (let n = 0; n < count; n++) {
        map.set(nth(n), value);
        twin.set(nth(n), value);
      }
      return;
    case "drain":
      for (let n = 0; n < 120; n++) {
        const was = twin.map.delete(identity(nth(n)));
        assertEquals(map.delete(nth(n)), was);
      }
      return;
    case "section":
      rcu.read(() => {
        assertEquals(map.get(key), twin.get(key));
        map.set(key, value);
        twin.set(key, value);
        assertEquals(map.get(key), value);
        assertSame(map, twin);
      });
  }
}

function assertSame(map: RcuMap<unknown, unknown>, twin: Twin): void {
  assertEquals(map.size, twin.map.size);
  const shown = [...map];
  assertEquals(shown.length, twin.map.size);
  for (const [key, value] of shown) {
    const expected = twin.map.get(identity(key));
    assert(expected !== undefined, `${identity(key)} is not there`);
    assert(Object.is(identity(key), identity(expected[0])), "another key");
    assertEquals(value, expected[1]);
  }
}

for (const [keyName, keys] of Object.entries(KEYS)) {
  for (const [valueName, [value, values]] of Object.entries(VALUES)) {
    Deno.test(`a map of ${keyName} to ${valueName} does in two members what a Map does`, async () => {
      await fc.assert(
        fc.asyncProperty(
          anyHistory(keys.any, values),
          fc.constantFrom(0, 1, 1000),
          async (history, capacity) => {
            using rcu = Rcu.create({ capacity: 2 ** 26, debug: true });
            using member = Rcu.attach(rcu.handle);
            const options = { key: keys.codec, value, capacity };
            const views: [RcuMap<unknown, unknown>, Rcu][] = [
              [RcuMap.open(rcu, "m", options), rcu],
              [RcuMap.open(member, "m", options), member],
            ];
            const { live } = rcu.memory.audit();
            const twin = new Twin();
            for (const [i, step] of history.entries()) {
              const [map, owner] = views[i % 2];
              apply(step, map, twin, keys, owner);
              assertEquals(views[(i + 1) % 2][0].size, twin.map.size);
            }
            for (const [map] of views) assertSame(map, twin);
            views[1][0].clear();
            await settle(member);
            const { live: left, deferred } = rcu.memory.audit();
            assertEquals({ left, deferred }, { left: live, deferred: 0 });
          },
        ),
        { numRuns: 20, interruptAfterTimeLimit: 20_000 },
      );
    });
  }
}
