/** The worst latency of 2004, re-created: what callbacks do to a timer in their thread. */
import { type CallbackPolicy, Rcu } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
} from "./_experiment.ts";
import {
  BURST,
  OBJECT,
  poisonFreed,
  type Round,
  SLICE,
} from "./_latency_load.ts";
import { median, quantile, type Ratio } from "./_measure.ts";
import { count, short, spread } from "./_report.ts";
import { Thread } from "./_thread.ts";
import { Peer } from "./_workers.ts";

const LOAD = import.meta.resolve("./_latency_load.ts");
const MIB = 2 ** 20;
const CAPACITY = 192 * MIB;
/** The default, spelled out: what may wait follows from it. */
const HIGH_WATER = 10_000;
/** Between two looks from outside, in ms. */
const LOOK = 4;
/** Longest wait until all is reclaimed, in ms. */
const PATIENCE = 20_000;
/** The most that a policy's latency may be of the first one's. */
const BAR = 0.6;

/** A policy, and what it was measured to do in 2004, in µs. */
export interface Contender {
  name: string;
  callbacks: CallbackPolicy;
  plain: boolean;
  then?: number;
}

/** The load alone comes first. */
export const CONTENDERS: readonly Contender[] = [
  {
    name: "no callbacks: freed at once",
    callbacks: { mode: "immediate" },
    plain: true,
  },
  {
    name: "immediate",
    callbacks: { mode: "immediate" },
    plain: false,
    then: 711,
  },
  {
    name: "throttled, 16 a turn",
    callbacks: { mode: "throttled", maxBatch: 16, plugTicks: 0 },
    plain: false,
    then: 439,
  },
  {
    name: "offloaded",
    callbacks: { mode: "offloaded" },
    plain: false,
    then: 413,
  },
];
const IMMEDIATE = 1;

/** A contender's domain: its owner holds no reference and defers nothing, it only looks. */
export function createDomain(callbacks: CallbackPolicy): Rcu {
  const rcu = Rcu.create({
    name: "observer",
    capacity: CAPACITY,
    maxReaders: 8,
    highWater: HIGH_WATER,
    callbacks,
    reclaimer: "none",
  });
  poisonFreed(rcu);
  return rcu;
}

interface Site {
  rcu: Rcu;
  load: Thread;
  reclaimer: Thread | undefined;
  reclaimed: Promise<void>;
  rounds: Sample[];
}

/** A round, and what was seen from outside. */
interface Sample extends Round {
  /** Callbacks that waited, over ms from the beginning. */
  pending: [ms: number, pending: number][];
  pendingPeak: number;
  /** Most bytes, each for itself. */
  deferred: number;
  live: number;
  /** From the end of the reader's section until all was reclaimed, in ms. */
  drained: number;
}

/** The domains, and a reader that reads in one of them at a time. */
class Lab implements AsyncDisposable {
  readonly sites: Site[] = [];
  readonly #reader: Peer;

  private constructor(reader: Peer) {
    this.#reader = reader;
  }

  static async open(): Promise<Lab> {
    const gate = new Int32Array(new SharedArrayBuffer(64));
    const domains = CONTENDERS.map(({ callbacks }) => createDomain(callbacks));
    const handles = domains.map(({ handle }) => handle);
    const lab = new Lab(await Peer.start(LOAD, "holder", { handles, gate }));
    lab.#reader.select(1);
    for (const [n, { callbacks, plain }] of CONTENDERS.entries()) {
      const rcu = domains[n];
      const load = new Thread(LOAD);
      const offloaded = callbacks.mode === "offloaded";
      const reclaimer = offloaded ? new Thread(LOAD) : undefined;
      const reclaimed = reclaimer?.call<void>("reclaimer", rcu.handle) ??
        Promise.resolve();
      const { handle } = rcu;
      await load.call("openLoad", { handle, gate, domain: n + 1, plain });
      lab.sites.push({ rcu, load, reclaimer, reclaimed, rounds: [] });
    }
    return lab;
  }

