// When a thread looks at its callbacks: every 64 enqueueings, and in turns of the event loop ever further apart.

import { assert, assertEquals, assertFalse } from "@std/assert";
import { spy } from "@std/testing/mock";
import { Rcu } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertLists } from "./_audit.ts";
import { OFFLOADED, setUp } from "./_turns.ts";

Deno.test("a thread whose callbacks wait looks at them ever less often, every 10 ms at least, and at once after a new one", async () => {
  using t = setUp();
  t.block();
  let ran = 0;
  t.rcu.callRcu(() => ran++);
  for (let i = 0; i < 13; i++) assert(await t.turn());
  assertEquals(t.times, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]);
  t.rcu.callRcu(() => ran++);
  assert(await t.turn());
  assertEquals(t.times.slice(14), [1]);
  assert(await t.turn());
  assertEquals(t.times.slice(14), [1, 2]);
  t.release();
  assertEquals(ran, 0);
  while (ran < 2) assert(await t.turn());
  // Nothing waits: nothing is set.
  const { length } = t.times;
  assertFalse(await t.turn());
  assertFalse(await t.turn());
  assertEquals(t.times.length, length);
  t.rcu.callRcu(() => ran++);
  await undefined;
  assertEquals(t.times.slice(length), [0]);
  while (ran < 3) assert(await t.turn());
});

Deno.test("a turn takes over what threads that left had deferred", async () => {
  using t = setUp();
  t.block();
  const leaver = Rcu.attach(t.rcu.handle);
  for (let i = 0; i < 5; i++) leaver.deferFree(leaver.memory.allocate(4));
  leaver.close();
  assertEquals(t.callbacks.pending, 0);
  t.defer(1);
  await t.turn();
  assertEquals(t.callbacks.pending, 6);
  t.release();
  while (t.callbacks.pending > 0) assert(await t.turn());
  assertEquals(t.rcu.memory.audit().deferred, 0);
});

Deno.test("an update looks at the callbacks after every 64th, and at nothing that others write before", () => {
  using t = setUp();
  const { sequence, counters, index } = membershipOf(t.rcu, "test");
  t.block();
  t.defer(63);
  assertEquals([sequence.started(), t.callbacks.waitsFor], [0, undefined]);
  t.defer(1);
  assertEquals([sequence.started(), t.callbacks.waitsFor], [1, 1]);
  assertEquals([t.callbacks.pending, t.callbacks.frees], [64, 64]);
  t.rcu.callRcu(() => {});
  assertEquals([t.callbacks.pending, t.callbacks.frees], [65, 64]);
  t.defer(62);
  t.release();
  // The period could end by now, but nobody has looked.
  assertEquals([sequence.completed(), t.callbacks.pending], [0, 127]);
  t.defer(1);
  assert(sequence.completed() > 0);
  assert(t.callbacks.pending <= 64);
  t.rcu.barrierSync();
  // As large as it was when it was looked at.
  assertEquals(counters.peak(index), 128);
});

Deno.test("callbacks are in two segments at most that have a cookie, and what comes later waits for the first to be done", () => {
  using t = setUp();
  const { words } = t.rcu.memory;
  const line = membershipOf(t.rcu, "test").counters.line(0);
  const lists = () => [0, 1, 2].map((list) => words[line + list] !== 0);
  t.block();
  t.defer(1);
  assertEquals(lists(), [true, false, false]);
  t.callbacks.processCallbacks();
  assertEquals(lists(), [false, false, true]);
  t.defer(1);
  t.callbacks.processCallbacks();
  assertEquals(lists(), [false, true, true]);
  t.defer(1);
  t.callbacks.processCallbacks();
  assertEquals(lists(), [true, true, true]);
  assertEquals(t.callbacks.waitsFor, 1);
  t.release();
  // Two segments a call, or a callback that enqueues itself would go on for ever.
  t.callbacks.processCallbacks();
  assertEquals(lists(), [false, false, true]);
  t.callbacks.processCallbacks();
  assertEquals([lists(), t.callbacks.waitsFor], [
    [false, false, false],
    undefined,
  ]);
  assertLists(words);
});

