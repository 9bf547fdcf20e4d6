/**
 * How long grace periods take, after the kernel's rcuscale: waiting for one,
 * also expedited, by polling, and for one's own deferred frees, and deferring
 * itself, with each detector and 1, 8 and 64 registered readers. They are idle,
 * or one reads on and on in a thread of its own, passing quiescent states.
 *
 * The tables at the end are the measurement: operations and detectors take
 * turns in threads of their own. The rows of `deno bench` show the core of it.
 */
import {
  FEW,
  gracePeriodFindings,
  gracePeriods,
  measureGracePeriods,
  says,
} from "./_grace_period_experiment.ts";
import { Domains, nameOf, STATES } from "./_grace_period_figures.ts";
import {
  atFullLength,
  count,
  printAtEnd,
  shown,
  shownBars,
} from "./_report.ts";

const figures = await atFullLength(gracePeriods, measureGracePeriods);

const domains = await Domains.open(FEW);
for (const state of STATES) {
  for (const [n, domain] of domains.all.entries()) {
    Deno.bench({
      name: `synchronizeSync, ${nameOf(domain.detector)}`,
      group: `a grace period, ${count(FEW)} readers, ${says(state)}`,
      baseline: n === 0,
      fn: () => {
        domains.read(domain, state);
        domain.rcu.synchronizeSync();
      },
    });
  }
}

printAtEnd(() => {
  const { bars, tables } = gracePeriodFindings(figures);
  return [shownBars(bars), ...tables.map(shown)].join("\n\n");
});
globalThis.addEventListener("unload", () => domains.stop());
