/**
 * What this project takes for granted of the `@std` packages. It holds for the
 * packages themselves and for the adapters that stand in for them offline.
 */
import {
  assert,
  assertAlmostEquals,
  assertArrayIncludes,
  assertEquals,
  assertExists,
  assertFalse,
  assertGreater,
  assertGreaterOrEqual,
  assertInstanceOf,
  AssertionError,
  assertIsError,
  assertLess,
  assertLessOrEqual,
  assertMatch,
  assertNotEquals,
  assertNotMatch,
  assertNotStrictEquals,
  assertObjectMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  equal,
  fail,
  unreachable,
} from "@std/assert";
import { parseArgs } from "@std/cli/parse-args";
import { ProgressBar } from "@std/cli/unstable-progress-bar";
import { assertSpyCalls, MockError, spy, stub } from "@std/testing/mock";
import config from "../deno.json" with { type: "json" };
import offline from "./_std/offline.json" with { type: "json" };
import { isReachable } from "./_std/pick.ts";

/** Asserts that an assertion fails, and says why if it is told to. */
function assertFails(assertion: () => void, why = ""): void {
  assertThrows(assertion, AssertionError, why);
}

Deno.test("equal() takes NaN for NaN and 0 for -0, at any depth", () => {
  assert(equal(NaN, NaN));
  assert(equal(0, -0));
  assert(equal([{ a: [NaN, -0] }], [{ a: [NaN, 0] }]));
  assert(equal(Float64Array.of(0, NaN), Float64Array.of(-0, NaN)));
});

Deno.test("equal() tells apart what differs in type, key or element", () => {
  assertFalse(equal(1, "1"));
  assertFalse(equal(null, undefined));
  assertFalse(equal({ a: undefined }, {}));
  assertFalse(equal({ a: undefined }, { b: undefined }));
  assertFalse(equal([1, 2], [2, 1]));
  assertFalse(equal([1], { 0: 1 }));
  assertFalse(equal(Uint8Array.of(1), Int8Array.of(1)));
  assertFalse(equal(Uint8Array.of(1), Uint8Array.of(1, 2)));
  assertFalse(equal({ [Symbol.iterator]: 1 }, {}));
  assertFalse(equal(() => 1, () => 1));
});

Deno.test("equal() compares prototypes, but takes null for that of {}", () => {
  class Point {
    constructor(readonly x: number) {}
  }
  assert(equal(new Point(1), new Point(1)));
  assertFalse(equal(new Point(1), new Point(2)));
  assertFalse(equal(new Point(1), { x: 1 }));
  assert(equal({ __proto__: null, x: 1 }, { x: 1 }));
});

Deno.test("equal() compares what accessors of a class return", () => {
  class Secret {
    #value: number;
    constructor(value: number) {
      this.#value = value;
    }
    get value(): number {
      return this.#value;
    }
  }
  assert(equal(new Secret(1), new Secret(1)));
  assertFalse(equal(new Secret(1), new Secret(2)));
});

Deno.test("equal() compares dates, patterns, addresses and bytes by value", () => {
  assert(equal(new Date(1), new Date(1)));
  assertFalse(equal(new Date(1), new Date(2)));
  assert(equal(/a/g, /a/g));
  assertFalse(equal(/a/g, /a/i));
  assert(equal(new URL("rcu:/a"), new URL("rcu:/a")));
  assertFalse(equal(new URL("rcu:/a"), new URL("rcu:/b")));
  assert(equal(new SharedArrayBuffer(2), new SharedArrayBuffer(2)));
  assertFalse(equal(new SharedArrayBuffer(2), new SharedArrayBuffer(3)));
  assertThrows(() => equal(new WeakSet(), new WeakSet()), TypeError);
});

Deno.test("equal() compares maps and sets without their order", () => {
  assert(equal(new Map([[1, "a"], [2, "b"]]), new Map([[2, "b"], [1, "a"]])));
  assertFalse(equal(new Map([[1, "a"]]), new Map([[1, "b"]])));
  assertFalse(equal(new Map([[1, undefined]]), new Map([[2, undefined]])));
  assert(equal(new Set([1, { a: 1 }]), new Set([{ a: 1 }, 1])));
  assertFalse(equal(new Set([{ a: 1 }]), new Set([{ a: 2 }])));
  assert(equal(new Map([[{ a: 1 }, 1]]), new Map([[{ a: 1 }, 1]])));
});

