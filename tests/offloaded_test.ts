import { assert, assertEquals, assertRejects } from "@std/assert";
import { Rcu, type RcuOptions, runReclaimer } from "../mod.ts";
import { Handover } from "../src/callbacks/_handover.ts";
import { takeRoll } from "../src/_life.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertLists, claimOf, withDomain } from "./_audit.ts";
import { errorsOf } from "./_events.ts";
import { OFFLOADED } from "./_policies.ts";
import { interleave } from "./_steps.ts";
import { settle } from "./_settle.ts";
import { until, withWorkers } from "./_workers.ts";

const OPTIONS: RcuOptions = { callbacks: { mode: "offloaded" } };
const ALONE: RcuOptions = { ...OPTIONS, reclaimer: "none" };

/** The workers that are started meanwhile. */
function watchWorkers(): Disposable & { started: number; ended: number } {
  const Original = globalThis.Worker;
  const watched = {
    started: 0,
    ended: 0,
    [Symbol.dispose]: () => {
      globalThis.Worker = Original;
    },
  };
  globalThis.Worker = class extends Original {
    constructor(...args: ConstructorParameters<typeof Original>) {
      super(...args);
      watched.started++;
    }
    override terminate(): void {
      watched.ended++;
      super.terminate();
    }
  };
  return watched;
}

/** Waits for a domain's reclaimer, though one may have ended meanwhile for want of work. */
async function reclaimerOf(rcu: Rcu): Promise<number> {
  const { words } = rcu.memory;
  const { handover } = membershipOf(rcu, "test");
  await until("a reclaimer", () => {
    handover!.want();
    return claimOf(words) >= 0;
  });
  return claimOf(words);
}

function defer(rcu: Rcu, blocks: number): void {
  for (let i = 0; i < blocks; i++) rcu.deferFree(rcu.memory.allocate(8));
}

const drained = (rcu: Rcu) =>
  until("all freed", () => rcu.stats().callbacks.pending === 0);

for (const [name, options] of Object.entries(OFFLOADED)) {
  Deno.test(`${name}: a worker frees what this thread defers, and ends with the domain`, async () => {
    using workers = watchWorkers();
    await withDomain(options, async (rcu) => {
      const reclaimer = await reclaimerOf(rcu);
      const { callbacks, counters } = membershipOf(rcu, "test");
      defer(rcu, 1_000);
      // A delay of a minute would keep the second batch waiting.
      if (name.endsWith("delay")) await rcu.barrier();
      else {
        await drained(rcu);
        assertEquals([counters.invoked(reclaimer), callbacks.invoked], [
          1_000,
          0,
        ]);
      }
      assertEquals(rcu.stats().callbacks.invoked, 1_000);
      assertEquals(rcu.stats().readers[reclaimer].name, "reclaimer");
    });
    await until("the worker's end", () => workers.ended === 1);
    assertEquals(workers.started, 1);
  });

  Deno.test(`${name}: a barrier waits for what has been handed over, and not for the delay`, () =>
    withDomain(options, async (rcu) => {
      await reclaimerOf(rcu);
      for (const wait of [() => rcu.barrierSync(), () => rcu.barrier()]) {
        let ran = 0;
        for (let i = 0; i < 300; i++) {
          rcu.deferFree(rcu.memory.allocate(8));
          rcu.callRcu(() => ran++);
        }
        await wait();
        assertEquals([ran, rcu.memory.audit().deferred], [300, 0]);
      }
    }));
}

Deno.test("closures run in the thread that enqueued them", () =>
  withDomain(OPTIONS, async (rcu) => {
    const reclaimer = await reclaimerOf(rcu);
    const log: number[] = [];
    for (let i = 0; i < 200; i++) {
      rcu.callRcu(() => log.push(i));
      rcu.deferFree(rcu.memory.allocate(8));
    }
    await drained(rcu);
    assertEquals(log, [...Array(200).keys()]);
    const { counters } = membershipOf(rcu, "test");
    const invoked = [
      counters.invoked(rcu.readerId),
      counters.invoked(reclaimer),
    ];
    assertEquals(invoked, [200, 200]);
  }));

