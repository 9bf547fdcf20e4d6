/** `RcuMap` beside a private `Map`, as an experiment. */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import { type Keys, realKeys, realPrefixes } from "./_keys.ts";
import {
  type Costs,
  type Figure,
  type HeapFigures,
  type LoadFigures,
  OPERATIONS,
} from "./_map_figures.ts";
import { median, ratio } from "./_measure.ts";
import { count, met, short, spread } from "./_report.ts";
import { inFreshWorker } from "./_workers.ts";

/** Updates a second beside readers. */
export const RATE = 10_000;
const LOW_RATE = 1000;
const MILLION = 1_000_000;
const KINDS = ["u32", "string"] as const;

/** How much is read and loaded, and how many entries there are. */
interface Size {
  reads: number;
  loaded: number;
  sizes: number[];
}
const FULL: Size = {
  reads: 10_000_000,
  loaded: MILLION,
  sizes: [1000, 100_000, MILLION],
};
const QUICK: Size = {
  reads: 2_000_000,
  loaded: 250_000,
  sizes: [1000],
};

function sizeOf(quick: boolean): Size {
  return quick ? QUICK : FULL;
}

const FIGURES = import.meta.resolve("./_map_figures.ts");

/** The bars of the package, then every operation by number of entries. */
export const map: Experiment = {
  name: "map",
  title: "RcuMap beside a private Map",
  about: "RcuMap beside a private Map: the bars of the package, then every " +
    "operation by number of entries. Keys are real addresses. Both maps take " +
    "turns in a thread of their own.",
  command: "deno task bench:all bench/map_bench.ts",
  routes: true,
  steps: ({ quick }) => 7 + sizeOf(quick).sizes.length * KINDS.length,
  async run(options) {
    return mapFindings((await measureMap(options)).figures);
  },
};

/** What came out. */
export interface MapFigures {
  size: Size;
  numbers: Figure;
  mixed: Figure;
  routes: Figure[];
  set: Record<"u32" | "f64" | "string", Figure>;
  load: LoadFigures;
  small: HeapFigures;
  large: HeapFigures;
  operations: Figure[];
}

/** Takes the figures; returns the keys too. */
export async function measureMap(
  { quick, onStep }: RunOptions,
): Promise<{ keys: Keys; figures: MapFigures }> {
  const size = sizeOf(quick);
  const figure = <T>(doing: string, name: string, args: object) => {
    onStep(doing);
    return inFreshWorker<T>(FIGURES, name, { keys, quick, ...args });
  };
  onStep("reading the keys");
  const keys = realKeys(await realPrefixes());
  const get = (mixed: boolean) =>
    figure<Figure>(
      `get u32${mixed ? ", beside maps of other types" : ""}`,
      "getNumbers",
      { rate: RATE, mixed },
    );
  const numbers = await get(false);
  const mixed = await get(true);
  const routes = await figure<Figure[]>("get json", "getRoutes", {
    rates: [LOW_RATE, RATE],
  });
  const set = await figure<Record<"u32" | "f64" | "string", Figure>>(
    "set",
    "setExisting",
    {},
  );
  const load = await figure<LoadFigures>(
    `load ${size.loaded === MILLION ? "a million" : count(size.loaded)}`,
    "load",
    { count: size.loaded },
  );
  const small = await figure<HeapFigures>("heap growth", "heap", {
    reads: size.reads,
    offset: 0,
  });
  const large = await inFreshWorker<HeapFigures>(FIGURES, "heap", {
    keys,
    reads: size.reads,
    offset: 2 ** 31,
  });
  const operations: Figure[] = [];
  for (const kind of KINDS) {
    for (const entries of size.sizes) {
      operations.push(
        await figure(`${kind} keys, ${count(entries)} entries`, "operations", {
          kind,
          count: entries,
          rounds: entries < MILLION ? 11 : 5,
        }),
      );
    }
  }
  const figures = {
    size,
    numbers,
    mixed,
    routes,
    set,
    load,
    small,
    large,
    operations,
  };
  return { keys, figures };
}

/** What they come to. */
export function mapFindings(figures: MapFigures): Findings {
  const barsOf = bars(figures);
  return {
    bars: Object.values(barsOf),
    tables: [
      comparison(figures, barsOf),
      elsewhere(figures),
      byOperation(figures),
    ],
    charts: [
      times(figures),
      ...["get", "set"].map((operation) => bySize(figures, operation)),
    ],
  };
}
const GET = 0.5;
const GET_JSON = 1.5;
const SET = 10;
const PER_SECOND = MILLION;
const BYTES = 40;