Deno.test("equal() ends on cycles", () => {
  const ring = (name: string): unknown => {
    const node: Record<string, unknown> = { name };
    node["self"] = node;
    return node;
  };
  assert(equal(ring("a"), ring("a")));
  assertFalse(equal(ring("a"), ring("b")));
});

Deno.test("every assertion passes on what it asserts", () => {
  assert(1);
  assertFalse(0);
  assertEquals({ a: [1] }, { a: [1] });
  assertNotEquals({ a: 1 }, { a: 2 });
  assertStrictEquals(NaN, NaN);
  assertNotStrictEquals({}, {});
  assertNotStrictEquals(0, -0);
  assertExists(0);
  assertInstanceOf(new RangeError(), Error);
  assertGreater(2, 1);
  assertGreaterOrEqual(2n, 2n);
  assertLess("a", "b");
  assertLessOrEqual(1, 1);
  assertAlmostEquals(1, 1 + 1e-8);
  assertAlmostEquals(1, 1.5, 0.5);
  assertAlmostEquals(Infinity, Infinity);
  assertStringIncludes("abc", "b");
  assertMatch("abc", /^a/);
  assertNotMatch("abc", /^b/);
  assertArrayIncludes([{ a: 1 }, NaN, 0], [NaN, { a: 1 }]);
  assertIsError(new RangeError("out"), Error, /^out$/);
});

Deno.test("every assertion fails on what it does not assert", () => {
  assertFails(() => assert("", "why"), "why");
  assertFails(() => assertFalse(1, "why"), "why");
  assertFails(() => assertEquals([1], [2], "why"), "why");
  assertFails(() => assertNotEquals([1], [1], "why"), "why");
  assertFails(() => assertStrictEquals({}, {}, "why"), "why");
  assertFails(() => assertStrictEquals(0, -0, "why"), "why");
  assertFails(() => assertNotStrictEquals(1, 1, "why"), "why");
  assertFails(() => assertExists(null, "why"), "why");
  assertFails(() => assertInstanceOf({}, Map, "why"), "why");
  assertFails(() => assertGreater(1, 1, "why"), "why");
  assertFails(() => assertGreaterOrEqual(1, 2, "why"), "why");
  assertFails(() => assertLess(1, 1, "why"), "why");
  assertFails(() => assertLessOrEqual(NaN, 1, "why"), "why");
  assertFails(() => assertAlmostEquals(1, 1.001, 1e-4, "why"), "why");
  assertFails(() => assertStringIncludes("abc", "d", "why"), "why");
  assertFails(() => assertMatch("abc", /d/, "why"), "why");
  assertFails(() => assertNotMatch("abc", /a/, "why"), "why");
  assertFails(() => assertArrayIncludes([1], [1, 2], "why"), "why");
  assertFails(() => assertIsError("no", Error, "", "why"), "why");
  assertFails(() => fail("why"), "why");
  assertFails(() => unreachable("why"), "why");
});

Deno.test("a failed assertEquals() shows both values", () => {
  const why = assertThrows(
    () => assertEquals({ port: 80 }, { port: 8080 }),
    AssertionError,
  );
  assertStringIncludes(why.message, "80");
  assertStringIncludes(why.message, "8080");
});

Deno.test("assertObjectMatch() looks only at what is expected", () => {
  const actual = { a: 1, deep: { b: 2, c: 3 }, list: [{ d: 4, e: 5 }] };
  assertObjectMatch(actual, { deep: { c: 3 }, list: [{ e: 5 }] });
  assertFails(() => assertObjectMatch(actual, { deep: { c: 4 } }));
  assertFails(() => assertObjectMatch(actual, { f: undefined }));
  assertObjectMatch({ m: new Map([[1, 2], [3, 4]]) }, { m: new Map([[3, 4]]) });
  assertFails(() =>
    assertObjectMatch({ s: new Set([1]) }, { s: new Set([2]) })
  );
});

