/** All real prefixes in the Fib, as an experiment. */
import { Fib, Rcu, type Route } from "../mod.ts";
import { type AsnPrefixes, asnRanges, toPrefixes } from "./_data.ts";
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import {
  consume,
  effort,
  interleave,
  median,
  ratio,
  type Series,
} from "./_measure.ts";
import { count, met, short, spread } from "./_report.ts";
import { seeded } from "./_random.ts";

/** Addresses that are looked up, drawn beforehand. */
const DRAWS = 2 ** 20;
/** Addresses whose answers are checked. */
const CHECKS = 100_000;
const ROUNDS = 21;
/** Next hops of the router. */
const HOPS = 256;
/** Lookups, or reads, of a call. */
export const BATCH = 2 ** 13;

/** Loading, memory, lookups and answers. */
export const fib: Experiment = {
  name: "fib",
  title: "Fib: all real prefixes",
  about: "All real prefixes in the Fib: loading, memory, lookups beside " +
    "plain reads of as much memory, and answers beside a plain " +
    "longest-prefix search.",
  command: "deno task bench:all bench/fib_bench.ts",
  routes: true,
  steps: () => 4,
  async run(options) {
    using rcu = Rcu.create({ name: "bench" });
    return fibFindings((await measureFib(rcu, options)).figures);
  },
};

/** What came out. */
export interface FibFigures {
  prefixes: number;
  /** How long loading took, in ms. */
  loaded: number;
  bytes: number;
  series: Series;
  wrong: number;
}

/** Takes the figures; returns the lookups of the loaded Fib too. */
export async function measureFib(
  rcu: Rcu,
  { quick, onStep }: RunOptions,
): Promise<{
  figures: FibFigures;
  lookUp: (from: number, to: number) => number;
}> {
  const fib = Fib.open(rcu, "fib");
  const random = seeded(7);
  const drawAddress = () => Math.floor(random() * 2 ** 32);
  const addresses = Uint32Array.from({ length: DRAWS }, drawAddress);
  const lookUp = lookUps(fib, addresses);
  onStep("reading the prefixes of @ip-location-db/asn");
  const prefixes = toPrefixes(await asnRanges());
  const entries = Array.from(prefixes.address, (address, i) => {
    const hop = prefixes.asn[i] % HOPS;
    const route = { gateway: `10.1.0.${hop}`, interface: hop % 4 };
    return [{ address, length: prefixes.length[i] }, route] as const;
  });
  onStep(`loading ${count(entries.length)} prefixes`);
  const before = rcu.memory.audit().live;
  const start = performance.now();
  fib.load(entries);
  const loaded = performance.now() - start;
  rcu.barrierSync();
  const bytes = rcu.memory.audit().live - before;

  onStep("lookups beside plain reads of as much memory");
  const words = new Int32Array(new SharedArrayBuffer(bytes)).fill(1);
  const places = Int32Array.from(
    { length: DRAWS },
    () => random() * words.length,
  );
  const read = inBatches(reads(words, places));
  const look = inBatches(lookUp);
  const contender = (
    name: string,
    run: () => number,
    before: () => number,
  ) => ({
    name,
    operations: DRAWS,
    before: () => consume(before()),
    run,
  });
  const series = await interleave([
    contender("read", read, look),
    contender("lookup", look, read),
    contender("hot read", read, read),
    contender("hot lookup", look, look),
  ], effort({ rounds: ROUNDS, warmUp: 3 }, quick));

  onStep(`${count(CHECKS)} answers beside a plain search`);
  fib.load([...covering(), ...entries]);
  const wrong = check(fib, prefixes, drawAddress);
  const figures = { prefixes: entries.length, loaded, bytes, series, wrong };
  return { figures, lookUp };
}

/** Covering prefixes: the real ones do not overlap, so these are synthetic. */
function* covering(): Generator<[string, Route]> {
  yield ["0.0.0.0/0", { gateway: null, interface: 1 }];
  for (let i = 0; i < 224; i++) {
    yield [`${i}.0.0.0/8`, { gateway: `10.0.0.${i}`, interface: 2 }];
  }
}

/**
 * Loops that are called often, so that the engine compiles them as a whole: one of a million
 * rounds in one call runs in code that was made for being entered in its middle, which is up to
 * twice as slow, and not for all loops alike.
 */
function inBatches(run: (from: number, to: number) => number): () => number {
  return () => {
    let sum = 0;
    for (let at = 0; at < DRAWS; at += BATCH) {
      sum = (sum + run(at, at + BATCH)) | 0;
    }
    return sum;
  };
}

// Closures, as over the `const`s of a module: the engine takes array and table for constants.

