import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  bytes,
  type Codec,
  f64,
  json,
  type KeyCodec,
  Rcu,
  RcuCell,
  RcuMap,
  RcuMemoryError,
  RcuSortedMap,
  string,
  struct,
  u32,
} from "../mod.ts";
import { sharedWords, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

function domain(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
}

Deno.test("a map that is opened again by its name is the same map", () => {
  using rcu = domain();
  using member = Rcu.attach(rcu.handle);
  const options = { key: string, value: u32 };
  const first = RcuMap.open(rcu, "m", options);
  const second = RcuMap.open(rcu, "m", options);
  const third = RcuMap.open(member, "m", options);
  first.set("a", 1);
  assertEquals([second.get("a"), third.get("a")], [1, 1]);
  const other = RcuMap.open(rcu, "n", options);
  assertEquals(other.get("a"), undefined);
});

Deno.test("a name with another schema is refused by both schemas, and nothing is left behind", () => {
  using rcu = domain();
  RcuMap.open(rcu, "m", { key: u32, value: json() });
  RcuCell.open(rcu, "c", { value: f64, initial: 1 });
  const { live } = rcu.memory.audit();
  const cases: [() => unknown, string][] = [
    [
      () => RcuMap.open(rcu, "m", { key: string, value: json() }),
      'Cannot open "m" as map<string,json>: it was opened as map<u32,json>',
    ],
    [
      () => RcuMap.open(rcu, "m", { key: u32, value: struct({ a: bytes }) }),
      'Cannot open "m" as map<u32,struct{a:bytes}>: it was opened as map<u32,json>',
    ],
    [
      () => RcuCell.open(rcu, "m", { value: u32, initial: 1 }),
      'Cannot open "m" as cell<u32>: it was opened as map<u32,json>',
    ],
    [
      () => RcuMap.open(rcu, "c", { key: u32, value: u32 }),
      'Cannot open "c" as map<u32,u32>: it was opened as cell<f64>',
    ],
  ];
  for (const [open, message] of cases) assertThrows(open, TypeError, message);
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("any string is a name, and different strings are different names", () => {
  using rcu = domain();
  const names = [
    "",
    " ",
    "\0",
    "\0\0",
    "a",
    "A",
    "\ud800",
    "\udc00",
    "grüße 👋",
    "__proto__",
    "n".repeat(2 ** 18),
    "n".repeat(2 ** 18 - 1) + "m",
  ];
  names.forEach((name, i) => {
    RcuCell.open(rcu, name, { value: u32, initial: i });
  });
  names.forEach((name, i) => {
    assertEquals(RcuCell.open(rcu, name, { value: u32 }).get(), i);
  });
});

/** Names of any size and content, lone surrogates among it. */
const anyName = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 20 }),
  // Any UTF-16 units.
  fc.array(fc.nat(0xffff), { maxLength: 20 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom("\ud800", "\udfff", "\udc00\ud800", "a\ud83d", "\0"),
  // Long ones, which differ in their last units alone.
  fc.tuple(
    fc.constantFrom("n", "\u0101", "\ud800"),
    fc.integer({
      min: 2_000,
      max: 2_003,
    }),
  ).map(([unit, length]) => unit.repeat(length)),
);

Deno.test("a name opens the structure that was opened by it, and no other, whatever it is", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyName, { minLength: 1, maxLength: 12 }),
      fc.nat(2),
      (names, kinds) => {
        using rcu = domain();
        const opened = names.map((name, i) => openAny(rcu, name, i + kinds));
        opened.forEach((one, i) => one.write(i));
        using member = Rcu.attach(rcu.handle);
        const { live } = rcu.memory.audit();
        // The other way round: not in the order in which they were made.
        for (let i = names.length - 1; i >= 0; i--) {
          for (const who of [rcu, member]) {
            const again = openAny(who, names[i], i + kinds);
            assertEquals(again.read(), i, JSON.stringify(names[i]));
          }
        }
        assertEquals(rcu.memory.audit().live, live, "something was made anew");
      },
    ),
    { numRuns: 200 },
  );
});

/** Opens a structure of one of three kinds, to write a number to and read it. */
function openAny(
  rcu: Rcu,
  name: string,
  kind: number,
): { write(n: number): void; read(): number | undefined } {
  if (kind % 3 === 0) {
    const cell = RcuCell.open(rcu, name, { value: u32, initial: 99 });
    return { write: (n) => cell.set(n), read: () => cell.get() };
  }
  const Kind = kind % 3 === 1 ? RcuMap : RcuSortedMap;
  const map = Kind.open(rcu, name, { key: u32, value: u32 });
  return { write: (n) => void map.set(0, n), read: () => map.get(0) };
}

Deno.test("a name that is no string is refused", () => {
  using rcu = domain();
  for (const name of [undefined, null, 5, {}] as unknown as string[]) {
    for (
      const open of [
        () => RcuMap.open(rcu, name, { key: u32, value: u32 }),
        () => RcuCell.open(rcu, name, { value: u32, initial: 1 }),
      ]
    ) {
      assertThrows(open, TypeError, "its name must be a string: received");
    }
  }
});