Deno.test("what a thread handed over is freed after the thread has closed", () =>
  withDomain(
    OPTIONS,
    (rcu) =>
      withWorkers("_policy_worker.ts", 2, async (...workers) => {
        const reclaimer = await reclaimerOf(rcu);
        const { counters } = membershipOf(rcu, "test");
        // Records may have been those of a reclaimer that has ended.
        const before = Array.from(
          { length: 8 },
          (_, id) => counters.invoked(id),
        );
        const invoked = (id: number) => counters.invoked(id) - before[id];
        const clients: number[] = [];
        for (const worker of workers) {
          clients.push(await worker.call<number>("join", rcu.handle));
        }
        for (const worker of workers) {
          await worker.call("defer", { blocks: 500, closures: 0 });
          await worker.call("leave");
        }
        await drained(rcu);
        assertEquals(invoked(reclaimer), 1_000);
        assertEquals(clients.map(invoked), [0, 0]);
      }),
  ));

Deno.test("what a thread handed over is freed after the thread was terminated", async () => {
  using rcu = Rcu.create({ ...OPTIONS, capacity: 2 ** 22 });
  await reclaimerOf(rcu);
  const url = new URL("_doomed_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const deferred = Promise.withResolvers<unknown>();
  worker.onmessage = deferred.resolve;
  worker.onerror = deferred.reject;
  worker.postMessage({ handle: rcu.handle, blocks: 500 });
  await deferred.promise;
  worker.terminate();
  await drained(rcu);
  assertEquals(rcu.memory.audit().deferred, 0);
  // The slot of the dead thread stays taken, so the reclaimer ends for want of work.
  const readers = () => rcu.stats().readers.length;
  await until("no reclaimer", () => readers() === 2);
  assertLists(rcu.memory.words);
});

Deno.test("no worker is started where none is asked for", async () => {
  using workers = watchWorkers();
  const all: RcuOptions[] = [
    ALONE,
    { reclaimer: "worker" },
    { callbacks: { mode: "throttled" }, reclaimer: "worker" },
  ];
  for (const options of all) {
    await withDomain(options, async (rcu) => {
      using other = Rcu.attach(rcu.handle);
      defer(other, 1_000);
      await rcu.barrier();
      assertEquals(claimOf(rcu.memory.words), -1);
      assertEquals(rcu.stats().callbacks.invoked, 1_000);
    });
  }
  assertEquals(workers.started, 0);
});

Deno.test("a thread that attaches may start the worker instead", async () => {
  using workers = watchWorkers();
  await withDomain(ALONE, async (rcu) => {
    const other = Rcu.attach(rcu.handle, { reclaimer: "worker" });
    await reclaimerOf(rcu);
    other.close();
    defer(rcu, 100);
    await drained(rcu);
  });
  await until("the worker's end", () => workers.ended === 1);
});

Deno.test("a worker that cannot start is an error event, and the thread reclaims for itself", async () => {
  const fakes: Record<string, () => object> = {
    "No workers here": () => {
      throw new Error("No workers here");
    },
    "Requires read access": () => {
      const worker: Partial<Worker> = {
        postMessage: () => {},
        terminate: () => {},
      };
      const event = new ErrorEvent("error", {
        message: "Requires read access",
        cancelable: true,
      });
      queueMicrotask(() => worker.onerror?.call(worker as Worker, event));
      return worker;
    },
  };
  for (const [why, fake] of Object.entries(fakes)) {
    const { Worker } = globalThis;
    globalThis.Worker = class {
      constructor() {
        return fake();
      }
    } as unknown as typeof Worker;
    try {
      await withDomain(OPTIONS, async (rcu) => {
        using errors = errorsOf(rcu);
        await until("an error", () => errors.messages.length > 0);
        assertEquals(errors.messages, [
          `Cannot run the reclaimer as a worker must be able to: ${why}; every thread reclaims for itself`,
        ]);
        defer(rcu, 500);
        await drained(rcu);
        assertEquals(membershipOf(rcu, "test").callbacks.invoked, 500);
      });
    } finally {
      globalThis.Worker = Worker;
    }
  }
});

Deno.test("a worker for which no slot is left is an error event", () =>
  withDomain({ ...OPTIONS, maxReaders: 1 }, async (rcu) => {
    using errors = errorsOf(rcu);
    await until("an error", () => errors.messages.length > 0);
    assert(errors.messages[0].includes("at most 1 threads can (maxReaders)"));
    defer(rcu, 500);
    await drained(rcu);
  }));

Deno.test("a reclaimer may run in a worker of one's own; when it ends, threads go on without", () =>
  withDomain(
    ALONE,
    (rcu) =>
      withWorkers("_policy_worker.ts", 1, async (worker) => {
        const { callbacks, counters } = membershipOf(rcu, "test");
        const running = worker.call<string>("reclaim", rcu.handle);
        const reclaimer = await reclaimerOf(rcu);
        assertEquals(rcu.stats().readers[reclaimer].name, "mine");
        defer(rcu, 300);
        await drained(rcu);
        assertEquals([callbacks.invoked, counters.invoked(reclaimer)], [
          0,
          300,
        ]);
        await worker.call("abort");
        assertEquals(await running, "aborted");
        assertEquals(claimOf(rcu.memory.words), -1);
        assertEquals(rcu.stats().readers.length, 1);
        defer(rcu, 300);
        await drained(rcu);
        assertEquals(callbacks.invoked, 300);
      }),
  ));

Deno.test("a second reclaimer stands by without a slot until the first one ends", () =>
  withWorkers("_policy_worker.ts", 2, async (first, second) => {
    const rcu = Rcu.create({ ...ALONE, capacity: 2 ** 22 });
    const one = first.call<string>("reclaim", rcu.handle);
    await reclaimerOf(rcu);
    const two = second.call<string>("reclaim", rcu.handle);
    // Longer than a stand-by needs to look twice.
    for (let i = 0; i < 10; i++) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    assertEquals(rcu.stats().readers.length, 2);
    await first.call("abort");
    assertEquals(await one, "aborted");
    await reclaimerOf(rcu);
    defer(rcu, 300);
    await drained(rcu);
    rcu.close();
    assertEquals(await two, "ended");
    using after = Rcu.attach(rcu.handle);
    const { live, deferred } = after.memory.audit();
    assertEquals([live, deferred, after.stats().readers.length], [0, 0, 1]);
    assertLists(after.memory.words);
  }));

Deno.test("a reclaimer that was terminated is noticed, proven dead, and its blocks taken over", async () => {
  using rcu = Rcu.create({ ...ALONE, capacity: 2 ** 22 });
  const holder = Rcu.attach(rcu.handle);
  const url = new URL("_doomed_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  worker.postMessage({ handle: rcu.handle, blocks: 0 });
  const reclaimer = await reclaimerOf(rcu);
  const { counters, handover } = membershipOf(rcu, "test");
  // It cannot free what it takes while this section is open, as far as it knows.
  const { words } = rcu.memory;
  const slot = membershipOf(holder, "test").readers.slot(holder.readerId);
  Atomics.store(
    words,
    slot,
    Atomics.load(words, membershipOf(rcu, "test").sequence.address),
  );
  defer(rcu, 500);
  await until(
    "it has them",
    () => counters.pending(reclaimer) === 500 && handover!.count === 0,
  );
  const life = membershipOf(rcu, "test").readers.lifeOf(reclaimer);
  worker.terminate();
  // Terminated is not dead: it runs to the end of its turn, which the section has outlasted then.
  while (!(await takeRoll(words))(life)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  Atomics.store(words, slot, 0);
  // Neither lost nor reused: they wait.
  assertEquals(rcu.memory.audit().deferred, 500 * 8 * 4);
  assertLists(words);
  await settle(rcu);
  assertEquals(rcu.memory.audit().deferred, 0);
  assertEquals(claimOf(words), -1);
  assertEquals(rcu.stats().callbacks, {
    ...rcu.stats().callbacks,
    pending: 0,
    invoked: 501,
  });
  holder.close();
  assertEquals(rcu.stats().readers.length, 1);
  assertLists(words);
});

Deno.test("a reclaimer that is silent but lives keeps what it has taken", () =>
  withDomain(ALONE, async (rcu) => {
    const membership = membershipOf(rcu, "test");
    const { handover, words } = membership;
    const silent = Rcu.attach(rcu.handle);
    const { owner } = membershipOf(silent, "test");
    assert(handover!.claim(owner));
    defer(rcu, 200);
    await until("handed over", () => handover!.count === 200);
    // Time passes.
    const { now } = performance;
    performance.now = () => now.call(performance) + 10_000;
    try {
      defer(rcu, 200);
      await drained(rcu);
    } finally {
      performance.now = now;
    }
    assertEquals(claimOf(words), silent.readerId);
    assertEquals(membership.callbacks.invoked, 400);
    handover!.resign(owner);
    silent.close();
  }));

Deno.test("a worker that had nothing to do ends, and is started again when it is wanted", async () => {
  using workers = watchWorkers();
  await withDomain(OPTIONS, async (rcu) => {
    await reclaimerOf(rcu);
    defer(rcu, 100);
    await drained(rcu);
    await until("it ends", () => workers.ended === 1);
    assertEquals([claimOf(rcu.memory.words), workers.started], [-1, 1]);
    assertEquals(rcu.stats().readers.length, 1);
    await until("it is there again", () => {
      defer(rcu, 64);
      return claimOf(rcu.memory.words) >= 0;
    });
    assertEquals(workers.started, 2);
  });
  await until("it ends again", () => workers.ended === 2);
});

Deno.test("a domain without offloaded callbacks has no reclaimer", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 21 });
  await assertRejects(
    () => runReclaimer(rcu.handle),
    TypeError,
    `Cannot run a reclaimer as the domain's callbacks.mode must be "offloaded": received "immediate"`,
  );
  await assertRejects(
    () => runReclaimer(rcu.handle, { signal: 5 as unknown as AbortSignal }),
    TypeError,
    "the signal must be an AbortSignal: received 5",
  );
  for (const reclaimer of ["worker ", null, 1]) {
    const options = { reclaimer } as unknown as RcuOptions;
    for (
      const join of [
        () => Rcu.create(options),
        () => Rcu.attach(rcu.handle, options as { reclaimer: "none" }),
      ]
    ) {
      try {
        join();
        assert(false);
      } catch (error) {
        assert(error instanceof RangeError, String(error));
        assert(error.message.includes('must be "worker" or "none": received'));
      }
    }
  }
});

