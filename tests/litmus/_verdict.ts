// What results say.

import { type Counts, weakIn } from "./_pattern.ts";

/** The pattern that shows whether the threads met. */
export const CONTROL = "SB, plain accesses";

/** The architecture of which it is certain: it lets a store pass a later load. */
const REORDERS = "x86_64";

/** What results come to. */
export interface Verdict {
  text: string;
  /** Whether something is wrong, with the package, the machine or the run. */
  fails: boolean;
}

/**
 * Judges results.
 *
 * @param results What was seen, of {@linkcode CONTROL} too.
 * @param arch The architecture, as in `Deno.build`.
 * @returns What they come to.
 */
export function verdict(results: readonly Counts[], arch: string): Verdict {
  const broken = results.filter((counts) =>
    counts.pattern.weak === "never" && weakIn(counts) > 0
  );
  if (broken.length > 0) {
    const names = broken.map(({ pattern }) => pattern.name).join("; ");
    return { text: `Seen, and must never be: ${names}.`, fails: true };
  }
  const control = results.find(({ pattern }) => pattern.name === CONTROL);
  if (control === undefined) {
    throw new Error(`Cannot judge results as ${CONTROL} must be among them`);
  }
  const shown = weakIn(control);
  const text = `Nothing seen that must never be. ${CONTROL}: ${shown} seen, ` +
    (shown > 0
      ? "so the threads met closely enough to see a store that is late."
      : "so the threads did not meet, or this machine keeps stores and loads in order.");
  return { text, fails: shown === 0 && arch === REORDERS };
}
