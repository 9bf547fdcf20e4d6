/**
 * What RCU itself costs with each detector and each policy, so that no work is
 * merely moved: a reclaimer's is counted too.
 */
import { type CallbackPolicy, Rcu, type RcuOptions } from "../mod.ts";
import type { Chart, RunOptions, Table } from "./_experiment.ts";
import { median } from "./_measure.ts";
import { count, short } from "./_report.ts";
import {
  type Cell,
  type Forwarded,
  Lab,
  type Overhead,
  SITUATIONS,
} from "./_route_figures.ts";
import { type Cost, ROW_NAMES } from "./_route_overhead.ts";
import { fillFib, type LoadedFib, RCU, SETTINGS } from "./_route_world.ts";

type Detector = NonNullable<RcuOptions["detector"]>;

const DETECTORS = ["scan", "classic", "tree"] as const satisfies Detector[];
const POLICIES = [
  { mode: "immediate" },
  { mode: "throttled" },
  { mode: "offloaded" },
] as const satisfies CallbackPolicy[];

/** Where RCU has most to do: entries come and go all the time. */
const SETTING = 1;
/** In ms, but for the rounds. */
const WARM_UP = 500;
const FORWARDED = 400;
const OVERHEAD = 700;
const ROUNDS = 5;
/** Repeating what did not count, in ms for each round. */
const PATIENCE = 200;

/** How a domain notices the end of periods, and when it reclaims. */
interface System {
  name: string;
  detector: Detector;
  callbacks: CallbackPolicy;
}

const SYSTEMS: readonly System[] = DETECTORS.flatMap((detector) =>
  POLICIES.map((callbacks) => ({
    name: `${detector}, ${callbacks.mode}`,
    detector,
    callbacks,
  }))
);

/** How many there are. */
export const SYSTEM_COUNT = SYSTEMS.length;

/** What was measured of one. */
export interface SystemFigures {
  name: string;
  /** Nanoseconds a search, one number a round. */
  search: number[];
  forwarded: Forwarded;
  overhead: Overhead;
}

/** Takes the figures of each, in a domain of its own. */
export async function measureSystems(
  loaded: Pick<LoadedFib, "prefixes" | "traffic">,
  onStep: RunOptions["onStep"],
): Promise<SystemFigures[]> {
  const figures: SystemFigures[] = [];
  for (const system of SYSTEMS) {
    onStep(`what RCU itself costs: ${system.name}`);
    figures.push(await measureSystem(system, loaded));
  }
  return figures;
}

async function measureSystem(
  { name, detector, callbacks }: System,
  loaded: Pick<LoadedFib, "prefixes" | "traffic">,
): Promise<SystemFigures> {
  using rcu = Rcu.create({
    name: "measuring",
    capacity: 2 ** 28,
    detector,
    callbacks,
    // One of ours, whose work is measured.
    reclaimer: "none",
  });
  const lab = await Lab.open(rcu, fillFib(rcu, loaded), SETTING, {
    contenders: [RCU],
    inTurns: true,
  });
  lab.warmUp(WARM_UP);
  const cell: Cell = { search: [], whole: [], found: [] };
  for (let round = 0; round < ROUNDS; round++) {
    lab.measure(RCU, SITUATIONS.at(-1)!, cell, PATIENCE);
  }
  const forwarded = lab.forward(FORWARDED);
  const overhead = await lab.overhead(OVERHEAD);
  await lab.close();
  await rcu.barrier();
  const { deferred } = rcu.memory.audit();
  if (deferred !== 0) {
    throw new Error(`${name}: ${deferred} bytes are still deferred`);
  }
  return { name, search: cell.search, forwarded, overhead };
}

/** The figures as tables: times, calls, and the reclaimer's part. */
export function systemTables(all: SystemFigures[]): Table[] {
  return [times(all), calls(all), reclaimers(all)];
}

/** A row of one number for each. */
function row(
  title: string,
  all: SystemFigures[],
  of: (figures: SystemFigures) => number,
  show: (value: number) => string = short,
): string[] {
  return [title, ...all.map((figures) => show(of(figures)))];
}

/** What some rows came to for a lookup, in ns. */
function spent(costs: Cost[], { lookups }: Overhead): number {
  return costs.reduce((sum, { ms }) => sum + ms, 0) * 1e6 / lookups;
}

function inAll({ overhead }: SystemFigures): number {
  return spent(overhead.costs, overhead);
}

function searched({ search }: SystemFigures): number {
  return median(search);
}

function times(all: SystemFigures[]): Table {
  return {
    title: `What RCU itself cost by detector and policy: ${
      SETTINGS[SETTING].name
    }`,
    head: ["ns a lookup: 2 workers, updater", ...all.map(({ name }) => name)],
    rows: [
      row("lookup (the search)", all, searched),
      ...ROW_NAMES.map((name, n) =>
        row(name, all, ({ overhead }) => spent([overhead.costs[n]], overhead))
      ),
      row("RCU's work in all", all, inAll),
      row(
        "  of it in the reclaimer's thread",
        all,
        ({ overhead }) => spent(overhead.reclaimer, overhead),
      ),
      row("net", all, (figures) => searched(figures) + inAll(figures)),
      row(
        "processor time of the whole process",
        all,
        ({ forwarded }) => forwarded.cpu,
      ),
      row("lookups/s", all, ({ forwarded }) => forwarded.rate, count),
      row(
        "grace periods/s",
        all,
        ({ overhead }) => overhead.gracePeriods / overhead.seconds,
        count,
      ),
      row(
        "callbacks that waited at most",
        all,
        ({ overhead }) => overhead.pending,
        count,
      ),
      row(
        "KiB that waited at most",
        all,
        ({ overhead }) => overhead.deferred / 1024,
        count,
      ),
    ],
    notes:
      `As in the table of the default, scan and immediate, but that event loops turn after every 1,280 packets, as
throttled needs it: going offline and online again is in checkQuiescentState. Times are those of all threads, the updater's
and the reclaimer's included, for each lookup of the workers. What the clock itself takes is taken off, so where little
is called, a row may be nothing. Processor time is that of the whole process while no call is timed: forwarding with all
its misses, the updater, the engine's threads, and waking whoever sleeps, which no row has; lookups/s are of the same run.
To measure it: deno task report --only route_cache, as the benchmark is about the default alone.`,
  };
}

function calls(all: SystemFigures[]): Table {
  return {
    title: "How often, by detector and policy",
    head: ["calls/1,000 lookups", ...all.map(({ name }) => name)],
    rows: ROW_NAMES.map((name, n) =>
      row(
        name,
        all,
        ({ overhead: { costs, lookups } }) => costs[n].calls * 1000 / lookups,
      )
    ),
  };
}

function reclaimers(all: SystemFigures[]): Table {
  const some = all.filter(({ overhead }) => overhead.reclaimer.length > 0);
  return {
    title: "The reclaimer's part",
    head: ["ns a lookup, in its thread", ...some.map(({ name }) => name)],
    rows: ROW_NAMES.map((name, n) =>
      row(
        name,
        some,
        ({ overhead }) => spent([overhead.reclaimer[n]], overhead),
      )
    ),
  };
}

/** What RCU's own work came to. */
export function systemChart(all: SystemFigures[]): Chart {
  return {
    title: "What RCU's own work came to by detector and policy",
    kind: "bar",
    x: { title: "detector and policy", unit: "" },
    y: { title: "time spent for each lookup", unit: "ns" },
    series: ROW_NAMES.map((name, n) => ({
      name,
      points: all.map(({ name, overhead }) => [
        name,
        spent([overhead.costs[n]], overhead),
      ]),
    })),
  };
}
