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
  f64,
  json,
  Rcu,
  RcuCell,
  RcuMemoryError,
  string,
  u32,
} from "../mod.ts";
import { anyJson, anyText } from "./_arbitrary.ts";
import { withDomain } from "./_audit.ts";
import { withWorkers } from "./_workers.ts";

function setUp(options = {}) {
  const rcu = Rcu.create({ capacity: 2 ** 22, debug: true, ...options });
  const member = Rcu.attach(rcu.handle);
  return {
    rcu,
    member,
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

Deno.test("RcuCell.get() returns what any member has set last", () => {
  using t = setUp();
  const a = RcuCell.open(t.rcu, "c", { value: string, initial: "first" });
  const b = RcuCell.open(t.member, "c", { value: string });
  assertEquals([a.get(), b.get()], ["first", "first"]);
  a.set("second");
  assertEquals([a.get(), b.get()], ["second", "second"]);
  b.set("third");
  assertEquals([a.get(), b.get()], ["third", "third"]);
});

Deno.test("the first value is for whoever creates the cell, and ignored by others", () => {
  using t = setUp();
  RcuCell.open(t.rcu, "c", { value: u32, initial: 1 });
  const again = RcuCell.open(t.member, "c", { value: u32, initial: 2 });
  assertEquals([again.get(), again.version], [1, 0]);
});

Deno.test("a cell that is not there cannot be opened without a first value", () => {
  using t = setUp();
  const { live } = t.rcu.memory.audit();
  for (const initial of [{}, { initial: undefined }]) {
    assertThrows(
      () => RcuCell.open(t.rcu, "c", { value: json(), ...initial }),
      TypeError,
      'Cannot open the cell "c" as it must exist or get an initial value: received undefined',
    );
  }
  assertEquals(t.rcu.memory.audit().live, live);
  const cell = RcuCell.open(t.rcu, "c", { value: json(), initial: null });
  assertStrictEquals(cell.get(), null);
});

Deno.test("RcuCell.version counts what was set, by whomever", () => {
  using t = setUp();
  const a = RcuCell.open(t.rcu, "c", { value: u32, initial: 1 });
  const b = RcuCell.open(t.member, "c", { value: u32 });
  assertEquals(a.version, 0);
  a.set(1);
  b.update((n) => n + 1);
  assertThrows(() => a.set(-1), RangeError, "received -1");
  assertEquals([a.version, b.version], [2, 2]);
});

Deno.test("RcuCell.update() calls its function again when another one was faster", () => {
  using t = setUp();
  const a = RcuCell.open(t.rcu, "c", { value: u32, initial: 1 });
  const b = RcuCell.open(t.member, "c", { value: u32 });
  for (const faster of [a, b]) {
    a.set(1);
    const seen: number[] = [];
    const result = a.update((old) => {
      seen.push(old);
      // Even the same value is another version.
      if (seen.length === 1) faster.set(1);
      else if (seen.length === 2) faster.update((n) => n + 10);
      return old + 1;
    });
    assertEquals(seen, [1, 1, 11]);
    assertEquals([result, b.get()], [12, 12]);
  }
});

Deno.test("RcuCell.update() whose function throws changes nothing", () => {
  using t = setUp();
  const cell = RcuCell.open(t.rcu, "c", { value: string, initial: "a" });
  const { live } = t.rcu.memory.audit();
  const mine = new Error("mine");
  const got = assertThrows(() =>
    cell.update(() => {
      throw mine;
    })
  );
  assertStrictEquals(got, mine);
  assertThrows(() => cell.update(() => 5 as unknown as string), TypeError);
  assertEquals([cell.get(), cell.version], ["a", 0]);
  assertEquals(t.rcu.memory.audit().live, live);
  cell.set("b");
});

Deno.test("a json value of a cell is one frozen object a version", () => {
  using t = setUp();
  const a = RcuCell.open(t.rcu, "c", {
    value: json<{ list: number[] }>(),
    initial: { list: [1] },
  });
  const b = RcuCell.open(t.member, "c", {
    value: json<{ list: number[] }>(),
  });
  const first = a.get();
  assertStrictEquals(a.get(), first);
  assertStrictEquals(t.rcu.read(() => a.get()), first);
  assert(Object.isFrozen(first.list));
  b.set({ list: [1] });
  assertNotStrictEquals(a.get(), first);
  assertEquals(a.get(), first);
});

Deno.test("a cell keeps any value, one after the other", () => {
  using t = setUp();
  const texts = RcuCell.open(t.rcu, "t", { value: string, initial: "" });
  const far = RcuCell.open(t.member, "t", { value: string });
  const any = RcuCell.open(t.rcu, "j", { value: json(), initial: null });
  fc.assert(fc.property(anyText, anyJson, (text, value) => {
    texts.set(text);
    assertStrictEquals(far.get(), text);
    any.set(value as null);
    assertEquals(JSON.stringify(any.get()), JSON.stringify(value));
  }));
});

Deno.test("a cell's number may be -0 or NaN, its bytes empty", () => {
  using t = setUp();
  const number = RcuCell.open(t.rcu, "n", { value: f64, initial: -0 });
  assert(Object.is(number.get(), -0));
  number.set(NaN);
  assert(Object.is(number.get(), NaN));
  const initial = new Uint8Array();
  const data = RcuCell.open(t.rcu, "b", { value: bytes, initial });
  assertEquals(data.get(), initial);
});

Deno.test("a cell gives back the memory of old values", async () => {
  await withDomain({ debug: true }, (rcu) => {
    const cell = RcuCell.open(rcu, "c", { value: string, initial: "x" });
    for (let i = 0; i < 5000; i++) {
      cell.set("y".repeat(i % 3000));
      cell.update((text) => text + "z");
    }
    cell.set("x");
  }, (rcu) => {
    RcuCell.open(rcu, "c", { value: string, initial: "x" });
  });
});

Deno.test("a cell whose memory is exhausted stays as it was and serves on", async () => {
  await withDomain({ capacity: 2 ** 21 }, (rcu) => {
    const cell = RcuCell.open(rcu, "c", { value: string, initial: "x" });
    const block = rcu.memory.allocate(2 ** 18);
    const long = "y".repeat(2 ** 20);
    assertThrows(() => cell.set(long), RcuMemoryError);
    assertThrows(() => cell.update(() => long), RcuMemoryError);
    assertEquals([cell.get(), cell.version], ["x", 0]);
    rcu.memory.free(block);
    cell.set(long);
    assertEquals(cell.get(), long);
    cell.set("x");
  }, (rcu) => {
    RcuCell.open(rcu, "c", { value: string, initial: "x" });
  });
});

Deno.test("increments of two workers are all counted", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
  RcuCell.open(rcu, "n", { value: u32, initial: 0 });
  RcuCell.open(rcu, "j", { value: json(), initial: { n: 0 } });
  const times = 10_000;
  await withWorkers("_cell_worker.ts", 2, async (...workers) => {
    await Promise.all(
      workers.map((w) =>
        w.call("incrementCells", { handle: rcu.handle, times })
      ),
    );
  });
  const numbers = RcuCell.open(rcu, "n", { value: u32 });
  assertEquals([numbers.get(), numbers.version], [2 * times, 2 * times]);
  const any = RcuCell.open(rcu, "j", { value: json<{ n: number }>() });
  assertEquals(any.get(), { n: 2 * times });
});

Deno.test("a closed Rcu's cell can neither be read nor written", () => {
  const rcu = Rcu.create({ capacity: 2 ** 22 });
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  rcu.close();
  const acts = [
    () => cell.get(),
    () => cell.set(2),
    () => cell.update((n) => n),
  ];
  for (const act of acts) assertThrows(act, Error, "closed");
});
