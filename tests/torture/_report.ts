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

type Column = [head: string, of: (tally: Tally) => number, means: string];

/** What the threads have done. */
const DONE: Column[] = [
  ["updates", ({ did }) => did.updates, "elements that were replaced"],
  ["looks", ({ did }) => did.looks, "places that a section looked at"],
  ["periods", ({ did }) => did.periods, "grace periods"],
  ["callbacks", ({ did }) => did.invoked, "callbacks that were invoked"],
  ["joins", ({ did }) => did.joins, "memberships that came and went"],
  ["stops", ({ did }) => did.stops, "times at which all threads stood still"],
  [
    "current",
    ({ ages }) => ages[0],
    "elements that were in their place when looked at again",
  ],
  [
    "unlinked",
    ({ ages }) => ages[1],
    "the same of those that had been replaced meanwhile",
  ],
];

/** What must not be. */
const WRONG: Column[] = [
  [
    "too old",
    tooOld,
    "elements since whose replacement a grace period had ended",
  ],
  ["poisoned", ({ poisoned }) => poisoned, "elements that had been freed"],
  [
    "reused",
    ({ reused }) => reused,
    "elements whose memory was something else's",
  ],
  [
    "ended",
    ({ ended }) => ended,
    "periods that ended in a section which they had to wait for",
  ],
  ["torn", ({ torn }) => torn, "values that nobody had written"],
  [
    "errors",
    ({ errors }) => errors.length,
    "what was thrown, or left over in the end",
  ],
];

const COLUMNS: Column[] = [...DONE, ...WRONG];

/** What the columns mean, a line each. */
export const LEGEND: string = [
  ...DONE.map(explained),
  "These must be 0:",
  ...WRONG.map(explained),
].join("\n");

function explained([head, , means]: Column): string {
  return `  ${head.padEnd(9)}  ${means}`;
}

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
    verdict(outcomes),
    ...outcomes.filter(({ tally }) => isBad(tally)).map(wrong),
  ];
  return lines.join("\n");
}

/** What a setting is called. */
export function nameOf({ detector, callbacks, debug }: Setting): string {
  return `${detector}, ${callbacks}${debug ? ", debug" : ""}`;
}

/** What it comes to, in a sentence. */
function verdict(outcomes: readonly Outcome[]): string {
  const bad = outcomes.filter(({ tally }) => isBad(tally));
  if (bad.length > 0) {
    const names = bad.map(({ setting }) => nameOf(setting)).join("; ");
    return `Something was wrong with ${names}.`;
  }
  const turned = outcomes.filter(({ turns }) => turns > 0).length;
  return `Nothing was wrong in ${turned} of ${outcomes.length} kinds of domain.`;
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
