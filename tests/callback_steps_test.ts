// The parts of a thread's callbacks by themselves: closures, the timer, the throttle, segments, counters.

import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import { Closures } from "../src/callbacks/_closures.ts";
import {
  CALLBACK_WORDS,
  CallbackCounters,
  ENQUEUED,
  HANDED,
  INVOKED,
  LATER,
  NEXT,
  PEAK,
  WAIT,
} from "../src/callbacks/_counters.ts";
import { emptySegment, leftIn } from "../src/callbacks/_segment.ts";
import { Throttle, UNLIMITED } from "../src/callbacks/_throttle.ts";
import { Timer } from "../src/callbacks/_timer.ts";
import type { GracePeriodCookie } from "../src/grace_periods/cookie.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { until } from "./_workers.ts";

// Closures

/** Closures that keep a log, with what they threw and how many they say have been done. */
function setUp() {
  const log: unknown[] = [];
  const errors: unknown[] = [];
  const done: number[] = [];
  const closures = new Closures(
    (error) => errors.push(error),
    (count) => done.push(count),
  );
  const logging = (...names: unknown[]) =>
    names.map((name) => () => void log.push(name));
  return { log, errors, done, closures, logging };
}

Deno.test("closures run in their order, those between two bounds alone, and are counted once", () => {
  const { log, done, closures, logging } = setUp();
  closures.run(logging(0, 1, 2, 3, 4), 1, 4);
  assertEquals([log, done], [[1, 2, 3], [3]]);
  assertEquals([closures.running, closures.waiting], [false, false]);
});

Deno.test("closures that become ready in the middle of one queue up behind, and are counted with it", () => {
  const { log, done, closures, logging } = setUp();
  const [last] = logging("last");
  closures.run(
    [
      () => {
        log.push("first", closures.running, closures.waiting);
        closures.run(logging("inside"), 0, 1);
        assertEquals(done, []);
        log.push("end of first");
      },
      last,
    ],
    0,
    2,
  );
  assertEquals(log, ["first", true, false, "end of first", "last", "inside"]);
  assertEquals([done, closures.running], [[3], false]);
});

Deno.test("what a closure throws, at once or later, is reported, and the others run", async () => {
  const { log, errors, done, closures, logging } = setUp();
  const [last] = logging("last");
  const [atOnce, later] = [new Error("at once"), new Error("later")];
  closures.run(
    [
      () => {
        throw atOnce;
      },
      () => Promise.reject(later),
      () => Promise.resolve("fine"),
      last,
    ],
    0,
    4,
  );
  assertEquals([log, errors, done], [["last"], [atOnce], [4]]);
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(errors, [atOnce, later]);
});

Deno.test("where an error cannot be reported, the closures that are left wait for the next call", () => {
  const log: unknown[] = [];
  const done: number[] = [];
  const closures = new Closures((error) => {
    throw error;
  }, (count) => done.push(count));
  const act = (name: string) => () => void log.push(name);
  const list = [
    act("a"),
    () => {
      throw new Error("mine");
    },
    act("b"),
    act("c"),
  ];
  assertThrows(() => closures.run(list, 0, 4), Error, "mine");
  assertEquals([log, done], [["a"], [2]]);
  assertEquals([closures.waiting, closures.running], [true, false]);
  closures.run([act("d")], 0, 1);
  assertEquals([log, done], [["a", "b", "c", "d"], [2, 3]]);
  assertEquals(closures.waiting, false);
});

// The timer

const macrotask = () => new Promise<void>((resolve) => setTimeout(resolve, 5));

Deno.test("a timer that is started is set by a microtask, fires once, and can be started again by its task", async () => {
  const timer = new Timer();
  let fired = 0;
  const task = () => {
    assertFalse(timer.armed);
    if (++fired === 1) timer.start(task, 0);
  };
  using sets = spy(globalThis, "setTimeout");
  timer.start(task, 0);
  assertEquals([timer.armed, sets.calls.length], [true, 0]);
  await undefined;
  assertEquals([timer.armed, sets.calls.length], [true, 1]);
  await until("both have fired", () => fired === 2);
  assertEquals(timer.armed, false);
});

Deno.test("a timer that runs is not started again, whether it is set by now or not", async () => {
  const timer = new Timer();
  const fired: string[] = [];
  timer.start(() => fired.push("first"), 0);
  timer.start(() => fired.push("second"), 0);
  await undefined;
  timer.start(() => fired.push("third"), 0);
  await until("one has fired", () => fired.length > 0);
  await macrotask();
  assertEquals(fired, ["first"]);
});

Deno.test("a timer that is stopped does not fire, whether it is set by now or not, and may be started anew", async () => {
  const timer = new Timer();
  const fired: string[] = [];
  using microtasks = spy(globalThis, "queueMicrotask");
  timer.start(() => fired.push("stopped at once"), 0);
  timer.stop();
  assertFalse(timer.armed);
  timer.start(() => fired.push("started anew"), 0);
  // One microtask does.
  assertEquals(microtasks.calls.length, 1);
  await undefined;
  timer.stop();
  assertFalse(timer.armed);
  timer.start(() => fired.push("last"), 0);
  assertEquals(microtasks.calls.length, 2);
  await until("one has fired", () => fired.length > 0);
  await macrotask();
  assertEquals([fired, timer.armed], [["last"], false]);
});

