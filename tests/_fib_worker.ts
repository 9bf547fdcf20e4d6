// What workers do to a Fib in its tests.

import { Rcu } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import { dotted, Oracle, prefixOf } from "./_fib_oracle.ts";
import {
  type ReaderReport,
  type ReaderTask,
  ROUNDS,
  SEEN,
  STOP,
  type WriterTask,
} from "./_fib_tasks.ts";
import { serve } from "./_workers.ts";

function read({ handle, control, addresses, monotonic }: ReaderTask) {
  using rcu = Rcu.attach(handle, { name: "reader" });
  const fib = Fib.open(rcu, "fib");
  const report: ReaderReport = { rounds: 0, wrong: [], seen: 0 };
  const seen = new Set<number>();
  let last = -1;
  while (Atomics.load(control, STOP) === 0) {
    for (const { address, metrics } of addresses) {
      const route = fib.lookup(address);
      // Lookups are plain loads: this keeps a processor from reordering two of them.
      Atomics.add(control, ROUNDS, 0);
      const metric = route?.metric ?? -1;
      const right = metric === -1
        ? route === undefined
        : route!.interface === metric % 1000 &&
          route!.gateway === dotted(metric);
      seen.add(metric);
      if (monotonic ? metric < last : !metrics.includes(metric)) {
        report.wrong.push(`${dotted(address)}: ${metric} after ${last}`);
      }
      if (!right) report.wrong.push(`${dotted(address)}: torn ${metric}`);
      last = metric;
    }
    report.rounds++;
    Atomics.store(control, SEEN, seen.size);
    Atomics.store(control, ROUNDS, report.rounds);
    if (report.wrong.length > 10) break;
  }
  report.seen = seen.size;
  return report;
}

/** Updates prefixes that are its own, inside nodes that all writers share. */
function write({ handle, own, updates }: WriterTask) {
  using rcu = Rcu.attach(handle, { name: `writer ${own}` });
  const fib = Fib.open(rcu, "fib");
  const oracle = new Oracle();
  let seed = own + 1;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor(seed / 0x80000000 * below);
  };
  for (let i = 0; i < updates; i++) {
    const length = 24 + random(9);
    const third = own * 16 + random(16);
    const prefix = prefixOf(0x0a000000 + third * 256 + random(256), length);
    if (random(3) === 0) {
      if (fib.delete(prefix.text) !== oracle.delete(prefix)) {
        throw new Error(`Deleting ${prefix.text} went wrong`);
      }
    } else {
      const route = { gateway: dotted(random(50)), interface: own };
      fib.insert(prefix.text, route);
      oracle.insert(prefix, route);
    }
  }
  return oracle.entries();
}

serve({ read, write });
