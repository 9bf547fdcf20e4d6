/**
 * The experiment of 2011: a red-black tree in which seven threads search while
 * one inserts and deletes, and how long `call_rcu`'s thread waits between two
 * batches ("[URCU RFC patch 3/3] call_rcu: remove delay for wakeup scheme",
 * Mathieu Desnoyers, ltt-dev, 2011).
 */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import {
  median,
  quantile,
  type Ratio,
  ratio,
  type Series,
} from "./_measure.ts";
import { count, short, spread } from "./_report.ts";
import { type Run, type Setting, SortedLab } from "./_sorted_lab.ts";

/** The readers of 2011, and as many as have a core of their own beside the updater here. */
const READERS = 7;
const ONE = 1;

const DELAYED = 0;
const BASE = 1;
const REAL_TIME = 2;
const IMMEDIATE = 3;
const SETTINGS: readonly Setting[] = [
  {
    name: "offloaded, delay 10 ms",
    callbacks: { mode: "offloaded", delay: 10 },
  },
  { name: "offloaded, delay 0", callbacks: { mode: "offloaded", delay: 0 } },
  {
    name: "offloaded, realTime",
    callbacks: { mode: "offloaded", realTime: true },
  },
  { name: "immediate", callbacks: { mode: "immediate" } },
  { name: "throttled", callbacks: { mode: "throttled" } },
];

/** What userspace RCU came to in 2011, a second. */
const SEED = {
  delayed: { searches: 1_842_857, updates: 21_066 },
  atOnce: { searches: 3_064_285, updates: 45_096 },
  /** Updates without its real-time flag and with it. */
  ordinary: 38_365,
  realTime: 54_219,
};

/** What delay 10 ms is to be of delay 0. */
const UPDATES = 0.8;
const SEARCHES = 0.9;

/** How long a number of readers is measured. */
interface Effort {
  rounds: number;
  /** After how many ms fewer rounds will do, where others use the machine. */
  budget: number;
  /** A run's length in ms: threads that share a core get turns of some ms. */
  ms: number;
}
/** How much is measured, by number of readers. */
interface Size {
  keys: number;
  [READERS]: Effort;
  [ONE]: Effort;
}
const FULL: Size = {
  keys: 1_000_000,
  [READERS]: { rounds: 11, budget: 8000, ms: 160 },
  [ONE]: { rounds: 9, budget: 3000, ms: 60 },
};
const QUICK: Size = {
  keys: 100_000,
  [READERS]: { rounds: 5, budget: 0, ms: 50 },
  [ONE]: { rounds: 5, budget: 0, ms: 30 },
};
/** How many rounds are few enough: a ratio needs so many pairs. */
const FEWEST = 5;

function sizeOf(quick: boolean): Size {
  return quick ? QUICK : FULL;
}

/** How many keys there are. */
export function keysOf(quick: boolean): number {
  return sizeOf(quick).keys;
}

/** 2011: searches and updates by when deferred frees are done. */
export const sortedMap: Experiment = {
  name: "sorted_map",
  title: "RcuSortedMap: 7 readers, 1 updater, and when memory is freed",
  about: "Userspace RCU, 2011: in a red-black tree of 1,000,000 keys, " +
    "call_rcu's thread with a delay of 10 ms between two batches, or woken at " +
    "once, which gave 1.7 times the searches and 2.1 times the updates. Here: " +
    "RcuSortedMap under each policy. Every search is checked.",
  command: "deno task bench:all bench/sorted_map_bench.ts",
  steps: ({ quick }) =>
    4 + sizeOf(quick)[READERS].rounds + sizeOf(quick)[ONE].rounds,
  async run(options) {
    return sortedFindings(await measureSorted(options));
  },
};

/** What came out of a number of readers: a run a round, by setting. */
interface Measured {
  readers: number;
  runs: Run[][];
}

/** What came out. */
export interface SortedFigures {
  keys: number;
  seven: Measured;
  one: Measured;
  /** How much memory was needed beyond what keys take, by setting. */
  bytes: number[];
  /** A search in the map and in a sorted array, in ns. */
  alone: Series;
}

/** Takes the figures. */
export async function measureSorted(
  { quick, onStep }: RunOptions,
): Promise<SortedFigures> {
  const size = sizeOf(quick);
  const { keys } = size;
  onStep(`filling ${SETTINGS.length} maps with ${count(keys)} keys`);
  await using lab = await SortedLab.start(SETTINGS, keys, READERS);
  const measure = async (
    readers: typeof READERS | typeof ONE,
  ): Promise<Measured> => {
    const { rounds, budget, ms } = size[readers];
    const end = performance.now() + budget;
    const title = titleOf(readers);
    const runs: Run[][] = SETTINGS.map(() => []);
    // One round to warm up.
    for (let round = 0; round <= rounds; round++) {
      onStep(`${title}: round ${round} of ${rounds}`);
      const taken = await takeTurns(
        round,
        (setting) => lab.run(setting, readers, ms),
      );
      if (round > 0) taken.forEach((run, setting) => runs[setting].push(run));
      if (round >= FEWEST && performance.now() > end) break;
    }
    return { readers, runs };
  };
  const seven = await measure(READERS);
  const one = await measure(ONE);
  onStep("one reader alone, beside a sorted array");
  const alone = await lab.besidePrivate(IMMEDIATE, quick);
  await lab.close();
  const bytes = SETTINGS.map((_, setting) => lab.memoryPeak(setting));
  return { keys, seven, one, bytes, alone };
}

