/** Defers frees in a thread whose costs are measured. */
import { setImmediate } from "node:timers";
import {
  type CallbackPolicy,
  Rcu,
  type RcuOptions,
  runReclaimer,
} from "../mod.ts";
import {
  type Cost,
  costsSince,
  createCosts,
  instrument,
} from "../bench/_route_overhead.ts";

/** What is done. */
export interface Deferring {
  detector: NonNullable<RcuOptions["detector"]>;
  callbacks: CallbackPolicy;
  frees: number;
}

/** What it cost, and what a call is charged for nothing and its caller for it, in ms. */
export interface Measured {
  costs: Cost[];
  self: number;
  inner: number;
  /** Bytes that were live before and afterwards, and those that are still deferred. */
  memory: { before: number; after: number; deferred: number };
}

/** Frees between two turns of the event loop, in which a reclaimer has its own. */
const BATCH = 200;

export async function deferFrees(
  { detector, callbacks, frees }: Deferring,
): Promise<Measured> {
  const shared = createCosts();
  const publish = instrument(shared);
  const nothing = new Float64Array(shared).slice();
  using rcu = Rcu.create({
    capacity: 2 ** 21,
    detector,
    callbacks,
    reclaimer: "none",
  });
  const before = rcu.memory.audit().live;
  const end = new AbortController();
  const { signal } = end;
  const reclaimer = callbacks.mode === "offloaded"
    ? runReclaimer(rcu.handle, { signal })
    : undefined;
  for (let i = 0; i < frees; i++) {
    rcu.read(() => {});
    rcu.deferFree(rcu.memory.allocate(4));
    if (i % BATCH === 0) await new Promise(setImmediate);
  }
  await rcu.barrier();
  publish();
  end.abort();
  await reclaimer;
  const [self, inner] = nothing.slice(-2);
  const { live: after, deferred } = rcu.memory.audit();
  return {
    costs: costsSince([shared], [nothing]),
    self,
    inner,
    memory: { before, after, deferred },
  };
}
