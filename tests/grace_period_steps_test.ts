// Waiting for a grace period, step by step: how often it looks, how long it naps, and what it leaves behind.

import { assert, assertEquals, assertFalse } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import { isBehind } from "../src/grace_periods/_detector.ts";
import {
  CLASSIC,
  detectorWords,
  releaseMasks,
  SCAN,
} from "../src/grace_periods/_detectors.ts";
import { turn } from "../src/grace_periods/_grace_periods.ts";
import {
  firstBits,
  MaskNodes,
  nodeWords,
} from "../src/grace_periods/_mask_nodes.ts";
import { RcuStallError } from "../src/grace_periods/stall_report.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { isHeldBy, lockOwner, release } from "../src/sync/_mutex.ts";
import { VARIANTS, World } from "./_detector_world.ts";

/** A reader in the way, and a thread that waits for it. */
function setUp() {
  const world = new World(VARIANTS[0], 4);
  const [waiter, reader] = world.joinAll(2);
  reader.reader.enter();
  return { world, waiter, reader: reader.reader };
}

/** A clock that only sleeping moves, and the sleeps. */
function stubClock(whileAsleep: (sleeps: number) => void = () => {}) {
  const clock = { now: 1000, sleeps: [] as number[] };
  const stubs = new DisposableStack();
  stubs.use(stub(performance, "now", () => clock.now));
  stubs.use(stub(Atomics, "wait", (...sleep: unknown[]) => {
    const ms = sleep[3] as number;
    clock.sleeps.push(ms);
    clock.now += ms;
    whileAsleep(clock.sleeps.length);
    return "timed-out";
  }));
  return { clock, [Symbol.dispose]: () => stubs.dispose() };
}

Deno.test("the locks of masks that a dead thread has are given back, all of them and no others", () => {
  const [dead, other] = [lockOwner(2, 5), lockOwner(3, 1)];
  const base = 4 * LINE;
  const maxReaders = 8;
  for (const kind of [SCAN, CLASSIC, 2, 4]) {
    const end = base + detectorWords(kind, maxReaders);
    // Every word is the dead thread's, but for each other line's first.
    const words = new Int32Array(end + 4 * LINE).fill(dead);
    for (let at = 0; at < words.length; at += 2 * LINE) words[at] = other;
    const before = words.slice();
    releaseMasks(kind, words, base, maxReaders, dead);
    // A mask of one line is its own lock's.
    const last = kind === CLASSIC ? base + LINE + 1 : end;
    for (let at = 0; at < words.length; at++) {
      const isLock = kind !== SCAN && at >= base + LINE && at < last &&
        at % LINE === 0;
      const freed = isLock && before[at] === dead;
      assertEquals(words[at], freed ? 0 : before[at], `${kind}: word ${at}`);
    }
  }
});

Deno.test("a blocking wait looks 200 times before its first nap", () => {
  const { waiter, reader } = setUp();
  let pauses = 0;
  using _pause = stub(Atomics, "pause", () => {
    if (++pauses === 150) reader.exit(), reader.goOffline();
  });
  using stubbed = stubClock();
  assert(waiter.periods.wait(waiter.start(), 1000, false));
  assertEquals([pauses, stubbed.clock.sleeps], [150, []]);
});

Deno.test("a blocking wait naps longer and longer, 1 ms at most, and no longer than it has time", () => {
  const { waiter } = setUp();
  using pause = stub(Atomics, "pause", () => {});
  using stubbed = stubClock();
  const { clock } = stubbed;
  assertFalse(waiter.periods.wait(waiter.start(), 3, false));
  assertEquals(pause.calls.length, 200);
  assertEquals(clock.sleeps.slice(0, 7), [
    0.05,
    0.1,
    0.2,
    0.4,
    0.8,
    1,
    clock.sleeps[6],
  ]);
  assert(clock.sleeps[6] < 0.5);
  assertEquals([clock.sleeps.length, Math.round(clock.now)], [7, 1003]);
  clock.sleeps.length = 0;
  assertFalse(waiter.periods.wait(waiter.start(), 0, false));
  assertEquals(clock.sleeps, []);
});

Deno.test("an expedited wait naps as briefly every time, and ends with the section", () => {
  const { waiter, reader } = setUp();
  using stubbed = stubClock((sleeps) => {
    if (sleeps === 30) reader.exit(), reader.goOffline();
  });
  assert(waiter.periods.wait(waiter.start(), 1000, true));
  assertEquals(stubbed.clock.sleeps, Array(30).fill(0.05));
});