/** Runs each setting once, each round beginning with another one. */
async function takeTurns(
  round: number,
  run: (setting: number) => Promise<Run>,
): Promise<Run[]> {
  const runs: Run[] = [];
  for (let i = 0; i < SETTINGS.length; i++) {
    const setting = (i + round) % SETTINGS.length;
    runs[setting] = await run(setting);
  }
  return runs;
}

// One number a round

type Figure = (run: Run) => number;

const inAll: Figure = ({ searches }) => searches.reduce((a, b) => a + b);
const perReader: Figure = (run) => inAll(run) / run.searches.length;
const updates: Figure = (run) => run.updates;

/** How many times as much it is with a setting as with another one, round by round. */
function times(
  { runs }: Measured,
  pick: Figure,
  setting: number,
  base: number,
): Ratio {
  return ratio(runs[setting].map(pick), runs[base].map(pick));
}

/** The median of the rounds and their quartiles, in thousands. */
function thousands(values: number[]): string {
  return spread({
    median: median(values) / 1000,
    low: quantile(values, 0.25) / 1000,
    high: quantile(values, 0.75) / 1000,
  });
}

function titleOf(readers: number): string {
  return readers === 1 ? "1 reader" : `${readers} readers`;
}

/** What it comes to. */
export function sortedFindings(figures: SortedFigures): Findings {
  const { seven, one } = figures;
  return {
    bars: bars(figures),
    tables: [
      rates(seven),
      rates(one),
      waiting(figures),
      beside2011(figures),
      search(figures),
    ],
    charts: [
      compared(figures),
      absolute(figures, "Searches", perReader, "searches of a reader"),
      absolute(figures, "Updates", updates, "updates"),
    ],
  };
}

function bars({ seven }: SortedFigures): Bar[] {
  const atLeast = (name: string, pick: Figure, least: number): Bar => {
    const measured = times(seven, pick, DELAYED, BASE);
    return {
      what: `${name} with ${READERS} readers: delay 10 ms ÷ delay 0`,
      bar: `≥ ${least}`,
      measured: spread(measured),
      met: measured.median >= least,
    };
  };
  return [
    atLeast("updates", updates, UPDATES),
    atLeast("searches", perReader, SEARCHES),
  ];
}

// Tables

function rates(measured: Measured): Table {
  const { readers, runs } = measured;
  const several = readers > 1;
  const against = (pick: Figure, setting: number) =>
    setting === BASE ? "1" : spread(times(measured, pick, setting, BASE));
  return {
    title: `${titleOf(readers)}, 1 updater: thousands a second`,
    head: [
      "",
      several ? "searches a reader" : "searches",
      "÷ delay 0",
      ...(several ? ["in all", "slowest to fastest reader"] : []),
      "updates",
      "÷ delay 0",
    ],
    rows: [
      ...(several ? seedRows() : []),
      ...SETTINGS.map(({ name }, setting) => {
        const of = runs[setting];
        const each = Array.from(
          { length: readers },
          (_, i) => median(of.map(({ searches }) => searches[i])) / 1000,
        );
        return [
          name,
          thousands(of.map(perReader)),
          against(perReader, setting),
          ...(several
            ? [
              short(median(of.map(inAll)) / 1000),
              `${short(Math.min(...each))}–${short(Math.max(...each))}`,
            ]
            : []),
          thousands(of.map(updates)),
          against(updates, setting),
        ];
      }),
    ],
    notes: several
      ? `${READERS + 1} threads, and the one that frees, share ${
        count(navigator.hardwareConcurrency)
      } cores: a rate is that of a thread with its share of the time, and a grace period ` +
        "lasts until every reader has had a turn. What time others had the cores for does not " +
        "count. Medians of rounds in which the settings took " +
        "turns, and their quartiles; ratios are those of the same round. Every search was checked, " +
        "and after each turn nothing waited, and as many bytes were live as the keys take."
      : "As many threads as two cores have room for, but for the one that frees: here a grace " +
        "period lasts no longer than it must.",
  };
}