Deno.test("with a reclaimer, blocks are handed over after every 64th and it is woken; closures stay", () => {
  using t = setUp(OFFLOADED);
  const reclaimer = membershipOf(t.other, "test");
  const handover = membershipOf(t.rcu, "test").handover!;
  reclaimer.handover!.claim(reclaimer.owner);
  reclaimer.handover!.announceSleep();
  let ran = 0;
  t.rcu.callRcu(() => ran++);
  t.defer(62);
  assertEquals([handover.count, handover.isAwaited], [0, true]);
  t.defer(1);
  assertEquals([handover.count, handover.isAwaited], [63, false]);
  assertEquals([t.callbacks.pending <= 1, t.callbacks.frees], [true, 0]);
  assertEquals(t.callbacks.backlog, t.callbacks.pending + 63);
  // Only what there is: nothing more is handed over, nobody woken.
  reclaimer.handover!.announceSleep();
  t.callbacks.processCallbacks(true);
  assertEquals([handover.count, handover.isAwaited], [63, true]);
  reclaimer.callbacks.help(true);
  assertEquals([handover.count, reclaimer.callbacks.pending], [0, 63]);
  // What it has taken is still part of what this thread has to mind.
  assertEquals(t.callbacks.backlog, t.callbacks.pending + 63);
  reclaimer.handover!.resign(reclaimer.owner);
  assertEquals(t.callbacks.backlog, t.callbacks.pending);
  t.other.barrierSync();
  t.rcu.barrierSync();
  assertEquals([ran, t.rcu.memory.audit().deferred], [1, 0]);
});

Deno.test("a thread does not hand over what a reclaimer cannot keep up with", () => {
  using t = setUp(OFFLOADED);
  const reclaimer = membershipOf(t.other, "test");
  const handover = membershipOf(t.rcu, "test").handover!;
  t.block();
  reclaimer.handover!.claim(reclaimer.owner);
  t.defer(192);
  assertEquals([handover.count, t.callbacks.pending], [192, 0]);
  t.defer(8);
  t.callbacks.processCallbacks(true);
  assertEquals([handover.count, t.callbacks.pending], [192, 8]);
  reclaimer.callbacks.help(true);
  t.callbacks.processCallbacks(true);
  assertEquals([handover.count, reclaimer.callbacks.pending], [0, 192]);
  reclaimer.handover!.resign(reclaimer.owner);
  t.release();
  // Both are this thread: each does its own.
  for (let i = 0; i < 3; i++) {
    reclaimer.callbacks.processCallbacks();
    t.callbacks.processCallbacks();
  }
  assertEquals(t.rcu.memory.audit().deferred, 0);
});

Deno.test("without a reclaimer one is wanted where it is worth a thread, and the thread reclaims for itself", async () => {
  using t = setUp(OFFLOADED);
  const { handover } = membershipOf(t.other, "test");
  // A wish does not keep the event loop alive.
  const alive = setInterval(() => {}, 1000);
  const wanted = handover!.wanted(60_000);
  t.defer(63);
  t.callbacks.processCallbacks(true);
  using notify = spy(Atomics, "notify");
  t.defer(63);
  t.callbacks.processCallbacks(true);
  // A few frees are no reason.
  assertEquals(notify.calls.length, 0);
  t.defer(64);
  assertEquals([notify.calls.length, handover!.count], [1, 0]);
  assertEquals(await wanted, true);
  clearInterval(alive);
  t.rcu.barrierSync();
  assertEquals(t.rcu.memory.audit().deferred, 0);
});

Deno.test("a thread that leaves hands over to a reclaimer that lives, and reclaims for itself otherwise", () => {
  for (const lives of [false, true]) {
    using t = setUp(OFFLOADED);
    const reclaimer = membershipOf(t.other, "test");
    if (lives) reclaimer.handover!.claim(reclaimer.owner);
    const leaver = Rcu.attach(t.rcu.handle);
    for (let i = 0; i < 5; i++) leaver.deferFree(leaver.memory.allocate(4));
    leaver.close();
    assertEquals(reclaimer.handover!.count, lives ? 5 : 0);
    assertEquals(t.rcu.memory.audit().deferred > 0, lives);
    reclaimer.handover!.resign(reclaimer.owner);
    t.rcu.barrierSync();
    assertEquals(t.rcu.memory.audit().deferred, 0);
  }
});

Deno.test("what a thread leaves when it goes is the orphans', each block once, from all its segments", () => {
  using t = setUp();
  const { orphans, words } = membershipOf(t.rcu, "test");
  t.block();
  const leaver = Rcu.attach(t.rcu.handle);
  const { callbacks } = membershipOf(leaver, "test");
  let ran = 0;
  for (const count of [3, 4, 5]) {
    for (let i = 0; i < count; i++) leaver.deferFree(leaver.memory.allocate(4));
    leaver.callRcu(() => ran++);
    callbacks.processCallbacks();
  }
  const { departures } = orphans;
  assertEquals([orphans.count, callbacks.frees], [0, 12]);
  leaver.close();
  assertEquals([orphans.count, callbacks.frees, callbacks.pending], [12, 0, 3]);
  assert(orphans.departures > departures);
  assertLists(words);
  // It has left: it takes over nothing any more.
  callbacks.adopt();
  callbacks.help(true);
  assertEquals([orphans.count, callbacks.pending], [12, 3]);
  t.release();
  for (let i = 0; i < 4; i++) callbacks.processCallbacks();
  assertEquals([ran, callbacks.pending], [3, 0]);
  t.rcu.barrierSync();
  assertEquals([orphans.count, t.rcu.memory.audit().deferred], [0, 0]);
});
