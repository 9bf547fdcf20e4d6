/**
 * `replaceAll` of 2,500,000 entries beside a reader. The table at the end is
 * the measurement; the rows of `deno bench` show it for 10,000 entries.
 */
import { Rcu, RcuMap, u32 } from "../mod.ts";
import { bulk, bulkFindings, measureBulk } from "./_bulk_experiment.ts";
import { consume } from "./_measure.ts";
import { atFullLength, printAtEnd, shown, shownBars } from "./_report.ts";

const figures = await atFullLength(bulk, measureBulk);

const entries = Array.from(
  { length: 10_000 },
  (_, i): [number, number] => [i, i],
);
const rcu = Rcu.create({ name: "bench", capacity: 16 * 2 ** 20 });
const map = RcuMap.open(rcu, "bulk", { key: u32, value: u32 });

Deno.bench({
  name: "RcuMap.replaceAll",
  group: "10,000 entries replaced",
  baseline: true,
  fn: () => {
    map.replaceAll(entries);
    rcu.barrierSync();
  },
});
Deno.bench({
  name: "new Map",
  group: "10,000 entries replaced",
  fn: () => consume(new Map(entries).size),
});

printAtEnd(() => {
  const { bars, tables } = bulkFindings(figures);
  return [shownBars(bars), ...tables.map(shown)].join("\n\n");
});
