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
import { consume } from "../_measure.ts";
import {
  atFullLength,
  count,
  printAtEnd,
  shown,
  shownBars,
} from "../_report.ts";
import { SMALL } from "./_liburcu.ts";
import {
  liburcuFindings,
  liburcuPeer,
  measureBeside,
} from "./_liburcu_experiment.ts";
import { draw, OurTable } from "./_liburcu_figures.ts";
import { LiburcuTable, Missing, Program } from "./_liburcu_program.ts";

/** Lookups of an iteration of `deno bench`: so many that asking the process costs nothing. */
const BATCH = 2 ** 20;

const program = await Program.build();
if (program instanceof Missing) {
  console.error(`${liburcuPeer.name} is skipped: ${program}`);
} else await bench(program);

async function bench(program: Program): Promise<void> {
  const { figures, ours, liburcu } = await (async () => {
    using _ = program;
    const { figures, keys } = await atFullLength(
      liburcuPeer,
      (options) => measureBeside(program, options),
    );
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
  printAtEnd(() => {
    const { bars, tables } = liburcuFindings(figures);
    return [shownBars(bars), ...tables.map(shown)].join("\n\n");
  });
}
