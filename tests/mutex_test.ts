import { assert, assertEquals, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import { Rcu, RcuStallError } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import {
  acquire,
  holderOf,
  lockOwner,
  release,
  tryAcquire,
} from "../src/sync/_mutex.ts";
import { withDomain } from "./_audit.ts";
import {
  PATIENCE,
  sharedWords,
  tell,
  type TestWorker,
  waitFor,
  withWorkers,
} from "./_workers.ts";

const LOCK = 0;
const COUNTER = 16;

Deno.test("a lock has one holder, who is known, and can be taken again after it", () => {
  const words = sharedWords(16);
  assertEquals(holderOf(words, LOCK), -1);
  for (const reader of [0, 1, 63, 4_095]) {
    const owner = lockOwner(reader, 7);
    assert(acquire(words, LOCK, owner, 0));
    assertEquals(holderOf(words, LOCK), reader);
    assertEquals(tryAcquire(words, LOCK, lockOwner(reader ^ 1, 7)), false);
    assertEquals(acquire(words, LOCK, lockOwner(reader ^ 1, 7), 1), false);
    assertEquals(
      holderOf(words, LOCK),
      reader,
      "who waited in vain is no holder",
    );
    release(words, LOCK);
    assert(tryAcquire(words, LOCK, owner));
    release(words, LOCK);
    assertEquals(words[LOCK], 0);
  }
});

Deno.test("lockOwner() is positive and tells readers and generations apart", () => {
  const owners = new Set<number>();
  const readers = [0, 1, 4_094, 4_095];
  const generations = [0, 1, 2, 0x3_fffe, 0x3_ffff];
  for (const reader of readers) {
    for (const generation of generations) {
      const owner = lockOwner(reader, generation);
      assert(owner > 0 && owner < 2 ** 31, `${reader}, ${generation}`);
      owners.add(owner);
    }
  }
  assertEquals(owners.size, readers.length * generations.length);
});

/** Has every worker count under the lock; returns the sum and the overlaps that they saw. */
async function count(
  workers: TestWorker[],
  words: Int32Array,
  rounds: number,
): Promise<{ sum: number; overlaps: number }> {
  const overlaps = await Promise.all(
    workers.map((worker, owner) =>
      worker.call<number>("count", {
        words,
        lock: LOCK,
        counter: COUNTER,
        owner,
        rounds,
      })
    ),
  );
  return { sum: words[COUNTER], overlaps: overlaps.reduce((a, b) => a + b) };
}

for (const workers of [2, 4]) {
  Deno.test(`a plain counter under a lock loses nothing with ${workers} workers`, () =>
    withWorkers("_mutex_worker.ts", workers, async (...workers) => {
      const words = sharedWords(COUNTER + 16);
      const rounds = 100_000 / workers.length;
      const { sum, overlaps } = await count(workers, words, rounds);
      assertEquals([sum, overlaps], [100_000, 0]);
      assertEquals(words[LOCK] & 0x7fff_ffff, 0, "nobody holds it");
    }));
}

Deno.test("the check of the tests before notices a lock that is free for all", () =>
  withWorkers("_mutex_worker.ts", 1, async (worker) => {
    const words = sharedWords(COUNTER + 16);
    // This thread is in the critical section: it has loaded the counter and not stored it yet.
    assert(acquire(words, LOCK, lockOwner(9, 1), 0));
    const before = words[COUNTER];
    // The fault: somebody else gives the lock back.
    release(words, LOCK);
    const { sum } = await count([worker], words, 100);
    words[COUNTER] = before + 1;
    assertEquals(sum, 100);
    assert(words[COUNTER] < 101, "an update is lost");
  }));

Deno.test("a waiter that parked is woken by the release, not by the clock", () =>
  withWorkers("_mutex_worker.ts", 1, async (worker) => {
    const words = sharedWords(COUNTER + 16);
    const [turn, done] = [COUNTER, COUNTER + 1];
    const rounds = 200;
    using waits = spy(Atomics, "wait");
    const releasing = worker.call("releaseWhenParked", {
      words,
      lock: LOCK,
      turn,
      done,
      rounds,
    });
    for (let i = 1; i <= rounds; i++) {
      waitFor(words, turn, i);
      assert(acquire(words, LOCK, lockOwner(0, 1), PATIENCE));
      release(words, LOCK);
      tell(words, done, i);
    }
    await releasing;
    const ends = waits.calls.filter(({ args }) => args[1] === LOCK)
      .map(({ returned }) => returned);
    assert(ends.length >= rounds);
    // A busy machine may let a few slices of the wait pass before the release itself.
    assert(ends.filter((end) => end === "timed-out").length < rounds / 4);
  }));

Deno.test("a lock that is not given back is an error that names its holder", () =>
  withDomain(
    { stallTimeout: 50 },
    (rcu) =>
      withWorkers("_mutex_worker.ts", 1, async (worker) => {
        const lock = rcu.memory.allocate(1);
        rcu.memory.words[lock] = 0;
        const membership = membershipOf(rcu, "test");
        const words = sharedWords(2);
        const held = worker.call("hold", {
          handle: rcu.handle,
          lock,
          words,
          name: "höldér",
        });
        waitFor(words, 0);
        assertEquals(membership.tryLock(lock), false);
        const { report } = assertThrows(
          () => membership.lock(lock),
          RcuStallError,
          'Cannot take a lock within 50 ms: reader 1 ("höldér") holds it',
        );
        assertEquals(report.age, 50);
        assertEquals(report.readers.map(({ id, name }) => ({ id, name })), [
          { id: 1, name: "höldér" },
        ]);
        tell(words, 1);
        membership.lock(lock);
        assertThrows(
          () => membership.lock(lock),
          Error,
          "Cannot take a lock that this thread holds already",
        );
        membership.unlock(lock);
        await held;
        rcu.memory.free(lock);
      }),
  ));

Deno.test("a wait for a lock names who holds it in the end, not who did at first", () =>
  withDomain(
    { stallTimeout: 400 },
    (rcu) =>
      withWorkers("_mutex_worker.ts", 1, async (worker) => {
        using first = Rcu.attach(rcu.handle, { name: "first" });
        using second = Rcu.attach(rcu.handle, { name: "second" });
        const { words } = rcu.memory;
        const lock = rcu.memory.allocate(1);
        words[lock] = lockOwner(first.readerId, 1);
        const owner = lockOwner(second.readerId, 1);
        const handing = worker.call("handOver", { words, lock, owner });
        const { report } = assertThrows(
          () => membershipOf(rcu, "test").lock(lock),
          RcuStallError,
        );
        await handing;
        assertEquals(report.readers.map(({ name }) => name), ["second"]);
        rcu.memory.free(lock);
      }),
  ));

Deno.test("a thread that waits for a lock is offline and holds up no grace period", () =>
  withDomain(
    { stallTimeout: PATIENCE },
    (rcu) =>
      withWorkers("_mutex_worker.ts", 1, async (worker) => {
        const { words } = rcu.memory;
        const lock = rcu.memory.allocate(1);
        words[lock] = 0;
        const membership = membershipOf(rcu, "test");
        const signals = sharedWords(2);
        membership.lock(lock);
        const held = worker.call("hold", {
          handle: rcu.handle,
          lock,
          words: signals,
          name: "waiter",
        });
        const deadline = performance.now() + PATIENCE;
        while (Atomics.load(words, lock) >= 0) {
          assert(performance.now() < deadline, "the worker parks");
        }
        rcu.synchronizeSync({ timeout: PATIENCE });
        membership.unlock(lock);
        waitFor(signals, 0);
        tell(signals, 1);
        await held;
        rcu.memory.free(lock);
      }),
  ));

Deno.test("a thread does not take for its own lock what another one of its slot holds", () => {
  using rcu = Rcu.create({
    capacity: 2 ** 21,
    maxReaders: 2,
    stallTimeout: 20,
  });
  const block = rcu.memory.allocate(1);
  rcu.memory.words[block] = 0;
  const first = Rcu.attach(rcu.handle);
  const held = membershipOf(first, "test");
  first.close();
  held.lockToCleanUp(block);
  using second = Rcu.attach(rcu.handle);
  assertEquals(second.readerId, first.readerId);
  const m = membershipOf(second, "test");
  assertThrows(() => m.lock(block), RcuStallError, "within 20 ms");
  held.unlock(block);
  m.lock(block);
  assertThrows(() => m.lock(block), Error, "holds already");
  m.unlock(block);
});
