/**
 * `RcuMap` beside a private `Map`: the bars of the package, then every
 * operation at 1,000, 100,000 and 1,000,000 entries. Keys are real addresses.
 *
 * The tables at the end are the measurement: both maps take turns in a thread
 * of their own, and ratios are those of batches that ran one after the other.
 * The rows of `deno bench` show the core of it, in one thread that uses maps of
 * several types.
 */
import { f64, json, Rcu, RcuMap, string, u32 } from "../mod.ts";
import { dotted, realKeys, realPrefixes } from "./_keys.ts";
import {
  type Costs,
  type Figure,
  type HeapFigures,
  KEYS,
  type LoadFigures,
  OPERATIONS,
} from "./_map_figures.ts";
import {
  deleteNumbers,
  deleteObjects,
  deleteRcuNumbers,
  deleteRcuObjects,
  objectReader,
  rcuObjectReader,
  readNumbers,
  readRcuNumbers,
  type Route,
  setDoubles,
  setNumbers,
  setObjects,
  setRcuDoubles,
  setRcuNumbers,
  setRcuObjects,
} from "./_map_loops.ts";
import { consume, median, ratio } from "./_measure.ts";
import { seeded, uniform } from "./_random.ts";
import {
  count,
  printAtEnd,
  Progress,
  short,
  spread,
  table,
} from "./_report.ts";
import { inFreshWorker, Peer } from "./_workers.ts";

/** Updates a second beside readers. */
const RATE = 10_000;
const LOW_RATE = 1000;
const READS = 10_000_000;
const MILLION = 1_000_000;
const SIZES = [1000, 100_000, MILLION];
const KINDS = ["u32", "string"] as const;

const FIGURES = import.meta.resolve("./_map_figures.ts");

const measured = await measure();

async function measure() {
  await using progress = new Progress("map", 7 + SIZES.length * KINDS.length);
  const figure = <T>(doing: string, name: string, args: object) => {
    progress.step(doing);
    return inFreshWorker<T>(FIGURES, name, { keys, ...args });
  };
  progress.step("reading the keys");
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
  const load = await figure<LoadFigures>("load a million", "load", {
    count: MILLION,
  });
  const small = await figure<HeapFigures>("heap growth", "heap", {
    reads: READS,
    offset: 0,
  });
  const large = await inFreshWorker<HeapFigures>(FIGURES, "heap", {
    keys,
    reads: READS,
    offset: 2 ** 31,
  });
  const operations: Figure[] = [];
  for (const kind of KINDS) {
    for (const size of SIZES) {
      operations.push(
        await figure(`${kind} keys, ${count(size)} entries`, "operations", {
          kind,
          count: size,
          rounds: size < MILLION ? 11 : 5,
        }),
      );
    }
  }
  return { keys, numbers, mixed, routes, set, load, small, large, operations };
}

// The rows of deno bench

const BATCH = 10_000;
const address = measured.keys.address.slice(0, KEYS);
const asn = measured.keys.asn.slice(0, KEYS);
const names = Array.from(address, dotted);
const rcu = Rcu.create({ name: "bench", capacity: 64 * 2 ** 20 });
const maps = {
  numbers: new Map<number, number>(),
  doubles: new Map<number, number>(),
  routes: new Map<string, Route>(),
};
const shared = {
  numbers: RcuMap.open(rcu, "numbers", { key: u32, value: u32 }),
  doubles: RcuMap.open(rcu, "doubles", { key: u32, value: f64 }),
  routes: RcuMap.open(rcu, "routes", { key: string, value: json<Route>() }),
};
setNumbers(maps.numbers, address, 0, KEYS);
setDoubles(maps.doubles, address, 0, KEYS);
setObjects(maps.routes, names, 0, KEYS);
setRcuNumbers(shared.numbers, address, 0, KEYS);
setRcuDoubles(shared.doubles, address, 0, KEYS);
setRcuObjects(shared.routes, names, 0, KEYS);
const draws = uniform(BATCH, KEYS, seeded(8));
const numberKeys = draws.map((i) => address[i]);
const routeKeys = Array.from(draws, (i) => names[i]);
const updater = await Peer.start(FIGURES, "mapUpdater", {
  handle: rcu.handle,
  keys: { address, asn },
  rate: RATE,
});

