/** What the route-cache benchmark found, as text and as findings. */
import type { Bar, Chart, Findings, Table } from "./_experiment.ts";
import { median, type Ratio, ratio } from "./_measure.ts";
import { count, short, spread, table } from "./_report.ts";
import type { Cell, Overhead, Situation, State } from "./_route_figures.ts";
import { ROW_NAMES } from "./_route_overhead.ts";
import {
  systemChart,
  type SystemFigures,
  systemTables,
} from "./_route_systems.ts";
import { CHANGES_EVERY, RATE } from "./_route_threads.ts";
import { BURST, FLOWS } from "./_route_traffic.ts";
import { CONTENDERS, RCU, RW_LOCK, SETTINGS } from "./_route_world.ts";

/** What was measured in a setting. */
export interface Figures {
  setting: number;
  /** Those that were measured; the last one is where the bars are. */
  situations: readonly Situation[];
  /** By situation, by contender. */
  cells: Cell[][];
  overhead: Overhead;
  /** By contender. */
  before: State[];
  after: State[];
  repeated: number;
}

/** What is to be reached. */
const BAR = 2.5;
const NET_BAR = 2;

/** The report, as text. */
export function report(prefixes: number, all: Figures[]): string {
  return [
    introduction(prefixes, all),
    ...all.flatMap(tables).map(inText),
    inText(verdict(all)),
  ].join("\n\n");
}

function inText({ head, rows, notes }: Table): string {
  const lines = table([head, ...rows]);
  return notes === undefined ? lines : `${lines}\n${notes}`;
}

/** The same, as data: what counts first. */
export function routeFindings(
  prefixes: number,
  all: Figures[],
  systems: SystemFigures[],
): Findings {
  const findings = {
    bars: all.flatMap(bars),
    tables: [
      { ...verdict(all), notes: introduction(prefixes, all) },
      ...all.flatMap(tables),
    ],
    charts: [searches(all), packets(all), work(all)],
  };
  if (systems.length > 0) {
    findings.tables.push(...systemTables(systems));
    findings.charts.push(systemChart(systems));
  }
  return findings;
}

function tables(figures: Figures): Table[] {
  return [forwarding(figures), states(figures), overheads(figures)];
}

function introduction(prefixes: number, all: Figures[]): string {
  const repeated = all.reduce((sum, { repeated }) => sum + repeated, 0);
  const changes = RATE / CHANGES_EVERY;
  return `The experiment of 2002: ${FLOWS} flows of one host, each to another destination every ${BURST} packets;
destinations in as many of ${count(prefixes)} real prefixes, ${
    [...new Set(SETTINGS.map(({ population }) => count(population)))]
      .join(" or ")
  } of them, drawn by Zipf's law (synthetic).
Each is on the link, a neighbour of its own. The updater makes ${
    count(changes)
  } changes/s to the Fib, of routes in use,
and sends to ${
    count(RATE - changes)
  } new destinations/s; the private maps hear of neither.
Search: a lookup but for its misses, as ip_route_output_key was; packet: all of it, with what misses do: asking the Fib,
insertion, collection. ns a packet in each worker: medians of rounds in which all took turns; ratios are of the same
round, with quartiles. What a worker did while it had no core, or the other had none, does not count; ${
    count(repeated)
  } runs
in which that was most of it were repeated. How much locks cost two workers depends on how far apart their cores are,
which on a virtual machine may change from run to run.`;
}

function situationName({ workers, updater }: Situation): string {
  const many = workers > 1 ? `${workers} workers` : "1 worker";
  return updater ? `${many}, updater` : many;
}

/** Those who took part: a look leaves some contenders out. */
function measured(cells: Cell[]): (Cell & { contender: number })[] {
  return cells.map((cell, contender) => ({ ...cell, contender }))
    .filter(({ search }) => search.length > 0);
}

function forwarding({ setting, situations, cells }: Figures): Table {
  const rows = situations.flatMap((situation, n) => [
    [situationName(situation), ...Array(6).fill("")],
    ...measured(cells[n]).map(({ contender, search, whole, found }) => [
      `  ${CONTENDERS[contender]}`,
      short(middle(search)),
      spread(ratio(search, cells[n][RCU].search)),
      short(middle(whole)),
      spread(ratio(whole, cells[n][RCU].whole)),
      unless(middle(whole), (ns) => count(situation.workers * 1e9 / ns)),
      unless(middle(found), (share) => `${(share * 100).toFixed(1)} %`),
    ]),
  ]);
  const { name } = SETTINGS[setting];
  return {
    title: `Forwarding: ${name}`,
    head: [
      name,
      "search, ns",
      "× RCU",
      "packet, ns",
      "× RCU",
      "packets/s",
      "found",
    ],
    rows,
  };
}

const COUNTERS = [
  ["lookups", "lookups"],
  ["misses", "misses"],
  ["insertions", "inserted"],
  ["replacements", "replaced"],
  ["revalidations", "revalidated"],
  ["evictions", "evicted"],
  ["collected", "collected"],
  ["overflows", "cache overflows"],
  ["neighborOverflows", "neighbour overflows"],
] as const;

function states(figures: Figures): Table {
  const { setting, before, after } = figures;
  const shared = measured(judged(figures)).map(({ contender }) => contender)
    .filter((contender) => contender < after.length);
  const rows = shared.map((contender) => {
    const { cache, neighbors } = after[contender];
    return [
      CONTENDERS[contender],
      count(cache.entries),
      count(neighbors.entries),
      ...COUNTERS.map(([name]) =>
        count(cache[name] - before[contender].cache[name])
      ),
    ];
  });
  return {
    title: `The shared caches: ${SETTINGS[setting].name}`,
    head: [
      "now; since it was warm",
      "entries",
      "neighbours",
      ...COUNTERS.map(([, title]) => title),
    ],
    rows,
  };
}

