// A membership that ends, and code of it that is still on the stack, queued or waiting.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { Rcu, type RcuOptions } from "../mod.ts";
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