  /** One round, and all of it reclaimed. */
  async round({ rcu, load }: Site, ms: number): Promise<Sample> {
    const membership = membershipOf(rcu, "measure");
    const pending: Sample["pending"] = [];
    let deferred = 0;
    let live = 0;
    let result: Round | undefined;
    const begin = performance.now();
    let failure: unknown;
    load.call<Round>("round", ms)
      .then((round) => result = round, (error) => failure = error);
    while (true) {
      if (failure !== undefined) throw failure;
      const now = performance.now() - begin;
      const memory = rcu.memory.audit();
      deferred = Math.max(deferred, memory.deferred);
      live = Math.max(live, memory.live);
      pending.push([now, membership.pendingOfAll()]);
      if (result !== undefined && pending.at(-1)![1] === 0) break;
      if (now > ms + PATIENCE) throw new Error("It is never reclaimed");
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
    return {
      ...result,
      pending,
      pendingPeak: Math.max(...pending.map(([, waiting]) => waiting)),
      deferred,
      live,
      drained: drainedAt(pending) - result.released,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader[Symbol.asyncDispose]();
    for (const { rcu, load, reclaimer, reclaimed } of this.sites) {
      await load.call("closeLoad");
      rcu.close();
      // It was alone then.
      await reclaimed;
      load[Symbol.dispose]();
      reclaimer?.[Symbol.dispose]();
    }
  }
}

function drainedAt(pending: Sample["pending"]): number {
  let last = pending.length - 1;
  while (last > 0 && pending[last - 1][1] === 0) last--;
  return pending[last][0];
}

function plan({ quick }: Pick<RunOptions, "quick">) {
  return quick
    ? { rounds: 3, warmUp: 1, ms: 200, warmUpMs: 100 }
    : { rounds: 6, warmUp: 2, ms: 600, warmUpMs: 100 };
}

async function run(options: RunOptions): Promise<Findings> {
  const { rounds, warmUp, ms, warmUpMs } = plan(options);
  options.onStep("starting threads");
  const costs = await batchCosts();
  await using lab = await Lab.open();
  const { sites } = lab;
  for (let round = 0; round < warmUp; round++) {
    options.onStep(`warming up, ${round + 1} of ${warmUp}`);
    for (const site of sites) await lab.round(site, warmUpMs);
  }
  for (let round = 0; round < rounds; round++) {
    options.onStep(`round ${round + 1} of ${rounds}`);
    for (let i = 0; i < sites.length; i++) {
      const site = sites[(i + round) % sites.length];
      site.rounds.push(await lab.round(site, ms));
    }
  }
  return findings(sites.map(({ rounds }) => rounds), costs);
}

interface Cost {
  words: number;
  poisoned: boolean;
  ms: number;
}

async function batchCosts(): Promise<Cost[]> {
  using thread = new Thread(LOAD);
  return await thread.call<Cost[]>("batchCosts");
}

/** A figure of each round. */
function each(rounds: Sample[], of: (round: Sample) => number): number[] {
  return rounds.map(of);
}

function lateBy(rounds: Sample[], share: number): number[] {
  return each(rounds, ({ late }) => quantile([...late], share) * 1000);
}

/** Compares two contenders round by round. */
function compare(a: number[], b: number[]): Ratio {
  const ratios = a.map((value, i) => value / b[i]);
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) =>
    quantile(ratios, share)
  );
  return { low, median: middle, high };
}

const PERCENTILES = [["p50", 0.5], ["p99", 0.99], ["p99.9", 0.999]] as const;

