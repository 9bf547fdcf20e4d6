import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
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
  RcuMap,
  string,
  struct,
  type StructFields,
  u32,
} from "../mod.ts";
import { BlockCodec } from "../src/memory/_codec.ts";
import { anyBytes, anyDouble, anyJson, anyText } from "./_arbitrary.ts";

interface Shape {
  // deno-lint-ignore no-explicit-any -- of any field
  codec: Codec<any, any>;
  value: unknown;
}

/** Structs of any shape with a value each, nested to any depth. */
const anyStruct = fc.letrec<{ shape: Shape; struct: Shape }>((tie) => ({
  shape: fc.oneof(
    { depthSize: "small" },
    fc.oneof(
      shapes(u32, fc.integer({ min: 0, max: 2 ** 32 - 1 })),
      shapes(i32, fc.integer().map((n) => n | 0)),
      shapes(f64, anyDouble),
      shapes(string, anyText),
      shapes(bytes, anyBytes),
      shapes(json(), anyJson),
    ),
    tie("struct"),
  ),
  struct: fc.uniqueArray(
    fc.tuple(
      fc.oneof(anyText, fc.constantFrom("__proto__", "0")),
      tie("shape"),
    ),
    { selector: ([name]) => name, maxLength: 6 },
  ).map((fields) => ({
    codec: struct(
      Object.fromEntries(fields.map(([name, { codec }]) => [name, codec])),
    ),
    value: Object.fromEntries(fields.map(([name, { value }]) => [name, value])),
  })),
})).struct;

function shapes<T>(
  codec: Codec<T>,
  values: fc.Arbitrary<T>,
): fc.Arbitrary<Shape> {
  return values.map((value) => ({ codec, value }));
}

/** A text that tells values apart which a struct tells apart. */
function plain(value: unknown): unknown {
  if (typeof value === "number") {
    return Object.is(value, -0) ? "-0" : `${value}`;
  }
  if (value instanceof Uint8Array) return `bytes ${value.join()}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([name, field]) => [name, plain(field)]);
}

/** JSON has no -0; nothing else of these values changes in it. */
function asText(value: unknown): string {
  return JSON.stringify(plain(value)).replaceAll('"-0"', '"0"');
}

Deno.test("a struct of any shape comes back as it was, by get and by view", () => {
  fc.assert(fc.property(anyStruct, ({ codec, value }) => {
    assert(codec instanceof BlockCodec);
    const prepared = codec.prepare(value);
    const size = codec.measure(prepared);
    const words = new Int32Array(new SharedArrayBuffer((size + 8) * 4));
    words.fill(0x5eed5eed);
    codec.write(words, 4, prepared);
    assertEquals([...words.subarray(0, 4)], Array(4).fill(0x5eed5eed));
    assertEquals([...words.subarray(4 + size)], Array(4).fill(0x5eed5eed));
    assertEquals(codec.wordsAt(words, 4), size);
    assertEquals(asText(codec.read(words, 4)), asText(value));
    assertEquals(asText(codec.view(words, 4, undefined)), asText(value));
  }));
});

Deno.test("a struct keeps -0, NaN and lone surrogates in its fields", () => {
  using rcu = Rcu.create();
  const value = struct({ x: f64, y: f64, s: string });
  const initial = { x: -0, y: NaN, s: "\udc00" };
  const got = RcuCell.open(rcu, "c", { value, initial }).get();
  assert(Object.is(got.x, -0));
  assert(Number.isNaN(got.y));
  assertStrictEquals(got.s, "\udc00");
});

Deno.test("a struct's schema names its fields and codecs in order", () => {
  assertEquals(struct({}).schema, "struct{}");
  assertEquals(
    struct({ a: u32, b: struct({ c: json(), "d e": f64 }) }).schema,
    'struct{a:u32,b:struct{c:json,"d e":f64}}',
  );
});

Deno.test("structs with the same fields in another order do not match", () => {
  using rcu = Rcu.create();
  RcuMap.open(rcu, "m", { key: u32, value: struct({ a: u32, b: f64 }) });
  assertThrows(
    () =>
      RcuMap.open(rcu, "m", { key: u32, value: struct({ b: f64, a: u32 }) }),
    TypeError,
    'Cannot open "m" as map<u32,struct{b:f64,a:u32}>: it was opened as map<u32,struct{a:u32,b:f64}>',
  );
});

Deno.test("field names cannot be mistaken for parts of a schema", () => {
  assert(
    struct({ "a:u32,b": u32 }).schema !== struct({ a: u32, b: u32 }).schema,
  );
});

Deno.test("a field that is not a codec is refused by its name", () => {
  for (const codec of [null, undefined, 5, "u32", { schema: "u32" }]) {
    assertThrows(
      () => struct({ ok: u32, odd: codec } as unknown as StructFields),
      TypeError,
      'Cannot define a struct as the field "odd" must be a codec: received',
    );
  }
});

Deno.test("a value that is no object, or has a bad field, is refused and stores nothing", () => {
  using rcu = Rcu.create();
  const value = struct({ a: u32, s: string });
  const map = RcuMap.open(rcu, "m", { key: u32, value });
  map.set(1, { a: 1, s: "x" });
  const { live } = rcu.memory.audit();
  const bad: [unknown, ErrorConstructor, string][] = [
    [null, TypeError, "must be an object: received null"],
    [5, TypeError, "must be an object: received 5"],
    [{ a: 1 }, TypeError, "must be a string: received undefined"],
    [{ a: -1, s: "" }, RangeError, "received -1"],
    [{ a: "1", s: "" }, TypeError, 'received "1"'],
  ];
  for (const [row, kind, message] of bad) {
    assertThrows(() => map.set(1, row as never), kind, message);
  }
  assertEquals(map.get(1), { a: 1, s: "x" });
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("properties that are no fields are not stored", () => {
  using rcu = Rcu.create();
  const value = struct({ a: u32 });
  const initial = { a: 1, more: 2 };
  assertEquals(RcuCell.open(rcu, "c", { value, initial }).get(), { a: 1 });
});

Deno.test("get of a struct returns a fresh object each time, free to be changed", () => {
  using rcu = Rcu.create();
  const value = struct({ a: u32, b: bytes });
  const initial = { a: 1, b: Uint8Array.of(1) };
  const cell = RcuCell.open(rcu, "c", { value, initial });
  const got: { a: number; b: Uint8Array } = cell.get();
  got.a = 5;
  got.b[0] = 5;
  assertNotStrictEquals(cell.get(), got);
  assertEquals(cell.get(), initial);
});

Deno.test("a struct without fields is an empty object", () => {
  using rcu = Rcu.create();
  const map = RcuMap.open(rcu, "m", { key: u32, value: struct({}) });
  map.set(1, {});
  assertEquals(map.get(1), {});
  assertEquals([...map], [[1, {}]]);
});
