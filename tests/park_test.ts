import { assertEquals, assertThrows } from "@std/assert";
import { spy, stub } from "@std/testing/mock";

type Park = typeof import("../src/sync/_park.ts");

/** The module in a thread that has never slept. */
function fresh(): Promise<Park> {
  return import(`../src/sync/_park.ts?${crypto.randomUUID()}`);
}

/** Has each sleep end as it is told, and time go on by 1 ms whenever somebody looks. */
function underControl(sleep: () => "ok"): Disposable & {
  sleeps: unknown[][];
  looks(): number;
} {
  const sleeps: unknown[][] = [];
  let now = 0;
  const stubs = new DisposableStack();
  stubs.use(stub(Atomics, "wait", (...args: unknown[]) => {
    sleeps.push(args);
    return sleep();
  }));
  stubs.use(stub(performance, "now", () => now++));
  return {
    sleeps,
    looks: () => now,
    [Symbol.dispose]: () => stubs.dispose(),
  };
}

const words = new Int32Array(new SharedArrayBuffer(16));

Deno.test("a thread that may sleep does so until the word changes or the time is up", async () => {
  const { park } = await fresh();
  using control = underControl(() => "ok");
  park(words, 1, 0, 70);
  park(words, 2, 0, 5);
  assertEquals(control.sleeps, [[words, 1, 0, 70], [words, 2, 0, 5]]);
  assertEquals(control.looks(), 0, "it does nothing else");
});

Deno.test("a thread that must not sleep looks again and again instead, for as long, and never tries again", async () => {
  const { park } = await fresh();
  using control = underControl(() => {
    throw new TypeError("Atomics.wait cannot be called in this context");
  });
  using pauses = spy(Atomics, "pause");
  park(words, 0, 0, 50);
  assertEquals([control.sleeps.length, control.looks()], [1, 51]);
  assertEquals(pauses.calls.length, 49);
  park(words, 0, 0, 50);
  assertEquals([control.sleeps.length, control.looks()], [1, 102]);
  // The word has changed: one look at it, none at the time but for the end.
  park(words, 0, 1, 50);
  assertEquals([control.sleeps.length, control.looks()], [1, 103]);
});

Deno.test("an error of a sleep that is none of the thread's kind is nobody's permission to spin", async () => {
  const first = await fresh();
  {
    using control = underControl(() => {
      throw new RangeError("no such word");
    });
    assertThrows(() => first.park(words, 9, 0, 50), RangeError);
    assertEquals(control.looks(), 0);
  }
  const second = await fresh();
  let fails = false;
  using control = underControl(() => {
    if (fails) throw new TypeError("no such array");
    return "ok";
  });
  second.park(words, 0, 0, 50);
  fails = true;
  assertThrows(() => second.park(words, 0, 0, 50), TypeError, "no such array");
  assertEquals([control.sleeps.length, control.looks()], [2, 0]);
});