compare("10,000 get, u32 to u32, beside an updater", 1, {
  "RcuMap<u32, u32>": () =>
    readRcuNumbers(shared.numbers, numberKeys, 0, BATCH),
  "Map<number, number>": () => readNumbers(maps.numbers, numberKeys, 0, BATCH),
});
compare("10,000 set, u32 to u32", 0, {
  "RcuMap<u32, u32>": () => setRcuNumbers(shared.numbers, numberKeys, 0, BATCH),
  "Map<number, number>": () => setNumbers(maps.numbers, numberKeys, 0, BATCH),
});
compare("10,000 set, u32 to f64, reclaimed", 0, {
  "RcuMap<u32, f64>": () => {
    setRcuDoubles(shared.doubles, numberKeys, 0, BATCH);
    rcu.barrierSync();
    return 0;
  },
  "Map<number, number>": () => setDoubles(maps.doubles, numberKeys, 0, BATCH),
});
compare("10,000 delete and set, u32 to u32, reclaimed", 0, {
  "RcuMap<u32, u32>": () => {
    const deleted = deleteRcuNumbers(shared.numbers, address, 0, KEYS);
    setRcuNumbers(shared.numbers, address, 0, KEYS);
    rcu.barrierSync();
    return deleted;
  },
  "Map<number, number>": () =>
    deleteNumbers(maps.numbers, address, 0, KEYS) +
    setNumbers(maps.numbers, address, 0, KEYS),
});
const readRoutes = objectReader(maps.routes);
const readSharedRoutes = rcuObjectReader(shared.routes);
compare("10,000 get, string to json, unchanged", 0, {
  "RcuMap<string, json>": () => readSharedRoutes(routeKeys, 0, BATCH),
  "Map<string, object>": () => readRoutes(routeKeys, 0, BATCH),
});
compare("10,000 delete and set, string to json, reclaimed", 0, {
  "RcuMap<string, json>": () => {
    const deleted = deleteRcuObjects(shared.routes, names, 0, KEYS);
    setRcuObjects(shared.routes, names, 0, KEYS);
    rcu.barrierSync();
    return deleted;
  },
  "Map<string, object>": () =>
    deleteObjects(maps.routes, names, 0, KEYS) +
    setObjects(maps.routes, names, 0, KEYS),
});

printAtEnd(() => `${bars()}\n\n${elsewhere()}\n\n${byOperation()}`);
globalThis.addEventListener("unload", () => updater.stop());

/** Registers a group whose first contender is the base. */
function compare(
  group: string,
  task: number,
  contenders: Record<string, () => number>,
): void {
  for (const [i, [name, run]] of Object.entries(contenders).entries()) {
    Deno.bench({
      name,
      group,
      baseline: i === 0,
      fn: () => {
        updater.select(task);
        consume(run());
      },
    });
  }
}

// The tables

function compared({ series }: Figure, operation = ""): string[] {
  const map = series[`${operation}Map`];
  const rcuMap = series[`${operation}RcuMap`];
  return [
    short(median(map)),
    short(median(rcuMap)),
    spread(ratio(rcuMap, map)),
  ];
}

function isMet(met: boolean): string {
  return met ? "met" : "NOT MET";
}

