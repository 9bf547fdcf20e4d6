/** `RcuMap` beside what else a program has to share a map, as an experiment. */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "../_experiment.ts";
import { median, quantile, type Ratio, ratio } from "../_measure.ts";
import { count, short, spread } from "../_report.ts";
import { CONTENDERS } from "./_contenders.ts";
import {
  FULL,
  measureShared,
  memoryOf,
  QUICK,
  type SharedFigures,
  SITUATIONS,
} from "./_shared_figures.ts";

const OURS = CONTENDERS[0].name;
const BASE = CONTENDERS[1].name;
/** The situation of the bars: 100 updates/s. */
const JUDGED = 1;
const SHARING_BAR = 20;
const COPIES_BAR = 0.9;
const MEMORY_BAR = 0.3;
const VISIBLE_BAR = 50;
/** Threads that have a million entries, ours and copies; the bar is about the last. */
const CROWDS = [2, 4] as const;
const [, MOST] = CROWDS;
const MILLION = 1_000_000;

/** What a contender takes, in bytes; why not, if it is not known. */
type Memory = Record<string, number | string>;

interface Results {
  figures: SharedFigures[];
  /** A million entries, ours and copies, by the number of threads. */
  large: Record<number, Memory>;
  /** The entries of the other figures in two threads. */
  small: Memory;
}

export const sharedPeers: Experiment = {
  name: "peers",
  title: "RcuMap beside what else there is to share a map",
  about:
    "811 real route templates to small objects, two threads that read and one that " +
    "updates: RcuMap, a private Map in each thread with a message for each " +
    "update, lmdb, multithreading, sharedmap, and node:sqlite. All take turns.",
  command: "deno task bench:peers",
  steps: ({ quick }) =>
    CONTENDERS.length * 3 + SITUATIONS.length +
    (quick ? 0 : CONTENDERS.length + 2 * CROWDS.length),
  async run(options) {
    return sharedFindings(await measureSharedPeers(options));
  },
};

/** Takes the figures. */
export async function measureSharedPeers(
  { quick, onStep }: RunOptions,
): Promise<Results> {
  const length = quick ? QUICK : FULL;
  const results: Results = {
    figures: await measureShared(length, onStep),
    large: {},
    small: {},
  };
  // Each figure takes four processes.
  if (quick) return results;
  const memory = async (name: string, threads: number, entries: number) => {
    onStep(
      `${name}: memory of ${count(entries)} entries in ${threads} threads`,
    );
    try {
      return await memoryOf(name, threads, entries);
    } catch (error) {
      return String(error);
    }
  };
  for (const threads of CROWDS) {
    const of: Memory = results.large[threads] = {};
    for (const name of [OURS, BASE]) {
      of[name] = await memory(name, threads, MILLION);
    }
  }
  for (const { name } of CONTENDERS) {
    results.small[name] = await memory(name, 2, 100_000);
  }
  return results;
}

/** What they come to. */
export function sharedFindings(results: Results): Findings {
  return {
    bars: barsOf(results),
    tables: [readsOf(results), elsewhere(results)],
    charts: [chartOf(results)],
  };
}

function find({ figures }: Results, name: string): SharedFigures {
  return figures.find((figure) => figure.name === name)!;
}

/** How many times a contender's reads ours are. */
function times(results: Results, name: string, situation: number): Ratio {
  return ratio(
    find(results, OURS).reads[situation],
    find(results, name).reads[situation],
  );
}

/** The fastest that shares memory, but for ours. */
function bestSharing(results: Results): string {
  const others = results.figures.filter(({ name, shares, failed }) =>
    shares && name !== OURS && failed === undefined
  );
  const speed = ({ reads }: SharedFigures) => median(reads[JUDGED]);
  return others.reduce((best, one) => speed(one) > speed(best) ? one : best)
    .name;
}

