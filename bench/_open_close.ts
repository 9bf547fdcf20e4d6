/**
 * The experiment of 2009: `close(open(path))` by more and more threads, and what
 * `call_rcu` takes of the processors ("tree rcu: call_rcu scalability problem?",
 * Nick Piggin, linux-kernel, September 2009).
 */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import { median, quantile, type Ratio, ratio } from "./_measure.ts";
import { measure, type Setting, WORKERS } from "./_open_close_figures.ts";
import { isKnown, type Run, type Variant } from "./_open_close_lab.ts";
import { CALL_RCU, FREEING, STEP_NAMES } from "./_open_close_worker.ts";
import { count, short, spread } from "./_report.ts";

/** Those that `Rcu.create` refuses are left out. */
const DETECTORS = ["classic", "tree", "scan"];
/** The kernel's qhimark, and the default of `highWater`. */
const HIGH_WATER = 10_000;
/**
 * The fault's mark. Two cores that eight threads take turns on do not keep
 * 10,000 waiting as eight did; so that the fault shows, its mark is lower, and
 * the package is measured with that mark as well.
 */
const LOW_MARK = 2000;
const FAULTY = "scan";
/** What call_rcu's processor time may grow by. */
const MOST = 1.2;

/** The seed's ticks in `__call_rcu` with as many threads as there are {@linkcode WORKERS}. */
const SEED = [591, 3075, 10994, 31815];

/** What is measured. */
export function variants(): Variant[] {
  const high = DETECTORS.map((detector): Variant => ({
    name: detector,
    detector,
    highWater: HIGH_WATER,
    fault: false,
  }));
  const low = {
    name: `${FAULTY}, highWater ${count(LOW_MARK)}`,
    detector: FAULTY,
    highWater: LOW_MARK,
    fault: false,
  };
  const fault = { ...low, name: "the fault of 2009", fault: true };
  return [...high, low, fault].filter(isKnown);
}

/** What was measured of a variant. */
interface Measured {
  variant: Variant;
  settings: Setting[];
}

/** `close(open(path))` on a path cache: 2009's question to `call_rcu`. */
export const openClose: Experiment = {
  name: "open_close",
  title: "close(open(path)): what deferring costs with more workers",
  about:
    "Linux 2.6.31, 2009: with 8 threads that open and close files, tree RCU's call_rcu took " +
    "54 times the processor time of one thread for 8 times the work, 6.7 times an operation. " +
    "Past 10,000 waiting callbacks every call forced a grace period. Here: a path cache in " +
    "shared memory, its dentries counted, files from the slab, freed by deferFree.",
  command: "deno task bench:all bench/open_close_bench.ts",
  steps: () => variants().length,
  async run({ quick, onStep }: RunOptions): Promise<Findings> {
    const measured: Measured[] = [];
    for (const variant of variants()) {
      onStep(`${variant.name}: ${WORKERS.join(", ")} workers`);
      measured.push({ variant, settings: await measure(variant, quick) });
    }
    return {
      bars: measured.filter(hasBar).map(bar),
      tables: [growthTable(measured), ...measured.map(profile)],
      charts: charts(measured),
    };
  },
};

// One number a round

type Figure = (run: Run) => number;

const callRcu: Figure = ({ steps }) => steps[CALL_RCU];
const freeing: Figure = ({ steps }) => steps[FREEING];
const both: Figure = (run) => callRcu(run) + freeing(run);

/** How many times as much it is with the most workers as with one, round by round. */
function growth({ settings }: Measured, pick: Figure): Ratio {
  const [one] = settings;
  const most = settings[settings.length - 1];
  return ratio(most.steps.map(pick), one.steps.map(pick));
}

/** The median of some rounds and their quartiles. */
function middle(values: number[]): string {
  return spread({
    median: median(values),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
  });
}

/** With the fault's low mark the package is measured for comparison alone: its rows stand in the tables. */
function hasBar({ variant }: Measured): boolean {
  return variant.fault || variant.highWater === HIGH_WATER;
}

function bar(measured: Measured): Bar {
  const { name, fault } = measured.variant;
  const grown = growth(measured, callRcu);
  const what = `${name}: CPU of callRcu per operation, ${
    WORKERS[WORKERS.length - 1]
  } workers / 1`;
  // The same measurement has to see what was wrong in 2009.
  return fault
    ? {
      what: `${what} (has to show)`,
      bar: `> ${MOST}`,
      measured: spread(grown),
      met: grown.median > MOST,
    }
    : {
      what,
      bar: `≤ ${MOST}`,
      measured: spread(grown),
      met: grown.median <= MOST,
    };
}

// Tables

function workersHead(first: string): string[] {
  return [
    first,
    ...WORKERS.map((n) => n === 1 ? "1 worker" : `${n} workers`),
  ];
}