function findings(all: Sample[][], costs: Cost[]): Findings {
  const worst = all.map((rounds) => lateBy(rounds, 0.999));
  const bars: Bar[] = [IMMEDIATE + 1, IMMEDIATE + 2].map((n) => {
    const times = compare(worst[n], worst[IMMEDIATE]);
    return {
      what: `p99.9 of lateness, ${CONTENDERS[n].name}, of immediate`,
      bar: `≤ ${BAR}`,
      measured: spread(times),
      met: times.median <= BAR,
    };
  });
  const peaks = all.map((rounds) =>
    Math.max(...each(rounds, ({ pendingPeak }) => pendingPeak))
  );
  // What is left of earlier bursts, and the burst that the reader holds up.
  const bound = HIGH_WATER + BURST;
  bars.push({
    what: "most callbacks that waited, any policy",
    bar: `≤ highWater + a burst = ${count(bound)}`,
    measured: count(Math.max(...peaks)),
    met: Math.max(...peaks) <= bound,
  });
  const rows = all.map((rounds, n) => [
    CONTENDERS[n].name,
    ...PERCENTILES.map(([, share]) => count(median(lateBy(rounds, share)))),
    count(median(lateBy(rounds, 1))),
    CONTENDERS[n].then?.toString() ?? "",
    count(peaks[n]),
    short(Math.max(...each(rounds, ({ deferred }) => deferred)) / MIB),
    short(Math.max(...each(rounds, ({ live }) => live)) / MIB),
    CONTENDERS[n].plain
      ? ""
      : count(median(each(rounds, ({ drained }) => drained))),
  ]);
  const load = all.flat();
  const busy = median(each(load, ({ busy }) => busy));
  const slice = median(each(load, ({ slice }) => slice));
  return {
    bars,
    tables: [{
      title: "Lateness of a timer of 1 kHz in the thread of the callbacks",
      head: [
        "µs late",
        ...PERCENTILES.map(([name]) => name),
        "max",
        "worst, 2004",
        "pending peak",
        "deferred, MiB",
        "live, MiB",
        "reclaimed after, ms",
      ],
      rows,
      notes:
        `Medians of ${all[0].length} rounds of ${
          count(all[0][0].late.length)
        } ` +
        `ticks; peaks are those of all rounds. Each round has a burst of ${
          count(BURST)
        } objects of ${count(OBJECT * 4)} bytes created and as many deleted, ` +
        `while a reader in another thread holds a section; its end makes all ` +
        `of them ready. The load replaces ${SLICE} objects at a time (${
          short(slice)
        } µs), and takes ${
          short(busy)
        } ms of a round itself. Freed memory is ` +
        `poisoned, as in debug mode, so that frees take microseconds and show ` +
        `beside a timer. One of Deno's is late by 1 ms where a ` +
        `thread has nothing to do; where others use the machine, by as much ` +
        `as the first row says. Beyond highWater (${count(HIGH_WATER)}) all ` +
        `that is ready is reclaimed at once, so that no more than that is left ` +
        `of earlier bursts when the next one comes.`,
    }, {
      title: `${count(BURST)} ready frees in one go`,
      head: ["a block", "ms", "µs each"],
      rows: costs.map(({ words, poisoned, ms }) => [
        `${count(words * 4)} bytes${poisoned ? ", poisoned" : ""}`,
        short(ms),
        short(ms * 1000 / BURST),
      ]),
      notes:
        `What immediate does in one turn. It takes ${
          count(BURST / costs[0].ms)
        } of the smallest ones to hold a thread up for 1 ms: few programs ` +
        `need another policy for those.`,
    }],
    charts: [percentiles(all), waiting(all)],
  };
}

function percentiles(all: Sample[][]): Chart {
  const shares = [...PERCENTILES, ["max", 1] as const];
  return {
    title: "Lateness of a 1 kHz timer in the thread of the callbacks",
    kind: "bar",
    x: { title: "percentile", unit: "" },
    y: { title: "late by", unit: "µs", log: true },
    series: [
      ...all.map((rounds, n) => ({
        name: CONTENDERS[n].name,
        points: shares.map(([name, share]): [string, number] => [
          name,
          median(lateBy(rounds, share)),
        ]),
      })),
    ],
  };
}

function waiting(all: Sample[][]): Chart {
  return {
    title: "Callbacks that wait, from the beginning of a burst",
    kind: "line",
    x: { title: "time", unit: "ms" },
    y: { title: "pending callbacks", unit: "" },
    series: all.flatMap((rounds, n) => {
      const { name, plain } = CONTENDERS[n];
      return plain ? [] : [{ name, points: rounds.at(-1)!.pending }];
    }),
  };
}

/** The experiment. */
export const callbackLatency: Experiment = {
  name: "callback_latency",
  title: "Callbacks and the latency of their thread",
  about: "In 2004, many RCU callbacks at once held a processor up for up to " +
    "711 µs; doing 16 at a time, or all in a thread of their own, made that " +
    "439 and 413 µs (“RCU for low latency”, Dipankar Sarma). Here: how late a " +
    "timer is in a thread whose deferred frees become ready by the thousand.",
  command: "deno task bench:all bench/callback_latency_bench.ts",
  steps(options) {
    const { rounds, warmUp } = plan(options);
    return 1 + warmUp + rounds;
  },
  run,
};
