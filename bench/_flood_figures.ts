/** A flood of random destinations through a route cache, as in 2004. */
import {
  type CallbackPolicy,
  Fib,
  Rcu,
  type Route,
  type RouteCache,
} from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
} from "./_experiment.ts";
import { type AsnPrefixes, asnRanges, toPrefixes } from "./_data.ts";
import {
  type Flooded,
  LIMITS,
  LOOKUPS,
  type Observed,
  openCache,
  type Size,
} from "./_flood_threads.ts";
import { turn } from "./_measure.ts";
import { count, short } from "./_report.ts";
import { Thread } from "./_thread.ts";

const THREADS = import.meta.resolve("./_flood_threads.ts");
const MIB = 2 ** 20;
/** Little more than the Fib and a full cache take. */
export const CAPACITY: number = 16 * MIB;
/** Bytes of an entry, live or deferred: nothing else comes and goes in a flood. */
const ENTRY = 64;
/** Threads that flood. */
const FLOODERS = 2;
/** Next hops of the router. */
const HOPS = 16;
/** How long a flood is, in ms. */
const LENGTH: Record<Size, number> = { roomy: 4500, tight: 1000 };
const QUICK: Record<Size, number> = { roomy: 200, tight: 100 };
/** Warming up, in ms. */
const WARM_UP = 200;
/** Longest wait for the resting size, in ms. */
const PATIENCE = 10_000;

/** The callback policies that are compared. */
export const POLICIES: readonly CallbackPolicy[] = [
  { mode: "immediate" },
  { mode: "throttled" },
  { mode: "offloaded" },
];

/** A kind of flood. */
interface Kind {
  size: Size;
  endsTurns: boolean;
}

const KINDS: readonly Kind[] = [
  { size: "roomy", endsTurns: false },
  { size: "roomy", endsTurns: true },
  { size: "tight", endsTurns: true },
];

/** What a flood came to. */
interface Flood extends Kind {
  mode: string;
  /** How long it was to last, in ms. */
  ms: number;
  each: Flooded[];
  observed: Observed;
  /** Most bytes live and deferred. */
  memoryPeak: number;
  /** What the cache counted meanwhile. */
  overflows: number;
  insertions: number;
  /** Entries evicted or collected. */
  gone: number;
  /** Grace periods after the flush until memory was as before, and ms. */
  restPeriods: number;
  restedAfter: number;
}

/** A domain with all prefixes in its Fib. */
export function createRouter(
  callbacks: CallbackPolicy,
  prefixes: AsnPrefixes,
): Rcu {
  const rcu = Rcu.create({
    name: "router",
    capacity: CAPACITY,
    maxReaders: 8,
    callbacks,
    reclaimer: "none",
  });
  Fib.open(rcu, "fib").load(entriesOf(prefixes));
  rcu.barrierSync();
  return rcu;
}

function* entriesOf(
  { address, length, asn }: AsnPrefixes,
): Generator<[string | { address: number; length: number }, Route]> {
  // Every destination has a route: what has none is not cached.
  yield ["0.0.0.0/0", { gateway: "10.0.0.1", interface: 1 }];
  for (let i = 0; i < address.length; i++) {
    const gateway = `10.0.0.${1 + asn[i] % HOPS}`;
    const prefix = { address: address[i], length: length[i] };
    yield [prefix, { gateway, interface: 1 }];
  }
}

/** The prefixes of the Fib. */
export async function readPrefixes(): Promise<AsnPrefixes> {
  return toPrefixes(await asnRanges());
}