/** The rows of 2011, as they stand beside those of here. */
function seedRows(): string[][] {
  const { delayed, atOnce } = SEED;
  const row = (name: string, rates: typeof delayed) => [
    name,
    short(rates.searches / 1000),
    rates === atOnce ? "1" : short(rates.searches / atOnce.searches),
    short(rates.searches * READERS / 1000),
    "",
    short(rates.updates / 1000),
    rates === atOnce ? "1" : short(rates.updates / atOnce.updates),
  ];
  return [row("2011, delay 10 ms", delayed), row("2011, no delay", atOnce)];
}

function waiting({ keys, seven, one, bytes }: SortedFigures): Table {
  const all = [seven, one];
  return {
    title: "What waits to be freed",
    head: [
      "",
      ...all.flatMap(({ readers }) => [
        `${titleOf(readers)}: most that waited`,
        "grace periods a second",
      ]),
      "memory peak, KiB",
    ],
    rows: SETTINGS.map(({ name }, setting) => [
      name,
      ...all.flatMap(({ runs }) => [
        count(Math.max(...runs[setting].map(({ pending }) => pending))),
        count(median(runs[setting].map(({ periods }) => periods))),
      ]),
      count(bytes[setting] / 1024),
    ]),
    notes:
      `Callbacks of all threads, as far as seen. The memory is what was needed beyond what ${
        count(keys)
      } keys take. "throttled" limits what is freed in a turn of the event loop: an updater that ` +
      "never returns to it, as this one, has the limit lifted at highWater, 10,000.",
  };
}

function beside2011({ seven, one }: SortedFigures): Table {
  const { delayed, atOnce, ordinary, realTime } = SEED;
  const row = (
    name: string,
    seed: string[],
    pick: Figure,
    setting: number,
    base: number,
  ) => [
    name,
    ...seed,
    ...[seven, one].map((of) => spread(times(of, pick, setting, base))),
  ];
  const seed = (a: number, b: number) => [count(a), count(b), short(a / b)];
  return {
    title: "Beside 2011",
    head: [
      "",
      "2011, a second",
      "and its base",
      "ratio",
      "here, 7 readers",
      "1 reader",
    ],
    rows: [
      row(
        "searches a reader, delay 10 ms ÷ 0",
        seed(delayed.searches, atOnce.searches),
        perReader,
        DELAYED,
        BASE,
      ),
      row(
        "updates, delay 10 ms ÷ 0",
        seed(delayed.updates, atOnce.updates),
        updates,
        DELAYED,
        BASE,
      ),
      row(
        "updates, real-time ÷ delay 10 ms",
        seed(realTime, ordinary),
        updates,
        REAL_TIME,
        DELAYED,
      ),
    ],
    notes:
      "2011: test_urcu_rbtree 7 1 20 -g 1000000 of userspace RCU, and the same with its " +
      "real-time flag and without. The mail's own summary, that the delay doubles updates and makes reads a third slower, is " +
      "not what its rows say; these are the rows.",
  };
}

function search({ keys, alone }: SortedFigures): Table {
  const { map, array } = alone;
  return {
    title: "One search, one thread, no updater",
    head: [`${count(keys)} keys`, "ns"],
    rows: [
      ["RcuSortedMap.get", short(median(map))],
      ["bisection in a private Uint32Array", short(median(array))],
      ["  ratio", spread(ratio(map, array))],
    ],
    notes:
      "The array has 4 bytes a key, and all of it would have to be moved to insert one.",
  };
}

// Charts

function compared({ seven, one }: SortedFigures): Chart {
  const points = (measured: Measured, pick: Figure) =>
    SETTINGS.map(({ name }, setting): [string, number] => [
      `${name}, ${titleOf(measured.readers)}`,
      times(measured, pick, setting, BASE).median,
    ]);
  const seed = (name: "searches" | "updates"): [string, number] => [
    "2011, delay 10 ms, 7 readers",
    SEED.delayed[name] / SEED.atOnce[name],
  ];
  const series = (name: "searches" | "updates", pick: Figure) => ({
    name,
    points: [seed(name), ...[seven, one].flatMap((of) => points(of, pick))],
  });
  return {
    title: "Searches and updates, times those with delay 0",
    kind: "bar",
    x: { title: "setting", unit: "" },
    y: { title: "times as many a second as with delay 0", unit: "" },
    series: [series("searches", perReader), series("updates", updates)],
  };
}

function absolute(
  { seven, one }: SortedFigures,
  title: string,
  pick: Figure,
  what: string,
): Chart {
  return {
    title,
    kind: "bar",
    x: { title: "setting", unit: "" },
    y: { title: what, unit: "1/s" },
    series: [seven, one].map(({ readers, runs }) => ({
      name: titleOf(readers),
      points: SETTINGS.map(({ name }, setting): [string, number] => [
        name,
        median(runs[setting].map(pick)),
      ]),
    })),
  };
}
