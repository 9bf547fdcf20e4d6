// What tells a microtask in the middle of synchronous code from one at the end of a turn: the stack.

import { assertEquals } from "@std/assert";
import { isInsideSynchronousCode } from "../src/readers/_turn.ts";

/** What it says where the frames under the microtask are these. */
function saysOf(...frames: string[]): boolean {
  const { prepareStackTrace } = Error as { prepareStackTrace?: unknown };
  const stack = [
    "Error",
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