function growthTable(measured: Measured[]): Table {
  const seed = SEED.map((ticks, i) =>
    short(ticks / SEED[0] / (WORKERS[i] / WORKERS[0]))
  );
  return {
    title: "callRcu: processor time an operation, ns",
    head: [...workersHead(""), "8 / 1", "freeing included, 8 / 1"],
    rows: [
      ...measured.map((each) => [
        each.variant.name,
        ...each.settings.map(({ steps }) => middle(steps.map(callRcu))),
        spread(growth(each, callRcu)),
        spread(growth(each, both)),
      ]),
      ["2009, tree RCU, in times of 1 thread", ...seed, seed.at(-1)!, ""],
    ],
    notes:
      "callRcu is deferFree with what it sets off: looking at the callbacks, detecting grace " +
      "periods, the wait of an overloaded updater. Freeing the blocks, which is there without " +
      "RCU too, has a row of its own, as kmem_cache_free has in the kernel's profile. Medians " +
      "of rounds in which the numbers of workers took turns, and their quartiles. A mark of " +
      `${
        count(LOW_MARK)
      } is there for the fault, which two cores would not show otherwise; overload, which ` +
      "is the exception with the default mark, is the rule with it.",
  };
}

/** The profile of a variant, as the seed has it. */
function profile({ variant, settings }: Measured): Table {
  const byTime = (name: string, pick: Figure): string[] => [
    name,
    ...settings.map(({ steps }) => middle(steps.map(pick))),
  ];
  const inAll = (name: string, pick: Figure): string[] => [
    name,
    ...settings.map(({ steps }) =>
      count(steps.reduce((sum, run) => sum + pick(run), 0))
    ),
  ];
  const most = (name: string, pick: Figure): string[] => [
    name,
    ...settings.map(({ steps, watched }) =>
      count(Math.max(...[watched, ...steps].map(pick)))
    ),
  ];
  return {
    title: `${variant.name}: ns an operation`,
    head: workersHead("function"),
    rows: [
      byTime("idle, or used by others", ({ idle }) => idle),
      ...STEP_NAMES.map((name, step) =>
        byTime(name, ({ steps }) => steps[step])
      ),
      byTime("other", other),
      byTime("in all", ({ cpu }) => cpu),
      [
        "close(open(path)) as it is",
        ...settings.map(({ pairs }) => middle(pairs.map(({ cpu }) => cpu))),
      ],
      [
        "  with the file freed at once",
        ...settings.map(({ atOnce }) => middle(atOnce.map(({ cpu }) => cpu))),
      ],
      inAll("calls of deferFree", ({ operations }) => operations),
      inAll("  of processCallbacks", ({ looks }) => looks),
      inAll("grace periods", ({ periods }) => periods),
      inAll("  forced by overload", ({ forced }) => forced),
      most("most waiting callbacks of a worker", ({ peak }) => peak),
      most("  of all workers, as far as seen", ({ pending }) => pending),
      [
        "most memory of files, MiB",
        ...settings.map(({ watched }) => short(watched.bytes / 2 ** 20)),
      ],
    ],
    notes:
      `highWater ${
        count(variant.highWater)
      }. Each step timed in batches; "in all" is the process' own clock, and "other" what the ` +
      "steps leave of it: mostly the engine's own threads, and less than nothing where others had " +
      "the core for a moment. After each run nothing " +
      "was deferred, referenced or live that was not before, or the run would have failed.",
  };
}

function other({ cpu, steps }: Run): number {
  return cpu - steps.reduce((sum, step) => sum + step);
}

// Charts

function charts(measured: Measured[]): Chart[] {
  const lines = (pick: Figure) => ({ variant, settings }: Measured) => {
    const points = settings.map(({ workers, steps }): [number, number] => [
      workers,
      median(steps.map(pick)),
    ]);
    return { name: variant.name, points };
  };
  const callLines = measured.map(lines(callRcu));
  const times = callLines.map(({ name, points }) => ({
    name,
    points: points.map(([x, y]): [number, number] => [x, y / points[0][1]]),
  }));
  const seed = WORKERS.map((workers, i): [number, number] => [
    workers,
    SEED[i] / SEED[0] / workers,
  ]);
  const workers = { title: "workers", unit: "" };
  const time = { title: "processor time an operation", unit: "ns" };
  return [
    {
      title: "callRcu",
      kind: "line",
      x: workers,
      y: time,
      series: callLines,
    },
    {
      title: "callRcu, times that of one worker",
      kind: "line",
      x: workers,
      y: { title: "times one worker's", unit: "" },
      series: [...times, { name: "2009, tree RCU", points: seed }],
    },
    ...measured.map(({ variant, settings }): Chart => ({
      title: `By function: ${variant.name}`,
      kind: "bar",
      x: { title: "function", unit: "" },
      y: time,
      series: settings.map(({ workers, steps }) => ({
        name: workers === 1 ? "1 worker" : `${workers} workers`,
        points: [
          ...STEP_NAMES.map((name, step): [string, number] => [
            name,
            median(steps.map((run) => run.steps[step])),
          ]),
          ["other", median(steps.map(other))],
        ],
      })),
    })),
  ];
}
