import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Rcu, RcuStallError } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { withDomain } from "./_audit.ts";
import { errorsOf } from "./_events.ts";
import { interleave } from "./_steps.ts";
import {
  sharedWords,
  tell,
  type TestWorker,
  waitFor,
  withWorkers,
} from "./_workers.ts";

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve));
  }
}

Deno.test("a barrier with nothing to wait for ends at once, without a grace period", () =>
  withDomain({}, async (rcu) => {
    rcu.barrierSync();
    await rcu.barrier();
    assertEquals(rcu.stats().gracePeriods.started, 0);
  }));

Deno.test("a barrier waits for every callback of its own thread, closure or block", () =>
  withDomain({}, async (rcu) => {
    let ran = 0;
    for (const wait of [() => rcu.barrierSync(), () => rcu.barrier()]) {
      for (let i = 0; i < 100; i++) {
        rcu.callRcu(() => ran++);
        rcu.deferFree(rcu.memory.allocate(8));
      }
      await wait();
      assertEquals(rcu.memory.audit().deferred, 0);
      assertEquals(rcu.stats().callbacks.pending, 0);
    }
    assertEquals(ran, 200);
  }));

Deno.test("a barrier inside a section or a callback is an error where it would wait for itself", () =>
  withDomain({}, async (rcu) => {
    using errors = errorsOf(rcu);
    const section = rcu.readLock();
    const why = "Cannot finish a barrier inside a read section";
    assertThrows(() => rcu.barrierSync(), Error, why);
    const waiting = assertRejects(() => rcu.barrier(), Error, why);
    section[Symbol.dispose]();
    await waiting;
    rcu.callRcu(() => rcu.barrierSync());
    await rcu.barrier();
    assertEquals(errors.messages, [
      "Cannot finish a barrier inside a callback: it would wait for itself",
    ]);
  }));

Deno.test("a barrier that would wait for a blocked thread gives up and says so", () =>
  withDomain({ stallTimeout: 20 }, async (rcu) => {
    using other = Rcu.attach(rcu.handle, { name: "other" });
    other.callRcu(() => {});
    // The other thread is this one: its callback cannot run while we block.
    const { report } = assertThrows(
      () => rcu.barrierSync(),
      RcuStallError,
      'Cannot finish a barrier within 20 ms: reader 1 ("other") did not come to its callbacks; 1 callback waits; reader 1 ("other") is of this thread, too',
    );
    assertEquals(
      [report.readers.map(({ name }) => name), report.pending],
      [["other"], 1],
    );
    await rcu.barrier();
    assertEquals(rcu.stats().callbacks.pending, 0);
  }));

Deno.test("a barrier that gives up names the threads that do not come to their callbacks", () =>
  withDomain(
    { stallTimeout: 50 },
    (rcu) =>
      withWorkers("_callbacks_worker.ts", 1, async (worker) => {
        const words = sharedWords(2);
        const blocking = worker.call("block", { handle: rcu.handle, words });
        waitFor(words, 0);
        const why = 'reader 1 ("blocker") did not come to its callbacks; ' +
          "2 callbacks wait";
        const signal = AbortSignal.timeout(1);
        const errors = [
          assertThrows(() => rcu.barrierSync(), RcuStallError, why),
          await assertRejects(
            () => rcu.barrier({ signal }),
            RcuStallError,
            why,
          ),
        ];
        for (const { report: { age, readers } } of errors) {
          assertEquals(readers, [{ id: 1, name: "blocker", age, behind: 0 }]);
          assert(age > 0);
        }
        tell(words, 1);
        await blocking;
        await rcu.barrier();
      }),
  ));

for (const wait of ["barrierSync", "barrier"] as const) {
  Deno.test(`${wait}() waits for what other threads had enqueued, closures and blocks`, () =>
    withDomain(
      {},
      (rcu) =>
        withWorkers("_callbacks_worker.ts", 2, async (...workers) => {
          const counter = rcu.memory.allocate(1);
          rcu.memory.words[counter] = 0;
          for (const worker of workers) {
            await worker.call("join", { handle: rcu.handle });
          }
          for (let round = 1; round <= 5; round++) {
            for (const worker of workers) {
              await worker.call("enqueue", {
                counter,
                closures: 20,
                blocks: 30,
              });
            }
            await rcu[wait]();
            const ran = Atomics.load(rcu.memory.words, counter);
            assertEquals([ran, rcu.memory.audit().deferred], [round * 40, 0]);
          }
          for (const worker of workers) await worker.call("leave");
          rcu.memory.free(counter);
        }),
    ));
}

