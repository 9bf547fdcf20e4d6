/** Replacing millions of entries beside a reader, as an experiment. */
import { type BulkFigures, type Times } from "./_bulk_figures.ts";
import type { Experiment, Findings, RunOptions } from "./_experiment.ts";
import { median } from "./_measure.ts";
import { count, short } from "./_report.ts";
import { inFreshWorker } from "./_workers.ts";

const FIGURES = import.meta.resolve("./_bulk_figures.ts");
const FULL = { count: 2_500_000, times: 5 };
const QUICK = { count: 500_000, times: 3 };

export const bulk: Experiment = {
  name: "bulk",
  title: "Replacing all entries beside a reader",
  about:
    "replaceAll of 2,500,000 u32 → u32 entries by one thread while another " +
    "one reads in sections of 256 lookups, each of which must see old entries " +
    "or new ones alone.",
  command: "deno task bench:all bench/bulk_bench.ts",
  steps: () => 1,
  async run(options) {
    return bulkFindings(await measureBulk(options));
  },
};

/** Takes the figures. */
export function measureBulk(
  { quick, onStep }: RunOptions,
): Promise<BulkFigures> {
  const size = quick ? QUICK : FULL;
  onStep(`replaceAll of ${count(size.count)} entries, beside a reader`);
  return inFreshWorker(FIGURES, "replaceBeside", size);
}

/** What they come to. */
export function bulkFindings(figures: BulkFigures): Findings {
  const { alone, clone, meanwhile, mixed, seconds } = figures;
  const row = (name: string, times: Times): string[] => [
    name,
    count(times.sections),
    short(times.median),
    short(times.p999),
    short(times.most),
  ];
  return {
    bars: [{
      what: "sections that saw old entries and new ones",
      bar: "0",
      measured: `${count(mixed)} of ${count(meanwhile.sections)}`,
      met: mixed === 0,
    }],
    tables: [{
      title: "Replacing all entries beside a reader",
      head: [
        "sections of 256 reads, µs",
        "sections",
        "median",
        "p99.9",
        "longest",
      ],
      rows: [
        row("nobody updates", alone),
        row(
          `another thread replaces all ${count(figures.count)} entries, ${
            short(median(seconds))
          } s each time`,
          meanwhile,
        ),
      ],
      notes:
        `A reader waits for nothing: what makes a section longer is a processor's cache, which two threads
share, or the loss of its core. To copy a private Map of as many entries for another thread
(structuredClone, which blocks the sender; receiving blocks the receiver) takes ${
          short(clone)
        } s.`,
    }],
    charts: [],
  };
}
