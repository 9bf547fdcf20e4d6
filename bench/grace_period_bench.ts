/**
 * How long grace periods take, after the kernel's rcuscale: waiting for one,
 * also expedited, for one's own deferred frees, and deferring itself, with 1, 8
 * and 64 registered readers. They are idle, or one reads on and on in a thread
 * of its own, passing quiescent states.
 *
 * The tables at the end are the measurement: operations and detectors take
 * turns in threads of their own. The rows of `deno bench` show the core of it.
 */
import {
  DETECTORS,
  Domains,
  type GracePeriodFigures,
  nameOf,
  OPERATIONS,
  READERS,
  type State,
  STATES,
  title,
} from "./_grace_period_figures.ts";
import { median, quantile, ratio } from "./_measure.ts";
import {
  count,
  printAtEnd,
  Progress,
  short,
  spread,
  table,
} from "./_report.ts";
import { inFreshWorker } from "./_workers.ts";

/** Readers of the bar for waits while all are idle, and of the rows of `deno bench`. */
const FEW = 8;
/** The longest that a wait may take in the median, in µs. */
const BARS: Record<State, number> = { idle: 20, busy: 200 };

const figures = await (async () => {
  await using progress = new Progress("grace periods", READERS.length);
  const figures = new Map<number, GracePeriodFigures>();
  for (const readers of READERS) {
    progress.step(`${count(readers)} registered, idle and one busy`);
    figures.set(
      readers,
      await inFreshWorker<GracePeriodFigures>(
        import.meta.resolve("./_grace_period_figures.ts"),
        "gracePeriodFigures",
        readers,
      ),
    );
  }
  return figures;
})();

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

printAtEnd(() => `${waits()}\n\n${reader()}`);
globalThis.addEventListener("unload", () => domains.stop());

function says(state: State): string {
  return state === "idle" ? "all idle" : "one busy";
}

function waits(): string {
  const rows = STATES.flatMap((state) =>
    OPERATIONS.flatMap((operation) =>
      READERS.flatMap((readers) =>
        DETECTORS.map((detector) => {
          const series = figures.get(readers)!.series[state];
          const µs = series[title(detector, operation)].map((ns) => ns / 1000);
          const bar = operation === "synchronizeSync" &&
              (state === "busy" || readers === FEW)
            ? BARS[state]
            : undefined;
          return [
            `${operation}, ${says(state)}`,
            count(readers),
            nameOf(detector),
            ...[0.5, 0.9, 0.99].map((share) => short(quantile(µs, share))),
            bar === undefined ? "" : `≤ ${bar}`,
            bar === undefined ? "" : median(µs) <= bar ? "met" : "NOT MET",
          ];
        })
      )
    )
  );
  return `${
    table([
      ["µs each", "readers", "detector", "median", "90 %", "99 %", "bar", ""],
      ...rows,
    ])
  }

Registered readers beside the waiting thread. Times with a busy reader are those of single waits;
of the others, and of deferFree, with all that it defers reclaimed, of some in a row. A busy reader
that has no core, as others use the machine, passes a quiescent state when it gets one.`;
}

function reader(): string {
  const rows = READERS.flatMap((readers) =>
    DETECTORS.map((detector) => {
      const { alone, besideWaits } =
        figures.get(readers)!.reads[nameOf(detector)];
      return [
        nameOf(detector),
        count(readers),
        count(median(alone)),
        count(median(besideWaits)),
        spread(ratio(besideWaits, alone)),
      ];
    })
  );
  return table([
    [
      "what it costs the busy reader",
      "readers",
      "reads/s alone",
      "beside endless synchronizeSync",
      "ratio",
    ],
    ...rows,
  ]);
}