/** Has timers fire at once, and their times recorded. */
function stubTimers(onTimer: (timers: number) => void = () => {}) {
  const times: number[] = [];
  const { setTimeout } = globalThis;
  const stubbed = stub(
    globalThis,
    "setTimeout",
    ((task: () => void, ms = 0) => {
      times.push(ms);
      onTimer(times.length);
      return setTimeout(task, 0);
    }) as typeof setTimeout,
  );
  return { times, [Symbol.dispose]: () => stubbed[Symbol.dispose]() };
}

Deno.test("an asynchronous wait looks once the turn's microtasks are done, and then ever less often, every 10 ms at least", async () => {
  const { waiter, reader } = setUp();
  const cookie = waiter.start();
  {
    using timers = stubTimers((timers) => {
      if (timers === 15) reader.exit(), reader.goOffline();
    });
    assert(await waiter.periods.waitAsync(cookie, false, undefined));
    assertEquals(timers.times, [
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      8,
      9,
      ...Array(5).fill(10),
    ]);
  }
  // Done already: no turn of the event loop is waited for.
  using timers = stubTimers();
  assert(await waiter.periods.waitAsync(cookie, false, undefined));
  assertEquals(timers.times, []);
});

Deno.test("an asynchronous wait does not look before the microtask that takes its own thread offline", async () => {
  const world = new World(VARIANTS[0], 4);
  const [waiter, other] = world.joinAll(2);
  other.online();
  const wait = waiter.periods.waitAsync(waiter.start(), false, undefined);
  using timers = stubTimers();
  assert(await wait);
  assertEquals(timers.times, []);
});

Deno.test("an expedited asynchronous wait looks in every turn", async () => {
  const { waiter, reader } = setUp();
  using timers = stubTimers((timers) => {
    if (timers === 5) reader.exit(), reader.goOffline();
  });
  assert(await waiter.periods.waitAsync(waiter.start(), true, undefined));
  assertEquals(timers.times, [0, 0, 0, 0, 0]);
});

Deno.test("a signal ends an asynchronous wait, but not one whose period has ended", async () => {
  const { waiter, reader } = setUp();
  const controller = new AbortController();
  const { signal } = controller;
  const cookie = waiter.start();
  {
    using timers = stubTimers((timers) => timers === 3 && controller.abort());
    assertFalse(await waiter.periods.waitAsync(cookie, false, signal));
    assertEquals(timers.times, [0, 1, 2]);
    assertFalse(await waiter.periods.waitAsync(cookie, false, signal));
    assertEquals(timers.times, [0, 1, 2]);
  }
  reader.exit();
  reader.goOffline();
  assert(await waiter.periods.waitAsync(cookie, false, signal));
});

Deno.test("waiting for a turn leaves neither a timer nor a listener behind, however it ends", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  using adds = spy(signal, "addEventListener");
  using removes = spy(signal, "removeEventListener");
  using clears = spy(globalThis, "clearTimeout");
  await turn(1, undefined);
  await turn(1, signal);
  const listener = (call: { args: unknown[] }) => call.args;
  assertEquals(adds.calls.map(listener), removes.calls.map(listener));
  assertEquals([adds.calls.length, adds.calls[0].args[0]], [1, "abort"]);
  const before = clears.calls.length;
  const long = turn(1_000_000, signal);
  controller.abort();
  // The sanitizers would see the timer.
  await long;
  assertEquals(adds.calls.map(listener), removes.calls.map(listener));
  assert(clears.calls.length > before);
});

Deno.test("a period is begun for a batch only if none is in progress", () => {
  const { world, waiter } = setUp();
  waiter.periods.registerBatch();
  waiter.periods.registerBatch();
  assertEquals([world.sequence.started(), world.sequence.completed()], [1, 0]);
});

Deno.test("a period counts as forced lately if somebody has, in this very period, since one looked", () => {
  const { world: { sequence }, waiter, reader } = setUp();
  assertEquals([sequence.forced, sequence.expedited], [0, 0]);
  const cookie = waiter.start();
  assertFalse(sequence.wasForced(0));
  sequence.countForced();
  assert(sequence.wasForced(0));
  assertFalse(sequence.wasForced(1));
  reader.exit();
  reader.goOffline();
  assert(waiter.poll(cookie));
  // In progress or ended, it is the latest.
  assert(sequence.wasForced(0));
  waiter.start();
  assertFalse(sequence.wasForced(0));
  sequence.countExpedited();
  sequence.countExpedited();
  assertEquals([sequence.forced, sequence.expedited], [1, 2]);
});