/** Two workers and the updater: where the bars are. */
function judged({ cells }: Figures): Cell[] {
  return cells[cells.length - 1];
}

/** What all of RCU's work came to in a packet, in ns. */
function overheadOf({ costs, lookups }: Overhead): number {
  return costs.reduce((sum, { ms }) => sum + ms, 0) * 1e6 / lookups;
}

function overheads(figures: Figures): Table {
  const { overhead } = figures;
  const { costs, lookups, seconds } = overhead;
  const cells = judged(figures);
  const lookup = middle(cells[RCU].search);
  const rows = [
    ["lookup (the search)", count(1000), short(lookup)],
    ...ROW_NAMES.map((name, row) => [
      name,
      short(costs[row].calls * 1000 / lookups),
      short(costs[row].ms * 1e6 / lookups),
    ]),
    ["net", "", short(lookup + overheadOf(overhead))],
    ["base: its search", count(1000), short(middle(cells[RW_LOCK].search))],
  ];
  return {
    title: `What RCU itself cost: ${SETTINGS[figures.setting].name}`,
    head: [
      "what RCU cost: 2 workers, updater",
      "calls/1,000 lookups",
      "ns/lookup",
    ],
    rows,
    notes: `Over ${short(seconds)} s and ${count(lookups)} lookups: ${
      count(overhead.gracePeriods)
    } grace periods; ${
      count(overhead.pending)
    } callbacks waited at most, with ${count(overhead.deferred)} bytes.
The updater's part is in it. Quiescent states that a lookup announces are in the first row too.`,
  };
}

/** How many times the base is RCU: the search, the search with all of RCU's work, the packet. */
function timesRcu(figures: Figures): Record<"search" | "net" | "whole", Ratio> {
  const cells = judged(figures);
  const rcu = cells[RCU];
  const base = cells[RW_LOCK];
  const more = overheadOf(figures.overhead);
  const net = rcu.search.map((ns) => ns + more);
  return {
    search: ratio(base.search, rcu.search),
    net: ratio(base.search, net),
    whole: ratio(base.whole, rcu.whole),
  };
}

function verdict(all: Figures[]): Table {
  return {
    title: "The base against RCU",
    head: [
      "base ÷ RCU: 2 workers, updater",
      `search, bar ${BAR}`,
      `net of RCU's work, bar ${NET_BAR}`,
      "packet",
    ],
    rows: all.map((figures) => {
      const { search, net, whole } = timesRcu(figures);
      const { comparison, name } = SETTINGS[figures.setting];
      return [
        name,
        comparison ? spread(search) : against(search, BAR),
        comparison ? spread(net) : against(net, NET_BAR),
        spread(whole),
      ];
    }),
  };
}

function bars(figures: Figures): Bar[] {
  const { search, net } = timesRcu(figures);
  const { comparison, name } = SETTINGS[figures.setting];
  if (comparison) return [];
  const bar = (what: string, value: Ratio, least: number): Bar => ({
    what: `${what}, base ÷ RCU, 2 workers and updater: ${name}`,
    bar: `≥ ${least}`,
    measured: Number.isNaN(value.median) ? TOO_FEW : spread(value),
    met: value.median >= least,
  });
  return [
    bar("search", search, BAR),
    bar("search net of RCU's work", net, NET_BAR),
  ];
}

const TOO_FEW = "too few rounds";

function against(value: Ratio, bar: number): string {
  if (Number.isNaN(value.median)) return TOO_FEW;
  return `${spread(value)} ${value.median >= bar ? "reached" : "missed"}`;
}

/** The middle of the rounds that count. */
function middle(values: number[]): number {
  return median(values.filter((value) => !Number.isNaN(value)));
}

/** Shows a number; a dash where none was measured. */
function unless(value: number, show: (value: number) => string): string {
  return Number.isNaN(value) ? "–" : show(value);
}

/** A chart of what contenders took in each setting, with two workers and the updater. */
function byContender(
  all: Figures[],
  title: string,
  y: string,
  of: (cell: Cell) => number[],
): Chart {
  return {
    title,
    kind: "bar",
    x: { title: "setting", unit: "" },
    y: { title: y, unit: "ns" },
    series: measured(judged(all[0])).map(({ contender }) => ({
      name: CONTENDERS[contender],
      points: all.map((figures) => [
        SETTINGS[figures.setting].name,
        middle(of(judged(figures)[contender])),
      ]),
    })),
  };
}

function searches(all: Figures[]): Chart {
  return byContender(
    all,
    "Searching the cache: 2 workers, updater",
    "median time of a search in each worker",
    ({ search }) => search,
  );
}

function packets(all: Figures[]): Chart {
  return byContender(
    all,
    "Forwarding a packet, misses included: 2 workers, updater",
    "median time of a packet in each worker",
    ({ whole }) => whole,
  );
}

function work(all: Figures[]): Chart {
  return {
    title: "What RCU's own work came to: 2 workers, updater",
    kind: "bar",
    x: { title: "setting", unit: "" },
    y: { title: "time spent for each lookup", unit: "ns" },
    series: ROW_NAMES.map((name, row) => ({
      name,
      points: all.map(({ setting, overhead: { costs, lookups } }) => [
        SETTINGS[setting].name,
        costs[row].ms * 1e6 / lookups,
      ]),
    })),
  };
}
