/**
 * All real prefixes in the Fib: loading, memory, lookups beside plain reads of
 * as much memory, and answers beside a plain longest-prefix search.
 */
import { Fib, Rcu, type Route } from "../mod.ts";
import { asnRanges, toPrefixes } from "./_data.ts";
import { consume, interleave, median, ratio } from "./_measure.ts";
import {
  count,
  printAtEnd,
  Progress,
  short,
  spread,
  table,
} from "./_report.ts";
import { seeded } from "./_random.ts";

/** Addresses that are looked up, drawn beforehand. */
const DRAWS = 2 ** 20;
/** Addresses whose answers are checked. */
const CHECKS = 100_000;
const ROUNDS = 21;
/** Next hops of the router. */
const HOPS = 256;
/** Lookups, or reads, of a call. */
const BATCH = 2 ** 13;

const rcu = Rcu.create({ name: "bench" });
const fib = Fib.open(rcu, "fib");
const random = seeded(7);
const drawAddress = () => Math.floor(random() * 2 ** 32);
const addresses = Uint32Array.from({ length: DRAWS }, drawAddress);

/** Covering prefixes: the real ones do not overlap, so these are synthetic. */
function* covering(): Generator<[string, Route]> {
  yield ["0.0.0.0/0", { gateway: null, interface: 1 }];
  for (let i = 0; i < 224; i++) {
    yield [`${i}.0.0.0/8`, { gateway: `10.0.0.${i}`, interface: 2 }];
  }
}

const lookUp = lookUps(fib, addresses);

const figures = await (async () => {
  await using progress = new Progress("fib", 4);
  progress.step("reading the prefixes of @ip-location-db/asn");
  const prefixes = toPrefixes(await asnRanges());
  const entries = Array.from(prefixes.address, (address, i) => {
    const hop = prefixes.asn[i] % HOPS;
    const route = { gateway: `10.1.0.${hop}`, interface: hop % 4 };
    return [{ address, length: prefixes.length[i] }, route] as const;
  });
  progress.step(`loading ${count(entries.length)} prefixes`);
  const before = rcu.memory.audit().live;
  const start = performance.now();
  fib.load(entries);
  const loaded = performance.now() - start;
  rcu.barrierSync();
  const bytes = rcu.memory.audit().live - before;

  progress.step("lookups beside plain reads of as much memory");
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
  ], { rounds: ROUNDS, warmUp: 3 });

  progress.step(`${count(CHECKS)} answers beside a plain search`);
  fib.load([...covering(), ...entries]);
  const wrong = check(prefixes);
  return { prefixes: entries.length, loaded, bytes, series, wrong };
})();

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
function check(prefixes: ReturnType<typeof toPrefixes>): number {
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
  { address, length, asn }: ReturnType<typeof toPrefixes>,
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

const GROUP = `${count(BATCH)} addresses at random`;
Deno.bench({
  name: "Fib.lookup",
  group: GROUP,
  baseline: true,
  fn: () => consume(lookUp(0, BATCH)),
});

printAtEnd(() => {
  const { prefixes, loaded, bytes, series, wrong } = figures;
  const times = ratio(series.lookup, series.read);
  const hot = ratio(series["hot lookup"], series["hot read"]);
  const rows = [
    ["prefixes loaded", count(prefixes), "", ""],
    [
      "  s, published by one store",
      short(loaded / 1000),
      "≤ 5",
      met(loaded <= 5000),
    ],
    ["  MiB", short(bytes / 2 ** 20), "≤ 96", met(bytes <= 96 * 2 ** 20)],
    ["Fib.lookup, ns", short(median(series.lookup)), "", ""],
    [
      "a plain read at random of as much memory, ns",
      short(median(series.read)),
      "",
      "",
    ],
    ["  ratio", spread(times), "≤ 3", met(times.median <= 3)],
    ["  ratio, each right after itself: all in the cache", spread(hot), "", ""],
    [
      `wrong answers of ${count(CHECKS)}, covering prefixes added`,
      count(wrong),
      "0",
      met(wrong === 0),
    ],
  ];
  return table([["Fib, real prefixes", "", "bar", ""], ...rows]);
});

function met(reached: boolean): string {
  return reached ? "met" : "NOT MET";
}
