// What is explored: structures, and what threads do with them.

import fc from "fast-check";
import {
  type Action,
  KEYS,
  MOST_STEPS,
  type Plan,
  type Step,
} from "./_plan.ts";
import type { Subject } from "./_values.ts";

/** Most steps of a thread where a step may be three reads: a history has room for 52. */
const MOST_WHOLE = 4;

/** What histories are about. */
export interface Scenario {
  name: string;
  subject: Subject;
  /** What threads do, and how often in comparison. */
  actions: Partial<Record<Action, number>>;
  /** Whether operations are about all keys at once. */
  whole?: boolean;
}

const KEYED: Scenario["actions"] = {
  get: 4,
  has: 1,
  set: 3,
  delete: 3,
  getOrInsert: 2,
  update: 2,
};

/** All of them. */
export const SCENARIOS: Scenario[] = [
  ...(["u32", "f64", "string", "json"] as const).map((value): Scenario => ({
    name: `RcuCell of ${value}`,
    subject: { structure: "cell", key: "u32", value },
    actions: { get: 3, set: 2, update: 2, version: 3 },
  })),
  ...(["map", "sortedMap"] as const).flatMap((structure) =>
    (["u32", "string"] as const).flatMap((key) =>
      (["u32", "f64", "string", "json"] as const).map((value): Scenario => ({
        name: `${nameOf(structure)} of ${key} → ${value}`,
        subject: { structure, key, value },
        actions: { ...KEYED, stir: 1 },
      }))
    )
  ),
  ...(["map", "sortedMap"] as const).flatMap((structure) =>
    ([["u32", "u32"], ["string", "string"]] as const).map((
      [key, value],
    ): Scenario => ({
      name: `${nameOf(structure)} of ${key} → ${value}, replaced as a whole`,
      subject: { structure, key, value },
      actions: { ...KEYED, section: 8, replaceAll: 3, clear: 1, stir: 1 },
      whole: true,
    }))
  ),
];

function nameOf(structure: "map" | "sortedMap"): string {
  return structure === "map" ? "RcuMap" : "RcuSortedMap";
}

/**
 * Plans of a scenario: they shrink to few threads, few steps and few keys.
 *
 * @param scenario The scenario.
 * @param threads Threads that are there, 2 or 3.
 * @returns The plans.
 */
export function anyPlan(
  { actions, subject, whole }: Scenario,
  threads: number,
): fc.Arbitrary<Plan> {
  const keys = subject.structure === "cell" ? 1 : KEYS;
  const anyKey = fc.nat(keys - 1);
  const step = fc.record({
    action: fc.oneof(
      ...Object.entries(actions).map(([action, weight]) => ({
        arbitrary: fc.constant(action as Action),
        weight,
      })),
    ),
    key: anyKey,
    some: fc.nat(2 ** keys - 1),
    keys: fc.array(anyKey, { minLength: 2, maxLength: 3 }),
    pause: fc.nat(20),
  }).map(({ some, ...step }): Step =>
    step.action === "replaceAll" ? { ...step, key: some } : step
  );
  const maxLength = whole ? MOST_WHOLE : MOST_STEPS;
  const steps = fc.array(step, { minLength: 1, maxLength });
  return fc.record({
    present: fc.nat(2 ** keys - 1),
    threads: fc.oneof(
      { arbitrary: fc.tuple(steps, steps), weight: 3 },
      { arbitrary: fc.tuple(steps, steps, steps), weight: threads - 2 },
    ),
  });
}