function bars(): string {
  const { numbers, mixed, routes, set, load, small, large } = measured;
  const [unchanged, low, high, fresh] = routes;
  const times = ({ series }: Figure) => ratio(series.RcuMap, series.Map).median;
  const zipf = (figure: Figure): Figure => ({
    ...figure,
    series: {
      Map: figure.series["Map, Zipf"],
      RcuMap: figure.series["RcuMap, Zipf"],
    },
  });
  const row = (title: string, figure: Figure, most?: number): string[] => [
    title,
    ...compared(figure),
    most === undefined ? "" : `≤ ${most}`,
    most === undefined ? "" : isMet(times(figure) <= most),
  ];
  const beside = (title: string, { rate }: Figure) =>
    `${title} ${count(rate)} sets/s`;
  // An absolute figure: whatever else runs can only make it worse.
  const best = (series: number[]) => 1e9 / Math.min(...series);
  const perSecond = best(load.series.RcuMap);
  const growth = (figures: HeapFigures) =>
    `${short(figures.growth / 2 ** 20)} MiB, ${
      short(figures.growthOfTenth / 2 ** 20)
    } after a tenth`;
  const heap = (title: string, figures: HeapFigures) => [
    title,
    short(figures.map),
    short(figures.rcuMap),
    growth(figures),
    "",
    "",
  ];
  return table([
    ["10,000 keys", "Map", "RcuMap", "RcuMap / Map", "bar", ""],
    row(beside("get u32 → u32, beside", numbers), numbers, 0.5),
    row("  the same, Zipf", zipf(numbers)),
    row("  the same, in a thread with maps of other types", mixed),
    row("get string → json, unchanged", unchanged, 1.5),
    row("  the same, Zipf", zipf(unchanged)),
    row("  the same, strings new at each lookup", fresh),
    row(beside("  beside", low), low),
    row(beside("  beside", high), high),
    row("set u32 → u32 (in place: nothing to reclaim)", set.u32, 10),
    row("  u32 → f64, reclaimed", set.f64),
    row("  u32 → string, reclaimed", set.string),
    [
      "1,000,000 u32 → u32, from empty: ns each",
      ...compared({ ...set.u32, series: load.series }),
      "",
      "",
    ],
    [
      "  a second, in the best round",
      count(best(load.series.Map)),
      count(perSecond),
      "",
      "≥ 1 million",
      isMet(perSecond >= MILLION),
    ],
    [
      "  bytes each, table included",
      "",
      short(load.bytes),
      "",
      "≤ 40",
      isMet(load.bytes <= 40),
    ],
    [
      ...heap("bytes allocated by a get u32 → u32, values below 2³¹", small)
        .slice(0, 4),
      "0, heap not growing",
      isMet(small.rcuMap < 0.01 && small.growth / READS < 0.1),
    ],
    heap("  values from 2³¹: the engine boxes the result", large),
  ]) + `

Nanoseconds an operation and ratios: medians of rounds in which the maps took turns, with the
quartiles of the ratios. Heap: growth over 10 million reads, of a heap that is collected.`;
}

function elsewhere(): string {
  const { numbers, mixed, routes, set, load, operations } = measured;
  const row = (title: string, costs: Costs): string[] => [
    title,
    count(costs.gracePeriods),
    count(costs.invoked),
    count(costs.peak),
    count(costs.deferred),
  ];
  const kinds = KINDS.flatMap((kind) =>
    SIZES.map((size) => `${kind} keys, ${count(size)} entries`)
  );
  return table([
    [
      "what it cost elsewhere",
      "grace periods",
      "blocks freed",
      "most pending",
      "bytes deferred at the end",
    ],
    row("get u32, beside the updater", numbers.costs),
    row("  with maps of other types", mixed.costs),
    row("get json, unchanged", routes[0].costs),
    ...routes.slice(1, 3).map(({ costs, rate }) =>
      row(`get json, beside ${count(rate)} sets/s`, costs)
    ),
    row("set u32 → u32", set.u32.costs),
    row("set u32 → f64", set.f64.costs),
    row("set u32 → string", set.string.costs),
    row("load of 1,000,000 u32 → u32", load.costs),
    ...operations.map(({ costs }, i) => row(kinds[i], costs)),
  ]);
}

function byOperation(): string {
  const rows = measured.operations.flatMap((figure, i) => {
    const kind = KINDS[Math.floor(i / SIZES.length)];
    const size = SIZES[i % SIZES.length];
    return OPERATIONS.map((operation, n) => [
      n === 0
        ? `${kind} → ${kind === "u32" ? "u32" : "json"}, ${count(size)} entries`
        : "",
      operation,
      ...compared(figure, `${operation} `),
    ]);
  });
  return table([
    ["entries", "operation", "Map", "RcuMap", "RcuMap / Map"],
    ...rows,
  ]) +
    `

Gets while nothing changes; set, delete and insert with all that they replaced reclaimed.`;
}
