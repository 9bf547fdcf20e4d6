import { assert, assertEquals } from "@std/assert";
import { Rcu, type RcuOptions } from "../mod.ts";
import { assertLists, claimOf, withDomain } from "./_audit.ts";
import { errorsOf } from "./_events.ts";
import { OFFLOADED, POLICIES } from "./_policies.ts";
import { until, withWorkers } from "./_workers.ts";

for (
  const [name, options] of Object.entries({ ...POLICIES, ...OFFLOADED }) as [
    string,
    RcuOptions,
  ][]
) {
  /** With the reclaimer at work where there is one. */
  const play = (use: (rcu: Rcu) => void | Promise<void>): Promise<void> =>
    withDomain(options, async (rcu) => {
      if (name in OFFLOADED) {
        await until("a reclaimer", () => claimOf(rcu.memory.words) >= 0);
      }
      await use(rcu);
    });

  Deno.test(`${name}: callbacks run from the event loop, in the order in which they were enqueued`, () =>
    play(async (rcu) => {
      const log: number[] = [];
      for (let i = 0; i < 300; i++) {
        rcu.callRcu(() => log.push(i));
        if (i % 3 === 0) rcu.deferFree(rcu.memory.allocate(4));
        if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve));
      }
      await until("all have run", () => log.length === 300);
      assertEquals(log, [...Array(300).keys()]);
    }));

  Deno.test(`${name}: nothing is done before its grace period`, () =>
    play((rcu) => {
      const reader = Rcu.attach(rcu.handle);
      const section = reader.readLock();
      let early = 0;
      for (let i = 0; i < 500; i++) {
        rcu.callRcu(() => early++);
        rcu.deferFree(rcu.memory.allocate(4));
      }
      // A reclaimer has time to do what it must not.
      const words = new Int32Array(new SharedArrayBuffer(4));
      Atomics.wait(words, 0, 0, 30);
      assertEquals([early, rcu.memory.audit().deferred], [0, 500 * 16]);
      assertEquals(rcu.stats().callbacks.pending, 1_000);
      section[Symbol.dispose]();
      reader.close();
      rcu.barrierSync();
      assertEquals([early, rcu.memory.audit().deferred], [500, 0]);
    }));

  Deno.test(`${name}: a callback that throws is reported, and the others run`, () =>
    play(async (rcu) => {
      using errors = errorsOf(rcu);
      let ran = 0;
      for (let i = 0; i < 40; i++) {
        rcu.callRcu(() => {
          ran++;
          if (i % 10 === 0) throw new Error(`${i}`);
        });
      }
      await until("all have run", () => ran === 40);
      await rcu.barrier();
      assertEquals(errors.messages, ["0", "10", "20", "30"]);
    }));

  Deno.test(`${name}: a callback that enqueues itself again lets go of the thread`, () =>
    play(async (rcu) => {
      let rounds = 0;
      let stop = false;
      const again = (): void => {
        rounds++;
        if (!stop) rcu.callRcu(again);
      };
      again();
      while (rounds < 20) {
        const before = rounds;
        await new Promise((resolve) => setTimeout(resolve));
        assert(rounds - before <= 4, "a few rounds a turn");
      }
      rcu.barrierSync();
      stop = true;
      await rcu.barrier();
    }));

  Deno.test(`${name}: threads that defer and close lose nothing`, () =>
    play((rcu) =>
      withWorkers("_callbacks_worker.ts", 2, async (...workers) => {
        const counter = rcu.memory.allocate(1);
        rcu.memory.words[counter] = 0;
        const task = { counter, closures: 30, blocks: 170 };
        const rounds = 5;
        for (let round = 0; round < rounds; round++) {
          await Promise.all(workers.map(async (worker) => {
            await worker.call("join", { handle: rcu.handle });
            await worker.call("enqueueAndLeave", task);
          }));
        }
        await rcu.barrier();
        assertEquals(
          Atomics.load(rcu.memory.words, counter),
          rounds * 2 * task.closures,
        );
        assertEquals(rcu.memory.audit().deferred, 0);
        const members = () =>
          rcu.stats().readers.filter(({ name }) => name !== "reclaimer").length;
        await until("all gone", () => members() === 1);
        rcu.memory.free(counter);
      })
    ));

  Deno.test(`${name}: barriers end although other threads enqueue all the time`, () =>
    play((rcu) =>
      withWorkers("_callbacks_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const words = new Int32Array(new SharedArrayBuffer(8));
        const enqueuing = worker.call<number>("enqueueUntil", words);
        await until("it has begun", () => Atomics.load(words, 0) === 1);
        for (let i = 0; i < 3; i++) {
          for (let j = 0; j < 100; j++) rcu.deferFree(rcu.memory.allocate(4));
          rcu.barrierSync();
          await rcu.barrier();
        }
        Atomics.store(words, 1, 1);
        assert(await enqueuing > 0);
        await worker.call("leave");
      })
    ));

  Deno.test(`${name}: after close() of the last thread nothing is left`, async () => {
    const rcu = Rcu.create({ capacity: 2 ** 21, ...options });
    for (let i = 0; i < 500; i++) rcu.deferFree(rcu.memory.allocate(8));
    rcu.close();
    using after = Rcu.attach(rcu.handle);
    await until("alone", () => after.stats().readers.length === 1);
    await after.barrier();
    const { live, deferred } = after.memory.audit();
    assertEquals([live, deferred], [0, 0]);
    assertLists(after.memory.words);
  });
}
