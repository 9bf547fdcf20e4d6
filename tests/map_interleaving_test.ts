// What a reader finds that is overtaken in the middle of a chain. The two threads are two members
// on one thread, so that every order of their steps can be tried; see _interleave.ts.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { RcuMap } from "../mod.ts";
import { growAndShrink, keyOf, openPair } from "./_interleave.ts";

/** Hashes that share buckets while the map has fewer than 128, 256, 512. */
const HASHES = [0x03, 0x83, 0x103, 0x13];

/** Something that the overtaking member does. */
type Act =
  | { kind: "set"; key: number; value: number }
  | { kind: "delete"; key: number }
  | { kind: "replaceAll"; kept: number }
  | { kind: "growAndShrink"; count: number }
  | { kind: "grow"; count: number };

const anyKey = fc.tuple(fc.constantFrom(...HASHES), fc.nat(2))
  .map(([hash, which]) => keyOf(hash, which));

const anyAct: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constant("set" as const),
    key: anyKey,
    value: fc.nat(1000),
  }),
  fc.record({ kind: fc.constant("delete" as const), key: anyKey }),
  fc.record({ kind: fc.constant("replaceAll" as const), kept: fc.nat(9) }),
  fc.record({
    kind: fc.constant("growAndShrink" as const),
    count: fc.constantFrom(20, 300, 700),
  }),
  fc.record({ kind: fc.constant("grow" as const), count: fc.nat(300) }),
);

/** Does something to a map, and its twin. */
function apply(
  act: Act,
  map: RcuMap<number, number>,
  twin: Map<number, number>,
): void {
  switch (act.kind) {
    case "set":
      map.set(act.key, act.value);
      twin.set(act.key, act.value);
      break;
    case "delete":
      map.delete(act.key);
      twin.delete(act.key);
      break;
    case "replaceAll": {
      const kept = [...twin].filter((_, i) => i % 10 <= act.kept);
      map.replaceAll(kept);
      twin.clear();
      for (const [key, value] of kept) twin.set(key, value);
      break;
    }
    case "grow":
      for (let i = 0; i < act.count; i++) {
        map.set(keyOf(0x20000 + i), i);
        twin.set(keyOf(0x20000 + i), i);
      }
      break;
    case "growAndShrink":
      growAndShrink(map, act.count);
  }
}

const anyHistory = fc.record({
  capacity: fc.constantFrom(0, 128),
  schema: fc.constantFrom("chosen", "string"),
  before: fc.array(fc.tuple(anyKey, fc.nat(1000)), { maxLength: 14 }),
  step: fc.nat(12),
  acts: fc.array(anyAct, { minLength: 1, maxLength: 4 }),
  asked: anyKey,
});

Deno.test("a lookup that is overtaken finds what was there at some moment of it, and the next one what is there", () => {
  let overtaken = 0;
  fc.assert(
    fc.property(
      anyHistory,
      ({ capacity, schema, before, step, acts, asked }) => {
        using pair = openPair(capacity, schema);
        const twin = new Map(before);
        for (const [key, value] of before) pair.other.set(key, value);
        const possible = new Set([twin.get(asked)]);
        // A lookup has few steps: the nodes that share its key's hash.
        pair.interrupt(step % 2, () => {
          overtaken++;
          for (const act of acts) {
            apply(act, pair.other, twin);
            possible.add(twin.get(asked));
          }
        });
        const found = pair.mine.get(asked);
        assert(possible.has(found), `${found}, not one of ${[...possible]}`);
        pair.interrupt(-1, () => {});
        assertEquals(pair.mine.get(asked), twin.get(asked));
        for (const key of [...twin.keys(), ...before.map(([key]) => key)]) {
          assertEquals(pair.mine.get(key), twin.get(key), `key ${key}`);
        }
        assertEquals(pair.mine.size, twin.size);
      },
    ),
    { numRuns: 300 },
  );
  assert(overtaken > 15, `${overtaken} of 300 lookups were overtaken`);
});

Deno.test("an iteration that is overtaken shows each key at most once, and those that stay", () => {
  let overtaken = 0;
  fc.assert(
    fc.property(anyHistory, ({ capacity, schema, before, step, acts }) => {
      using pair = openPair(capacity, schema);
      const twin = new Map(before);
      for (const [key, value] of before) pair.other.set(key, value);
      const stay = new Set(twin.keys());
      const possible = new Map<number, Set<number>>();
      const note = () => {
        for (const key of stay) if (!twin.has(key)) stay.delete(key);
        for (const [key, value] of twin) {
          possible.set(key, (possible.get(key) ?? new Set()).add(value));
        }
      };
      note();
      pair.interrupt(step, () => {
        overtaken++;
        for (const act of acts) {
          apply(act, pair.other, twin);
          note();
        }
      });
      assertShown([...pair.mine], stay, possible);
      pair.interrupt(-1, () => {});
      assertEquals(new Map(pair.mine), twin);
    }),
    { numRuns: 300 },
  );
  assert(overtaken > 75, `${overtaken} of 300 iterations were overtaken`);
});

function assertShown(
  shown: [number, number][],
  stay: Set<number>,
  possible: Map<number, Set<number>>,
): void {
  const keys = new Set<number>();
  for (const [key, value] of shown) {
    assert(!keys.has(key), `key ${key} is shown twice`);
    keys.add(key);
    // Keys that come and go within one act stand for themselves.
    if (key >= keyOf(0x10000)) continue;
    assert(possible.get(key)?.has(value), `${key} never had ${value}`);
  }
  for (const key of stay) assert(keys.has(key), `key ${key} is missing`);
}

Deno.test("an iteration in a chain that is split and joined again meanwhile shows its keys once", () => {
  for (let step = 0; step < 6; step++) {
    using pair = openPair(128);
    const keys = [keyOf(0x03), keyOf(0x83), keyOf(0x83, 1), keyOf(0x83, 2)];
    for (const key of keys) pair.mine.set(key, 1);
    pair.interrupt(step, () => growAndShrink(pair.other, 600));
    assertEquals([...pair.mine.keys()].sort(), [...keys].sort());
  }
});

Deno.test("the check of iterations notices a key that is missing, shown twice, or has another's value", () => {
  const stay = new Set([1, 2]);
  const possible = new Map([[1, new Set([10])], [2, new Set([20])]]);
  const fails = (shown: [number, number][]) => {
    try {
      assertShown(shown, stay, possible);
    } catch {
      return true;
    }
    return false;
  };
  assert(!fails([[2, 20], [1, 10]]));
  assert(fails([[1, 10]]));
  assert(fails([[1, 10], [2, 20], [1, 10]]));
  assert(fails([[1, 20], [2, 20]]));
});
