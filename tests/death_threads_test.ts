// What becomes of a domain when real threads die.

import { assert, assertEquals } from "@std/assert";
import { Rcu, RcuCell, type ReaderLostEvent, u32 } from "../mod.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { BEGUN, DONE, DYING, startMortal, untilAlone } from "./_mortals.ts";
import { KEYS, roundsMap, sortedRounds } from "./_mortal_tasks.ts";
import { MAPS, SORTED_MAPS } from "./death/_scenarios.ts";
import { until } from "./_workers.ts";

function create(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8, name: "main" });
}

/** Asserts that nothing is left of a thread that has died. */
async function assertWhole(rcu: Rcu, live?: number): Promise<void> {
  await untilAlone(rcu);
  await rcu.barrier();
  const { callbacks, memory } = rcu.stats();
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
  assertEquals(callbacks.pending, 0);
  assertEquals(memory.deferred, 0);
  if (live !== undefined) assertEquals(memory.live, live);
}

Deno.test("an idle worker that is terminated is lost: its slot is free, its frees are done, its closures counted", async () => {
  using rcu = create();
  const lost: ReaderLostEvent[] = [];
  rcu.addEventListener("readerlost", (event) => lost.push(event));
  using mortal = startMortal(rcu, "idle");
  await mortal.reached(DONE);
  mortal.terminate();
  await until("the event", () => lost.length > 0);
  await assertWhole(rcu);
  const [{ lostCallbacks, name }] = lost;
  assertEquals({ lost: lost.length, lostCallbacks, name }, {
    lost: 1,
    lostCallbacks: rcu.stats().callbacks.lost,
    name: "mortal",
  });
  assert(rcu.stats().callbacks.lost <= 2);
});

Deno.test("each Rcu with a listener hears of a death once", async () => {
  using rcu = create();
  using other = Rcu.attach(rcu.handle);
  const lost: string[] = [];
  rcu.addEventListener("readerlost", () => lost.push("first"));
  rcu.addEventListener("readerlost", () => lost.push("second"));
  other.addEventListener("readerlost", () => lost.push("other"));
  for (let i = 1; i <= 2; i++) {
    using mortal = startMortal(rcu, "idle");
    await mortal.reached(DONE);
    mortal.terminate();
    await until("the events", () => lost.length >= 3 * i);
  }
  assertEquals(lost.sort(), [
    "first",
    "first",
    "other",
    "other",
    "second",
    "second",
  ]);
});

Deno.test("a grace period ends when the thread in whose section it waits has died", async () => {
  using rcu = create();
  using mortal = startMortal(rcu, "section", 2);
  await mortal.reached(DYING);
  await rcu.synchronize();
  rcu.synchronizeSync();
  await assertWhole(rcu);
});

Deno.test("a thread that blocks without an event loop has another one ask, and goes on", async () => {
  using rcu = create();
  const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
  using mortal = startMortal(rcu, "lock", 3);
  await mortal.reached(DYING);
  // It dies holding the lock or before it has it; either way nobody but a worker can ask.
  cell.set(2);
  assertEquals(cell.get(), 2);
  await assertWhole(rcu);
});

Deno.test("a thread that joins a full domain finds a place when the dead have been found", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 21, maxReaders: 2 });
  using mortal = startMortal(rcu, "idle");
  await mortal.reached(DONE);
  mortal.terminate();
  let joined: Rcu | undefined;
  await until("a place", () => {
    try {
      joined = Rcu.attach(rcu.handle);
      return true;
    } catch (error) {
      assert(error instanceof RangeError);
      return false;
    }
  });
  joined!.close();
});

Deno.test("a worker that an uncaught error ends loses nothing", async () => {
  using rcu = create();
  const map = roundsMap(rcu);
  using mortal = startMortal(rcu, "throws");
  await until("its error", () => mortal.error !== undefined);
  await assertWhole(rcu);
  assertEquals(map.get("key 0"), { round: 0 });
  map.set("key 0", { round: 1 });
});

Deno.test("threads that die in the middle of updates leave them done or not begun", async () => {
  for (
    const scenario of [...MAPS, ...SORTED_MAPS].filter((_, i) => i % 5 === 0)
  ) {
    using rcu = create();
    scenario.prepare(rcu);
    for (const at of [1, 4, 9]) {
      using mortal = startMortal(rcu, scenario.name, at);
      await mortal.reached(DONE);
      if (Atomics.load(mortal.state, 0) === DONE) mortal.terminate();
      await assertWhole(rcu);
    }
    scenario.goOn(rcu);
    await assertWhole(rcu);
  }
});

Deno.test("threads that die at random, again and again, leave whole updates", async () => {
  await dieAtRandom(12);
});

/** Has threads die in rounds of updates, of which each must be a whole one. */
export async function dieAtRandom(times: number): Promise<void> {
  using rcu = create();
  const map = roundsMap(rcu);
  const sorted = sortedRounds(rcu);
  for (let i = 0; i < KEYS; i++) map.set(`key ${i}`, { round: 0 });
  for (let i = 0; i < times; i++) {
    const turns = i % 3 === 0;
    const at = turns ? -1 : Math.floor(Math.random() * 20_000);
    using mortal = startMortal(rcu, turns ? "turns" : "rounds", at);
    await mortal.reached(BEGUN);
    if (turns) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      mortal.terminate();
    } else await mortal.reached(DYING);
    await assertWhole(rcu);
    const rounds = Array.from(
      { length: KEYS },
      (_, key) => map.get(`key ${key}`)!.round,
    );
    const broken = rounds.findIndex((round) => round !== rounds[0]);
    if (broken > 0) {
      assert(
        rounds.slice(broken).every((round) => round === rounds[broken]),
        `rounds ${rounds} of a death before access ${at}`,
      );
    }
    assertEquals([...sorted].length, sorted.size);
    for (let key = 0; key < KEYS; key++) {
      map.set(`key ${key}`, { round: 0 });
      sorted.set(key, 0);
    }
  }
  for (const key of [...map.keys()]) map.delete(key);
  await assertWhole(rcu);
}
