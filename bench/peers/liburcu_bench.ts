/**
 * `RcuMap` beside liburcu's own hash table, rculfhash in its QSBR flavour, in
 * C: see `liburcu.c`. Needs a C compiler and liburcu's headers; is skipped,
 * with a line that says so, where they or a permission is missing.
 *
 * The table at the end is the measurement: one reader, alone and beside one
 * updater that goes as fast as it can; both sides take turns, and ratios are
 * those of two runs that came one after the other. Both use the same keys, in
 * the same order. The rows of `deno bench` show the core of it.
 */
import { realKeys, realPrefixes } from "../_keys.ts";
import { consume, median, type Ratio } from "../_measure.ts";
import {
  count,
  printAtEnd,
  Progress,
  short,
  spread,
  table,
} from "../_report.ts";
import {
  BARS,
  type Compared,
  compareWithLiburcu,
  SETTINGS,
  type Side,
  SMALL,
  timesLiburcu,
} from "./_liburcu.ts";
import { draw, OurTable } from "./_liburcu_figures.ts";
import { LiburcuTable, Missing, Program } from "./_liburcu_program.ts";

/** Lookups of an iteration of `deno bench`: so many that asking the process costs nothing. */
const BATCH = 2 ** 20;

const TITLES = {
  read: "nobody updates",
  store: "updater stores in place",
  replace: "updater replaces, reclaimed",
  churn: "updater inserts and deletes, reclaimed",
};

const program = await Program.build();
if (program instanceof Missing) console.error(String(program));
else await bench(program);

async function bench(program: Program): Promise<void> {
  const { figures, ours, liburcu } = await (async () => {
    using _ = program;
    await using progress = new Progress("beside liburcu", SETTINGS.length + 1);
    progress.step("reading the keys");
    const keys = realKeys(await realPrefixes());
    const figures = await compareWithLiburcu(program.path, keys, {
      onSetting: ({ mode, keys }) =>
        progress.step(`${count(keys)} keys, ${TITLES[mode]}`),
    });
    const data = draw(keys, { mode: "read", keys: SMALL });
    return {
      figures,
      ours: await OurTable.start("read", data),
      liburcu: await LiburcuTable.start(program.path, "read", data),
    };
  })();
  const group = `${count(BATCH)} lookups of ${count(SMALL)} keys`;
  Deno.bench({
    name: "RcuMap<u32, u32>.get",
    group,
    baseline: true,
    fn: () => consume(ours.look(BATCH).sum),
  });
  Deno.bench({
    name: "cds_lfht_lookup, in its own process",
    group,
    fn: async () => consume((await liburcu.look(BATCH)).sum),
  });
  printAtEnd(() => report(figures));
}

function report(figures: Compared[]): string {
  const rows = figures.flatMap((figure) => {
    const { mode, keys, ours, liburcu } = figure;
    const of = `${TITLES[mode]}, ${count(keys)} keys`;
    const lookups = row(
      `lookups/s, ${of}`,
      [perSecond(ours.lookup), perSecond(liburcu.lookup)],
      timesLiburcu(figure, "lookup"),
      BARS.lookups[keys],
    );
    if (mode === "read") return [lookups];
    return [
      lookups,
      row(
        "  updates/s",
        [perSecond(ours.update), perSecond(liburcu.update)],
        timesLiburcu(figure, "update"),
        BARS.updates,
      ),
    ];
  });
  return `${
    table([
      ["one reader", "RcuMap", "liburcu", "RcuMap / liburcu", "bar", ""],
      ...rows,
    ])
  }

Medians of rounds in which both took turns, with the quartiles of the ratios. Both see the same
keys in the same order. RcuMap is u32 → u32, which a set stores in place; where values are
replaced it is u32 → f64, whose sets replace a block. liburcu: rculfhash, QSBR, as many buckets as
keys, a quiescent state every 1,024 operations; it stores in place, with no lock, where ours takes
one, or replaces entries that call_rcu frees in a third thread. Our updater reclaims by itself and
loses time by it; most pending is the most that waited for a grace period at once. Insertions and deletions, half
of each, are of keys at random: half of the keys are there, and half of the updates find nothing
to do.

${costs(figures)}`;
}

function row(
  title: string,
  sides: number[],
  times: Ratio,
  bar: number,
): string[] {
  return [
    title,
    ...sides.map(count),
    spread(times),
    `≥ ${bar}`,
    times.median >= bar ? "met" : "NOT MET",
  ];
}

function perSecond(ns: number[]): number {
  return 1e9 / median(ns);
}

function costs(figures: Compared[]): string {
  const cells = ({ hits, pending }: Side) => [
    `${short(median(hits) * 100)} %`,
    count(pending),
  ];
  return table([
    [
      "what else was seen",
      "hits",
      "most pending",
      "hits, liburcu",
      "most pending, liburcu",
    ],
    ...figures.map(({ mode, keys, ours, liburcu }) => [
      `${TITLES[mode]}, ${count(keys)} keys`,
      ...cells(ours),
      ...cells(liburcu),
    ]),
  ]);
}
