// What explorations found, for people.

import { table } from "../../bench/_report.ts";
import type { Result } from "./_explore.ts";
import type { Line } from "./_player.ts";

/** Steps of a stretch of one thread that are shown at each of its ends. */
const SHOWN = 3;

/** An exploration that is over. */
export interface Outcome {
  scenario: string;
  threads: number;
  result: Result;
}

/** The search for a fault in one scenario. */
export interface FaultOutcome {
  fault: string;
  scenario: string;
  /** Schedules until it was found, or all that there were. */
  runs: number;
  /** In ms. */
  time: number;
  /** The schedule, if it was found. */
  schedule: string | undefined;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}

/** A line a scenario: how many schedules there are, by preemptions. */
export function outcomesTable(outcomes: readonly Outcome[]): string {
  const most = Math.max(...outcomes.map(({ result }) => result.runs.length));
  const total = outcomes.reduce((sum, { result }) => sum + result.time, 0);
  return table([
    [
      "scenario",
      "threads",
      "steps",
      ...Array.from({ length: most }, (_, i) => `${i} preemptions`),
      "seconds",
      "",
    ],
    ...outcomes.map(({ scenario, threads, result }) => [
      scenario,
      `${threads}`,
      `${result.steps}`,
      ...Array.from({ length: most }, (_, i) => `${result.runs[i] ?? 0}`),
      seconds(result.time),
      result.found !== undefined
        ? "FAILED"
        : result.complete
        ? "complete"
        : "cut short",
    ]),
    ["all", "", "", ...new Array(most).fill(""), seconds(total), ""],
  ]);
}

/** A line a fault and scenario. */
export function faultsTable(outcomes: readonly FaultOutcome[]): string {
  return table([
    ["fault", "scenario", "schedules", "seconds", "found by"],
    ...outcomes.map(({ fault, scenario, runs, time, schedule }) => [
      fault,
      scenario,
      `${runs}`,
      seconds(time),
      schedule ?? "NOT FOUND",
    ]),
  ]);
}

/**
 * The steps of a run: whose they are is their column.
 *
 * @param lines The steps.
 * @param all Whether to show every one, or those alone that are close to where another thread goes on.
 */
export function describeRun(lines: readonly Line[], all: boolean): string {
  const shown: string[] = [];
  for (let from = 0, to; from < lines.length; from = to) {
    const { thread } = lines[from];
    for (to = from; lines[to]?.thread === thread; to++);
    const stretch = lines.slice(from, to).map(({ step, text }) =>
      `${step}`.padStart(6) + "  " + "    ".repeat(thread) +
      `${thread}  ${text}`
    );
    if (!all && stretch.length > 2 * SHOWN) {
      stretch.splice(
        SHOWN,
        stretch.length - 2 * SHOWN,
        `     …  ${"    ".repeat(thread)}${thread}`,
      );
    }
    shown.push(...stretch);
  }
  return shown.join("\n");
}
