import { assert, assertEquals, assertGreater, assertThrows } from "@std/assert";
import { Rcu, RcuMemoryError } from "../mod.ts";
import { assertLists, withDomain } from "./_audit.ts";
import { sharedWords, tell, until, waitFor, withWorkers } from "./_workers.ts";

Deno.test("one thread more than maxReaders is a RangeError, until another one leaves", () => {
  for (const maxReaders of [1, 2, 7]) {
    using rcu = Rcu.create({ capacity: 2 ** 21, maxReaders });
    const others: Rcu[] = [];
    for (let i = 1; i < maxReaders; i++) others.push(Rcu.attach(rcu.handle));
    for (let round = 0; round < 5; round++) {
      assertThrows(
        () => Rcu.attach(rcu.handle, { name: "too many" }),
        RangeError,
        `at most ${maxReaders} threads can (maxReaders): all slots are taken`,
      );
      if (others.length === 0) continue;
      const [leaving] = others.splice(round % others.length, 1);
      leaving.close();
      const joining = Rcu.attach(rcu.handle);
      assertEquals(joining.readerId, leaving.readerId);
      others.push(joining);
    }
    for (const other of others) other.close();
    assertEquals(rcu.memory.audit().live, 0);
  }
});

Deno.test("a slot that was used a thousand times is as good as new", () =>
  withDomain({ maxReaders: 2, debug: true }, (rcu) => {
    for (let i = 0; i < 1_000; i++) {
      using other = Rcu.attach(rcu.handle, { name: `thread ${i}` });
      assertEquals(other.readerId, 1);
      const { name, observed, online, pending } = rcu.stats().readers[1];
      assertEquals([name, observed, online, pending], [
        `thread ${i}`,
        0,
        false,
        0,
      ]);
      const block = other.memory.allocate(8);
      if (i % 2 === 0) other.deferFree(block);
      else other.memory.free(block);
    }
  }));

Deno.test("a name for which there is no room gives the slot back with the error", () =>
  withDomain({ capacity: 2 ** 21, maxReaders: 2 }, (rcu) => {
    const blocks: number[] = [];
    assertThrows(() => {
      while (true) blocks.push(rcu.memory.allocate(4_096));
    }, RcuMemoryError);
    for (let i = 0; i < 5; i++) {
      assertThrows(
        () => Rcu.attach(rcu.handle, { name: "no room" }),
        RcuMemoryError,
      );
    }
    assertEquals(rcu.stats().readers.length, 1);
    // A thread without a name needs none.
    Rcu.attach(rcu.handle).close();
    for (const block of blocks) rcu.memory.free(block);
    Rcu.attach(rcu.handle, { name: "room" }).close();
  }));

Deno.test("workers that join and leave all the time find a slot each, and never the same", () =>
  withDomain(
    { maxReaders: 3 },
    (rcu) =>
      withWorkers("_membership_worker.ts", 2, async (...workers) => {
        const owners = sharedWords(4);
        const task = { handle: rcu.handle, rounds: 500, owners };
        const clashes = await Promise.all(
          workers.map((worker) => worker.call<number>("joinAndLeave", task)),
        );
        assertEquals(clashes, [0, 0]);
      }),
  ));

Deno.test("the last thread out frees everything", () => {
  const rcu = Rcu.create({ capacity: 2 ** 21, name: "last" });
  for (let i = 0; i < 100; i++) rcu.deferFree(rcu.memory.allocate(i + 1));
  rcu.close();
  assertNothingLeft(rcu);
});

Deno.test("the last thread out frees what others had left, too", () => {
  const rcu = Rcu.create({ capacity: 2 ** 21, name: "last" });
  const other = Rcu.attach(rcu.handle, { name: "other" });
  const section = rcu.readLock();
  for (let i = 0; i < 100; i++) other.deferFree(other.memory.allocate(i + 1));
  other.close();
  section[Symbol.dispose]();
  assertGreater(rcu.memory.audit().deferred, 0);
  rcu.close();
  assertNothingLeft(rcu);
});

/** Asserts that a domain without threads holds no block and no list out of order. */
function assertNothingLeft({ handle, memory: { words } }: Rcu): void {
  assertLists(words);
  using rcu = Rcu.attach(handle);
  const { live, deferred } = rcu.memory.audit();
  assertEquals([live, deferred], [0, 0]);
  assertEquals(rcu.stats().callbacks.pending, 0);
}

Deno.test("what a thread had deferred is freed by another one, not before its grace period", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const words = sharedWords(2);
        const held = worker.call("hold", words);
        waitFor(words, 0);
        const leaving = Rcu.attach(rcu.handle, { name: "leaving" });
        for (let i = 0; i < 200; i++) {
          leaving.deferFree(leaving.memory.allocate(4));
        }
        leaving.close();
        const pending = rcu.stats().callbacks.pending;
        assertEquals(pending, 201, "the blocks and the name");
        // A thread that has something to do anyway takes them over.
        rcu.deferFree(rcu.memory.allocate(4));
        for (let turn = 0; turn < 30; turn++) {
          await new Promise((resolve) => setTimeout(resolve));
          assertEquals(rcu.stats().callbacks.pending, 202);
        }
        assertLists(rcu.memory.words);
        tell(words, 1);
        await until("freed", () => rcu.memory.audit().deferred === 0);
        await held;
        await worker.call("leave");
      }),
  ));

Deno.test("closures run although their thread's membership has ended, and keep its slot until then", () =>
  withDomain(
    { maxReaders: 3 },
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const words = sharedWords(2);
        const held = worker.call("hold", words);
        waitFor(words, 0);
        const leaving = Rcu.attach(rcu.handle);
        const log: number[] = [];
        for (let i = 0; i < 100; i++) leaving.callRcu(() => log.push(i));
        leaving.deferFree(leaving.memory.allocate(4));
        leaving.close();
        assertEquals(log, []);
        assertEquals(rcu.stats().readers.length, 3);
        assertThrows(() => Rcu.attach(rcu.handle), RangeError);
        tell(words, 1);
        await until("all have run", () => log.length === 100);
        assertEquals(log, [...Array(100).keys()]);
        assertEquals(rcu.stats().readers.length, 2);
        Rcu.attach(rcu.handle).close();
        await held;
        await worker.call("leave");
      }),
  ));

Deno.test("a callback may close its own membership, and those behind it still run", () =>
  withDomain({}, async (rcu) => {
    const other = Rcu.attach(rcu.handle);
    const log: string[] = [];
    other.callRcu(() => {
      log.push("close");
      other.close();
    });
    other.callRcu(() => log.push("behind"));
    other.deferFree(other.memory.allocate(4));
    await until("both have run", () => log.length === 2);
    assertEquals(log, ["close", "behind"]);
    assert(other.memory.words.length > 0);
    assertEquals(rcu.stats().readers.length, 1);
  }));

Deno.test("workers that defer and close lose nothing", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_callbacks_worker.ts", 2, async (...workers) => {
        const counter = rcu.memory.allocate(1);
        rcu.memory.words[counter] = 0;
        const task = { counter, closures: 30, blocks: 70 };
        const rounds = 10;
        for (let round = 0; round < rounds; round++) {
          await Promise.all(workers.map(async (worker) => {
            await worker.call("join", { handle: rcu.handle, name: "leaver" });
            await worker.call("enqueueAndLeave", task);
          }));
        }
        await rcu.barrier();
        const ran = Atomics.load(rcu.memory.words, counter);
        assertEquals(ran, rounds * 2 * task.closures);
        await until("all gone", () => rcu.stats().readers.length === 1);
        rcu.memory.free(counter);
      }),
  ));