Deno.test("a reclaimer of a domain that nobody is in ends at once", async () => {
  const rcu = Rcu.create({ ...ALONE, capacity: 2 ** 21 });
  rcu.close();
  await runReclaimer(rcu.handle);
  using after = Rcu.attach(rcu.handle);
  assertEquals(after.stats().readers.length, 1);
});

// Steps

/** A client and a reclaimer that a test moves step by step. */
function parts() {
  const rcu = Rcu.create({ ...ALONE, capacity: 2 ** 21 });
  const other = Rcu.attach(rcu.handle);
  const { heap, callbacks, handover, words } = membershipOf(rcu, "test");
  const reclaimer = membershipOf(other, "test");
  return { rcu, other, heap, callbacks, words, handover: handover!, reclaimer };
}

/** Pushes one block as a client does. */
function pushOne({ heap, handover }: ReturnType<typeof parts>): void {
  const block = heap.tryAllocate(4);
  const tag = heap.tagOf(block);
  heap.linkDeferred(tag, 0);
  handover.push(block, tag, 1, 0);
  handover.wake();
}

/** Plays a sleep against a push at every step; says how many ended in sleep beside a block. */
function lostWakeUps(
  prepare: (handover: Handover) => boolean,
  pushActs: boolean,
): number {
  let lost = 0;
  interleave(() => {
    const all = parts();
    const { handover, reclaimer } = all;
    const sleeper = reclaimer.handover!;
    let sleeps = false;
    const sleep = () => {
      sleeps = prepare(sleeper);
    };
    const push = () => pushOne(all);
    return {
      act: pushActs ? push : sleep,
      other: pushActs ? sleep : push,
      check: () => {
        // A sleeper that has been woken finds its word moved.
        const asleep = sleeps && sleeper.isAwaited;
        if (asleep && handover.count > 0) lost++;
        all.callbacks.help(true);
        all.rcu.barrierSync();
        all.other.close();
        all.rcu.close();
      },
    };
  });
  return lost;
}

