// A membership that ends, and code of it that is still on the stack, queued or waiting.

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import {
  Rcu,
  RcuMap,
  RcuMemoryError,
  type RcuOptions,
  RcuSortedMap,
  RcuStallError,
  type ReadSection,
  string,
  u32,
} from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { atEveryStep } from "./_steps.ts";

function domain(options: RcuOptions = {}): Rcu {
  return Rcu.create({
    capacity: 2 ** 22,
    maxReaders: 8,
    debug: true,
    ...options,
  });
}

/** Asserts that nothing is left but one member and what is live. */
async function assertAlone(rcu: Rcu, live: number): Promise<void> {
  assertEquals(await settle(rcu), live);
  const { callbacks, memory, readers } = rcu.stats();
  assertEquals([callbacks.pending, memory.deferred, readers.length], [0, 0, 1]);
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
}

Deno.test("the end of a turn in which its Rcu was closed takes no other thread's slot offline", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const { readers, words } = membershipOf(rcu, "test");
  const leaving = Rcu.attach(rcu.handle);
  leaving.read(() => {});
  leaving.close();
  // Another thread gets the record, and goes online.
  const { index } = readers.register()!;
  assertEquals(index, leaving.readerId);
  Atomics.store(words, readers.slot(index), 2);
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(Atomics.load(words, readers.slot(index)), 2);
  Atomics.store(words, readers.slot(index), 0);
  readers.unregister(index);
  await assertAlone(rcu, live);
});

Deno.test("closing takes a slot offline that an overflow of the stack left online", () => {
  using rcu = domain();
  const { readers, words } = membershipOf(rcu, "test");
  const leaving = Rcu.attach(rcu.handle);
  Atomics.store(words, readers.slot(leaving.readerId), 2);
  leaving.close();
  assertEquals(Atomics.load(words, readers.slot(leaving.readerId)), 0);
});

Deno.test("a callback that closes its Rcu is the last that the record hears of it", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const { reader, readers } = membershipOf(rcu, "test");
  const leaving = Rcu.attach(rcu.handle);
  const { callbacks } = membershipOf(leaving, "test");
  const id = leaving.readerId;
  // The callback waits for one period, a block for the next one.
  const section = rcu.readLock();
  leaving.callRcu(() => {
    // While it closes, the block's period cannot end; then it does.
    using _section = rcu.readLock();
    leaving.close();
  });
  callbacks.processCallbacks();
  leaving.deferFree(leaving.memory.allocate(4));
  callbacks.processCallbacks();
  section[Symbol.dispose]();
  rcu.threadOffline();
  // Nothing atomic is done once the record may be another thread's.
  let steps = 0;
  atEveryStep(() => callbacks.processCallbacks(), () => {
    reader.checkQuiescentState();
    if (!readers.isRegistered(id)) steps++;
  });
  assert(!readers.isRegistered(id));
  assertEquals(steps, 0);
  await assertAlone(rcu, live);
});

Deno.test("an allocation in the middle of which a callback closes the Rcu takes nothing", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const leaving = Rcu.attach(rcu.handle);
  const large = Math.floor(rcu.memory.audit().free / 4 * 0.9);
  leaving.deferFree(leaving.memory.allocate(large));
  leaving.callRcu(() => leaving.close());
  assertThrows(() => leaving.memory.allocate(large), Error, "it is closed");
  await assertAlone(rcu, live);
});

/** What becomes of a promise, as far as it has come. */
function outcomeOf(promise: Promise<void>): { is: string } {
  const outcome = { is: "pending" };
  promise.then(
    () => outcome.is = "resolved",
    (error) => outcome.is = error.message,
  );
  return outcome;
}

