// A worker that stops itself right after reading, with and without leaving the domain.

import { assertEquals, assertThrows } from "@std/assert";
import { Rcu, RcuCell, RcuStallError, u32 } from "../mod.ts";
import type { ClosingTask } from "./_closing_worker.ts";

const { locks } = navigator as unknown as {
  locks: { request(name: string, granted: () => void): Promise<void> };
};

/** Starts the worker, and returns when it has ended. */
async function runWorker(rcu: Rcu, leaves: boolean): Promise<void> {
  RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
  const worker = new Worker(import.meta.resolve("./_closing_worker.ts"), {
    type: "module",
  });
  const life = crypto.randomUUID();
  const task: ClosingTask = { handle: rcu.handle, leaves, life };
  const { promise, resolve } = Promise.withResolvers<unknown>();
  worker.onmessage = resolve;
  worker.postMessage(task);
  await promise;
  await locks.request(life, () => {});
  worker.terminate();
}

Deno.test("a worker that calls rcu.close() before self.close() holds nobody up", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  await runWorker(rcu, true);
  await rcu.barrier();
  assertEquals(rcu.stats().readers.length, 1);
});

Deno.test("errors of waits and of full domains say that a thread may have ended without close()", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 2 });
  await runWorker(rcu, false);
  assertThrows(
    () => rcu.synchronizeSync({ timeout: 1 }),
    RcuStallError,
    'reader 1 ("gone") did not pass a quiescent state; 0 callbacks wait; ' +
      "if it is a worker that has ended without close(), it is in the way until that is proven",
  );
  assertThrows(
    () => Rcu.attach(rcu.handle),
    RangeError,
    "all slots are taken; those of threads that ended without close() become free",
  );
});