Deno.test("assertThrows() returns the error that it asserts", () => {
  const error = new RangeError("out of range");
  const thrower = (): never => {
    throw error;
  };
  assertStrictEquals(assertThrows(thrower), error);
  assertStrictEquals(assertThrows(thrower, RangeError, "of range"), error);
  assertStrictEquals(assertThrows(thrower, Error), error);
  assertFails(() => assertThrows(thrower, TypeError));
  assertFails(() => assertThrows(thrower, RangeError, "in range"));
  assertFails(() => assertThrows(() => {}, "why"), "why");
  assertFails(() => assertThrows(() => {}, Error, "out", "why"), "why");
});

Deno.test("assertThrows() asks for an Error only if a class is given", () => {
  const thrower = (): never => {
    // deno-lint-ignore no-throw-literal
    throw "text";
  };
  assertStrictEquals(assertThrows(thrower), "text");
  assertFails(() => assertThrows(thrower, Error));
});

Deno.test("assertRejects() resolves to the error that it asserts", async () => {
  const error = new RangeError("out of range");
  const rejecter = (): Promise<never> => Promise.reject(error);
  assertStrictEquals(await assertRejects(rejecter), error);
  assertStrictEquals(await assertRejects(rejecter, RangeError, "out"), error);
  await assertRejects(() => assertRejects(rejecter, TypeError), AssertionError);
  await assertRejects(
    () => assertRejects(() => Promise.resolve(), "why"),
    AssertionError,
    "why",
  );
});

Deno.test("assertRejects() does not take throwing for rejecting", async () => {
  await assertRejects(
    () =>
      assertRejects(() => {
        throw new Error("at once");
      }),
    AssertionError,
  );
});

Deno.test("parseArgs() takes flags, their values and the rest apart", () => {
  assertEquals<unknown>(
    parseArgs(["--foo", "--bar=baz", "-n5", "x", "-v", "7"]),
    {
      foo: true,
      bar: "baz",
      n: 5,
      v: 7,
      _: ["x"],
    },
  );
});

Deno.test("parseArgs() gives flags the types that are declared", () => {
  const args: unknown = parseArgs(["--quick", "1", "--name", "2", "3"], {
    boolean: ["quick", "dry"],
    string: ["name", "path"],
  });
  assertEquals(args, { quick: true, dry: false, name: "2", _: [1, 3] });
  assertStrictEquals(parseArgs(["--name"], { string: "name" }).name, "");
});

Deno.test("parseArgs() keeps the last of repeated flags unless collected", () => {
  const args = ["--a=1", "--a=2", "--b=1", "--b=2"];
  assertEquals<unknown>(parseArgs(args, { collect: ["b"] }), {
    a: 2,
    b: [1, 2],
    _: [],
  });
  assertEquals(parseArgs([], { string: "b", collect: "b" }).b, []);
});

Deno.test("parseArgs() negates only what may be negated", () => {
  const args = parseArgs(["--no-a", "--no-b"], {
    boolean: ["a", "b"],
    negatable: ["a"],
    default: { a: true },
  });
  assertEquals<unknown>(args, { a: false, b: false, "no-b": true, _: [] });
});

Deno.test("parseArgs() knows aliases, defaults, and where flags end", () => {
  const args: unknown = parseArgs(["-t", "9", "--", "--raw"], {
    alias: { threads: "t" },
    default: { threads: 2, size: 10 },
    "--": true,
  });
  assertEquals(args, { t: 9, threads: 9, size: 10, _: [], "--": ["--raw"] });
  assertEquals(parseArgs(["a", "-b"], { stopEarly: true })._, ["a", "-b"]);
});

Deno.test("parseArgs() tells of what is unknown, and leaves out what it is told to", () => {
  const told: unknown[] = [];
  const options = {
    boolean: ["quick"] as const,
    string: ["only"] as const,
    alias: { help: "h" },
    negatable: ["dry"],
  };
  const args: unknown = parseArgs(
    ["--quick", "--only=1", "-h", "--size=2", "-v", "--no-dry", "x", "--", "y"],
    {
      ...options,
      unknown: (...unknown) => {
        told.push(unknown);
        return false;
      },
    },
  );
  assertEquals(args, { quick: true, only: "1", h: true, help: true, _: ["y"] });
  assertEquals(told, [
    ["--size=2", "size", "2"],
    ["-v", "v", true],
    ["--no-dry", "dry", false],
    ["x"],
  ]);
  const kept = parseArgs(["--size=2", "x"], { unknown: () => true });
  assertEquals<unknown>(kept, { size: 2, _: ["x"] });
});