Deno.test("a slot holds a period up if its thread is online and has announced an older sequence, across the turn of the word", () => {
  const most = 2 ** 31 - 1;
  const cases: [announced: number, sequence: number, behind: boolean][] = [
    [0, 3, false],
    [1, 3, true],
    [3, 3, false],
    [5, 3, false],
    [most, -most, true],
    [-most, most, false],
    [-1, 1, true],
    [1, -1, false],
  ];
  for (const [announced, sequence, behind] of cases) {
    assertEquals(isBehind(announced, sequence), behind, `${announced}`);
  }
});

Deno.test("a stall's error has a name, its report and its cause", () => {
  const report = { age: 1, readers: [], pending: 0 };
  const error = new RcuStallError("why", report, { cause: "cause" });
  assertEquals(
    [error.name, error.message, error.report, error.cause],
    ["RcuStallError", "why", report, "cause"],
  );
});

Deno.test("detectors take whole lines: one for what all share, and some for each node", () => {
  assertEquals([1, 31, 32, 33, 600].map((n) => firstBits(n) | 0), [
    1,
    2 ** 31 - 1,
    -1,
    -1,
    -1,
  ]);
  // The lock, the sequence, and a bit a child.
  assertEquals([1, 32, 448, 449].map(nodeWords), [LINE, LINE, LINE, 2 * LINE]);
  assertEquals(detectorWords(SCAN, 4096), 0);
  assertEquals(detectorWords(CLASSIC, 64), 2 * LINE);
  assertEquals(detectorWords(CLASSIC, 4096), LINE + nodeWords(4096));
  assertEquals(detectorWords(16, 16), LINE + LINE);
  assertEquals(detectorWords(16, 17), LINE + 3 * LINE);
  assertEquals(detectorWords(2, 5), LINE + (3 + 2 + 1) * LINE);
  assertEquals(detectorWords(32, 4096), LINE + (128 + 4 + 1) * LINE);
});

Deno.test("a node knows of its children what was reported for this very period, and nothing while it is locked", () => {
  const { words, sequence } = new World(VARIANTS[0], 4);
  const [me, other] = [lockOwner(0, 1), lockOwner(1, 1)];
  const children = 70;
  const shared = new Int32Array(new SharedArrayBuffer(words.byteLength));
  shared.set(words);
  const node = shared.length - nodeWords(children);
  const nodes = new MaskNodes(words, sequence, me, children);
  const now = sequence.current();
  words.fill(-1, node + 2, node + 5);
  // What was there is about no period.
  assertFalse(nodes.report(node, 1, 0b101, now, children));
  assertEquals([0, 1, 2].map((word) => nodes.known(node, word, now)), [
    0,
    5,
    0,
  ]);
  assertFalse(nodes.report(node, 1, 0b10, now, children));
  assertEquals([words[node], words[node + 1]], [0, now]);
  assertEquals(nodes.known(node, 1, now), 7);
  assertEquals(nodes.known(node, 1, now + 2), 0);
  // A report about another period than the one in progress changes nothing.
  assertFalse(nodes.report(node, 0, -1, now - 2, children));
  assertEquals([nodes.known(node, 0, now), words[node]], [0, 0]);
  // Somebody else's lock is not waited for, nor taken away.
  words[node] = other;
  assertEquals(nodes.known(node, 1, now), 0);
  assertFalse(nodes.report(node, 0, -1, now, children));
  assert(isHeldBy(words, node, other));
  release(words, node);
  assertEquals(nodes.known(node, 0, now), 0);
  // One's own was left behind by an exception.
  words[node] = me;
  assertFalse(nodes.report(node, 0, -1, now, children));
  assertEquals([words[node], nodes.known(node, 0, now)], [0, -1]);
  // All of them: 32, 32 and 6.
  assertFalse(nodes.report(node, 1, -1, now, children));
  assertFalse(nodes.report(node, 2, 0b11111, now, children));
  assert(nodes.report(node, 2, 0b100000, now, children));
  assert(nodes.report(node, 2, 0, now, children));
  assertFalse(nodes.report(node, 2, 0, now, children + 1));
});
