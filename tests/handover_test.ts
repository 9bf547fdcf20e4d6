// What clients and the reclaimer know of each other: claims, beats, wishes and sleeps.

import { assert, assertEquals, assertFalse } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import { Rcu } from "../mod.ts";
import {
  BEAT_INTERVAL,
  Handover,
  SILENCE,
} from "../src/callbacks/_handover.ts";
import { membershipOf } from "../src/rcu.ts";

/** A client and a reclaimer, both on this thread, and a clock that stands still. */
function setUp() {
  const clock = { now: 1_000_000 };
  const stubs = new DisposableStack();
  stubs.use(stub(performance, "now", () => clock.now));
  const rcu = stubs.use(Rcu.create({
    capacity: 2 ** 21,
    maxReaders: 4,
    callbacks: { mode: "offloaded" },
    reclaimer: "none",
  }));
  const client = membershipOf(rcu, "test");
  const other = stubs.use(Rcu.attach(rcu.handle));
  const reclaimer = membershipOf(other, "test");
  return {
    rcu,
    clock,
    owner: reclaimer.owner,
    index: reclaimer.index,
    client: client.handover!,
    reclaimer: reclaimer.handover!,
    [Symbol.dispose]: () => stubs.dispose(),
  };
}

/** Where the words of the stack are, found by what moves when the heart beats. */
function baseOf({ rcu, reclaimer }: ReturnType<typeof setUp>): number {
  const before = rcu.memory.words.slice(0, 4096);
  reclaimer.beat();
  const beat = before.findIndex((word, at) => word !== rcu.memory.words[at]);
  return beat - 16;
}

Deno.test("one thread at a time is the reclaimer, and everybody knows which", () => {
  using t = setUp();
  const base = baseOf(t);
  const { words } = t.rcu.memory;
  assertEquals([t.client.holder, t.client.reclaimer], [0, -1]);
  assertFalse(Handover.hasReclaimer(words, base));
  assert(t.reclaimer.claim(t.owner));
  assertEquals([t.client.holder, t.client.reclaimer], [t.owner, t.index]);
  assert(Handover.hasReclaimer(words, base));
  assertFalse(t.client.claim(7));
  // Only its own claim can be given back.
  t.client.resign(7);
  assertEquals(t.client.holder, t.owner);
  t.reclaimer.announceSleep();
  t.reclaimer.resign(t.owner);
  assertEquals([t.client.holder, t.client.isAwaited], [0, false]);
});

Deno.test("who claims shows a sign of life first, each beat is another one", () => {
  using t = setUp();
  const base = baseOf(t);
  const { words } = t.rcu.memory;
  const beats = () => Handover.beatOf(words, base);
  const before = beats();
  t.reclaimer.claim(t.owner);
  assertEquals(beats(), before + 1);
  t.reclaimer.beat();
  assertEquals(beats(), before + 2);
  t.reclaimer.resign(t.owner);
});

Deno.test("a reclaimer lives until its heart has been silent for longer than is allowed", () => {
  using t = setUp();
  assertFalse(t.client.alive);
  t.reclaimer.claim(t.owner);
  t.clock.now += 10 * SILENCE;
  // The beat of the claim is heard now.
  assert(t.client.alive);
  t.clock.now += SILENCE;
  assert(t.client.alive);
  t.clock.now++;
  assertFalse(t.client.alive);
  t.reclaimer.beat();
  assert(t.client.alive);
  t.clock.now += SILENCE;
  assert(t.client.alive);
  t.reclaimer.resign(t.owner);
  assertFalse(t.client.alive);
});

Deno.test("a silent reclaimer is doubted now and then, one that lives or has gone never", () => {
  using t = setUp();
  assertFalse(t.client.isDoubtful);
  t.reclaimer.claim(t.owner);
  assertFalse(t.client.isDoubtful);
  t.clock.now += SILENCE + 1;
  assert(t.client.isDoubtful);
  assertFalse(t.client.isDoubtful);
  t.clock.now += SILENCE / 10 - 1;
  assertFalse(t.client.isDoubtful);
  t.clock.now++;
  assert(t.client.isDoubtful);
  t.reclaimer.beat();
  t.clock.now += SILENCE;
  assertFalse(t.client.isDoubtful);
  t.clock.now += SILENCE + 1;
  t.reclaimer.resign(t.owner);
  assertFalse(t.client.isDoubtful);
});

Deno.test("who sleeps, or wishes to be told, is notified once, and nobody else", async () => {
  using t = setUp();
  using notify = spy(Atomics, "notify");
  t.client.wake();
  t.client.want();
  assertEquals(notify.calls.length, 0);
  t.reclaimer.announceSleep();
  assert(t.client.isAwaited);
  t.client.wake();
  t.client.wake();
  assertEquals([notify.calls.length, t.client.isAwaited], [1, false]);
  const wanted = t.reclaimer.wanted(10_000);
  t.client.want();
  t.client.want();
  assertEquals([await wanted, notify.calls.length], [true, 2]);
  // Both wait on words of their own.
  const [sleep, wish] = notify.calls.map(({ args }) => args[1]);
  assert(sleep !== wish);
});

Deno.test("a wish that nobody has is not granted", async () => {
  using t = setUp();
  const alive = setTimeout(() => {}, 10_000);
  assertFalse(await t.reclaimer.wanted(1));
  clearTimeout(alive);
});

Deno.test("a reclaimer may sleep only if there is nothing to take, and says so before it looks", () => {
  using t = setUp();
  t.reclaimer.claim(t.owner);
  assert(t.reclaimer.prepareToSleep());
  assert(t.client.isAwaited);
  t.reclaimer.cancelSleep();
  assertFalse(t.client.isAwaited);
  for (let i = 0; i < 64; i++) t.rcu.deferFree(t.rcu.memory.allocate(4));
  assertEquals(t.client.count, 64);
  assertFalse(t.reclaimer.prepareToSleep());
  assertFalse(t.client.isAwaited);
  t.reclaimer.resign(t.owner);
});

Deno.test("a sleep ends when it is over, or when somebody wakes the reclaimer, and keeps the event loop alive for longer", async () => {
  using t = setUp();
  const sets = spy(globalThis, "setTimeout");
  const clears = spy(globalThis, "clearTimeout");
  try {
    t.reclaimer.announceSleep();
    await t.reclaimer.sleep(5);
    assertFalse(t.client.isAwaited);
    assertEquals([sets.calls[0].args[1], sets.calls.length], [10, 1]);
    // The sanitizers would see a timer that is left.
    assertEquals(clears.calls.length, 1);
    t.reclaimer.announceSleep();
    const sleep = t.reclaimer.sleep(1_000_000);
    t.client.wake();
    await sleep;
    assertFalse(t.client.isAwaited);
    // Woken before it began: it does not sleep at all.
    const before = sets.calls.length;
    await t.reclaimer.sleep(1_000_000);
    assertEquals(sets.calls.length, before);
  } finally {
    sets.restore();
    clears.restore();
  }
  assert(2 * BEAT_INTERVAL < SILENCE);
});
