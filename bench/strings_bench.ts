/**
 * `RcuMap<string, json>` beside a private `Map`: real route templates and real
 * domains, drawn by Zipf's law.
 *
 * The tables at the end are the measurement. The rows of `deno bench` show the
 * core of it in one thread, for the route templates.
 */
import { json, Rcu, RcuMap, string } from "../mod.ts";
import {
  objectReader,
  rcuObjectReader,
  type Route,
  route,
} from "./_map_loops.ts";
import { consume } from "./_measure.ts";
import { seeded, zipf } from "./_random.ts";
import { atFullLength, printAtEnd, shown } from "./_report.ts";
import {
  measureStrings,
  stringFindings,
  strings,
} from "./_strings_experiment.ts";

const results = await atFullLength(strings, measureStrings);

const BATCH = 10_000;
const names = results["route templates"].keys;
const rcu = Rcu.create({ name: "bench", capacity: 16 * 2 ** 20 });
const map = new Map(names.map((name, i) => [name, route(name, i)]));
const shared = RcuMap.open(rcu, "routes", {
  key: string,
  value: json<Route>(),
});
shared.replaceAll(map);
const drawn = Array.from(
  zipf(BATCH, names.length, seeded(9)),
  (i) => names[i],
);
const readers = {
  "RcuMap<string, json>": rcuObjectReader(shared),
  "Map<string, object>": objectReader(map),
};

for (const [i, [name, read]] of Object.entries(readers).entries()) {
  Deno.bench({
    name,
    group: "10,000 get of route templates",
    baseline: i === 0,
    fn: () => consume(read(drawn, 0, BATCH)),
  });
}

printAtEnd(() => stringFindings(results).tables.map(shown).join("\n\n"));