Deno.test("a timer waits as long as it was told to", async () => {
  const timer = new Timer();
  using sets = spy(globalThis, "setTimeout");
  timer.start(() => {}, 1234);
  await undefined;
  assertEquals(sets.calls[0].args[1], 1234);
  timer.stop();
});

/** Has timers be what a runtime makes them, and tells what is asked of them. */
function stubTimers(kind: "numbers" | "objects") {
  const log: string[] = [];
  const stubs = new DisposableStack();
  const timer = kind === "numbers"
    ? 7
    : { ref: () => log.push("ref"), unref: () => log.push("unref") };
  stubs.use(stub(globalThis, "setTimeout", (() => timer) as never));
  stubs.use(stub(globalThis, "clearTimeout", () => {}));
  const note = (what: string) => (id: unknown) => {
    assertEquals(id, 7);
    log.push(what);
  };
  stubs.use(stub(Deno, "refTimer", note("ref")));
  stubs.use(stub(Deno, "unrefTimer", note("unref")));
  return { log, [Symbol.dispose]: () => stubs.dispose() };
}

for (const kind of ["numbers", "objects"] as const) {
  Deno.test(`a timer holds the process while it is told to, whether it is set by now or not, where timers are ${kind}`, async () => {
    using stubbed = stubTimers(kind);
    const { log } = stubbed;
    const timer = new Timer();
    // Nothing runs: nothing to hold.
    timer.keepAlive(true);
    timer.keepAlive(false);
    timer.start(() => {}, 1000);
    timer.keepAlive(false);
    assertEquals(log, []);
    await undefined;
    assertEquals(log, ["unref"]);
    timer.keepAlive(false);
    assertEquals(log, ["unref"]);
    timer.keepAlive(true);
    timer.keepAlive(true);
    assertEquals(log, ["unref", "ref"]);
    timer.keepAlive(false);
    assertEquals(log, ["unref", "ref", "unref"]);
    timer.stop();
    timer.keepAlive(true);
    timer.start(() => {}, 1000);
    await undefined;
    // It holds the process anyway.
    assertEquals(log, ["unref", "ref", "unref"]);
    timer.stop();
  });
}

// The throttle

Deno.test("a batch is what may be done until the next turn, and no more", () => {
  const throttle = new Throttle(10, 3, 100);
  assertEquals([throttle.allowance, throttle.plugTicks], [10, 3]);
  throttle.spend(4);
  assertEquals(throttle.allowance, 6);
  throttle.spend(7);
  assertEquals(throttle.allowance, 0);
  throttle.replenish();
  assertEquals(throttle.allowance, 10);
});

Deno.test("from highWater on there is no limit, until a hundredth of it is left", () => {
  const throttle = new Throttle(10, 0, 1000);
  for (
    const [pending, allowance] of [
      [999, 10],
      [1000, UNLIMITED],
      [999, UNLIMITED],
      [11, UNLIMITED],
      [10, 10],
      [999, 10],
      [5000, UNLIMITED],
      [0, 10],
    ]
  ) {
    throttle.watch(pending);
    assertEquals(throttle.allowance, allowance, `${pending} wait`);
  }
  throttle.watch(1000);
  throttle.spend(500);
  throttle.watch(0);
  assertEquals(throttle.allowance, 0);
});

// Segments and counters

Deno.test("what is left in a segment are its frees, and the closures that have not been run", () => {
  const segment = emptySegment(7);
  assertEquals([segment.head, segment.cookie, leftIn(segment)], [
    7,
    undefined,
    0,
  ]);
  assertEquals(segment.closures, []);
  Object.assign(segment, {
    cookie: 1 as GracePeriodCookie,
    frees: 5,
    closures: [() => {}, () => {}, () => {}],
    done: 1,
  });
  assertEquals(leftIn(segment), 7);
});

Deno.test("a line has words of its own for each list and each counter, and counts beyond the word's turn", () => {
  const names = [NEXT, LATER, WAIT, ENQUEUED, INVOKED, PEAK, HANDED];
  assertEquals(new Set(names).size, 7);
  assert(names.every((name) => name >= 0 && name < CALLBACK_WORDS));
  assertEquals(CALLBACK_WORDS % LINE, 0);
  const words = new Int32Array(new SharedArrayBuffer(4 * 8 * CALLBACK_WORDS));
  const counters = new CallbackCounters(words, 2 * CALLBACK_WORDS);
  for (const reader of [0, 3]) {
    const line = counters.line(reader);
    assertEquals(line, (2 + reader) * CALLBACK_WORDS);
    words[line + ENQUEUED] = -(2 ** 31) + 5;
    words[line + INVOKED] = 2 ** 31 - 8;
    words[line + HANDED] = 3;
    words[line + PEAK] = 4;
    assertEquals(counters.enqueued(reader), -(2 ** 31) + 5);
    assertEquals(counters.invoked(reader), 2 ** 31 - 8);
    assertEquals(counters.handed(reader), 3);
    assertEquals(counters.done(reader), 2 ** 31 - 5);
    assertEquals(counters.pending(reader), 10);
    assertEquals(counters.peak(reader), 10);
    words[line + PEAK] = 40;
    assertEquals(counters.peak(reader), 40);
    words[line + HANDED] = 8;
    assertEquals([counters.done(reader), counters.pending(reader)], [
      -(2 ** 31),
      5,
    ]);
  }
});