function aWhile(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

Deno.test("closing rejects a barrier that is pending, and the next owner of the record hears nothing of it", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const { counters } = membershipOf(rcu, "test");
  const reader = Rcu.attach(rcu.handle);
  reader.addEventListener("error", (event) => event.preventDefault());
  const section = reader.readLock();
  const leaving = Rcu.attach(rcu.handle);
  leaving.deferFree(leaving.memory.allocate(4));
  const id = leaving.readerId;
  const outcome = outcomeOf(leaving.barrier());
  leaving.close();
  // The block is an orphan now: the barrier must not adopt it in another one's name.
  const next = Rcu.attach(rcu.handle);
  assertEquals(next.readerId, id);
  await aWhile();
  next.deferFree(next.memory.allocate(4));
  const { callbacks } = membershipOf(next, "test");
  assertEquals(callbacks.pending, counters.pending(id));
  assertMatch(
    outcome.is,
    /as the Rcu must be open: it is closed; this thread closed it at /,
  );
  assertThrows(() => section[Symbol.dispose](), Error, "across an await");
  await settle(rcu);
  next.close();
  reader.close();
  await assertAlone(rcu, live);
});

Deno.test("closing rejects a wait for a grace period that is pending", async () => {
  using rcu = domain();
  rcu.addEventListener("error", (event) => event.preventDefault());
  const leaving = Rcu.attach(rcu.handle);
  const section = rcu.readLock();
  const outcomes = [false, true].map((expedited) =>
    outcomeOf(leaving.synchronize({ expedited }))
  );
  await aWhile();
  leaving.close();
  await aWhile();
  for (const outcome of outcomes) {
    assertMatch(
      outcome.is,
      /as the Rcu must be open: it is closed; this thread closed it at /,
    );
  }
  assertThrows(() => section[Symbol.dispose](), Error, "across an await");
});

Deno.test("a barrier in which a callback closes the Rcu is rejected, and adopts nothing", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  for (const wait of ["barrier", "barrierSync"] as const) {
    const leaving = Rcu.attach(rcu.handle);
    leaving.callRcu(() => leaving.close());
    await assertRejects(
      async () => await leaving[wait](),
      Error,
      "it is closed",
    );
  }
  await assertAlone(rcu, live);
});

/** Allocates until nothing fits any more. */
function fill(rcu: Rcu): number[] {
  const blocks: number[] = [];
  for (const size of [65536, 4096]) {
    try {
      while (true) blocks.push(rcu.memory.allocate(size));
    } catch (error) {
      assert(error instanceof RcuMemoryError);
    }
  }
  return blocks;
}

Deno.test("an attach() that fails for want of memory leaves to others what it took over meanwhile", async () => {
  using rcu = domain({ stallTimeout: 50 });
  const { live } = rcu.memory.audit();
  const { counters, orphans } = membershipOf(rcu, "test");
  const reader = Rcu.attach(rcu.handle);
  const leaving = Rcu.attach(rcu.handle);
  const block = leaving.memory.allocate(40);
  const hog = fill(rcu);
  const section = reader.readLock();
  leaving.deferFree(block);
  leaving.close();
  assertEquals(orphans.count, 1);
  const name = "x".repeat(100_000);
  assertThrows(() => Rcu.attach(rcu.handle, { name }), RcuMemoryError);
  assertEquals(orphans.count, 1);
  assertEquals(rcu.stats().readers.length, 2);
  assertEquals(rcu.stats().callbacks.pending, 1);
  // The record is as good as new.
  const next = Rcu.attach(rcu.handle);
  assertEquals(counters.pending(next.readerId), 0);
  assertLists(rcu.memory.words);
  section[Symbol.dispose]();
  for (const page of hog) rcu.memory.free(page);
  next.close();
  reader.close();
  await assertAlone(rcu, live);
});

Deno.test("an allocation gives up when periods end and nothing is freed", () => {
  using rcu = domain();
  const { callbacks } = membershipOf(rcu, "test");
  const large = Math.floor(rcu.memory.audit().free / 4 * 0.9);
  rcu.deferFree(rcu.memory.allocate(large));
  // As where the counters say that something waits and the lists are empty.
  const process = callbacks.processCallbacks;
  let looks = 0;
  callbacks.processCallbacks = () => {
    if (++looks > 100) throw new Error("for ever");
  };
  assertThrows(() => rcu.memory.allocate(large), RcuMemoryError);
  callbacks.processCallbacks = process;
  rcu.memory.free(rcu.memory.allocate(large));
});

/** An Rcu with a callback that opens a section and leaves it open. */
function withSectionOpened(
  rcu: Rcu,
): { member: Rcu; section: () => ReadSection | undefined } {
  let section: ReadSection | undefined;
  const member = Rcu.attach(rcu.handle, { name: "member" });
  member.callRcu(() => section = member.readLock());
  return { member, section: () => section };
}

