/** Prints what the route-cache benchmark found. */
import { median, type Ratio, ratio } from "./_measure.ts";
import { count, short, spread, table } from "./_report.ts";
import {
  type Cell,
  type Overhead,
  type Situation,
  SITUATIONS,
  type State,
} from "./_route_figures.ts";
import { ROW_NAMES } from "./_route_overhead.ts";
import { CHANGES_EVERY, RATE } from "./_route_threads.ts";
import { BURST, FLOWS } from "./_route_traffic.ts";
import { CONTENDERS, RCU, RW_LOCK, SETTINGS } from "./_route_world.ts";

/** What was measured in a setting. */
export interface Figures {
  setting: number;
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

/** The report. */
export function report(prefixes: number, all: Figures[]): string {
  return [
    introduction(prefixes, all),
    ...all.flatMap((figures) => [
      forwarding(figures),
      states(figures),
      overheads(figures),
    ]),
    verdict(all),
  ].join("\n\n");
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

function forwarding({ setting, cells }: Figures): string {
  const rows = SITUATIONS.flatMap((situation, n) => [
    [situationName(situation), ...Array(6).fill("")],
    ...cells[n].map(({ search, whole, found }, contender) => [
      `  ${CONTENDERS[contender]}`,
      short(middle(search)),
      spread(ratio(search, cells[n][RCU].search)),
      short(middle(whole)),
      spread(ratio(whole, cells[n][RCU].whole)),
      unless(middle(whole), (ns) => count(situation.workers * 1e9 / ns)),
      unless(middle(found), (share) => `${(share * 100).toFixed(1)} %`),
    ]),
  ]);
  return table([
    [
      SETTINGS[setting].name,
      "search, ns",
      "× RCU",
      "packet, ns",
      "× RCU",
      "packets/s",
      "found",
    ],
    ...rows,
  ]);
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

function states({ before, after }: Figures): string {
  const rows = after.map(({ cache, neighbors }, contender) => [
    CONTENDERS[contender],
    count(cache.entries),
    count(neighbors.entries),
    ...COUNTERS.map(([name]) =>
      count(cache[name] - before[contender].cache[name])
    ),
  ]);
  return table([
    [
      "now; since it was warm",
      "entries",
      "neighbours",
      ...COUNTERS.map(([, title]) => title),
    ],
    ...rows,
  ]);
}

/** Two workers and the updater: where the bars are. */
function judged({ cells }: Figures): Cell[] {
  return cells[SITUATIONS.length - 1];
}

/** What all of RCU's work came to in a packet, in ns. */
function overheadOf({ costs, lookups }: Overhead): number {
  return costs.reduce((sum, { ms }) => sum + ms, 0) * 1e6 / lookups;
}

function overheads(figures: Figures): string {
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
  return `${
    table([
      [
        "what RCU cost: 2 workers, updater",
        "calls/1,000 lookups",
        "ns/lookup",
      ],
      ...rows,
    ])
  }
Over ${short(seconds)} s and ${count(lookups)} lookups: ${
    count(overhead.gracePeriods)
  } grace periods; ${count(overhead.pending)} callbacks waited at most, with ${
    count(overhead.deferred)
  } bytes.
The updater's part is in it. Quiescent states that a lookup announces are in the first row too.`;
}

function verdict(all: Figures[]): string {
  return table([
    [
      "base ÷ RCU: 2 workers, updater",
      `search, bar ${BAR}`,
      `net of RCU's work, bar ${NET_BAR}`,
      "packet",
    ],
    ...all.map((figures) => {
      const cells = judged(figures);
      const rcu = cells[RCU];
      const base = cells[RW_LOCK];
      const more = overheadOf(figures.overhead);
      const net = rcu.search.map((ns) => ns + more);
      return [
        SETTINGS[figures.setting].name,
        against(ratio(base.search, rcu.search), BAR),
        against(ratio(base.search, net), NET_BAR),
        spread(ratio(base.whole, rcu.whole)),
      ];
    }),
  ]);
}

function against(value: Ratio, bar: number): string {
  if (Number.isNaN(value.median)) return "too few rounds";
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
