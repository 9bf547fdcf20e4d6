// What a thread does about its callbacks besides invoking them: in overload, in vain, for others.

import { assert, assertEquals, assertFalse } from "@std/assert";
import { stub } from "@std/testing/mock";
import { Rcu } from "../mod.ts";
import { GracePeriods } from "../src/grace_periods/_grace_periods.ts";
import { Inquest } from "../src/_inquest.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertLists } from "./_audit.ts";
import { OFFLOADED, setUp } from "./_turns.ts";

Deno.test("overload is waited for once per highWater further callbacks, longer each time, and anew after a time without", () => {
  using t = setUp({ highWater: 100 });
  const waits: unknown[] = [];
  using _waits = stub(
    GracePeriods.prototype,
    "wait",
    (...[, ms]: unknown[]) => {
      waits.push([t.callbacks.pending, ms]);
      return false;
    },
  );
  t.block();
  t.defer(448);
  // It is looked at after every 64th: 100, 228 and 356 have been passed by then.
  assertEquals(waits, [[128, 1], [256, 2], [384, 4]]);
  t.release();
  for (let i = 0; i < 3; i++) t.callbacks.processCallbacks();
  assertEquals(t.callbacks.pending, 0);
  t.defer(64);
  t.block();
  for (let i = 0; i < 3; i++) t.callbacks.processCallbacks();
  waits.length = 0;
  t.defer(192 - t.callbacks.pending);
  assertEquals(waits.map((wait) => (wait as number[])[1]), [1]);
  t.release();
});

Deno.test("a thread that waits turn after turn has it looked into who is in the way, every 32nd time", async () => {
  using t = setUp();
  let asked = 0;
  using _asked = stub(Inquest.prototype, "begin", () => void asked++);
  t.block();
  t.rcu.callRcu(() => {});
  const found: number[] = [];
  for (let turn = 1; turn <= 64; turn++) {
    assert(await t.turn());
    if (asked > found.length) found.push(turn);
  }
  assertEquals(found, [32, 64]);
  t.release();
  while (t.callbacks.pending > 0) assert(await t.turn());
  assertEquals(asked, 2);
});

Deno.test("the process lives as long as a closure waits, whatever else has been done", async () => {
  using t = setUp();
  const ran: number[] = [];
  t.block();
  t.defer(1);
  await undefined;
  assertFalse(t.isHeld(), "frees hold nobody up");
  const enqueue = (n: number): void =>
    t.rcu.callRcu(() => {
      ran.push(n);
      if (n < 5) enqueue(n + 1);
    });
  enqueue(1);
  assert(t.isHeld());
  t.release();
  while (ran.length < 5) {
    assertEquals(t.isHeld(), true, `${ran} have run`);
    assert(await t.turn());
  }
  t.defer(1);
  await undefined;
  assertFalse(t.isHeld());
});

Deno.test("what is not handed over waits for a period here: closures, blocks that were handed over before, all without a reclaimer", () => {
  for (const what of ["closures", "blocks that came back", "no reclaimer"]) {
    using t = setUp(OFFLOADED);
    const reclaimer = membershipOf(t.other, "test");
    t.block();
    if (what !== "no reclaimer") reclaimer.handover!.claim(reclaimer.owner);
    if (what === "closures") t.rcu.callRcu(() => {});
    else t.defer(64);
    if (what === "blocks that came back") {
      assertEquals(reclaimer.handover!.count, 64);
      t.callbacks.help(true);
    }
    t.callbacks.processCallbacks(true);
    assertEquals(reclaimer.handover!.count, 0, what);
    assertEquals(t.callbacks.waitsFor, 1, what);
    reclaimer.handover!.resign(reclaimer.owner);
    t.release();
    t.rcu.barrierSync();
  }
});

Deno.test("lists that a thread takes over stay whole when it passes them on, before blocks of its own or alone", () => {
  for (const own of [0, 3]) {
    using t = setUp(OFFLOADED);
    const reclaimer = membershipOf(t.other, "test");
    t.block();
    const leaver = Rcu.attach(t.rcu.handle);
    for (let i = 0; i < 5; i++) leaver.deferFree(leaver.memory.allocate(4));
    leaver.close();
    t.defer(own);
    t.callbacks.adopt();
    assertEquals(t.callbacks.pending, own + 5);
    reclaimer.handover!.claim(reclaimer.owner);
    t.callbacks.processCallbacks(true);
    assertEquals(
      [t.callbacks.pending, reclaimer.handover!.count],
      [0, own + 5],
    );
    assertLists(t.rcu.memory.words);
    reclaimer.callbacks.help(true);
    assertEquals(reclaimer.callbacks.pending, own + 5);
    reclaimer.handover!.resign(reclaimer.owner);
    t.release();
    for (let i = 0; i < 3; i++) reclaimer.callbacks.processCallbacks();
    assertEquals(t.rcu.memory.audit().deferred, 0);
  }
});

Deno.test("a reclaimer is doubted by who waits for it in vain, and by nobody else", () => {
  using t = setUp(OFFLOADED);
  const reclaimer = membershipOf(t.other, "test");
  let asked = 0;
  using _asked = stub(Inquest.prototype, "begin", () => void asked++);
  using _elsewhere = stub(Inquest.prototype, "beginElsewhere", () => {});
  t.callbacks.doubt();
  assertEquals(asked, 0);
  reclaimer.handover!.claim(reclaimer.owner);
  t.callbacks.doubt();
  assertEquals(asked, 0);
  let now = performance.now();
  using _now = stub(performance, "now", () => now);
  t.callbacks.doubt();
  now += 600_000;
  t.callbacks.doubt();
  assert(asked > 0);
  reclaimer.handover!.resign(reclaimer.owner);
});
