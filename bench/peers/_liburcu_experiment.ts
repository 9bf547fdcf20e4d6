/** `RcuMap` beside liburcu's own hash table, as an experiment. */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "../_experiment.ts";
import { type Keys, realKeys, realPrefixes } from "../_keys.ts";
import { median, type Ratio } from "../_measure.ts";
import { count, met, short, spread } from "../_report.ts";
import {
  BARS,
  type Compared,
  compareWithLiburcu,
  isJudged,
  QUICK_SETTINGS,
  QUICK_TURNS,
  SETTINGS,
  type Side,
  timesLiburcu,
  TURNS,
} from "./_liburcu.ts";
import { Missing, Program } from "./_liburcu_program.ts";

const TITLES = {
  read: "nobody updates",
  update: "updater changes u32 values as each library does",
  store: "updater stores in place, both",
  replace: "updater replaces, both reclaim",
  churn: "updater inserts and deletes, both reclaim",
};

/** Lookups and updates beside rculfhash in its QSBR flavour. */
export const liburcuPeer: Experiment = {
  name: "liburcu",
  title: "RcuMap beside liburcu's hash table, in C",
  about: "One reader, alone and beside one updater that goes as fast as it " +
    "can: RcuMap, and rculfhash of the userspace RCU library in its QSBR " +
    "flavour, in a process of its own. Both see the same keys in the same order.",
  command: "deno task bench:peers",
  routes: true,
  steps: ({ quick }) => (quick ? QUICK_SETTINGS : SETTINGS).length + 1,
  async run(options) {
    const program = await Program.build();
    if (program instanceof Missing) {
      const skipped = String(program);
      return { bars: [], tables: [], charts: [], skipped };
    }
    using _ = program;
    return liburcuFindings((await measureBeside(program, options)).figures);
  },
};

/** Takes the figures; returns the keys too. */
export async function measureBeside(
  program: Program,
  { quick, onStep }: RunOptions,
): Promise<{ figures: Compared[]; keys: Keys }> {
  onStep("reading the keys");
  const keys = realKeys(await realPrefixes());
  const figures = await compareWithLiburcu(program.path, keys, {
    settings: quick ? QUICK_SETTINGS : SETTINGS,
    turns: quick ? QUICK_TURNS : TURNS,
    onSetting: ({ mode, keys }) =>
      onStep(`${count(keys)} keys, ${TITLES[mode]}`),
  });
  return { figures, keys };
}

/** What it comes to. */
export function liburcuFindings(figures: Compared[]): Findings {
  return {
    bars: figures.filter(isJudged).map(bar),
    tables: [speeds(figures), costs(figures)],
    charts: [
      chart(figures, "lookup"),
      chart(figures.filter(({ mode }) => mode !== "read"), "update"),
    ],
  };
}

/** Lookups while nobody updates, else updates. */
function bar(figure: Compared): Bar {
  const { mode, keys } = figure;
  const what = mode === "read" ? "lookup" : "update";
  const least = mode === "read" ? BARS.lookups[keys] : BARS.updates;
  const times = timesLiburcu(figure, what);
  return {
    what: `${what}s/s, RcuMap ÷ liburcu, ${count(keys)} keys, ${TITLES[mode]}`,
    bar: `≥ ${least}`,
    measured: spread(times),
    met: times.median >= least,
  };
}

function speeds(figures: Compared[]): Table {
  const rows = figures.flatMap((figure) => {
    const { mode, keys, ours, liburcu } = figure;
    const lookups = row(
      `lookups/s, ${TITLES[mode]}, ${count(keys)} keys`,
      [perSecond(ours.lookup), perSecond(liburcu.lookup)],
      timesLiburcu(figure, "lookup"),
      BARS.lookups[keys],
    );
    if (mode === "read") return [lookups];
    return [
      lookups,
      row(
        "  updates/s",
        [perSecond(ours.update), perSecond(liburcu.update)],
        timesLiburcu(figure, "update"),
        BARS.updates,
      ),
    ];
  });
  return {
    title: "Lookups and updates",
    head: ["one reader", "RcuMap", "liburcu", "RcuMap / liburcu", "bar", ""],
    rows,
    notes:
      `Medians of rounds in which both took turns, with the quartiles of the ratios. Both see the same
keys in the same order. RcuMap is u32 → u32, which a set stores in place, under a lock; where both
replace values it is u32 → f64, whose sets replace a block. liburcu: rculfhash, QSBR, as many buckets as
keys, a quiescent state every 1,024 operations. Its own way to change a value is to replace an entry
(cds_lfht_add_replace), which call_rcu frees in a third thread: that is what our set is measured
beside where each changes values as it does. Where both store in place, C's store takes no lock. Our updater
reclaims by itself and loses time by it. Insertions and deletions, half of each, are of keys at random:
half of the keys are there, and half of the updates find nothing to do. The bars are about lookups while
nobody updates, and updates as each library does them; the same bars stand beside the other rows for comparison.`,
  };
}

function row(
  title: string,
  sides: number[],
  times: Ratio,
  bar: number,
): string[] {
  return [
    title,
    ...sides.map(count),
    spread(times),
    `≥ ${bar}`,
    met(times.median >= bar),
  ];
}

function perSecond(ns: number[]): number {
  return 1e9 / median(ns);
}

function costs(figures: Compared[]): Table {
  const cells = ({ hits, pending }: Side) => [
    `${short(median(hits) * 100)} %`,
    count(pending),
  ];
  return {
    title: "What else was seen",
    head: [
      "what else was seen",
      "hits",
      "most pending",
      "hits, liburcu",
      "most pending, liburcu",
    ],
    rows: figures.map(({ mode, keys, ours, liburcu }) => [
      `${TITLES[mode]}, ${count(keys)} keys`,
      ...cells(ours),
      ...cells(liburcu),
    ]),
    notes: "Most pending: the most that waited for a grace period at once.",
  };
}

function chart(figures: Compared[], what: "lookup" | "update"): Chart {
  const side = (name: string, of: (figure: Compared) => Side) => ({
    name,
    points: figures.map((figure): [string, number] => [
      `${TITLES[figure.mode]}, ${count(figure.keys)} keys`,
      perSecond(of(figure)[what]) / 1e6,
    ]),
  });
  return {
    title: what === "lookup" ? "Lookups of one reader" : "Updates beside it",
    kind: "bar",
    x: { title: "what is done to how many keys", unit: "" },
    y: { title: `${what}s a second`, unit: "million/s" },
    series: [
      side("RcuMap", ({ ours }) => ours),
      side("liburcu", ({ liburcu }) => liburcu),
    ],
  };
}