function barsOf(results: Results): Bar[] {
  const best = bestSharing(results);
  const atLeast = (name: string, least: number): Bar => {
    const value = times(results, name, JUDGED);
    return {
      what: `reads/s of 2 threads beside 100 updates/s, RcuMap ÷ ${name}`,
      bar: `≥ ${least}`,
      measured: spread(value),
      met: value.median >= least,
    };
  };
  const visible = median(find(results, OURS).visible);
  const bars = [
    atLeast(best, SHARING_BAR),
    atLeast(BASE, COPIES_BAR),
    {
      what: "until another thread that reads has seen an update, median, µs",
      bar: `≤ ${VISIBLE_BAR}`,
      measured: short(visible),
      met: visible <= VISIBLE_BAR,
    },
  ];
  const { [OURS]: ours, [BASE]: base } = results.large[MOST] ?? {};
  if (typeof ours === "number" && typeof base === "number") {
    bars.push({
      what:
        `memory of 1,000,000 entries in ${MOST} threads, RcuMap ÷ private copies`,
      bar: `≤ ${MEMORY_BAR}`,
      measured: short(ours / base),
      met: ours / base <= MEMORY_BAR,
    });
  }
  return bars;
}

function readsOf(results: Results): Table {
  return {
    title: "Reads of two threads",
    head: [
      "reads/s of 2 threads",
      ...SITUATIONS.flatMap(({ name }) => [name, "RcuMap ÷ it"]),
    ],
    rows: results.figures.map((figure) => [
      figure.name,
      ...SITUATIONS.flatMap((_, n) =>
        figure.failed === undefined
          ? [
            count(median(figure.reads[n])),
            spread(times(results, figure.name, n)),
          ]
          : ["-", "-"]
      ),
    ]),
    notes:
      `Medians of rounds in which all took turns, with the quartiles of the ratios; 811 entries, keys
drawn beforehand by Zipf's law. The private copies get a message for each update. Three threads share
the cores of this machine. ${failures(results)}`,
  };
}

function failures({ figures }: Results): string {
  return figures.filter(({ failed }) => failed !== undefined)
    .map(({ name, failed }) => `${name} is missing: ${failed}`).join("\n");
}

function elsewhere(results: Results): Table {
  const mib = (of: Memory | undefined, name: string): string => {
    const value = of?.[name];
    if (value === undefined) return "";
    return typeof value === "number" ? short(value / 2 ** 20) : "failed";
  };
  return {
    title: "What else was seen",
    head: [
      "",
      "updates/s, of 10,000",
      "seen after, µs: median",
      "p99",
      `MiB, 100,000 entries in 2 threads`,
      ...CROWDS.map((threads) => `MiB, 1,000,000 in ${threads}`),
      "two writers: lost of 4,000",
      "differ of 1,000",
      "",
    ],
    rows: results.figures.map((figure) => {
      const { name, updates, visible, written } = figure;
      return [
        name,
        count(updates[2]),
        short(median(visible)),
        short(quantile(visible, 0.99)),
        mib(results.small, name),
        ...CROWDS.map((threads) => mib(results.large[threads], name)),
        count(Math.max(0, ...written.map(({ lost }) => lost))),
        count(differing(figure)),
        written.map(({ error }) => error ?? "").join(" ").trim().slice(0, 60),
      ];
    }),
    notes:
      `Seen after: from before the call that updates until another thread, which reads all the time and
looks at the key after every 32nd read, has said that it has found it. Two writers: each sets 2,000 keys of its own and
1,000 that the other one sets, too; lost are keys that one of the two does not find afterwards, 0.3 s
later; differ: values of which the two do not agree. Memory: of processes with the entries, beyond those with 100.`,
  };
}

/** Keys of whose values two writers do not agree. */
function differing({ written }: SharedFigures): number {
  if (written.length < 2) return 0;
  const [first, second] = written;
  return first.contended.filter((value, i) => value !== second.contended[i])
    .length;
}

function chartOf({ figures }: Results): Chart {
  return {
    title: "Reads of two threads",
    kind: "bar",
    x: { title: "how the map is shared", unit: "" },
    y: { title: "reads", unit: "1/s", log: true },
    series: SITUATIONS.map(({ name }, n) => ({
      name,
      points: figures.filter(({ failed }) => failed === undefined)
        .map((figure): [string, number] => [
          figure.name,
          median(figure.reads[n]),
        ]),
    })),
  };
}
