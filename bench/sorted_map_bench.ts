/**
 * The experiment of 2011: seven threads search in a sorted map of a million
 * keys while one inserts and deletes, under each callback policy.
 *
 * The tables at the end are the measurement. The rows of `deno bench` show the
 * core figure in one thread.
 */
import { Rcu } from "../mod.ts";
import { consume } from "./_measure.ts";
import {
  atFullLength,
  count,
  met,
  printAtEnd,
  shown,
  table,
} from "./_report.ts";
import {
  keysOf,
  measureSorted,
  sortedFindings,
  sortedMap,
} from "./_sorted_experiment.ts";
import {
  fill,
  firstKeys,
  openNumbers,
  searcher,
  updater,
} from "./_sorted_keys.ts";

const figures = await atFullLength(sortedMap, measureSorted);

const keys = keysOf(false);
const rcu = Rcu.create({ name: "bench", capacity: 64 * 2 ** 20 });
const map = openNumbers(rcu);
const present = firstKeys(keys);
fill(map, present);
const search = searcher(present.length, 1);
const update = updater(1);
const group = `RcuSortedMap, ${count(keys)} keys`;

Deno.bench("one search", { group, baseline: true }, () => {
  consume(search(map, 1));
});
Deno.bench("one update", { group }, () => {
  consume(update(map, present, 1));
});

printAtEnd(() => {
  const { bars, tables } = sortedFindings(figures);
  const rows = bars.map(({ what, bar, measured, met: reached }) => [
    what,
    measured,
    bar,
    met(reached),
  ]);
  return [
    table([[sortedMap.title, "", "bar", ""], ...rows]),
    ...tables.map((each) => `${each.title}\n\n${shown(each)}`),
  ].join("\n\n");
});