type Bars = Record<"get" | "json" | "set" | "load" | "bytes" | "heap", Bar>;

function bars({ size, numbers, routes, set, load, small }: MapFigures): Bars {
  const atMost = (what: string, { series }: Figure, most: number): Bar => {
    const times = ratio(series["RcuMap"], series["Map"]);
    return {
      what: `${what}: RcuMap ÷ Map`,
      bar: `≤ ${most}`,
      measured: spread(times),
      met: times.median <= most,
    };
  };
  const perSecond = best(load.series["RcuMap"]);
  return {
    get: atMost(
      `get u32 → u32, beside ${count(numbers.rate)} sets/s`,
      numbers,
      GET,
    ),
    json: atMost("get string → json, unchanged", routes[0], GET_JSON),
    set: atMost("set u32 → u32", set.u32, SET),
    load: {
      what: `entries u32 → u32 loaded a second, ${count(size.loaded)} of them`,
      bar: "≥ 1 million",
      measured: count(perSecond),
      met: perSecond >= PER_SECOND,
    },
    bytes: {
      what: "bytes that each takes, table included",
      bar: `≤ ${BYTES}`,
      measured: short(load.bytes),
      met: load.bytes <= BYTES,
    },
    heap: {
      what: "bytes allocated by a get u32 → u32, values below 2³¹",
      bar: "0, heap not growing",
      measured: `${short(small.rcuMap)}; the heap grew by ${growth(small)}`,
      met: small.rcuMap < 0.01 && small.growth / size.reads < 0.1,
    },
  };
}

/** An absolute figure: whatever else runs can only make it worse. */
function best(series: number[]): number {
  return 1e9 / Math.min(...series);
}

function growth({ growth, growthOfTenth }: HeapFigures): string {
  return `${short(growth / 2 ** 20)} MiB, ${
    short(growthOfTenth / 2 ** 20)
  } after a tenth`;
}

function compared({ series }: Figure, operation = ""): string[] {
  const map = series[`${operation}Map`];
  const rcuMap = series[`${operation}RcuMap`];
  return [
    short(median(map)),
    short(median(rcuMap)),
    spread(ratio(rcuMap, map)),
  ];
}

function beside(title: string, { rate }: Figure): string {
  return `${title} ${count(rate)} sets/s`;
}

function comparison(figures: MapFigures, barsOf: Bars): Table {
  const { size, numbers, mixed, routes, set, load, small, large } = figures;
  const [unchanged, low, high, fresh] = routes;
  const zipf = (figure: Figure): Figure => ({
    ...figure,
    series: {
      Map: figure.series["Map, Zipf"],
      RcuMap: figure.series["RcuMap, Zipf"],
    },
  });
  const judged = (bar?: Bar) =>
    bar === undefined ? ["", ""] : [bar.bar, met(bar.met)];
  const row = (title: string, figure: Figure, bar?: Bar): string[] => [
    title,
    ...compared(figure),
    ...judged(bar),
  ];
  const heap = (title: string, figures: HeapFigures, bar?: Bar) => [
    title,
    short(figures.map),
    short(figures.rcuMap),
    growth(figures),
    ...judged(bar),
  ];
  return {
    title: "Beside a private Map",
    head: ["10,000 keys", "Map", "RcuMap", "RcuMap / Map", "bar", ""],
    rows: [
      row(beside("get u32 → u32, beside", numbers), numbers, barsOf.get),
      row("  the same, Zipf", zipf(numbers)),
      row("  the same, in a thread with maps of other types", mixed),
      row("get string → json, unchanged", unchanged, barsOf.json),
      row("  the same, Zipf", zipf(unchanged)),
      row("  the same, strings new at each lookup", fresh),
      row(beside("  beside", low), low),
      row(beside("  beside", high), high),
      row(
        "set u32 → u32 (in place: nothing to reclaim)",
        set.u32,
        barsOf.set,
      ),
      row("  u32 → f64, reclaimed", set.f64),
      row("  u32 → string, reclaimed", set.string),
      [
        `${count(size.loaded)} u32 → u32, from empty: ns each`,
        ...compared({ ...set.u32, series: load.series }),
        ...judged(),
      ],
      [
        "  a second, in the best round",
        count(best(load.series["Map"])),
        count(best(load.series["RcuMap"])),
        "",
        ...judged(barsOf.load),
      ],
      [
        "  bytes each, table included",
        "",
        short(load.bytes),
        "",
        ...judged(barsOf.bytes),
      ],
      heap(barsOf.heap.what, small, barsOf.heap),
      heap("  values from 2³¹: the engine boxes the result", large),
    ],
    notes:
      `Nanoseconds an operation and ratios: medians of rounds in which the maps took turns, with the
quartiles of the ratios. Heap: growth over ${
        size.reads / MILLION
      } million reads, of a heap that is collected.`,
  };
}

