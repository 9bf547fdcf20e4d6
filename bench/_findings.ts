/** An experiment's findings as text. */
import type { Findings } from "./_experiment.ts";
import { table } from "./_report.ts";

/** The tables, each with its notes, and the bars. */
export function inText({ bars, tables }: Findings): string {
  const parts = tables.map(({ title, head, rows, notes }) =>
    `${title}\n\n${table([head, ...rows])}${
      notes === undefined ? "" : `\n\n${notes}`
    }`
  );
  const rows = bars.map(({ what, bar, measured, met }) => [
    what,
    measured,
    bar,
    met ? "met" : "NOT MET",
  ]);
  return [...parts, table([["bars", "measured", "bar", ""], ...rows])]
    .join("\n\n");
}
