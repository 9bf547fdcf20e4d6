// What was seen, as text.

import { type Counts, seenIn, weakIn } from "./_pattern.ts";

/** Outcomes that are shown, the commonest. */
const MOST = 4;

const HEAD = ["pattern", "threads", "instances", "in question", "outcomes"];

/**
 * A table of results: a line for each pattern.
 *
 * @param results The results.
 * @returns The lines.
 */
export function table(results: readonly Counts[]): string {
  const rows = results.map((counts) => {
    const { pattern, instances, outcomes } = counts;
    const seen = [...outcomes.entries()].filter(([, count]) => count > 0)
      .toSorted(([, a], [, b]) => b - a);
    const shown = seen.slice(0, MOST)
      .map(([index, count]) => `${describe(counts, index)}: ${count}`);
    if (seen.length > MOST) shown.push(`${seen.length - MOST} more`);
    return [
      pattern.name,
      `${pattern.sees.length}`,
      `${instances}`,
      `${pattern.weak} be: ${weakIn(counts)}`,
      shown.join(", "),
    ];
  });
  const all = [HEAD, ...rows];
  const widths = HEAD.map((_, column) =>
    Math.max(...all.map((row) => row[column].length))
  );
  return all.map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd()
  ).join("\n");
}

function describe({ pattern }: Counts, index: number): string {
  const seen = seenIn(pattern, index);
  const shown = seen.map((value, thread) => pattern.sees[thread][value]);
  return `${shown.filter((text) => text !== "-").join(" | ")}${
    pattern.isWeak(seen) ? " (!)" : ""
  }`;
}
