/**
 * `RcuMap` beside what a program has otherwise to give several threads one map.
 * Needs the permissions of `deno task bench:peers`: the peers are packages of
 * npm, one of them native, and files.
 *
 * The tables at the end are the measurement. The rows of `deno bench` show what a
 * read costs in one thread.
 */
import { consume } from "./_measure.ts";
import { CONTENDERS } from "./peers/_contenders.ts";
import { entriesOf } from "./peers/_entries.ts";
import {
  measureSharedPeers,
  sharedFindings,
  sharedPeers,
} from "./peers/_shared_experiment.ts";
import { atFullLength, printAtEnd, shown, shownBars } from "./_report.ts";

const { state } = await Deno.permissions.query({ name: "ffi" });
if (state !== "granted") {
  console.error(
    "peers is skipped: it needs more permissions, run deno task bench:peers",
  );
} else await bench();

async function bench(): Promise<void> {
  const results = await atFullLength(sharedPeers, measureSharedPeers);
  const entries = entriesOf(1_000);
  for (const [i, contender] of CONTENDERS.entries()) {
    const opened = await contender.create(entries).catch(() => undefined);
    if (opened === undefined) continue;
    Deno.bench({
      name: contender.name,
      group: "1,000 get in one thread",
      baseline: i === 0,
      fn: () => {
        let length = 0;
        for (const [key] of entries) length += opened.get(key)!.to.length;
        consume(length);
      },
    });
    globalThis.addEventListener("unload", () => void opened.close());
  }
  printAtEnd(() => {
    const { bars, tables } = sharedFindings(results);
    return [shownBars(bars), ...tables.map(shown)].join("\n\n");
  });
}
