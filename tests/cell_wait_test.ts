import {
  assert,
  assertEquals,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { json, Rcu, RcuCell, u32 } from "../mod.ts";
import { until, withWorkers } from "./_workers.ts";

/** A cell, and the word that counts its waiters. */
function setUp() {
  const rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
  const member = Rcu.attach(rcu.handle);
  const before = rcu.memory.words.slice();
  const a = RcuCell.open(rcu, "c", { value: u32, initial: 0x5eed });
  const b = RcuCell.open(member, "c", { value: u32 });
  const { words } = rcu.memory;
  const value = words.findIndex((word, i) =>
    word === 0x5eed && before[i] !== word && words[i + 1] === 0 &&
    words[i + 2] === 0
  );
  assert(value > 0);
  return {
    rcu,
    a,
    b,
    waiters: () => Atomics.load(words, value + 2),
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

/** Keeps the event loop alive: a pending wait does not. */
async function awaiting<T>(promise: Promise<T>): Promise<T> {
  const timer = setTimeout(() => {}, 30_000);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

Deno.test("waitForChange() resolves with the value that this thread sets next", async () => {
  using t = setUp();
  const changed = t.a.waitForChange();
  assertEquals(t.waiters(), 1);
  t.a.set(7);
  assertEquals(await awaiting(changed), 7);
  assertEquals(t.waiters(), 0);
});

Deno.test("waitForChange() wakes every waiter, of every member", async () => {
  using t = setUp();
  const all = [t.a.waitForChange(), t.b.waitForChange(), t.b.waitForChange()];
  assertEquals(t.waiters(), 3);
  t.b.update((n) => n + 1);
  assertEquals(await awaiting(Promise.all(all)), Array(3).fill(0x5eee));
  assertEquals(t.waiters(), 0);
});

Deno.test("waitForChange() resolves even if the value that was set is the same", async () => {
  using t = setUp();
  const changed = t.a.waitForChange();
  t.b.set(0x5eed);
  assertEquals(await awaiting(changed), 0x5eed);
});

Deno.test("waitForChange() since a version in the past resolves at once", async () => {
  using t = setUp();
  const since = t.a.version;
  t.b.set(1);
  t.b.set(2);
  assertEquals(await t.a.waitForChange({ since }), 2);
  assertEquals(t.waiters(), 0);
});

Deno.test("waitForChange() goes on waiting until the version differs", async () => {
  using t = setUp();
  let resolved = false;
  const changed = t.a.waitForChange({ since: t.a.version })
    .finally(() => resolved = true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert(!resolved);
  // A notification without a change is nothing.
  const { words } = t.rcu.memory;
  for (let i = 0; i < words.length; i += 1) {
    if (words[i] === 0x5eed) Atomics.notify(words, i + 1);
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert(!resolved);
  assertEquals(t.waiters(), 1);
  t.a.set(1);
  assertEquals(await awaiting(changed), 1);
});

Deno.test("waitForChange() that is aborted rejects with the signal's reason", async () => {
  using t = setUp();
  const reason = new Error("enough");
  const controller = new AbortController();
  const { signal } = controller;
  const changed = t.a.waitForChange({ signal });
  assertEquals(t.waiters(), 1);
  controller.abort(reason);
  assertStrictEquals(await assertRejects(() => awaiting(changed)), reason);
  assertEquals(t.waiters(), 0);
  // Aborted before: not even begun.
  const early = t.a.waitForChange({ signal });
  assertStrictEquals(await assertRejects(() => early), reason);
  assertEquals(t.waiters(), 0);
  // And others wait on.
  const next = t.a.waitForChange();
  t.b.set(3);
  assertEquals(await awaiting(next), 3);
});

Deno.test("a signal that is aborted after the change does nothing", async () => {
  using t = setUp();
  const controller = new AbortController();
  const { signal } = controller;
  const changed = t.a.waitForChange({ signal });
  t.a.set(1);
  assertEquals(await awaiting(changed), 1);
  controller.abort();
  assertEquals(t.waiters(), 0);
});

Deno.test("a thousand waits that are aborted leave no waiter counted", async () => {
  using t = setUp();
  for (let i = 0; i < 1000; i++) {
    const controller = new AbortController();
    const { signal } = controller;
    const changed = t.a.waitForChange({ signal });
    controller.abort();
    await changed.catch(() => {});
  }
  assertEquals(t.waiters(), 0);
});

Deno.test("waitForChange() of a closed Rcu rejects", async () => {
  using t = setUp();
  const pending = t.a.waitForChange();
  t.rcu.close();
  await assertRejects(() => t.a.waitForChange(), Error, "closed");
  t.b.set(1);
  await assertRejects(() => awaiting(pending), Error, "closed");
  assertEquals(t.waiters(), 0);
});

Deno.test("two workers play ping-pong by waiting for each other's changes", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
  const cell = RcuCell.open(rcu, "ball", { value: json(), initial: { n: 0 } });
  const last = 2000;
  await withWorkers("_cell_worker.ts", 2, async (...workers) => {
    const plays = workers.map((worker, me) =>
      worker.call<number>("play", { handle: rcu.handle, me, last })
    );
    assertEquals(await Promise.all(plays), [last / 2, last / 2]);
  });
  assertEquals(cell.get(), { n: last });
  assertEquals(cell.version, last);
});

Deno.test("a change that another thread makes is noticed without a turn of that thread", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 8 });
  const cell = RcuCell.open(rcu, "n", { value: u32, initial: 0 });
  RcuCell.open(rcu, "j", { value: json(), initial: { n: 0 } });
  await withWorkers("_cell_worker.ts", 1, async (worker) => {
    const changed = cell.waitForChange();
    const done = worker.call("incrementCells", {
      handle: rcu.handle,
      times: 3,
    });
    assert(await awaiting(changed) >= 1);
    await done;
    await until("the cell has its last value", () => cell.get() === 3);
  });
});

Deno.test("a wait for a change ends with an error when its own membership ends", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const member = Rcu.attach(rcu.handle);
  const cell = RcuCell.open(member, "n", { value: u32, initial: 1 });
  const changed = cell.waitForChange();
  member.close();
  await assertRejects(() => changed, Error, "it is closed");
});
