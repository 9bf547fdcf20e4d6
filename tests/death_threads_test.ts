// What becomes of a domain when real threads die.

import { assert, assertEquals } from "@std/assert";
import { Worker as NodeWorker } from "node:worker_threads";
import { Rcu, RcuCell, type ReaderLostEvent, u32 } from "../mod.ts";
import { DONE, DYING, startMortal } from "./_mortals.ts";
import { canaryCell, roundsMap } from "./_mortal_tasks.ts";
import { MAPS, SORTED_MAPS } from "./death/_scenarios.ts";
import {
  assertWhole,
  create,
  dieAtRandom,
  dieAtSteps,
} from "./death/_threads.ts";
import { until } from "./_workers.ts";

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
  const all = [...MAPS, ...SORTED_MAPS];
  for (const scenario of all.filter((_, i) => i % 5 === 0)) {
    await dieAtSteps(scenario, [1, 4, 9]);
  }
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