Deno.test("workers that enqueue all the time do not keep a barrier from ending", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_callbacks_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const words = sharedWords(2);
        const enqueuing = worker.call<number>("enqueueUntil", words);
        waitFor(words, 0);
        for (let i = 0; i < 5; i++) {
          rcu.barrierSync();
          await rcu.barrier();
        }
        tell(words, 1);
        assert(await enqueuing > 0);
        await worker.call("leave");
      }),
  ));

/** Opens a section in a worker for as long as the scenario takes. */
function whileHeld(
  rcu: Rcu,
  use: (release: () => void) => Promise<void>,
): Promise<void> {
  return withWorkers("_reader_worker.ts", 1, async (worker: TestWorker) => {
    await worker.call("join", { handle: rcu.handle, name: "holder" });
    const words = sharedWords(2);
    const held = worker.call("hold", words);
    waitFor(words, 0);
    await use(() => tell(words, 1));
    tell(words, 1);
    await held;
    await worker.call("leave");
  });
}

/** Waits for promises of which none may be fulfilled before a worker's section ends. */
async function endAfter(
  release: () => void,
  ...waits: Promise<void>[]
): Promise<void> {
  let early = 0;
  for (const wait of waits) wait.then(() => early++);
  await turns(30);
  const endedEarly = early;
  release();
  await Promise.all(waits);
  assertEquals(endedEarly, 0, "barriers that ended before the section");
}

Deno.test("a barrier waits for the blocks of a thread that closes meanwhile", () =>
  withDomain({}, (rcu) =>
    whileHeld(rcu, async (release) => {
      const leaving = Rcu.attach(rcu.handle);
      leaving.deferFree(leaving.memory.allocate(8));
      const done = rcu.barrier();
      leaving.close();
      await endAfter(release, done);
      assertEquals(rcu.memory.audit().deferred, 0);
    })));

Deno.test("a barrier waits for the blocks of a thread that closed, though a third one took them over", () =>
  withDomain({}, (rcu) =>
    whileHeld(rcu, async (release) => {
      const leaving = Rcu.attach(rcu.handle);
      using third = Rcu.attach(rcu.handle);
      leaving.deferFree(leaving.memory.allocate(8));
      const done = rcu.barrier();
      leaving.close();
      // Another barrier takes over what closed threads left.
      await endAfter(release, done, third.barrier());
      assertEquals(rcu.memory.audit().deferred, 0);
    })));

Deno.test("whatever a closing thread does between two steps of a barrier, its blocks are freed by then", () =>
  withDomain({}, (rcu) => {
    interleave(() => {
      const leaving = Rcu.attach(rcu.handle);
      const reader = Rcu.attach(rcu.handle);
      // Its section keeps the leaving thread from freeing its blocks itself.
      let section = reader.readLock();
      for (let i = 0; i < 3; i++) leaving.deferFree(leaving.memory.allocate(8));
      return {
        act: () => rcu.barrierSync(),
        other: () => {
          leaving.close();
          section[Symbol.dispose]();
          reader.threadOffline();
          section = { open: false, [Symbol.dispose]: () => {} };
        },
        check: (step) => {
          assertEquals(rcu.memory.audit().deferred, 0, `step ${step}`);
          section[Symbol.dispose]();
          leaving.close();
          reader.close();
        },
      };
    }, 100);
  }));

Deno.test("a barrier is right about a slot that changes hands while it waits", () =>
  withDomain({}, (rcu) =>
    whileHeld(rcu, async (release) => {
      const first = Rcu.attach(rcu.handle);
      first.deferFree(first.memory.allocate(8));
      const done = rcu.barrier();
      first.close();
      const second = Rcu.attach(rcu.handle);
      assertEquals(second.readerId, first.readerId);
      second.deferFree(second.memory.allocate(8));
      await endAfter(release, done);
      second.close();
      await rcu.barrier();
    })));

Deno.test("a barrier counts right across the wrap of the counters", () =>
  withDomain({}, async (rcu) => {
    const { counters, words } = membershipOf(rcu, "test");
    const other = Rcu.attach(rcu.handle);
    const line = counters.line(other.readerId);
    other.close();
    // As left by a thread that had enqueued nearly 2³¹, or nearly 2³², callbacks.
    for (const count of [2 ** 31 - 20, -20]) {
      words[line + 3] = words[line + 4] = count | 0;
      const member = Rcu.attach(rcu.handle);
      let ran = 0;
      for (let i = 0; i < 40; i++) member.callRcu(() => ran++);
      await rcu.barrier();
      assertEquals(ran, 40);
      assertEquals(rcu.stats().callbacks.pending, 0);
      member.close();
    }
    words[line + 3] = words[line + 4] = 0;
  }));
