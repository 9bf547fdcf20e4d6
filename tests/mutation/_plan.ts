// Which tests have to notice what is changed in which folder.

/** Test files in groups, one after the other: most mutants go no further than the first, fast one. */
export type Plan = readonly (readonly string[])[];

/** The folders of `src/` whose tests are put to the test. */
export const PLANS: Readonly<Record<string, Plan>> = {
  sync: [["mutex_steps"], ["mutex"], ["stack"]],
  readers: [
    ["slots", "turn", "reader_steps"],
    ["reader", "rcu", "closing"],
    ["synchronize", "membership_exhaustion"],
    ["faults", "membership_end"],
    ["death"],
  ],
  grace_periods: [
    ["grace_period_steps"],
    ["sequence"],
    ["detectors"],
    ["grace_period", "synchronize"],
    ["stall_watch", "stall"],
  ],
  callbacks: [
    ["callback_steps", "callback_turns", "handover", "reclaimer_steps"],
    ["callbacks", "throttled"],
    ["barrier", "overload", "membership_exhaustion"],
    ["death"],
    ["offloaded"],
  ],
};

/**
 * The arguments of a `deno` that runs a group of tests.
 *
 * @param group Names of tests.
 * @param options What `tests/_std/pick.ts` printed.
 * @returns The arguments.
 */
export function argumentsFor(
  group: readonly string[],
  options: readonly string[],
): string[] {
  return [
    "test",
    "--quiet",
    "--no-check",
    "--fail-fast",
    "--allow-read=.",
    // The number of the mutant, and nothing else of the environment.
    "--allow-env=__STRYKER_ACTIVE_MUTANT__",
    ...options,
    ...group.map((name) => `tests/${name}_test.ts`),
  ];
}
