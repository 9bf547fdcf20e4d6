/** What one read section costs, as an experiment. */
import type { Chart, Experiment, RunOptions, Table } from "./_experiment.ts";
import { median, ratio } from "./_measure.ts";
import { count, short, spread } from "./_report.ts";
import { BASE, KINDS, type ReadSideFigures } from "./_sections.ts";
import { inFreshWorker } from "./_workers.ts";

/** Updates a second, beside the reader. */
const RATE = 10_000;

const SECTIONS = import.meta.resolve("./_sections.ts");

/** A pointer followed once, under every kind of protection. */
export const readSide: Experiment = {
  name: "read_side",
  title: "Read side: one section, one dereference",
  about: "What one read section costs: a pointer followed once, under every " +
    "kind of protection, by one thread alone, by two, and beside an updater.",
  command: "deno task bench:all bench/read_side_bench.ts",
  steps: () => 1,
  async run(options) {
    const figures = await measure(options);
    return {
      bars: [],
      tables: [sections(figures)],
      charts: [times(figures)],
    };
  },
};

function measure({ quick, onStep }: RunOptions): Promise<ReadSideFigures> {
  onStep(`${KINDS} kinds of section: alone, by two threads, beside an updater`);
  return inFreshWorker(SECTIONS, "readSideFigures", { rate: RATE, quick });
}

function sections(figures: ReadSideFigures): Table {
  const { alone, besideReader, besideUpdater } = figures;
  return {
    title: "One section with one dereference",
    head: [
      "one section, one dereference",
      ...["alone", "by two threads", `beside ${count(RATE)} updates/s`]
        .flatMap((title) => [`${title}, ns`, `× ${BASE}`]),
    ],
    rows: Object.keys(alone).map((name) => [
      name,
      ...[alone, besideReader, besideUpdater].flatMap((series) => [
        short(median(series[name])),
        spread(ratio(series[name], series[BASE])),
      ]),
    ]),
    notes:
      `Medians of rounds in which all took turns, with the quartiles of the ratios.
By two threads: batches in which the other thread got no core are repeated or left out (${
        count((1 - figures.together) * 100)
      } %).
The updater made ${
        count(figures.rate)
      } updates/s, to each kind in turn. What those of RCU cost elsewhere: ${
        count(figures.invoked)
      } blocks freed
in ${count(figures.gracePeriods)} grace periods; ${
        count(figures.peak)
      } waited at most, ${
        count(figures.deferred)
      } bytes after the last update.`,
  };
}

function times({ alone, besideReader }: ReadSideFigures): Chart {
  const series = { "alone": alone, "by two threads": besideReader };
  return {
    title: "Time of a section",
    kind: "bar",
    x: { title: "protection", unit: "" },
    y: { title: "median time of a section", unit: "ns", log: true },
    series: Object.entries(series).map(([name, of]) => ({
      name,
      points: Object.keys(of).map((kind) => [kind, median(of[kind])]),
    })),
  };
}
