/** Our map beside liburcu's rculfhash: the settings, the bars, and the measurement. */
import type { Keys } from "../_keys.ts";
import { type Ratio, ratio } from "../_measure.ts";
import { inFreshWorker } from "../_workers.ts";
import type { Compared, Setting, Turns } from "./_liburcu_figures.ts";

export type { Compared, Setting, Side, Turns } from "./_liburcu_figures.ts";

export const SMALL = 10_000;
export const LARGE = 1_000_000;

/** All settings: every mode with both numbers of keys. */
export const SETTINGS: Setting[] =
  (["read", "update", "store", "replace", "churn"] as const)
    .flatMap((mode) => [SMALL, LARGE].map((keys) => ({ mode, keys })));

/** For a look: what the bars are about, but for the one that takes longest to prepare. */
export const QUICK_SETTINGS: Setting[] = SETTINGS.filter((setting) =>
  isJudged(setting) && (setting.mode === "read" || setting.keys === SMALL)
);

/**
 * Whether the bars are about a setting: lookups while nobody updates, and
 * updates that do what a user of either library would to change a value.
 */
export function isJudged({ mode }: Setting): boolean {
  return mode === "read" || mode === "update";
}

/** What is asked for: lookups and updates a second, in times those of liburcu. */
export const BARS = {
  lookups: { [SMALL]: 1.5, [LARGE]: 1 } as Record<number, number>,
  updates: 0.5,
};

/** Eleven rounds of a fifth of a second for each: a minute in all. */
export const TURNS: Turns = { rounds: 11, warmUp: 2, ms: 200 };
export const QUICK_TURNS: Turns = { rounds: 5, warmUp: 1, ms: 60 };

/**
 * Measures settings, each in a thread and a process of its own.
 *
 * @param program The path of liburcu's program.
 * @param keys At least as many as the largest setting has.
 * @param options What to measure and for how long, and what to call before each.
 * @returns One figure a setting.
 */
export async function compareWithLiburcu(
  program: string,
  keys: Keys,
  { settings = SETTINGS, turns = TURNS, onSetting = () => {} }: {
    settings?: Setting[];
    turns?: Turns;
    onSetting?: (setting: Setting) => void;
  } = {},
): Promise<Compared[]> {
  const figures: Compared[] = [];
  for (const setting of settings) {
    onSetting(setting);
    figures.push(
      await inFreshWorker<Compared>(
        import.meta.resolve("./_liburcu_figures.ts"),
        "compare",
        { program, keys, setting, turns },
      ),
    );
  }
  return figures;
}

/** How many times as many lookups, or updates, a second ours makes. */
export function timesLiburcu(
  { ours, liburcu }: Compared,
  what: "lookup" | "update",
): Ratio {
  return ratio(liburcu[what], ours[what]);
}
