// A worker that dies of an exception right after reading must not hold grace periods up.

import { assertEquals } from "@std/assert";
import { Rcu, RcuCell, u32 } from "../mod.ts";

Deno.test("a worker that ends by an uncaught exception is offline", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
  const worker = new Worker(import.meta.resolve("./_throwing_worker.ts"), {
    type: "module",
  });
  const { promise, resolve } = Promise.withResolvers<string>();
  worker.onerror = (event) => {
    event.preventDefault();
    resolve(event.message);
  };
  worker.postMessage(rcu.handle);
  assertEquals((await promise).includes("as planned"), true);
  worker.terminate();
  rcu.synchronizeSync();
  assertEquals(
    rcu.stats().readers.map(({ name, online }) => [name, online]),
    [["", false], ["thrower", false]],
  );
});
