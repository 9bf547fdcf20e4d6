// All scenarios.

import { MEMORY } from "./_memory.ts";
import { MUTEXES } from "./_mutex.ts";
import { PERIODS } from "./_periods.ts";
import { RECLAIMING } from "./_reclaiming.ts";
import type { Scenario } from "./_scenario.ts";
import { TABLES } from "./_tables.ts";
import { UPDATES } from "./_updates.ts";

/** All scenarios, by what they are about. */
export const SCENARIOS: Scenario[] = [
  ...PERIODS,
  ...UPDATES,
  ...TABLES,
  ...MUTEXES,
  ...MEMORY,
  ...RECLAIMING,
];
