// What becomes of a domain when real threads die.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { Worker as NodeWorker } from "node:worker_threads";
import { Rcu, RcuCell, type ReaderLostEvent, u32 } from "../mod.ts";
import { DONE, DYING, startMortal } from "./_mortals.ts";
import { canaryCell, THROWING, throwingMap, WATCHED } from "./_mortal_tasks.ts";
import { stub } from "@std/testing/mock";
import { Inquest } from "../src/_inquest.ts";
import { FAULTS } from "./death/_faults.ts";
import { MAPS, SORTED_MAPS } from "./death/_map_scenarios.ts";
import { scenarioOf } from "./death/_scenarios.ts";
import {
  assertWhole,
  create,
  dieAtRandom,
  dieAtSteps,
} from "./death/_threads.ts";
import { PATIENCE, until } from "./_workers.ts";

const { beginElsewhere } = Inquest.prototype;

/** Has a module checked that a blocked thread is going to start: that takes `deno test` seconds, once. */
async function checkUndertaker({ memory }: Rcu): Promise<void> {
  const url = new URL("../src/_undertaker_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  await new Promise((resolve) => {
    worker.onmessage = resolve;
    worker.postMessage(memory.words);
  });
  worker.terminate();
}

Deno.test("an idle worker that is terminated is lost: its slot is free, its frees are done", async () => {
  using rcu = create();
  const live = await assertWhole(rcu);
  const lost: ReaderLostEvent[] = [];
  rcu.addEventListener("readerlost", (event) => lost.push(event));
  using mortal = startMortal(rcu, "idle");
  await mortal.reached(DONE);
  mortal.terminate();
  await until("the event", () => lost.length > 0);
  assertEquals(await assertWhole(rcu), live);
  assertEquals(lost.map(({ name }) => name), ["mortal"]);
});

