import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import {
  bytes,
  type Codec,
  f64,
  i32,
  json,
  Rcu,
  RcuCell,
  string,
  u32,
} from "../mod.ts";
import { BlockCodec, BlockKeyCodec, WordCodec } from "../src/memory/_codec.ts";
import { anyBytes, anyDouble, anyJson, anyText } from "./_arbitrary.ts";

const GUARD = 0x5eed5eed;
const AT = 5;

function block<T>(codec: Codec<T>): BlockCodec<T, unknown> {
  assert(codec instanceof BlockCodec);
  return codec;
}

/** Writes a value between guards, asserts that it stays between them, and reads it back. */
function roundTrip<T>(codec: Codec<T>, value: T): T {
  if (codec instanceof WordCodec) {
    return codec.fromWord(codec.toWord(value) | 0);
  }
  const { words, size } = write(codec, value);
  assertEquals(block(codec).wordsAt(words, AT), size, "the length in place");
  return block(codec).read(words, AT);
}

function write<T>(codec: Codec<T>, value: T) {
  const prepared = block(codec).prepare(value);
  const size = block(codec).measure(prepared);
  const words = new Int32Array(new SharedArrayBuffer((AT + size + 3) * 4));
  words.fill(GUARD);
  block(codec).write(words, AT, prepared);
  for (let i = 0; i < words.length; i++) {
    if (i < AT || i >= AT + size) assertEquals(words[i], GUARD, `word ${i}`);
  }
  return { words, size };
}

Deno.test("u32 keeps every integer from 0 to 2^32 - 1", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (value) => {
    assertStrictEquals(roundTrip(u32, value), value);
  }));
  for (const value of [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]) {
    assertStrictEquals(roundTrip(u32, value), value);
  }
  assertStrictEquals(roundTrip(u32, -0), 0);
});

Deno.test("i32 keeps every integer from -2^31 to 2^31 - 1", () => {
  fc.assert(fc.property(fc.integer(), (value) => {
    assertStrictEquals(roundTrip(i32, value), value === 0 ? 0 : value);
  }));
  for (const value of [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1]) {
    assertStrictEquals(roundTrip(i32, value), value);
  }
});

Deno.test("u32 and i32 refuse numbers out of range with a RangeError that names them", () => {
  const cases: [Codec<number>, number[]][] = [
    [u32, [-1, 2 ** 32, 0.5, NaN, Infinity, -Infinity, 2 ** 53]],
    [i32, [-(2 ** 31) - 1, 2 ** 31, 0.5, NaN, Infinity, 2 ** 53]],
  ];
  for (const [codec, values] of cases) {
    for (const value of values) {
      const { message } = assertThrows(
        () => roundTrip(codec, value),
        RangeError,
        `Cannot use a value as ${codec.schema} as it must be an integer`,
      );
      assertStringIncludes(message, `received ${value}`);
    }
  }
});

Deno.test("every codec refuses a value of another type with a TypeError that names it", () => {
  const wrong: [unknown, string][] = [
    [undefined, "undefined"],
    [null, "null"],
    [true, "true"],
    [5n, "5n"],
    [Symbol("s"), "Symbol(s)"],
    [{}, "an object of type Object"],
    [[], "an object of type Array"],
    [Object.create(null), "an object of type Object"],
  ];
  const codecs: [Codec<never>, [unknown, string][]][] = [
    [u32, [...wrong, ["5", '"5"']]],
    [i32, [...wrong, ["5", '"5"']]],
    [f64, [...wrong, ["5", '"5"']]],
    [string, [...wrong, [5, "5"], [
      new String("a"),
      "an object of type String",
    ]]],
    [bytes, [
      ...wrong,
      ["ab", '"ab"'],
      [new ArrayBuffer(1), "an object of type ArrayBuffer"],
      [new Uint16Array(1), "an object of type Uint16Array"],
    ]],
    [json(), [[undefined, "undefined"], [Symbol("s"), "Symbol(s)"]]],
  ] as [Codec<never>, [unknown, string][]][];
  for (const [codec, values] of codecs) {
    for (const [value, shown] of values) {
      const { message } = assertThrows(
        () => roundTrip(codec, value as never),
        TypeError,
      );
      const what = `${codec.schema} given ${shown}: ${message}`;
      assert(message.includes(`a value as ${codec.schema}`), what);
      assert(message.endsWith(`received ${shown}`), what);
    }
  }
});

Deno.test("a long string is cut short in an error", () => {
  const { message } = assertThrows(
    () => roundTrip(u32, "x".repeat(1000) as unknown as number),
    TypeError,
  );
  assert(message.length < 200);
});