Deno.test("a first argument that is no Rcu is refused", () => {
  for (const rcu of [undefined, null, 5, {}] as unknown as Rcu[]) {
    assertThrows(
      () => RcuMap.open(rcu, "m", { key: u32, value: u32 }),
      TypeError,
      "Cannot open a map as its first argument must be an Rcu: received",
    );
    assertThrows(
      () => RcuCell.open(rcu, "c", { value: u32, initial: 1 }),
      TypeError,
      "Cannot open a cell as its first argument must be an Rcu: received",
    );
  }
});

Deno.test("a closed Rcu opens nothing", () => {
  const rcu = domain();
  rcu.close();
  assertThrows(
    () => RcuMap.open(rcu, "m", { key: u32, value: u32 }),
    Error,
    "closed",
  );
  assertThrows(
    () => RcuCell.open(rcu, "c", { value: u32, initial: 1 }),
    Error,
    "closed",
  );
});

Deno.test("bad options are refused by what was received, and leave nothing behind", () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const map = (options: unknown) => () =>
    RcuMap.open(rcu, "m", options as { key: KeyCodec<1>; value: Codec<1> });
  const cell = (options: unknown) => () =>
    RcuCell.open(rcu, "c", options as { value: Codec<1> });
  const cases: [() => unknown, ErrorConstructor, string][] = [
    [map(undefined), TypeError, "must name a key and a value codec"],
    [map(null), TypeError, "received null"],
    [map({}), TypeError, "its key must be one of the codecs"],
    [map({ value: u32 }), TypeError, "received undefined"],
    [map({ key: json(), value: u32 }), TypeError, "received json"],
    [map({ key: struct({}), value: u32 }), TypeError, "received struct{}"],
    [map({ key: "u32", value: u32 }), TypeError, 'received "u32"'],
    [map({ key: { schema: "u32" }, value: u32 }), TypeError, "received u32"],
    [map({ key: u32 }), TypeError, "its value must be a codec: received"],
    [map({ key: u32, value: "u32" }), TypeError, 'received "u32"'],
    [map({ key: u32, value: json }), TypeError, "received"],
    [cell(undefined), TypeError, "must name a value codec"],
    [cell({}), TypeError, "its value must be a codec: received undefined"],
    [cell({ value: json }), TypeError, "its value must be a codec: received"],
    [cell({ value: u32, initial: -1 }), RangeError, "received -1"],
    [cell({ value: u32, initial: "1" }), TypeError, 'received "1"'],
    ...[-1, 0.5, NaN, Infinity, 2 ** 28 + 1, "5"].map((
      capacity,
    ): [() => unknown, ErrorConstructor, string] => [
      map({ key: u32, value: u32, capacity }),
      typeof capacity === "number" ? RangeError : TypeError,
      "its capacity must be an integer from 0 to 268435456: received",
    ]),
  ];
  for (const [open, kind, message] of cases) assertThrows(open, kind, message);
  assertEquals(rcu.memory.audit().live, live);
  // The names are still free.
  RcuMap.open(rcu, "m", { key: u32, value: u32 });
  RcuCell.open(rcu, "c", { value: u32, initial: 1 });
});

Deno.test("a structure that does not fit is an RcuMemoryError; its name stays free and nothing is left behind", () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  for (const capacity of [2 ** 20, 2 ** 28]) {
    assertThrows(
      () => RcuMap.open(rcu, "m", { key: u32, value: u32, capacity }),
      RcuMemoryError,
    );
  }
  assertThrows(
    () =>
      RcuCell.open(rcu, "m", { value: string, initial: "x".repeat(2 ** 22) }),
    RcuMemoryError,
  );
  assertThrows(
    () => RcuCell.open(rcu, "n".repeat(2 ** 22), { value: u32, initial: 1 }),
    RcuMemoryError,
  );
  assertEquals(rcu.memory.audit().live, live);
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  assertEquals(map.set("a", 1).get("a"), 1);
});

Deno.test("a map keeps to the capacity of whoever created it", async () => {
  using rcu = domain();
  const options = { key: u32, value: u32 };
  const large = RcuMap.open(rcu, "m", { ...options, capacity: 4096 });
  const again = RcuMap.open(rcu, "m", { ...options, capacity: 1 });
  const { live } = rcu.memory.audit();
  assert(live >= 4096 * 4);
  for (let i = 0; i < 100; i++) again.set(i, i);
  for (let i = 0; i < 100; i++) large.delete(i);
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("workers that open one new name at the same moment get one structure", async () => {
  using rcu = domain();
  const rounds = 100;
  await withWorkers("_cell_worker.ts", 2, async (...workers) => {
    const words = sharedWords(4);
    const opening = workers.map((worker, me) =>
      worker.call<number>("openTogether", {
        handle: rcu.handle,
        words,
        rounds,
        me,
      })
    );
    await Promise.all(opening);
    for (let round = 0; round < rounds; round++) {
      const map = RcuMap.open(rcu, `map ${round}`, { key: u32, value: u32 });
      assertEquals(new Map(map), new Map([[0, round], [1, round]]));
      const cell = RcuCell.open(rcu, `cell ${round}`, { value: u32 });
      assertEquals(cell.get(), 2);
    }
  });
  // What the slower one had made is freed: one map and one cell a round are left.
  using twin = domain();
  for (let round = 0; round < rounds; round++) {
    const map = RcuMap.open(twin, `map ${round}`, { key: u32, value: u32 });
    map.set(0, round).set(1, round);
    RcuCell.open(twin, `cell ${round}`, { value: u32, initial: 2 });
  }
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, twin.memory.audit().live);
});
