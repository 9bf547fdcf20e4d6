import { assert, assertEquals, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import { Rcu, type RcuOptions } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { withDomain } from "./_audit.ts";
import { until } from "./_workers.ts";

function throttled(maxBatch?: number, plugTicks?: number): RcuOptions {
  return {
    callbacks: {
      mode: "throttled",
      ...(maxBatch === undefined ? {} : { maxBatch }),
      ...(plugTicks === undefined ? {} : { plugTicks }),
    },
  };
}

/** Counts callbacks by the synchronous run that they are part of. */
class Batches {
  readonly sizes: number[] = [];
  total = 0;
  #size = 0;
  readonly count = (): void => {
    this.total++;
    // Microtasks run when the turn's own code is done.
    if (this.#size++ === 0) {
      queueMicrotask(() => {
        this.sizes.push(this.#size);
        this.#size = 0;
      });
    }
  };
}

for (const maxBatch of [1, 16, 50]) {
  Deno.test(`at most ${maxBatch} callbacks are done a turn, and in the end all of them`, () =>
    withDomain(throttled(maxBatch), async (rcu) => {
      const batches = new Batches();
      for (let i = 0; i < 120; i++) rcu.callRcu(batches.count);
      await until("all", () => batches.total === 120);
      assert(Math.max(...batches.sizes) <= maxBatch, `${batches.sizes}`);
      assertEquals(
        batches.sizes.filter((n) => n === maxBatch).length > 0,
        true,
      );
    }));
}

Deno.test("the default batch is 16", () =>
  withDomain(throttled(), async (rcu) => {
    const batches = new Batches();
    for (let i = 0; i < 100; i++) rcu.callRcu(batches.count);
    await until("all", () => batches.total === 100);
    assertEquals(Math.max(...batches.sizes), 16);
  }));

Deno.test("timers run between two batches", () =>
  withDomain(throttled(4), async (rcu) => {
    const log: string[] = [];
    let ran = 0;
    const callback = () => {
      ran++;
      if (log.at(-1) !== "batch") log.push("batch");
    };
    const timer = () => {
      log.push("timer");
      if (ran < 200) setTimeout(timer);
    };
    for (let i = 0; i < 200; i++) rcu.callRcu(callback);
    setTimeout(timer);
    await until("all", () => ran === 200);
    const batches = log.filter((what) => what === "batch").length;
    assert(batches > 5, `timers came between ${batches} runs of callbacks`);
  }));

Deno.test("closures and deferred blocks both count", () =>
  withDomain(throttled(10), async (rcu) => {
    const { callbacks } = membershipOf(rcu, "test");
    const batches = new Batches();
    for (let i = 0; i < 33; i++) {
      rcu.deferFree(rcu.memory.allocate(4));
      rcu.callRcu(batches.count);
    }
    let before = 66;
    const steps: number[] = [];
    await until("all", () => {
      if (callbacks.pending !== before) steps.push(before - callbacks.pending);
      before = callbacks.pending;
      return before === 0;
    });
    assertEquals(steps.reduce((sum, step) => sum + step), 66);
    // The test looks once a turn; at times two batches lie between two looks.
    assert(steps.length >= 4 && Math.max(...batches.sizes) <= 10, `${steps}`);
  }));

Deno.test("updates of one turn do no more than a batch between them", () =>
  withDomain(throttled(16), (rcu) => {
    for (let i = 0; i < 2_000; i++) rcu.deferFree(rcu.memory.allocate(4));
    assertEquals(rcu.stats().callbacks, {
      pending: 1_984,
      peak: 1_984,
      invoked: 16,
      lost: 0,
    });
  }));

Deno.test("beyond highWater the limit is lifted, so that a flood in one turn stays bounded", () =>
  withDomain({ ...throttled(16), highWater: 640 }, (rcu) => {
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      rcu.deferFree(rcu.memory.allocate(4));
      most = Math.max(most, rcu.stats().callbacks.pending);
    }
    assert(most >= 640 && most <= 2 * 640, `${most} waited`);
  }));

Deno.test("beyond highWater the limit is lifted in the event loop too", () =>
  withDomain({ ...throttled(5), highWater: 200 }, async (rcu) => {
    const reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    const batches = new Batches();
    for (let i = 0; i < 300; i++) rcu.callRcu(batches.count);
    section[Symbol.dispose]();
    reader.close();
    await until("all", () => batches.total === 300);
    assert(batches.sizes.length < 5, `${batches.sizes}`);
  }));

Deno.test("once hardly anything waits the limit holds again", () =>
  withDomain({ ...throttled(5), highWater: 100 }, async (rcu) => {
    const batches = new Batches();
    for (let i = 0; i < 640; i++) rcu.callRcu(() => {});
    await rcu.barrier();
    await until("a later turn", () => rcu.stats().callbacks.pending === 0);
    for (let i = 0; i < 60; i++) rcu.callRcu(batches.count);
    await until("all", () => batches.total === 60);
    assertEquals(Math.max(...batches.sizes), 5);
  }));

Deno.test("after a full batch the next one is plugTicks ms away", () =>
  withDomain(throttled(8, 7), async (rcu) => {
    using timers = spy(globalThis, "setTimeout");
    let ran = 0;
    for (let i = 0; i < 40; i++) rcu.callRcu(() => ran++);
    let seen = 0;
    const plugs = () => timers.calls.filter(({ args }) => args[1] === 7).length;
    await until("all", () => {
      // A batch that is full and leaves some behind has set its timer.
      if (ran > seen && ran < 40) assert(plugs() >= Math.floor(ran / 8));
      seen = ran;
      return ran === 40;
    });
    assertEquals(plugs(), 4);
  }));

Deno.test("a barrier does all that waits in one go", () =>
  withDomain(throttled(2), async (rcu) => {
    for (const wait of [() => rcu.barrierSync(), () => rcu.barrier()]) {
      const batches = new Batches();
      for (let i = 0; i < 50; i++) {
        rcu.callRcu(batches.count);
        rcu.deferFree(rcu.memory.allocate(4));
      }
      const ended = wait();
      if (ended === undefined) assertEquals(batches.total, 50);
      await ended;
      assertEquals(batches.total, 50);
      assertEquals(rcu.memory.audit().deferred, 0);
    }
  }));

Deno.test("another thread's barrier waits for a callback though later blocks are freed before it", () =>
  withDomain(throttled(1, 0), async (rcu) => {
    using other = Rcu.attach(rcu.handle);
    let ran = false;
    rcu.callRcu(() => ran = true);
    const barrier = other.barrier();
    // They get into the same segment, and of a segment blocks come first.
    for (let i = 0; i < 50; i++) rcu.deferFree(rcu.memory.allocate(4));
    await barrier;
    assert(ran);
  }));

Deno.test("close() frees all that waits in one go", () => {
  const rcu = Rcu.create({ capacity: 2 ** 21, ...throttled(2) });
  for (let i = 0; i < 500; i++) rcu.deferFree(rcu.memory.allocate(4));
  rcu.close();
  using after = Rcu.attach(rcu.handle);
  assertEquals(after.memory.audit().deferred, 0);
});

Deno.test("callbacks that were in the middle of a batch when their membership ended still run", () =>
  withDomain(throttled(3), async (rcu) => {
    const other = Rcu.attach(rcu.handle);
    const log: number[] = [];
    for (let i = 0; i < 40; i++) other.callRcu(() => log.push(i));
    await until("some", () => log.length > 0);
    assert(log.length < 40);
    other.close();
    await until("all", () => log.length === 40);
    assertEquals(log, [...Array(40).keys()]);
    await until("gone", () => rcu.stats().readers.length === 1);
  }));

Deno.test("a callback in a batch that enqueues and updates starts no second batch", () =>
  withDomain(throttled(4), async (rcu) => {
    const batches = new Batches();
    let depth = 0;
    for (let i = 0; i < 12; i++) {
      rcu.callRcu(() => {
        batches.count();
        assertEquals(depth++, 0, "no callback runs inside another one");
        for (let j = 0; j < 70; j++) rcu.deferFree(rcu.memory.allocate(4));
        depth--;
      });
    }
    await until("all", () => batches.total === 12);
    assert(Math.max(...batches.sizes) <= 4, `${batches.sizes}`);
  }));

Deno.test("a policy's numbers out of range are errors that name them", () => {
  const wrong: [object, new () => Error, string][] = [
    [
      { maxBatch: 0 },
      RangeError,
      "callbacks.maxBatch must be an integer from 1 to 1073741824: received 0",
    ],
    [{ maxBatch: 1.5 }, RangeError, "callbacks.maxBatch must be"],
    [
      { maxBatch: "16" },
      TypeError,
      'callbacks.maxBatch must be an integer from 1 to 1073741824: received "16"',
    ],
    [
      { plugTicks: -1 },
      RangeError,
      "callbacks.plugTicks must be an integer from 0 to 60000: received -1",
    ],
    [{ plugTicks: 60_001 }, RangeError, "callbacks.plugTicks must be"],
    [
      { mode: "offloaded", delay: -1 },
      RangeError,
      "callbacks.delay must be an integer from 0 to 60000: received -1",
    ],
    [{ mode: "offloaded", delay: NaN }, RangeError, "callbacks.delay must be"],
    [
      { mode: "offloaded", realTime: 1 },
      TypeError,
      "callbacks.realTime must be a boolean: received 1",
    ],
    [
      { mode: "later" },
      RangeError,
      'callbacks.mode must be "immediate", "throttled" or "offloaded": received "later"',
    ],
  ];
  for (const [fields, type, why] of wrong) {
    const callbacks = { mode: "throttled", ...fields };
    assertThrows(
      () => Rcu.create({ callbacks } as RcuOptions),
      type,
      `Cannot create a domain as ${why}`,
    );
  }
});

Deno.test("every thread that attaches follows the domain's policy", () =>
  withDomain(throttled(3, 1), async (rcu) => {
    using other = Rcu.attach(rcu.handle);
    assertEquals(membershipOf(other, "test").policy, {
      mode: "throttled",
      maxBatch: 3,
      plugTicks: 1,
    });
    const batches = new Batches();
    for (let i = 0; i < 20; i++) other.callRcu(batches.count);
    await until("all", () => batches.total === 20);
    assertEquals(Math.max(...batches.sizes), 3);
  }));