Deno.test("a barrier goes on to protect a section that a callback has opened, and refuses to wait in it", async () => {
  using rcu = domain({ stallTimeout: 50 });
  const { live } = rcu.memory.audit();
  const { member, section } = withSectionOpened(rcu);
  const other = Rcu.attach(rcu.handle);
  other.callRcu(() => {}); // Nobody but the other one can do it.
  assertThrows(() => member.barrierSync(), Error, "inside a read section");
  assert(section()!.open);
  assertThrows(() => rcu.synchronizeSync({ timeout: 5 }), RcuStallError);
  section()![Symbol.dispose]();
  member.close();
  other.close();
  await assertAlone(rcu, live);
});

Deno.test("an allocation does not wait in a section that a callback has opened meanwhile", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const large = Math.floor(rcu.memory.audit().free / 4 * 0.9);
  // The callback waits for one period, the block for the next one.
  const reading = rcu.readLock();
  const { member, section } = withSectionOpened(rcu);
  const { callbacks } = membershipOf(member, "test");
  callbacks.processCallbacks();
  member.deferFree(member.memory.allocate(large));
  callbacks.processCallbacks();
  reading[Symbol.dispose]();
  rcu.threadOffline();
  assertThrows(
    () => member.memory.allocate(large),
    RcuMemoryError,
    "inside a read section it cannot wait",
  );
  assert(section()!.open);
  assertThrows(() => rcu.synchronizeSync({ timeout: 5 }), RcuStallError);
  section()![Symbol.dispose]();
  member.close();
  await assertAlone(rcu, live);
});

Deno.test("a callback that close() runs can open no section", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const { member, section } = withSectionOpened(rcu);
  const errors: string[] = [];
  member.addEventListener("error", (event) => {
    event.preventDefault();
    errors.push((event as ErrorEvent).message);
  });
  member.close();
  assertEquals(section(), undefined);
  assertEquals(errors.length, 1);
  assertMatch(errors[0], /^Cannot read as the Rcu must be open: it is closed/);
  rcu.synchronizeSync({ timeout: 0 });
  await assertAlone(rcu, live);
});

Deno.test("close() refuses while a section is open that a callback has opened", () => {
  using rcu = domain();
  const { member, section } = withSectionOpened(rcu);
  member.barrierSync();
  assertThrows(() => member.close(), Error, "inside a read section");
  assert(section()!.open);
  assertThrows(() => rcu.synchronizeSync({ timeout: 5 }), RcuStallError);
  section()![Symbol.dispose]();
  member.close();
});

for (const Kind of [RcuMap, RcuSortedMap]) {
  Deno.test(`an update of ${Kind.name} after which a callback closes the Rcu has been made, and says so`, async () => {
    using rcu = domain();
    const watching = Kind.open(rcu, "m", { key: u32, value: string });
    const empty = await settle(rcu);
    // Whichever update it is at which the callbacks are looked at.
    const acts: ((map: typeof watching, i: number) => unknown)[] = [
      (map, i) => map.set(i, "x"),
      (map, i) => map.update(i, () => "y"),
      (map, i) => map.delete(i),
    ];
    for (const [kind, act] of acts.entries()) {
      for (let before = 0; before < 70; before++) {
        const member = Rcu.attach(rcu.handle);
        const map = Kind.open(member, "m", { key: u32, value: string });
        watching.replaceAll(
          Array.from({ length: kind < 2 ? 0 : 200 }, (_, i) => [i, "x"]),
        );
        for (let i = 0; i < before; i++) {
          member.deferFree(member.memory.allocate(4));
        }
        member.callRcu(() => member.close());
        let done = 0;
        // It fails only when the membership is closed before it begins.
        assertThrows(
          () => {
            for (let i = 0; i < 200; i++) {
              act(map, i);
              done++;
              if (kind === 2) member.deferFree(member.memory.allocate(4));
              else act(map, i);
            }
          },
          Error,
          "as the Rcu must be open: it is closed",
        );
        assertEquals(watching.size, kind < 2 ? done : 200 - done);
      }
    }
    watching.clear();
    await assertAlone(rcu, empty);
  });
}
