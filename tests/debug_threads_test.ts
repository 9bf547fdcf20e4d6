// Debug mode names what another thread has done, and where.

import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { Rcu } from "../mod.ts";
import { Budget } from "../src/debug/_budget.ts";
import { DEFERRED, Trail } from "../src/debug/_trail.ts";
import { HEADER_DETECTOR, HEADER_MAX_READERS, layout } from "../src/_layout.ts";
import { withDomain } from "./_audit.ts";
import { assertBlames } from "./_blame.ts";
import { sharedWords, type TestWorker, withWorkers } from "./_workers.ts";

function withWriter(
  use: (rcu: Rcu, writer: TestWorker) => Promise<void>,
): Promise<void> {
  return withDomain(
    { debug: true, name: "main" },
    (rcu) =>
      withWorkers("_debug_worker.ts", 1, async (writer) => {
        await writer.call("join", { handle: rcu.handle, name: "writer" });
        await use(rcu, writer);
      }),
  );
}

Deno.test("a block that another thread has freed, deferred or published names that thread, and its stack", () =>
  withWriter(async (rcu, writer) => {
    const { memory } = rcu;
    // Of a size that nothing else has, or they would soon be something else.
    const [pointer, freed, deferred, published] = [1, 2, 3, 4].map(() =>
      memory.allocate(100)
    );
    rcu.assignPointer(pointer, 0);
    await writer.call("free", freed);
    await writer.call("defer", deferred);
    await writer.call("publish", [pointer, published]);
    const by = (who: string) => {
      assertBlames(
        () => rcu.deferFree(freed),
        "Cannot defer freeing a block as it must be live",
        [[`${who} freed it`, "freeInWorker"]],
      );
      assertBlames(
        () => memory.free(deferred),
        "Cannot free a block as it must be live",
        [[`${who} deferred freeing it`, "deferInWorker"]],
      );
      assertBlames(
        () => memory.free(published),
        "Cannot free a block at once as no reader may find it",
        [[`${who} published it`, "publishInWorker"]],
      );
    };
    by('reader 1 ("writer")');
    await writer.call("leave");
    const gone = "reader 1, which has left,";
    by(gone);
    // Nor is it the one that has its record now.
    using next = Rcu.attach(rcu.handle, { name: "next" });
    assertEquals(next.readerId, 1);
    by(gone);
    rcu.assignPointer(pointer, 0);
    rcu.deferFree(published);
    rcu.memory.free(pointer);
  }));

Deno.test("a worker is told what this thread has done", () =>
  withWriter(async (rcu, writer) => {
    function freeInMain(block: number): void {
      rcu.memory.free(block);
    }
    const block = rcu.memory.allocate(4);
    freeInMain(block);
    const { message, cause } = await writer.call<
      { message: string; cause: string }
    >("blame", block);
    assertMatch(
      message,
      /is already free; reader 0 \("main"\) freed it at file:/,
    );
    assertMatch(
      cause,
      /freed it here:\n +at freeInMain \(.*debug_threads_test/,
    );
    await writer.call("leave");
  }));

Deno.test("a trail whose lock is not given back is done without", () =>
  withDomain({ debug: true }, (rcu) => {
    const { words } = rcu.memory;
    const [maxReaders, detector] = [HEADER_MAX_READERS, HEADER_DETECTOR].map(
      (at) => words[at],
    );
    const { trail } = layout(words.length, maxReaders, detector, true);
    const blocks = [1, 2].map(() => rcu.memory.allocate(4));
    // As by a thread that was terminated there.
    Atomics.store(words, trail!, 5);
    for (const block of blocks) rcu.memory.free(block);
    Atomics.store(words, trail!, 0);
    const { message } = assertThrows(() => rcu.memory.free(blocks[1]), Error);
    assert(message.endsWith("is already free"), message);
  }));

Deno.test("where there is no room for stacks in shared memory, a thread knows its own", () => {
  const words = sharedWords(640);
  const [mine, others] = [1, 2].map((owner) => new Trail(words, 0, owner));
  const deep = (depth: number, act: () => void): void =>
    depth === 0 ? act() : deep(depth - 1, act);
  const tags = Array.from({ length: 7 }, (_, i) => 4096 + i);
  for (const [i, tag] of tags.entries()) {
    // Each has a stack of its own.
    deep(i, () => mine.end(tag, DEFERRED, 0));
  }
  const known = tags.map((tag) => others.find(tag)?.ended?.frames());
  assert(known[0]?.includes("debug_threads_test"), known[0]);
  assertEquals(known.at(-1), undefined);
  for (const [i, tag] of tags.entries()) {
    const frames = mine.find(tag)?.ended?.frames() ?? "";
    const depth = frames.split("\n").filter((frame) => /\bdeep\b/.test(frame));
    assertEquals(depth.length, i + 1, frames);
    assertEquals(others.find(tag)?.ended?.owner, 1);
  }
});

Deno.test("stacks take a part of a thread's time at most", () => {
  const { now } = Date;
  let ms = 0;
  Date.now = () => ms;
  try {
    const budget = new Budget(1 / 5);
    budget.spend(99);
    assertEquals(budget.isSpent, false);
    budget.spend(1);
    assertEquals(budget.isSpent, true);
    ms += 10;
    assertEquals(budget.isSpent, false);
    budget.spend(2);
    assertEquals(budget.isSpent, true);
  } finally {
    Date.now = now;
  }
});
