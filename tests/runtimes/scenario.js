// What the package is to do in any runtime: the same program for Node.js and for a browser.

/**
 * Runs in the main thread.
 *
 * @param rcuPackage What `mod.ts` exports.
 * @param startWorker Starts a worker that runs {@linkcode inWorker} with a handle; returns its answers.
 * @returns What was seen, a line each.
 */
export async function inMain(rcuPackage, startWorker) {
  const { Fib, json, Rcu, RcuCell, RcuMap, RcuSortedMap, string, u32 } =
    rcuPackage;
  const seen = [];
  const rcu = Rcu.create({ capacity: 4 * 2 ** 20, name: "main" });
  const map = RcuMap.open(rcu, "map", { key: string, value: json() });
  const sorted = RcuSortedMap.open(rcu, "sorted", { key: u32, value: u32 });
  const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 0 });
  map.set("a", { n: 1 });
  const worker = await startWorker(rcu.handle);
  seen.push(`worker: ${await worker.answer}`);
  seen.push(`main: ${map.get("b").n}, ${[...sorted.keys()]}`);
  seen.push(`cell: ${await cell.waitForChange({ since: 0 })}`);
  // Both write at once: where the main thread must not sleep, it waits for a lock all the same.
  worker.begin();
  for (let i = 0; i < 5_000; i++) cell.update((n) => n + 1);
  await worker.done;
  seen.push(`both: ${cell.get()}`);
  map.set("a", { n: 2 }).delete("b");
  await rcu.synchronize();
  const errors = [];
  rcu.addEventListener("error", (event) => {
    event.preventDefault();
    errors.push(event.error.message);
  });
  rcu.callRcu(() => {
    throw new Error("in a callback");
  });
  await rcu.barrier();
  seen.push(`errors: ${errors}`);
  seen.push(`deferred: ${rcu.memory.audit().deferred}`);
  rcu.synchronizeSync();
  const fib = Fib.open(rcu, "fib");
  fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
  seen.push(`fib: ${fib.lookup("10.1.2.3").interface}`);
  rcu.close();
  // A browser's BroadcastChannel does not carry shared memory.
  const { locks } = globalThis.navigator ?? {};
  if (locks !== undefined && globalThis.document !== undefined) {
    const error = await Rcu.connect("smoke").catch((error) => error);
    seen.push(`by name: ${/carries shared memory/.test(error.message)}`);
  } else if (locks !== undefined) {
    const [one, two] = await Promise.all(
      [Rcu.connect("smoke"), Rcu.connect("smoke")],
    );
    seen.push(`by name: ${one.handle.id === two.handle.id}`);
    one.close();
    two.close();
  }
  return seen;
}

/**
 * Runs in a worker.
 *
 * @param rcuPackage What `mod.ts` exports.
 * @param handle The domain.
 * @returns What it has found, and what it does when it is told to.
 */
export function inWorker(rcuPackage, handle) {
  const { json, Rcu, RcuCell, RcuMap, RcuSortedMap, string, u32 } = rcuPackage;
  const rcu = Rcu.attach(handle, { name: "worker" });
  const map = RcuMap.open(rcu, "map", { key: string, value: json() });
  const sorted = RcuSortedMap.open(rcu, "sorted", { key: u32, value: u32 });
  const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 0 });
  map.set("b", { n: map.get("a").n + 1 });
  sorted.set(7, 1).set(3, 1);
  cell.set(1);
  return {
    answer: map.get("b").n,
    go() {
      for (let i = 0; i < 5_000; i++) cell.update((n) => n + 1);
      rcu.close();
    },
  };
}

/** What is seen where all is well; the last line where there are Web Locks. */
export const EXPECTED = [
  "worker: 2",
  "main: 2, 3,7",
  "cell: 1",
  "both: 10001",
  "errors: in a callback",
  "deferred: 0",
  "fib: 1",
  "by name: true",
];