Deno.test("f64 keeps every double, the sign of zero included", () => {
  fc.assert(
    fc.property(anyDouble, (value) => {
      assert(Object.is(roundTrip(f64, value), value));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("string keeps any string", () => {
  fc.assert(fc.property(anyText, (value) => {
    assertStrictEquals(roundTrip(string, value), value);
  }));
});

Deno.test("bytes keeps arrays of any length, from any place in any buffer", () => {
  fc.assert(fc.property(anyBytes, (value) => {
    const copy = roundTrip(bytes, value);
    assertEquals(copy, Uint8Array.from(value));
    assertStrictEquals(copy.byteLength, copy.buffer.byteLength);
    assert(copy.buffer instanceof ArrayBuffer);
  }));
  const large = Uint8Array.from({ length: 2 ** 20 + 3 }, (_, i) => i * 7);
  assertEquals(roundTrip(bytes, large), large);
});

Deno.test("bytes pads its last word with zeros, so that keys compare by words", () => {
  for (let length = 1; length < 9; length++) {
    const { words, size } = write(bytes, new Uint8Array(length).fill(0xff));
    const raw = new Uint8Array(words.buffer, (AT + 1) * 4, (size - 1) * 4);
    assertEquals(
      [...raw],
      raw.reduce<number[]>((all, _, i) => [...all, i < length ? 0xff : 0], []),
    );
  }
});

Deno.test("json keeps whatever JSON keeps, any keys included", () => {
  fc.assert(fc.property(anyJson, (value) => {
    const text = JSON.stringify(value);
    const copy = roundTrip(json<unknown>(), value);
    assertStrictEquals(JSON.stringify(copy), text);
    assertNotPolluted();
  }));
  const odd = JSON.parse('{"__proto__":{"a":1},"b":[{"__proto__":null}]}');
  const copy = roundTrip(json<typeof odd>(), odd);
  assertStrictEquals(JSON.stringify(copy), JSON.stringify(odd));
  assertStrictEquals(Object.getPrototypeOf(copy), Object.prototype);
});

function assertNotPolluted(): void {
  assertEquals(Object.keys(Object.prototype), []);
}

Deno.test("json values are frozen, to any depth", () => {
  fc.assert(fc.property(anyJson, (value) => {
    assertFrozen(roundTrip(json<unknown>(), value));
  }));
});

function assertFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  assert(Object.isFrozen(value));
  Object.values(value).forEach(assertFrozen);
}

Deno.test("json gives back whatever it took, however deep", () => {
  using rcu = Rcu.create();
  for (const depth of [100, 10_000, 100_000]) {
    let value: unknown = 1;
    for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { value };
    const name = `deep ${depth}`;
    let cell: RcuCell<unknown>;
    try {
      cell = RcuCell.open(rcu, name, { value: json(), initial: value });
    } catch (error) {
      assert(error instanceof RangeError, String(error)); // JSON.stringify itself
      continue;
    }
    let inner = cell.get();
    let found = 0;
    for (; typeof inner === "object"; found++) {
      assert(Object.isFrozen(inner));
      inner = Array.isArray(inner)
        ? inner[0]
        : (inner as { value: unknown }).value;
    }
    assertEquals(found, depth);
  }
});

Deno.test("json respects toJSON and drops what JSON drops", () => {
  const value = { at: new Date(0), gone: undefined, nan: NaN };
  assertEquals(
    roundTrip(json<unknown>(), value),
    { at: "1970-01-01T00:00:00.000Z", nan: null },
  );
  assertThrows(() => roundTrip(json<unknown>(), 5n), TypeError);
  const circle: { self?: unknown } = {};
  circle.self = circle;
  assertThrows(() => roundTrip(json<unknown>(), circle), TypeError);
});

Deno.test("hashes and comparisons of keys agree with equality", () => {
  const same = <K>(
    codec: Codec<K>,
    arbitrary: fc.Arbitrary<K>,
    equal: (a: K, b: K) => boolean,
  ) => {
    assert(codec instanceof BlockKeyCodec);
    fc.assert(fc.property(arbitrary, arbitrary, fc.integer(), (a, b, seed) => {
      const [x, y] = [codec.prepareKey(a), codec.prepareKey(b)];
      const { words } = write(codec, x as K);
      assert(codec.equals(words, AT, x));
      assertEquals(codec.equals(words, AT, y), equal(a, b));
      if (equal(a, b)) {
        assertEquals(codec.hash(x, seed) | 0, codec.hash(y, seed) | 0);
      }
    }));
  };
  same(string, anyText, (a, b) => a === b);
  same(f64, anyDouble, (a, b) => a === b || (a !== a && b !== b));
  same(bytes, anyBytes, (a, b) => a.join() === b.join());
});

Deno.test("a codec's values cross from one member of a domain to another", () => {
  using rcu = Rcu.create();
  using member = Rcu.attach(rcu.handle);
  let n = 0;
  const crosses = <T>(codec: Codec<T>, values: T[]) => {
    const name = `cell ${n++}`;
    const from = RcuCell.open(rcu, name, { value: codec, initial: values[0] });
    const to = RcuCell.open(member, name, { value: codec });
    for (const value of values) {
      from.set(value);
      assertEquals(to.get(), value);
    }
  };
  crosses(u32, [0, 2 ** 32 - 1]);
  crosses(i32, [-(2 ** 31), 2 ** 31 - 1]);
  crosses(f64, [0.1, Infinity, -5e-324]);
  crosses(string, ["", "a\0b", "\ud800", "x".repeat(2 ** 20)]);
  crosses(bytes, [new Uint8Array(), new Uint8Array(2 ** 20 + 1).fill(3)]);
  crosses(json<unknown>(), [null, 0, "", [], { a: [{ b: "ü" }] }]);
});

Deno.test("bytes are copied when they are stored and when they are read", () => {
  using rcu = Rcu.create();
  const mine = Uint8Array.of(1, 2, 3);
  const cell = RcuCell.open(rcu, "b", { value: bytes, initial: mine });
  mine[0] = 9;
  const copy = cell.get();
  assertEquals(copy, Uint8Array.of(1, 2, 3));
  copy[1] = 9;
  assertEquals(cell.get(), Uint8Array.of(1, 2, 3));
  assertNotStrictEquals(cell.get(), cell.get());
});
