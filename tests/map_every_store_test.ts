// What readers find between any two stores of a writer: another member looks after each of them.

import { assert, assertEquals } from "@std/assert";
import {
  type Codec,
  json,
  type KeyCodec,
  Rcu,
  RcuMap,
  string,
  u32,
} from "../mod.ts";

type AnyMap = RcuMap<number | string, unknown>;

const METHODS = ["store", "exchange", "add", "sub", "compareExchange"] as const;

/**
 * Does something, and looks after every atomic store of it.
 *
 * @param act What is done.
 * @param look Looks; its own stores do not count.
 * @returns How often it looked.
 */
function atEveryStore(act: () => void, look: () => void): number {
  const originals = METHODS.map((name) => Atomics[name]);
  let looking = false;
  let looks = 0;
  METHODS.forEach((name, i) => {
    const original = originals[i] as (...args: unknown[]) => unknown;
    (Atomics as unknown as Record<string, unknown>)[name] = (
      ...args: unknown[]
    ) => {
      const result = original.apply(Atomics, args);
      if (!looking) {
        looking = true;
        looks++;
        try {
          look();
        } finally {
          looking = false;
        }
      }
      return result;
    };
  });
  try {
    act();
  } finally {
    METHODS.forEach((name, i) =>
      Object.assign(Atomics, { [name]: originals[i] })
    );
  }
  return looks;
}

/** What a reader may find under each key: once it has found the newer one, no other. */
class Expected {
  readonly #map: AnyMap;
  readonly #stay = new Map<number | string, unknown>();
  readonly #changes = new Map<number | string, unknown[]>();
  readonly #seen = new Map<number | string, number>();

  constructor(map: AnyMap) {
    this.#map = map;
  }

  stays(key: number | string, value: unknown): void {
    this.#stay.set(key, value);
    this.#changes.delete(key);
  }

  /** From one value to another; `undefined` is for a key that is not there. */
  changes(key: number | string, from: unknown, to: unknown): void {
    this.#stay.delete(key);
    this.#changes.set(key, [from, to]);
    this.#seen.delete(key);
  }

  look(): void {
    for (const [key, value] of this.#stay) {
      assertEquals(this.#map.get(key), value, `key ${key}`);
      assert(this.#map.has(key));
    }
    for (const [key, values] of this.#changes) {
      this.#assertOneOf(key, this.#map.get(key), values);
    }
    const shown = new Map<unknown, unknown>();
    for (const [key, value] of this.#map) {
      assert(!shown.has(key), `${key} is shown twice`);
      shown.set(key, value);
    }
    for (const [key, value] of this.#stay) assertEquals(shown.get(key), value);
    for (const [key, values] of this.#changes) {
      this.#assertOneOf(key, shown.get(key), values);
    }
  }

  #assertOneOf(key: number | string, value: unknown, values: unknown[]): void {
    const same = (other: unknown) =>
      JSON.stringify(value) === JSON.stringify(other);
    const at = values.findIndex(same);
    assert(at >= 0, `key ${key} has ${JSON.stringify(value)}`);
    assert(at >= (this.#seen.get(key) ?? 0), `key ${key} is the old one again`);
    this.#seen.set(key, at);
  }
}

const KEYS: [string, KeyCodec<unknown>, (n: number) => number | string][] = [
  ["u32", u32 as KeyCodec<unknown>, (n) => n],
  ["string", string as KeyCodec<unknown>, (n) => `key ${n}`],
];
const VALUES: [string, Codec<unknown>, (n: number) => unknown][] = [
  ["u32", u32 as Codec<unknown>, (n) => n],
  ["string", string as Codec<unknown>, (n) => `value ${n}`],
  ["json", json(), (n) => ({ n })],
];

for (const [keyName, key, keyOf] of KEYS) {
  for (const [valueName, value, valueOf] of VALUES) {
    const setUp = (stay: number) => {
      const rcu = Rcu.create({ capacity: 2 ** 23, maxReaders: 4, debug: true });
      const member = Rcu.attach(rcu.handle);
      const options = { key: key as KeyCodec<number | string>, value };
      const map: AnyMap = RcuMap.open(rcu, "m", options);
      const other: AnyMap = RcuMap.open(member, "m", options);
      const expected = new Expected(other);
      for (let n = 0; n < stay; n++) {
        map.set(keyOf(n), valueOf(n));
        expected.stays(keyOf(n), valueOf(n));
      }
      return {
        map,
        expected,
        /** Does something that readers watch, and lets them look at the result. */
        watch(act: () => void): number {
          const looks = atEveryStore(act, () => expected.look());
          expected.look();
          return looks;
        },
        [Symbol.dispose]() {
          member.close();
          rcu.close();
        },
      };
    };

    Deno.test(`between any two stores of one update readers of ${keyName} to ${valueName} find the old or the new`, () => {
      using t = setUp(12);
      for (let n = 0; n < 12; n++) {
        t.expected.changes(keyOf(n), valueOf(n), valueOf(n + 100));
        assert(t.watch(() => t.map.set(keyOf(n), valueOf(n + 100))) > 2);
        t.expected.changes(keyOf(n), valueOf(n + 100), undefined);
        assert(t.watch(() => assert(t.map.delete(keyOf(n)))) > 2);
        t.expected.changes(keyOf(n), undefined, valueOf(n));
        t.watch(() => t.map.update(keyOf(n), () => valueOf(n)));
        t.expected.stays(keyOf(n), valueOf(n));
      }
    });

    Deno.test(`between any two stores of a resize readers of ${keyName} to ${valueName} find every key once`, () => {
      using t = setUp(24);
      const more = 100;
      const grow = t.watch(() => {
        for (let n = 0; n < more; n++) t.map.set(keyOf(1000 + n), valueOf(n));
      });
      const shrink = t.watch(() => {
        for (let n = 0; n < more; n++) t.map.delete(keyOf(1000 + n));
      });
      // More than the updates alone would have taken.
      assert(grow > 5 * more && shrink > 4 * more, `${grow}, ${shrink} looks`);
    });

    Deno.test(`between any two stores of replaceAll() readers of ${keyName} to ${valueName} find the old or the new`, () => {
      using t = setUp(40);
      for (let n = 0; n < 20; n++) {
        t.expected.changes(keyOf(n), valueOf(n), valueOf(n + 100));
      }
      for (let n = 20; n < 40; n++) {
        t.expected.changes(keyOf(n), valueOf(n), undefined);
      }
      t.watch(() =>
        t.map.replaceAll(
          Array.from({ length: 20 }, (_, n) => [keyOf(n), valueOf(n + 100)]),
        )
      );
      for (let n = 0; n < 20; n++) {
        t.expected.changes(keyOf(n), valueOf(n + 100), undefined);
      }
      t.watch(() => t.map.clear());
      assertEquals(t.map.size, 0);
    });
  }
}