Deno.test("no wake-up is lost, whatever the order of the steps", () => {
  const prepare = (handover: Handover) => handover.prepareToSleep();
  assertEquals(lostWakeUps(prepare, false), 0);
  assertEquals(lostWakeUps(prepare, true), 0);
});

Deno.test("a reclaimer that looked before it announced its sleep would lose one", () => {
  const wrong = (handover: Handover) => {
    if (handover.count > 0) return false;
    handover.announceSleep();
    return true;
  };
  assert(lostWakeUps(wrong, false) + lostWakeUps(wrong, true) > 0);
});

Deno.test("a reclaimer that sleeps is woken once, however many hand over", () => {
  const { rcu, other, handover, reclaimer } = parts();
  assert(handover.claim(reclaimer.owner));
  assert(reclaimer.handover!.prepareToSleep());
  const { notify } = Atomics;
  let woken = 0;
  Atomics.notify = ((...args: Parameters<typeof notify>) => {
    woken++;
    return notify(...args);
  }) as typeof notify;
  try {
    defer(rcu, 640);
  } finally {
    Atomics.notify = notify;
  }
  assertEquals([handover.count, woken], [640, 1]);
  assertEquals(reclaimer.handover!.isAwaited, false);
  handover.resign(reclaimer.owner);
  other.close();
  rcu.close();
});

