/** The experiments of `deno task report`. */
import type { Experiment } from "./_experiment.ts";

/** All of them, in the order of the page; each is a line of its own. */
export const EXPERIMENTS: readonly Experiment[] = [
  (await import("./_read_side_experiment.ts")).readSide,
  (await import("./_map_experiment.ts")).map,
  (await import("./_strings_experiment.ts")).strings,
  (await import("./_bulk_experiment.ts")).bulk,
  (await import("./_fib_experiment.ts")).fib,
  (await import("./_grace_period_experiment.ts")).gracePeriods,
  (await import("./_route_experiment.ts")).routeCache,
  (await import("./_latency_figures.ts")).callbackLatency,
  (await import("./_flood_figures.ts")).flood,
  (await import("./_open_close.ts")).openClose,
  (await import("./_sorted_experiment.ts")).sortedMap,
  (await import("./peers/_liburcu_experiment.ts")).liburcuPeer,
  (await import("./scaling_model.ts")).scalingModel,
];
