// All scenarios.

import { MUTEXES } from "./_mutex.ts";
import { PERIODS } from "./_periods.ts";
import { RECLAIMING } from "./_reclaiming.ts";
import type { Scenario } from "./_scenario.ts";
import { UPDATES } from "./_updates.ts";

/** All scenarios, by what they are about. */
export const SCENARIOS: Scenario[] = [
  ...PERIODS,
  ...UPDATES,
  ...MUTEXES,
  ...RECLAIMING,
];