/** Kinds of maps by number of entries, in the order of their figures. */
function kinds(
  { sizes }: Size,
): { kind: typeof KINDS[number]; entries: number }[] {
  return KINDS.flatMap((kind) => sizes.map((entries) => ({ kind, entries })));
}

function elsewhere(figures: MapFigures): Table {
  const { size, numbers, mixed, routes, set, load, operations } = figures;
  const row = (title: string, costs: Costs): string[] => [
    title,
    count(costs.gracePeriods),
    count(costs.invoked),
    count(costs.peak),
    count(costs.deferred),
  ];
  return {
    title: "What the mechanism cost elsewhere",
    head: [
      "what it cost elsewhere",
      "grace periods",
      "blocks freed",
      "most pending",
      "bytes deferred at the end",
    ],
    rows: [
      row("get u32, beside the updater", numbers.costs),
      row("  with maps of other types", mixed.costs),
      row("get json, unchanged", routes[0].costs),
      ...routes.slice(1, 3).map(({ costs, rate }) =>
        row(`get json, beside ${count(rate)} sets/s`, costs)
      ),
      row("set u32 → u32", set.u32.costs),
      row("set u32 → f64", set.f64.costs),
      row("set u32 → string", set.string.costs),
      row(`load of ${count(size.loaded)} u32 → u32`, load.costs),
      ...kinds(size).map(({ kind, entries }, i) =>
        row(`${kind} keys, ${count(entries)} entries`, operations[i].costs)
      ),
    ],
  };
}

function byOperation({ size, operations }: MapFigures): Table {
  return {
    title: "Every operation by number of entries",
    head: ["entries", "operation", "Map", "RcuMap", "RcuMap / Map"],
    rows: kinds(size).flatMap(({ kind, entries }, i) =>
      OPERATIONS.map((operation, n) => [
        n === 0
          ? `${kind} → ${kind === "u32" ? "u32" : "json"}, ${
            count(entries)
          } entries`
          : "",
        operation,
        ...compared(operations[i], `${operation} `),
      ])
    ),
    notes:
      "Gets while nothing changes; set, delete and insert with all that they replaced reclaimed.",
  };
}

function times({ numbers, mixed, routes, set, load }: MapFigures): Chart {
  const [unchanged, low, high, fresh] = routes;
  const figures: [string, Figure["series"]][] = [
    [beside("get u32 → u32, beside", numbers), numbers.series],
    ["get u32 → u32, among other maps", mixed.series],
    ["get string → json, unchanged", unchanged.series],
    ["get string → json, new strings", fresh.series],
    [beside("get string → json, beside", low), low.series],
    [beside("get string → json, beside", high), high.series],
    ["set u32 → u32", set.u32.series],
    ["set u32 → f64", set.f64.series],
    ["set u32 → string", set.string.series],
    ["load u32 → u32, from empty", load.series],
  ];
  return {
    title: "RcuMap against Map: how many times as long an operation takes",
    kind: "bar",
    x: { title: "operation", unit: "" },
    y: { title: "RcuMap ÷ Map, median of the rounds", unit: "" },
    series: [{
      name: "RcuMap ÷ Map",
      points: figures.map(([title, series]) => [
        title,
        ratio(series["RcuMap"], series["Map"]).median,
      ]),
    }],
  };
}

function bySize({ size, operations }: MapFigures, operation: string): Chart {
  const series = KINDS.flatMap((kind, k) =>
    ["Map", "RcuMap"].map((name): Chart["series"][number] => ({
      name: `${name}, ${kind} keys`,
      points: size.sizes.map((entries, n) => [
        entries,
        median(
          operations[k * size.sizes.length + n].series[`${operation} ${name}`],
        ),
      ]),
    }))
  );
  return {
    title: `${operation}: time by number of entries`,
    kind: "line",
    x: { title: "entries", unit: "", log: true },
    y: { title: "median time of an operation", unit: "ns", log: true },
    series,
  };
}