Deno.test("what a thread has taken back it does not hand over again", () => {
  const { rcu, other, callbacks, handover, reclaimer } = parts();
  assert(handover.claim(reclaimer.owner));
  const reader = Rcu.attach(rcu.handle);
  const section = reader.readLock();
  // Both segments wait, so that the next blocks cannot be stamped.
  for (let i = 0; i < 3; i++) {
    defer(rcu, 5);
    callbacks.processCallbacks();
  }
  defer(other, 7);
  reclaimer.callbacks.processCallbacks(true);
  callbacks.help(true);
  defer(rcu, 5);
  callbacks.processCallbacks(true);
  assertEquals([handover.count, callbacks.pending], [0, 27]);
  section[Symbol.dispose]();
  reader.close();
  handover.resign(reclaimer.owner);
  rcu.barrierSync();
  assertEquals(rcu.memory.audit().deferred, 0);
  other.close();
  rcu.close();
});

Deno.test("whatever the reclaimer does between two steps of a handing over, no block is left behind", () => {
  for (const clientActs of [true, false]) {
    interleave(() => {
      const { rcu, other, callbacks, handover, reclaimer } = parts();
      handover.claim(reclaimer.owner);
      defer(rcu, 10);
      const hand = () => callbacks.processCallbacks(true);
      const go = () => {
        handover.resign(reclaimer.owner);
        // Another thread would wait for one that has the lock; this one has it itself.
        reclaimer.callbacks.help(!clientActs);
      };
      return {
        act: clientActs ? hand : go,
        other: clientActs ? go : hand,
        check: (step) => {
          assertEquals(handover.count, 0, `step ${step}`);
          assertEquals(reclaimer.pendingOfAll() <= 10, true);
          // Both are this thread: each does its own.
          for (let i = 0; i < 3; i++) {
            callbacks.processCallbacks();
            reclaimer.callbacks.processCallbacks();
          }
          assertEquals(rcu.memory.audit().deferred, 0, `step ${step}`);
          assertLists(rcu.memory.words);
          other.close();
          rcu.close();
        },
      };
    });
  }
});

Deno.test("whatever a client hands over between two steps of a barrier, what was deferred before is freed by then", () => {
  interleave(() => {
    const { rcu, other, handover, reclaimer } = parts();
    const { callbacks } = reclaimer;
    handover.claim(membershipOf(rcu, "test").owner);
    defer(other, 3);
    return {
      act: () => rcu.barrierSync(),
      other: () => callbacks.processCallbacks(true),
      check: (step) => {
        assertEquals(rcu.memory.audit().deferred, 0, `step ${step}`);
        handover.resign(membershipOf(rcu, "test").owner);
        other.close();
        rcu.close();
      },
    };
  }, 200);
});

Deno.test("pending callbacks are never fewer than there are, while they change hands", () => {
  for (const take of [false, true]) {
    interleave(() => {
      const { rcu, other, callbacks, handover, reclaimer } = parts();
      handover.claim(reclaimer.owner);
      defer(rcu, 10);
      if (take) callbacks.processCallbacks(true);
      let seen = 0;
      return {
        act: () => {
          if (take) reclaimer.callbacks.help(true);
          else callbacks.processCallbacks(true);
        },
        other: () => {
          seen = reclaimer.pendingOfAll();
        },
        check: (step) => {
          assert(seen >= 10 && seen <= 20, `step ${step}: ${seen}`);
          handover.resign(reclaimer.owner);
          for (let i = 0; i < 2; i++) {
            reclaimer.callbacks.help(true);
            reclaimer.callbacks.processCallbacks();
          }
          rcu.barrierSync();
          other.close();
          rcu.close();
        },
      };
    });
  }
});