async function floodAll(
  callbacks: CallbackPolicy,
  prefixes: AsnPrefixes,
  length: Record<Size, number>,
): Promise<Flood[]> {
  const rcu = createRouter(callbacks, prefixes);
  const { handle } = rcu;
  const observer = new Thread(THREADS);
  const flooders = Array.from({ length: FLOODERS }, () => new Thread(THREADS));
  const offloaded = callbacks.mode === "offloaded";
  const reclaimer = offloaded ? new Thread(THREADS) : undefined;
  const reclaimed = reclaimer?.call<void>("reclaimer", handle);
  await observer.call("openObserver", handle);
  for (const [n, flooder] of flooders.entries()) {
    await flooder.call("openFlooder", { handle, seed: n + 1 });
  }
  const floods: Flood[] = [];
  for (const kind of KINDS) {
    const cache = openCache(rcu, kind.size);
    const flood = (ms: number) =>
      Promise.all(
        flooders.map((thread) =>
          thread.call<Flooded>("flood", { ...kind, ms })
        ),
      );
    // With every neighbour that there will be.
    await flood(WARM_UP);
    cache.flush();
    await rcu.barrier();
    const resting = rcu.memory.audit().live;
    const before = cache.stats();
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const observing = observer.call<Observed>("observe", {
      size: kind.size,
      stop,
    });
    const each = await flood(length[kind.size]);
    Atomics.store(stop, 0, 1);
    Atomics.notify(stop, 0);
    const observed = await observing;
    const after = cache.stats();
    floods.push({
      ...kind,
      mode: callbacks.mode,
      ms: length[kind.size],
      each,
      observed,
      memoryPeak: resting + ENTRY * observed.occupied,
      overflows: after.overflows - before.overflows,
      insertions: after.insertions - before.insertions,
      gone: after.evictions + after.collected -
        before.evictions - before.collected,
      ...await rest(rcu, cache, resting),
    });
  }
  await observer.call("closeObserver");
  for (const flooder of flooders) await flooder.call("closeFlooder");
  rcu.close();
  await reclaimed;
  for (const thread of [observer, ...flooders]) thread[Symbol.dispose]();
  reclaimer?.[Symbol.dispose]();
  return floods;
}

/**
 * Empties the cache, and lets turns pass until its memory is free, the last
 * byte: asking for grace periods is left to those who have deferred.
 */
async function rest(
  rcu: Rcu,
  cache: RouteCache,
  resting: number,
): Promise<Pick<Flood, "restPeriods" | "restedAfter">> {
  const { sequence } = membershipOf(rcu, "measure");
  cache.flush();
  const start = performance.now();
  // One that is in progress now is not a full one.
  const begun = sequence.started();
  while (true) {
    const completed = sequence.completed();
    const { live, deferred } = rcu.memory.audit();
    const restedAfter = performance.now() - start;
    if (live + deferred === resting) {
      return { restPeriods: Math.max(0, completed - begun), restedAfter };
    }
    if (restedAfter > PATIENCE) throw new Error("Memory does not come back");
    await turn();
  }
}

async function run({ quick, onStep }: RunOptions): Promise<Findings> {
  onStep("reading the prefixes of @ip-location-db/asn");
  const prefixes = await readPrefixes();
  const floods: Flood[] = [];
  for (const callbacks of POLICIES) {
    onStep(callbacks.mode);
    floods.push(
      ...await floodAll(callbacks, prefixes, quick ? QUICK : LENGTH),
    );
  }
  return findings(floods, prefixes.address.length);
}

function findings(floods: Flood[], prefixes: number): Findings {
  const overflows = sum(floods, ({ overflows }) => overflows);
  const failures = sum(floods, outOfMemory);
  const fewest = Math.min(
    ...floods.flatMap(({ each }) => each).map((one) => one.fewestAtOverflow),
  );
  const memory = Math.max(...floods.map(({ memoryPeak }) => memoryPeak));
  const bars: Bar[] = [
    {
      what: "overflows for want of memory instead of maxSize live entries",
      bar: "0",
      measured: `${count(failures)} of ${count(overflows)}`,
      met: failures === 0,
    },
    {
      what: "most memory, MiB",
      bar: `≤ ${CAPACITY / MIB}`,
      measured: short(memory / MIB),
      met: memory <= CAPACITY,
    },
    ...POLICIES.map(({ mode }) => {
      const own = floods.filter((flood) => flood.mode === mode);
      const periods = Math.max(...own.map(({ restPeriods }) => restPeriods));
      return {
        what: `grace periods from the flush to the resting size, ${mode}`,
        bar: "≤ 2",
        measured: count(periods),
        met: periods <= 2,
      };
    }),
  ];
  const { roomy, tight } = LIMITS;
  return {
    bars,
    tables: [{
      title: `A flood of random destinations by ${FLOODERS} threads, ${
        [...new Set(floods.map(({ ms }) => ms / 1000))].join(" and ")
      } s each`,
      head: [
        "policy, turns",
        "lookups/s",
        "evicted, of lookups",
        "overflows",
        "for want of memory",
        "pending peak",
        "longest period, ms",
        `longest ${LOOKUPS} lookups, ms`,
        "periods",
        "memory peak, MiB",
        "rested after periods",
        "ms",
      ],
      rows: floods.map(row),
      notes:
        `${count(prefixes)} prefixes; a cache of ${
          count(roomy.buckets)
        } chains and ${count(roomy.maxSize)} entries at most, in ${
          CAPACITY / MIB
        } MiB; the tight one has ${count(tight.buckets)} and ${
          count(tight.maxSize)
        }. In one long turn a thread passes quiescent states only as its ` +
        `sections and updates count up. Every allocation that fails in a ` +
        `flooding thread is counted, so that other overflows are those of a ` +
        `cache that a collection left full${
          overflows === 0
            ? ""
            : ` (entries at most ${LOOKUPS} lookups later: ${
              count(fewest)
            } at least)`
        }. A period lasts until somebody looks at it, which threads do whose ` +
        `callbacks need it, and at least as long as a thread that reads has no ` +
        `core. The observer, who takes no lock, looks every 0.2 ms where it has ` +
        `one; it was away for ${
          short(Math.max(...floods.map(({ observed }) => observed.absence)))
        } ms once. In 2004, at 100,000 ` +
        `packets/s and grace periods of up to 300 ms, some 30,000 evicted ` +
        `entries waited and still counted as entries of the cache: quiescent ` +
        `states at the end of each softirq halved its overflows, throttling ` +
        `made them 10 % fewer.`,
    }],
    charts: [peaks(floods), waiting(floods)],
  };
}

