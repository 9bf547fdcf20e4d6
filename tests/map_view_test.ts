import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { bytes, f64, json, Rcu, RcuMap, string, struct, u32 } from "../mod.ts";
import { settle } from "./_settle.ts";

const ROW = struct({
  n: u32,
  text: string,
  data: bytes,
  at: struct({ x: f64 }),
});
const LATE = "Cannot use a view outside the read section in which it was taken";

function setUp(debug: boolean) {
  const rcu = Rcu.create({ capacity: 2 ** 22, debug });
  const rows = RcuMap.open(rcu, "r", { key: u32, value: ROW });
  const blobs = RcuMap.open(rcu, "b", { key: string, value: bytes });
  rows.set(1, {
    n: 5,
    text: "five",
    data: Uint8Array.of(5, 6),
    at: { x: 0.5 },
  });
  blobs.set("a", Uint8Array.of(1, 2, 3));
  return { rcu, rows, blobs, [Symbol.dispose]: () => rcu.close() };
}

Deno.test("RcuMap.view() outside a section is an error, also after a get", () => {
  using t = setUp(false);
  t.blobs.get("a");
  for (const act of [() => t.blobs.view("a"), () => t.rows.view(7)]) {
    assertThrows(act, Error, "Cannot view a value outside a read section");
  }
});

Deno.test("RcuMap.view() of a key that is not there is undefined", () => {
  using t = setUp(true);
  t.rcu.read(() => {
    assertStrictEquals(t.blobs.view("b"), undefined);
    assertStrictEquals(t.rows.view(2), undefined);
  });
});

for (const debug of [false, true]) {
  const mode = debug ? "with debug" : "without debug";

  Deno.test(`a view of bytes is the shared memory itself, ${mode}`, () => {
    using t = setUp(debug);
    t.rcu.read(() => {
      const view = t.blobs.view("a")!;
      assertStrictEquals(view.buffer as unknown, t.rcu.handle.buffer);
      assertEquals([...view], [1, 2, 3]);
      assertEquals([view.length, view.byteLength], [3, 3]);
      assertEquals([...view.subarray(1)], [2, 3]);
      assert(view instanceof Uint8Array);
      // The version that the section found, whatever is set meanwhile.
      t.blobs.set("a", Uint8Array.of(9, 9, 9));
      assertEquals([...view], [1, 2, 3]);
      assertEquals([...t.blobs.view("a")!], [9, 9, 9]);
    });
  });

  Deno.test(`a view of a struct shows every field, ${mode}`, () => {
    using t = setUp(debug);
    t.rcu.read(() => {
      const view = t.rows.view(1)!;
      assertEquals(Object.keys(view), ["n", "text", "data", "at"]);
      assertEquals([view.n, view.text, view.at.x], [5, "five", 0.5]);
      assertEquals([...view.data], [5, 6]);
      assertStrictEquals(view.data.buffer as unknown, t.rcu.handle.buffer);
      assert(Object.isFrozen(view));
    });
  });

  Deno.test(`views of numbers, strings and json are what get returns, ${mode}`, () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, debug });
    const numbers = RcuMap.open(rcu, "n", { key: u32, value: f64 });
    const texts = RcuMap.open(rcu, "t", { key: u32, value: string });
    const any = RcuMap.open(rcu, "j", { key: u32, value: json<unknown>() });
    numbers.set(1, -0);
    texts.set(1, "text");
    any.set(1, { a: 1 });
    rcu.read(() => {
      assert(Object.is(numbers.view(1), -0));
      assertEquals(texts.view(1), "text");
      assertStrictEquals(any.view(1), any.get(1));
    });
    assertEquals(any.get(1), { a: 1 });
  });
}

Deno.test("a view of a struct decodes a field when it is looked at", () => {
  using t = setUp(true);
  t.rcu.read(() => {
    const view = t.rows.view(1)!;
    const { words } = t.rcu.memory;
    // Change the block behind it: what was decoded already would not show that.
    const at = words.indexOf(5, 1024);
    let changed = false;
    for (let i = at; i > 0 && !changed; i = words.indexOf(5, i + 1)) {
      words[i] = 77;
      changed = view.n === 77;
      words[i] = 5;
    }
    assert(changed, "no word behind the field was found");
    assertEquals(view.n, 5);
  });
});

Deno.test("in debug mode a view that is used after its section throws", () => {
  using t = setUp(true);
  const { blob, row, data, at } = t.rcu.read(() => {
    const row = t.rows.view(1)!;
    return { blob: t.blobs.view("a")!, row, data: row.data, at: row.at };
  });
  const uses: (() => unknown)[] = [
    () => blob[0],
    () => blob.length,
    () => [...blob],
    () => blob.slice(),
    () => row.n,
    () => row.text,
    () => row.data,
    () => ({ ...row }),
    () => data[1],
    () => at.x,
  ];
  for (const use of uses) assertThrows(use, Error, LATE, String(use));
  // Another section is another section.
  t.rcu.read(() => {
    for (const use of uses) assertThrows(use, Error, LATE, String(use));
    assertEquals(t.rows.view(1)!.n, 5);
  });
});

Deno.test("in debug mode a view serves until the outermost section ends", () => {
  using t = setUp(true);
  t.rcu.read(() => {
    const view = t.rcu.read(() => t.rows.view(1)!);
    assertEquals(view.n, 5);
    t.rows.delete(1);
    t.blobs.clear();
    assertEquals([view.text, ...view.data], ["five", 5, 6]);
  });
});

Deno.test("a block that a view showed is poisoned once its grace period is over", async () => {
  using t = setUp(true);
  const place = t.rcu.read(() => t.blobs.view("a")!.byteOffset) / 4;
  assertEquals(t.rcu.memory.words[place], 0x030201);
  t.blobs.delete("a");
  await settle(t.rcu);
  assertEquals(t.rcu.memory.words[place], 0x6b6b6b6b);
});
