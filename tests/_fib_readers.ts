// Lookups in workers while the main thread updates.

import { assert, assertEquals } from "@std/assert";
import type { Rcu } from "../src/rcu.ts";
import type { Fib } from "../src/routing/fib.ts";
import {
  type ReaderReport,
  type ReaderTask,
  ROUNDS,
  SEEN,
  STOP,
} from "./_fib_tasks.ts";
import { sharedWords, withWorkers } from "./_workers.ts";

/**
 * Lets two workers look addresses up while `update` is called again and again, until
 * both sides have done enough, and asserts that they found nothing wrong.
 *
 * @param fib The table; empty afterwards.
 * @param rcu Its domain.
 * @param addresses What the workers look up.
 * @param monotonic Whether the metrics that they find must never go down.
 * @param update Makes the next change.
 * @param updates Least changes.
 * @param rounds Least lookups of all addresses, by each worker.
 */
export async function againstReaders(
  fib: Fib,
  rcu: Rcu,
  addresses: ReaderTask["addresses"],
  monotonic: boolean,
  update: (i: number) => void,
  updates = 3000,
  rounds = 3000,
): Promise<void> {
  await withWorkers("_fib_worker.ts", 2, async (...workers) => {
    const controls = workers.map(() => sharedWords(3));
    const reports = workers.map((worker, i) =>
      worker.call<ReaderReport>("read", {
        handle: rcu.handle,
        control: controls[i],
        addresses,
        monotonic,
      })
    );
    for (
      let i = 0;
      i < updates ||
      controls.some((control) =>
        Atomics.load(control, ROUNDS) < rounds ||
        Atomics.load(control, SEEN) < 2
      );
      i++
    ) {
      update(i);
      // A reader that found something wrong makes no further rounds; replies come by the event loop.
      if (i % 256 === 0) await new Promise((resolve) => setTimeout(resolve));
      if (i > 100 * updates) break;
    }
    for (const control of controls) Atomics.store(control, STOP, 1);
    for (const report of await Promise.all(reports)) {
      assertEquals(report.wrong, []);
      assert(report.rounds >= rounds, `only ${report.rounds} rounds`);
      assert(report.seen > 1, "saw no change at all");
    }
  });
  fib.load([]);
}