function row(flood: Flood): string[] {
  const { observed, each } = flood;
  const lookups = sum(each, ({ lookups }) => lookups);
  const rate = sum(each, ({ lookups, ms }) => lookups * 1000 / ms);
  return [
    nameOf(flood),
    count(rate),
    `${short(100 * flood.gone / lookups)} %`,
    count(flood.overflows),
    count(outOfMemory(flood)),
    count(observed.pendingPeak),
    short(observed.longest),
    short(Math.max(...each.map(({ longest }) => longest))),
    count(observed.periods),
    short(flood.memoryPeak / MIB),
    count(flood.restPeriods),
    count(flood.restedAfter),
  ];
}

function sum<T>(all: T[], of: (one: T) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}

function outOfMemory({ each }: Flood): number {
  return sum(each, ({ outOfMemory }) => outOfMemory);
}

function nameOf(flood: Flood): string {
  return `${flood.mode}, ${turnsOf(flood)}${
    flood.size === "tight" ? ", tight" : ""
  }`;
}

function turnsOf({ endsTurns }: Kind): string {
  return endsTurns ? `a turn each ${LOOKUPS}` : "one long turn";
}

function peaks(floods: Flood[]): Chart {
  return {
    title: "Most callbacks that waited during a flood",
    kind: "bar",
    x: { title: "callback policy", unit: "" },
    y: { title: "pending callbacks", unit: "", log: true },
    series: KINDS.filter(({ size }) => size === "roomy").map((kind) => ({
      name: turnsOf(kind),
      points: floods.filter(({ size, endsTurns }) =>
        size === kind.size && endsTurns === kind.endsTurns
      ).map(({ mode, observed }): [string, number] => [
        mode,
        observed.pendingPeak,
      ]),
    })),
  };
}

function waiting(floods: Flood[]): Chart {
  return {
    title: "Callbacks that wait during a flood",
    kind: "line",
    x: { title: "time", unit: "ms" },
    y: { title: "most pending callbacks of 50 ms", unit: "" },
    series: floods.filter(({ size }) => size === "roomy").map((flood) => ({
      name: nameOf(flood),
      points: flood.observed.pending,
    })),
  };
}

/** The experiment. */
export const flood: Experiment = {
  name: "flood",
  title: "A flood of random destinations",
  about: "In 2004 a flood of random destinations, each a new entry of the " +
    "route cache, made it overflow, because evicted entries waited for grace " +
    "periods of up to 300 ms; throttling callbacks could not avoid it (“RCU " +
    "for low latency”, Dipankar Sarma). Here: how much waits, and whether " +
    "memory stays within its bounds.",
  command: "deno task bench:all bench/flood_bench.ts",
  routes: true,
  steps: () => 1 + POLICIES.length,
  run,
};