Deno.test("the closures that a dead thread had waiting are counted as lost, and its frees are not", async () => {
  using rcu = create();
  const live = await assertWhole(rcu);
  const lost: ReaderLostEvent[] = [];
  rcu.addEventListener("readerlost", (event) => lost.push(event));
  using mortal = startMortal(rcu, "queues", 1_000);
  await mortal.reached(DYING);
  await until("the event", () => lost.length > 0);
  assertEquals(await assertWhole(rcu), live);
  assertEquals(lost.map(({ lostCallbacks }) => lostCallbacks), [7]);
  assertEquals(rcu.stats().callbacks.lost, 7);
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

Deno.test("a worker of node:worker_threads that ends in a section is lost like any other", async () => {
  using rcu = create();
  const lost: string[] = [];
  rcu.addEventListener("readerlost", ({ name }) => lost.push(name));
  const worker = new NodeWorker(new URL("./_node_worker.ts", import.meta.url), {
    workerData: rcu.handle,
  });
  await new Promise((resolve) => worker.once("exit", resolve));
  await until("the event", () => lost.length > 0);
  assertEquals(lost, ["node worker"]);
  await rcu.synchronize();
  await assertWhole(rcu);
});

Deno.test("a grace period ends when the thread in whose section it waits has died", async () => {
  using rcu = create();
  using mortal = startMortal(rcu, "section", 2);
  await mortal.reached(DYING);
  const [, { name, online }] = rcu.stats().readers;
  assertEquals([name, online], ["mortal", true]);
  await rcu.synchronize();
  rcu.synchronizeSync();
  await assertWhole(rcu);
});

Deno.test("a thread that blocks without an event loop has another one ask, and goes on", async () => {
  using rcu = create();
  const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
  await checkUndertaker(rcu);
  using mortal = startMortal(rcu, "lock", 3);
  await mortal.reached(DYING);
  // Its reads go on. It has the lock, and nobody but a worker can ask.
  assertEquals(cell.get(), 1);
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

for (const where of THROWING) {
  Deno.test(`a worker that an uncaught error ends loses nothing: it comes from ${where}`, async () => {
    using rcu = create();
    const map = throwingMap(rcu);
    map.replaceAll([["key", 0]]);
    const live = await assertWhole(rcu);
    using mortal = startMortal(rcu, where);
    await until("its error", () => mortal.error !== undefined);
    assert(mortal.error!.includes("nobody catches this"), mortal.error);
    assertEquals(await assertWhole(rcu), live);
    assertEquals([...map], [["key", 0]]);
    map.set("key", 1);
    assertEquals(map.get("key"), 1);
  });
}

for (const [what, open] of Object.entries(WATCHED)) {
  Deno.test(`whoever waits for a change of ${what} hears of one whose maker dies, at whichever access`, async () => {
    for (let at = 0, survived = false; !survived; at++) {
      using rcu = create();
      const watched = open(rcu);
      const patience = AbortSignal.timeout(PATIENCE);
      const over = new AbortController();
      const heard = watched.wait(AbortSignal.any([patience, over.signal]))
        .catch((reason) => assert(over.signal.aborted, `${at}: ${reason}`));
      using mortal = startMortal(rcu, `a change of ${what}`, at);
      await mortal.reached(DONE);
      survived = Atomics.load(mortal.state, 0) === DONE;
      mortal.terminate();
      await assertWhole(rcu);
      if (!watched.changed()) over.abort();
      await heard;
    }
  });
}

Deno.test("threads that die in the middle of updates leave them done or not begun", async () => {
  const all = [...MAPS, ...SORTED_MAPS];
  for (const scenario of all.filter((_, i) => i % 5 === 0)) {
    await dieAtSteps(scenario, [1, 4, 9]);
  }
});

Deno.test("who blocks behind a thread that died in the middle of an update is held up until that is proven, and no longer", async () => {
  let asked = 0;
  using _counted = stub(
    Inquest.prototype,
    "beginElsewhere",
    function (this: Inquest) {
      asked++;
      beginElsewhere.call(this);
    },
  );
  for (
    const name of ["u32 to u32: insertions", "sorted u32 to u32: insertions"]
  ) {
    const scenario = scenarioOf(name);
    for (const at of [2, 3, 5, 8]) {
      // Nobody would wait as long as this for a lock without a holder.
      using rcu = Rcu.create({ capacity: 2 ** 22, stallTimeout: PATIENCE });
      await checkUndertaker(rcu);
      scenario.prepare(rcu);
      using mortal = startMortal(rcu, name, at);
      await mortal.reached(DYING);
      // In the same turn: reads need nobody, updates the lock.
      const found = scenario.look(rcu);
      assert(scenario.isRight!(found), `${at}: ${found}`);
      scenario.goOn(rcu);
      await assertWhole(rcu);
    }
  }
  assert(asked > 0, "nobody was in the way");
});

Deno.test("a burial that leaks is noticed", async () => {
  using heals = new DisposableStack();
  FAULTS["a burial that lets be what was allocated and not published"]
    .plant(heals);
  await assertRejects(() =>
    dieAtSteps(scenarioOf("string to json: insertions"), [8, 9, 10, 11, 12])
  );
});

Deno.test("a zombie that reads on sees nothing that was reused, and the grace period ends behind it", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 21, debug: true });
  const cell = canaryCell(rcu);
  using mortal = startMortal(rcu, "zombie");
  await until("it reads", () => Atomics.load(mortal.state, 1) === 1);
  // Returns at once and stops nothing that runs.
  mortal.terminate();
  cell.set("something else");
  // It would be poisoned and used again.
  await rcu.barrier();
  // It was waited for to the end of its turn, in which it found nothing wrong.
  assertEquals(Atomics.load(mortal.state, 0), DONE);
  await assertWhole(rcu);
});

Deno.test("threads that die at random, again and again, leave whole updates", async () => {
  await dieAtRandom(12);
});