function reads(
  words: Int32Array,
  places: Int32Array,
): (from: number, to: number) => number {
  return (from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum = (sum + words[places[i]]) | 0;
    return sum;
  };
}

function lookUps(
  fib: Fib,
  addresses: Uint32Array,
): (from: number, to: number) => number {
  return (from, to) => {
    let route: Route | undefined;
    for (let i = from; i < to; i++) route = fib.lookup(addresses[i]);
    return route?.interface ?? 0;
  };
}

/** How many of some answers are not those of a search through the sorted prefixes. */
function check(
  fib: Fib,
  prefixes: AsnPrefixes,
  drawAddress: () => number,
): number {
  const order = Uint32Array.from(prefixes.address.keys())
    .sort((a, b) => prefixes.address[a] - prefixes.address[b]);
  let wrong = 0;
  for (let i = 0; i < CHECKS; i++) {
    const address = drawAddress();
    let low = 0;
    let high = order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (prefixes.address[order[middle]] <= address) low = middle + 1;
      else high = middle;
    }
    const expected = expect(prefixes, order, low - 1, address);
    if (fib.lookup(address)?.gateway !== expected) wrong++;
  }
  return wrong;
}

function expect(
  { address, length, asn }: AsnPrefixes,
  order: Uint32Array,
  at: number,
  wanted: number,
): string | null {
  // The real ranges do not overlap, but one stands there twice: the later one counts.
  let found = -1;
  for (; at >= 0; at--) {
    const i = order[at];
    if (wanted - address[i] >= 2 ** (32 - length[i])) break;
    found = Math.max(found, i);
  }
  if (found >= 0) return `10.1.0.${asn[found] % HOPS}`;
  return wanted < 224 * 2 ** 24
    ? `10.0.0.${Math.floor(wanted / 2 ** 24)}`
    : null;
}

/** What it comes to. */
export function fibFindings(figures: FibFigures): Findings {
  return {
    bars: bars(figures),
    tables: [lookups(figures)],
    charts: [times(figures)],
  };
}

const SECONDS = 5;
const MIB = 96;
const RATIO = 3;

function timesAPlainRead({ series }: FibFigures) {
  return ratio(series["lookup"], series["read"]);
}

function bars(figures: FibFigures): Bar[] {
  const { loaded, bytes, wrong } = figures;
  const times = timesAPlainRead(figures);
  return [
    {
      what: `loading ${count(figures.prefixes)} real prefixes, in s`,
      bar: `≤ ${SECONDS}`,
      measured: short(loaded / 1000),
      met: loaded <= SECONDS * 1000,
    },
    {
      what: "memory that they take, in MiB",
      bar: `≤ ${MIB}`,
      measured: short(bytes / 2 ** 20),
      met: bytes <= MIB * 2 ** 20,
    },
    {
      what: "Fib.lookup ÷ a plain read at random of as much memory",
      bar: `≤ ${RATIO}`,
      measured: spread(times),
      met: times.median <= RATIO,
    },
    {
      what: `wrong answers of ${count(CHECKS)}, covering prefixes added`,
      bar: "0",
      measured: count(wrong),
      met: wrong === 0,
    },
  ];
}

function lookups(figures: FibFigures): Table {
  const { prefixes, series } = figures;
  const hot = ratio(series["hot lookup"], series["hot read"]);
  const [load, memory, times, wrong] = bars(figures);
  const row = (title: string, { measured, bar, met: reached }: Bar) => [
    title,
    measured,
    bar,
    met(reached),
  ];
  return {
    title: "Loading, memory and lookups",
    head: ["Fib, real prefixes", "", "bar", ""],
    rows: [
      ["prefixes loaded", count(prefixes), "", ""],
      row("  s, published by one store", load),
      row("  MiB", memory),
      ["Fib.lookup, ns", short(median(series["lookup"])), "", ""],
      [
        "a plain read at random of as much memory, ns",
        short(median(series["read"])),
        "",
        "",
      ],
      row("  ratio", times),
      [
        "  ratio, each right after itself: all in the cache",
        spread(hot),
        "",
        "",
      ],
      row(wrong.what, wrong),
    ],
  };
}

/** The contenders by what they are called in the chart. */
const CONTENDERS = {
  "lookup": "Fib.lookup",
  "read": "a plain read",
  "hot lookup": "Fib.lookup, in the cache",
  "hot read": "a plain read, in the cache",
};

function times({ series }: FibFigures): Chart {
  return {
    title: "A lookup beside a plain read at random of as much memory",
    kind: "bar",
    x: { title: "operation", unit: "" },
    y: { title: "median time of an operation", unit: "ns" },
    series: [{
      name: "time",
      points: Object.entries(CONTENDERS)
        .map(([name, title]) => [title, median(series[name])]),
    }],
  };
}
