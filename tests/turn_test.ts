// What tells a microtask in the middle of synchronous code from one at the end of a turn: the stack.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { Rcu } from "../mod.ts";
import { isInsideSynchronousCode } from "../src/readers/_turn.ts";

/** What it says where the frames under the microtask are these. */
function saysOf(...frames: string[]): boolean {
  const { prepareStackTrace } = Error as { prepareStackTrace?: unknown };
  const stack = [
    "Error",
    "    at trace (file:///w.ts:1:1)",
    "    at isInsideSynchronousCode (file:///x.ts:1:1)",
    "    at Reader.#endOfTurn (file:///y.ts:1:1)",
    ...frames,
  ].join("\n");
  Object.assign(Error, { prepareStackTrace: () => stack });
  try {
    return isInsideSynchronousCode();
  } finally {
    Object.assign(Error, { prepareStackTrace });
  }
}

const USERS = "    at work (file:///user.ts:3:4)";

Deno.test("a frame of anybody's code under the microtask means that it is inside of it", () => {
  assertEquals(saysOf(USERS), true);
  assertEquals(saysOf("    at file:///user.ts:3:4"), true);
  assertEquals(saysOf("    at runMicrotasks (<anonymous>)", USERS), true);
  assertEquals(saysOf("    at https://example.com/async.ts:1:1"), true);
});

Deno.test("frames of the runtime, and those to which only an await leads back, mean that the turn is over", () => {
  assertEquals(saysOf(), false);
  assertEquals(saysOf(""), false);
  for (
    const frame of [
      "    at async work (file:///user.ts:3:4)",
      "at async work (file:///user.ts:3:4)",
      "    at ext:core/01_core.js:1:1",
      "    at runImmediates (ext:deno_node/timers.ts:1:1)",
      "    at node:timers:3:4",
      "    at deno:cli/js.js:1:1",
      "    at eventLoopTick (native code)",
      "    at runMicrotasks (<anonymous>)",
      "    at <anonymous>",
    ]
  ) {
    assertEquals(saysOf(frame), false, frame);
    assertEquals(saysOf(frame, USERS), true, frame);
  }
  // Those words in the middle of a frame say nothing.
  assertEquals(saysOf("    at f (<anonymous>) (file:///user.ts:3:4)"), true);
  assertEquals(saysOf("    at f at async g (file:///user.ts:3:4)"), true);
});

Deno.test("the limit of stack traces is what it was, and does not matter", () => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  try {
    const microtask = () => isInsideSynchronousCode();
    assertEquals(microtask(), true);
    assertEquals(Error.stackTraceLimit, 1);
  } finally {
    Error.stackTraceLimit = limit;
  }
});

/** Does something with an `Error` that has other properties. */
function withError(properties: PropertyDescriptorMap, act: () => void): void {
  const names = Object.keys(properties);
  const before = names.map((name) =>
    Object.getOwnPropertyDescriptor(Error, name)
  );
  Object.defineProperties(Error, properties);
  try {
    act();
  } finally {
    for (const [i, name] of names.entries()) {
      if (before[i] === undefined) Reflect.deleteProperty(Error, name);
      else Object.defineProperty(Error, name, before[i]);
    }
  }
}

/** What a program may have made of `Error`. */
const ODD_ERRORS: Record<string, PropertyDescriptorMap> = {
  "is frozen": { stackTraceLimit: { writable: false } },
  "returns call sites": {
    prepareStackTrace: {
      configurable: true,
      value: (_: unknown, sites: unknown) => sites,
    },
  },
  "returns nothing": {
    prepareStackTrace: { configurable: true, value: () => undefined },
  },
  "throws": {
    prepareStackTrace: {
      configurable: true,
      value: () => {
        throw new Error("prepareStackTrace throws");
      },
    },
  },
  "has no limit": { stackTraceLimit: { writable: true, value: undefined } },
};

for (const [what, properties] of Object.entries(ODD_ERRORS)) {
  Deno.test(`misuse is reported, and close() leaves the domain, where Error ${what}`, () => {
    using rcu = Rcu.create({ capacity: 2 ** 21, debug: true });
    const victim = Rcu.attach(rcu.handle);
    let message = "";
    withError(properties, () => {
      const block = victim.memory.allocate(4);
      victim.deferFree(victim.memory.allocate(4));
      victim.memory.free(block);
      // Not by assertThrows, which looks at stacks itself.
      try {
        victim.memory.free(block);
      } catch (error) {
        message = (error as Error).message;
      }
      isInsideSynchronousCode();
      victim.close();
    });
    assert(message.includes("is already free; this thread freed it"), message);
    if (what === "returns call sites") {
      assert(message.includes("turn_test.ts"), message);
    }
    assertEquals(rcu.stats().readers.length, 1);
    assertThrows(() => victim.read(() => {}), Error, "this thread closed it");
    rcu.barrierSync();
  });
}

Deno.test("call sites say as much as a stack does", () => {
  withError(ODD_ERRORS["returns call sites"], () => {
    const microtask = () => isInsideSynchronousCode();
    assertEquals(microtask(), true);
  });
});
