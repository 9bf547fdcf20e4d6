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
import { dotted } from "./_keys.ts";
import { map, mapFindings, measureMap, RATE } from "./_map_experiment.ts";
import { KEYS } from "./_map_figures.ts";
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
import { consume } from "./_measure.ts";
import { seeded, uniform } from "./_random.ts";
import { atFullLength, printAtEnd, shown } from "./_report.ts";
import { Peer } from "./_workers.ts";

const FIGURES = import.meta.resolve("./_map_figures.ts");

const { keys, figures } = await atFullLength(map, measureMap);

const BATCH = 10_000;
const address = keys.address.slice(0, KEYS);
const asn = keys.asn.slice(0, KEYS);
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

printAtEnd(() => mapFindings(figures).tables.map(shown).join("\n\n"));
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