/** Runs `use` with a bar, and returns the lines that it wrote. */
async function linesOf(
  options: Omit<ConstructorParameters<typeof ProgressBar>[0], "writable">,
  use: (bar: ProgressBar) => void,
): Promise<string> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const text = new Response(readable).text();
  const bar = new ProgressBar({ ...options, writable, keepOpen: false });
  use(bar);
  await bar.stop();
  return await text;
}

Deno.test("ProgressBar() shows time, bar and bytes, at first and at last", async () => {
  const lines = await linesOf({ max: 2048, barLength: 4 }, (bar) => {
    bar.value += 1024;
  });
  assertEquals(
    lines,
    "\r\x1b[K[00:00] [----] [0.00/2.00 KiB]" +
      "\r\x1b[K[00:00] [##--] [1.00/2.00 KiB]\n",
  );
});

Deno.test("ProgressBar() never leaves its bar, and takes larger units", async () => {
  const options = { max: 3 * 1024 ** 2, barLength: 2, fillChar: "=" };
  const lines = await linesOf(options, (bar) => {
    bar.value = 4 * 1024 ** 2;
  });
  assertStringIncludes(lines, "[==] [4.00/3.00 MiB]");
});

Deno.test("ProgressBar() takes a formatter and can remove its line", async () => {
  const lines = await linesOf({
    max: 10,
    value: 3,
    clear: true,
    formatter: ({ value, max }) => `${value} of ${max}`,
  }, () => {});
  assertEquals(lines, "\r\x1b[K3 of 10\r\x1b[K");
});

Deno.test("spy() records arguments, results and errors of calls", () => {
  const half = spy((value: number): number => {
    if (value % 2) throw new RangeError("odd");
    return value / 2;
  });
  assertEquals(half(4), 2);
  assertThrows(() => half(3), RangeError);
  assertSpyCalls(half, 2);
  assertEquals(half.calls[0]?.args, [4]);
  assertEquals(half.calls[0]?.returned, 2);
  assertInstanceOf(half.calls[1]?.error, RangeError);
  assertFails(() => assertSpyCalls(half, 1));
  assertThrows(() => half.restore(), MockError);
});

Deno.test("spy() on a method passes calls through until it is restored", () => {
  const counter = {
    count: 0,
    add(by: number): number {
      return this.count += by;
    },
  };
  const { add } = counter;
  {
    using added = spy(counter, "add");
    assertEquals(counter.add(2), 2);
    assertSpyCalls(added, 1);
    assertStrictEquals(added.calls[0]?.self, counter);
    assertFalse(added.restored);
  }
  assertStrictEquals(counter.add, add);
});

Deno.test("stub() replaces a method until it is restored", () => {
  const dice = { roll: (): number => Math.random() };
  const rolled = stub(dice, "roll", () => 6);
  assertEquals(dice.roll(), 6);
  rolled.restore();
  assertSpyCalls(rolled, 1);
  assertLess(dice.roll(), 1);
  assertThrows(() => rolled.restore(), MockError);
});

Deno.test("isReachable() wants every package, and waits only so long", async () => {
  const names = ["a", "b"];
  const never = Promise.withResolvers<void>().promise;
  assert(await isReachable(names, () => Promise.resolve(), 1000));
  assertFalse(
    await isReachable(
      names,
      (name) => name === "a" ? Promise.resolve() : Promise.reject(),
      1000,
    ),
  );
  assertFalse(await isReachable(names, () => never, 1));
});

Deno.test("the offline import map leaves npm packages as deno.json has them", () => {
  const others = (imports: Record<string, string>): [string, string][] =>
    Object.entries(imports).filter(([name]) => !name.startsWith("@std/"));
  assertEquals(others(offline.imports), others(config.imports));
});
