/** Defers frees in a thread whose costs are measured. */
import { type CallbackPolicy, Rcu, type RcuOptions } from "../mod.ts";
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
}

export function deferFrees(
  { detector, callbacks, frees }: Deferring,
): Measured {
  const shared = createCosts();
  const publish = instrument(shared);
  const nothing = new Float64Array(shared).slice();
  using rcu = Rcu.create({
    capacity: 2 ** 21,
    detector,
    callbacks,
    reclaimer: "none",
  });
  for (let i = 0; i < frees; i++) {
    rcu.read(() => {});
    rcu.deferFree(rcu.memory.allocate(4));
  }
  rcu.barrierSync();
  publish();
  const [self, inner] = nothing.slice(-2);
  return { costs: costsSince([shared], [nothing]), self, inner };
}
