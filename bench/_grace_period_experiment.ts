/** How long grace periods take, after the kernel's rcuscale, as an experiment. */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import {
  BLOCKING,
  type Detector,
  DETECTORS,
  type GracePeriodFigures,
  nameOf,
  POLLING,
  READERS,
  type State,
  STATES,
  title,
  TURNING,
} from "./_grace_period_figures.ts";
import { median, quantile, ratio, type Series } from "./_measure.ts";
import { count, short, spread } from "./_report.ts";
import { inFreshWorker } from "./_workers.ts";

const FIGURES = import.meta.resolve("./_grace_period_figures.ts");

/** Readers of the bar for waits while all are idle. */
export const FEW = 8;
/** The longest that a wait may take in the median, in µs. */
const BARS: Record<State, number> = { idle: 20, busy: 200 };
/** The wait that they are about, and the charts. */
const WAIT = BLOCKING[0];

/** By number of readers. */
export type Figures = Map<number, GracePeriodFigures>;

/** Each kind of wait with each detector. */
export const gracePeriods: Experiment = {
  name: "grace_period",
  title: "Grace periods: how long a wait is",
  about: "Waiting for a grace period, also expedited, by polling, and for " +
    "one's own deferred frees, and deferring itself, with each detector and " +
    "1, 8 and 64 registered readers: all idle, or one of them reading on and " +
    "on in a thread of its own. After the kernel's rcuscale.",
  command: "deno task bench:all bench/grace_period_bench.ts",
  steps: () => READERS.length,
  run: async (options) =>
    gracePeriodFindings(await measureGracePeriods(options)),
};

/** Takes the figures: operations and detectors take turns, in threads of their own. */
export async function measureGracePeriods(
  { quick, onStep }: RunOptions,
): Promise<Figures> {
  const figures: Figures = new Map();
  for (const readers of READERS) {
    onStep(`${count(readers)} registered, idle and one busy`);
    figures.set(
      readers,
      await inFreshWorker<GracePeriodFigures>(FIGURES, "gracePeriodFigures", {
        readers,
        quick,
      }),
    );
  }
  return figures;
}

/** What it comes to. */
export function gracePeriodFindings(figures: Figures): Findings {
  return {
    bars: STATES.flatMap((state) =>
      DETECTORS.map((detector) => bar(figures, state, detector))
    ),
    tables: [
      ...STATES.map((state) => waits(figures, state)),
      polls(figures),
      reader(figures),
    ],
    charts: STATES.map((state) => chart(figures, state)),
  };
}

/** What a state is called. */
export function says(state: State): string {
  return state === "idle" ? "all idle" : "one busy";
}

/** Waits, or frees, in µs. */
function µs(
  figures: Figures,
  readers: number,
  state: State,
  detector: Detector,
  operation: string,
): number[] {
  return figures.get(readers)!.series[state][title(detector, operation)]
    .map((ns) => ns / 1000);
}

function bar(figures: Figures, state: State, detector: Detector): Bar {
  const readers = state === "idle" ? [FEW] : READERS;
  const medians = readers.map((n) =>
    median(µs(figures, n, state, detector, WAIT))
  );
  return {
    what: state === "idle"
      ? `${WAIT}, ${FEW} readers, all offline, ${nameOf(detector)}: µs`
      : `${WAIT}, one busy reader of ${readers.join(", ")}, ${
        nameOf(detector)
      }: µs`,
    bar: `≤ ${BARS[state]}`,
    measured: medians.map(short).join(", "),
    met: medians.every((median) => median <= BARS[state]),
  };
}

const HEADINGS = READERS.map((n) => `${count(n)} reader${n > 1 ? "s" : ""}`);

function waits(figures: Figures, state: State): Table {
  return {
    title: `Waits, ${says(state)}`,
    head: [`${says(state)}, µs: median / 90 % / 99 %`, "detector", ...HEADINGS],
    rows: [...BLOCKING, ...TURNING].flatMap((operation) =>
      DETECTORS.map((detector, n) => [
        n === 0 ? operation : "",
        nameOf(detector),
        ...READERS.map((readers) => {
          const all = µs(figures, readers, state, detector, operation);
          return [0.5, 0.9, 0.99]
            .map((share) => short(quantile(all, share))).join(" / ");
        }),
      ])
    ),
    notes: state === "idle"
      ? `Readers are registered beside the thread that waits, and offline. Times are those of some waits in a row;
of deferFree, with all that it defers reclaimed, of many. synchronize lets the event loop turn, the others block.`
      : `One reader reads on and on, the others are offline. Times are those of single waits; of deferFree, with all that
it defers reclaimed, of many. A busy reader that has no core, as others use the machine, passes a quiescent
state when it gets one. synchronize comes back in a later turn of the event loop, which a timer brings about.`,
  };
}

function polls(figures: Figures): Table {
  return {
    title: "How often it is asked whether a period has ended",
    head: ["mean polls a wait", "detector", ...HEADINGS],
    rows: STATES.flatMap((state) =>
      POLLING.flatMap((operation) =>
        DETECTORS.map((detector, n) => [
          n === 0 ? `${operation}: ${says(state)}` : "",
          nameOf(detector),
          ...READERS.map((readers) =>
            short(mean(figures.get(readers)!.polls[state], detector, operation))
          ),
        ])
      )
    ),
  };
}

function mean(polls: Series, detector: Detector, operation: string): number {
  const all = polls[title(detector, operation)];
  return all.reduce((sum, polled) => sum + polled, 0) / all.length;
}

function reader(figures: Figures): Table {
  return {
    title: "What endless waits cost the busy reader",
    head: [
      "reads/s of the busy reader",
      "readers",
      "alone",
      `beside endless ${WAIT}`,
      "ratio",
    ],
    rows: DETECTORS.flatMap((detector) =>
      READERS.map((readers, n) => {
        const { alone, besideWaits } =
          figures.get(readers)!.reads[nameOf(detector)];
        return [
          n === 0 ? nameOf(detector) : "",
          count(readers),
          count(median(alone)),
          count(median(besideWaits)),
          spread(ratio(besideWaits, alone)),
        ];
      })
    ),
  };
}

function chart(figures: Figures, state: State): Chart {
  return {
    title: `${WAIT}, ${says(state)}`,
    kind: "line",
    x: { title: "registered readers", unit: "", log: true },
    y: { title: "median wait", unit: "µs", log: true },
    series: DETECTORS.map((detector) => ({
      name: nameOf(detector),
      points: READERS.map((readers) => [
        readers,
        median(µs(figures, readers, state, detector, WAIT)),
      ]),
    })),
  };
}
