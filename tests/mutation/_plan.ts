// Which tests have to notice what is changed in which folder.

/** Test files in groups, one after the other: most mutants go no further than the first, fast one. */
export type Plan = readonly (readonly string[])[];

/** The folders of `src/` whose tests are put to the test. */
export const PLANS: Readonly<Record<string, Plan>> = {
  sync: [["mutex_steps", "park", "web_locks", "turn"], ["mutex"], ["stack"]],
  readers: [
    ["slots", "turn", "reader_steps", "obituaries"],
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
    [
      "callback_steps",
      "callback_turns",
      "callback_duties",
      "handover",
      "reclaimer_steps",
    ],
    ["callbacks", "throttled"],
    ["barrier", "overload", "membership_exhaustion"],
    ["death", "stack"],
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

/**
 * Reads what is to be mutated.
 *
 * @param args Folders of {@linkcode PLANS}, files of them, lines of files; all folders if there is nothing.
 * @returns What StrykerJS is to mutate, by the folder whose tests look at it.
 * @throws {RangeError} If there is no such thing; says what must be.
 */
export function targetsOf(args: readonly string[]): Map<string, string[]> {
  const targets = new Map<string, string[]>();
  for (const arg of args.length === 0 ? Object.keys(PLANS) : args) {
    const folder = folderOf(arg);
    const files = arg === folder ? `src/${folder}/**/*.ts` : arg;
    targets.set(folder, [...targets.get(folder) ?? [], files]);
  }
  return targets;
}

/** The folder that an argument is, or is about. */
function folderOf(arg: string): string {
  if (Object.hasOwn(PLANS, arg)) return arg;
  const [, file, folder, range, from, to] =
    arg.match(/^(src\/(\w+)\/\w+\.ts)(:(\d+)-(\d+))?$/) ?? [];
  const lines = file !== undefined && Object.hasOwn(PLANS, folder)
    ? linesOf(file)
    : undefined;
  if (lines === undefined) {
    throw new RangeError(
      `Cannot run as what is mutated must be one of ${
        Object.keys(PLANS).join(", ")
      }, a file of it such as src/sync/_mutex.ts, or lines of that: received ${
        arg || "nothing"
      }`,
    );
  }
  const [first, last] = [Number(from), Number(to)];
  if (range === undefined || 1 <= first && first <= last && last <= lines) {
    return folder;
  }
  throw new RangeError(
    `Cannot run as FROM-TO must be lines 1 to ${lines} of ${file}, the first ` +
      `one first: received ${from}-${to}`,
  );
}

/** How many lines a file of the repository has; `undefined` if there is no such file. */
function linesOf(file: string): number | undefined {
  try {
    const text = Deno.readTextFileSync(
      new URL(`../../${file}`, import.meta.url),
    );
    return text.split("\n").length - 1;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
