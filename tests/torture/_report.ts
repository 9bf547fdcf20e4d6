// What a torture has found, as text.

import { count, table } from "../../bench/_report.ts";
import type { Setting } from "./_settings.ts";
import { add, emptyTally, isBad, type Tally, tooOld } from "./_tally.ts";

/** Most errors that are told. */
const MOST_ERRORS = 10;

/** What became of a setting, in all of its turns. */
export interface Outcome {
  setting: Setting;
  turns: number;
  tally: Tally;
}

const COLUMNS: [head: string, of: (tally: Tally) => number][] = [
  ["updates", ({ did }) => did.updates],
  ["looks", ({ did }) => did.looks],
  ["periods", ({ did }) => did.periods],
  ["callbacks", ({ did }) => did.invoked],
  ["joins", ({ did }) => did.joins],
  ["stops", ({ did }) => did.stops],
  ["current", ({ ages }) => ages[0]],
  ["unlinked", ({ ages }) => ages[1]],
  ["too old", tooOld],
  ["poisoned", ({ poisoned }) => poisoned],
  ["reused", ({ reused }) => reused],
  ["ended", ({ ended }) => ended],
  ["torn", ({ torn }) => torn],
  ["errors", ({ errors }) => errors.length],
];

/** The table of all settings, and what went wrong in detail. */
export function report(outcomes: readonly Outcome[]): string {
  const all = emptyTally();
  const rows = outcomes.map(({ setting, turns, tally }) => {
    add(all, tally);
    return [nameOf(setting), count(turns), ...cells(tally)];
  });
  const turns = outcomes.reduce((sum, { turns }) => sum + turns, 0);
  const head = ["detector, callbacks", "turns", ...COLUMNS.map(([h]) => h)];
  const lines = [
    table([head, ...rows, ["all", count(turns), ...cells(all)]]),
    "",
    ...outcomes.filter(({ tally }) => isBad(tally)).map(wrong),
  ];
  return lines.join("\n");
}

/** What a setting is called. */
export function nameOf({ detector, callbacks }: Setting): string {
  return `${detector}, ${callbacks}`;
}

function cells(tally: Tally): string[] {
  return COLUMNS.map(([, of]) => count(of(tally) ?? 0));
}

function wrong({ setting, tally }: Outcome): string {
  const { ages, errors } = tally;
  const lines = [
    `${nameOf(setting)} failed; looks by the age of what they saw: ${
      ages.map((times, age) => `${age}: ${times}`).join(", ")
    }`,
    ...errors.slice(0, MOST_ERRORS).map((error) => `  ${error}`),
  ];
  if (errors.length > MOST_ERRORS) {
    lines.push(`  and ${errors.length - MOST_ERRORS} more`);
  }
  return lines.join("\n");
}
