import { assertEquals } from "@std/assert";
import { isWorker, webLocks } from "../src/sync/_web_locks.ts";
import { withWorkers } from "./_workers.ts";

/** Gives a global another value for a while. */
function withGlobal<R>(name: string, value: unknown, act: () => R): R {
  const before = Object.getOwnPropertyDescriptor(globalThis, name);
  Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    return act();
  } finally {
    if (before === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, before);
  }
}

Deno.test("the process's Web Locks are found where there are some", () => {
  assertEquals(typeof webLocks()?.query, "function");
  assertEquals(withGlobal("navigator", {}, webLocks), undefined);
  assertEquals(withGlobal("navigator", undefined, webLocks), undefined);
});

Deno.test("a main thread is no worker, a Web Worker is one", async () => {
  assertEquals(isWorker(), false);
  await withWorkers("_mutex_worker.ts", 1, async (worker) => {
    assertEquals(await worker.call<boolean>("isWorker"), true);
  });
});

Deno.test("of the threads with a main thread's scope, workers of node:worker_threads in Deno are workers", () => {
  const process = (isMainThread: boolean, versions: object) => ({
    versions,
    getBuiltinModule: (name: string) =>
      name === "node:worker_threads" ? { isMainThread } : undefined,
  });
  for (
    const [scope, expected] of [
      [process(false, { deno: "2.9.6" }), true],
      [process(true, { deno: "2.9.6" }), false],
      [process(false, { node: "24" }), false],
      [{ versions: { deno: "2.9.6" } }, false],
      [{ versions: { deno: "1" }, getBuiltinModule() {} }, false],
      [{}, false],
      [undefined, false],
    ] as const
  ) {
    assertEquals(withGlobal("process", scope, isWorker), expected);
  }
  // A browser's main thread may have the constructor, and is none of its kind.
  class WorkerGlobalScope {}
  assertEquals(
    withGlobal(
      "process",
      undefined,
      () => withGlobal("WorkerGlobalScope", WorkerGlobalScope, isWorker),
    ),
    false,
  );
  assertEquals(withGlobal("WorkerGlobalScope", undefined, isWorker), false);
});
