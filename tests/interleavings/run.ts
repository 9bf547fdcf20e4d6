/**
 * `deno task interleavings`: runs the code of the package under all schedules of a few
 * threads, up to a number of preemptions. After CHESS (Musuvathi, Qadeer and others, OSDI 2008).
 */
import { parseArgs } from "@std/cli/parse-args";
import { Progress } from "../../bench/_report.ts";
import { type Crew, withCrew } from "./_explore.ts";
import { type Fault, FAULTS } from "./_faults.ts";
import {
  describeRun,
  type FaultOutcome,
  faultsTable,
  type Outcome,
  outcomesTable,
} from "./_report.ts";
import type { Scenario } from "./_scenario.ts";
import { SCENARIOS } from "./_scenarios.ts";
import { scheduleOf } from "./_schedule.ts";

/** Preemptions that are explored unless the command line says otherwise. */
const PREEMPTIONS = 2;
/** Most preemptions that make sense. */
const MOST_PREEMPTIONS = 9;

/** What the command line asks for. */
export interface RunOptions {
  help: boolean;
  scenarios: Scenario[];
  preemptions: number;
  /** Whether to look for the faults instead. */
  faults: boolean;
  fault: Fault | undefined;
  replay: string | undefined;
}

/** What `--help` prints. */
export const HELP: string =
  `Runs the package under all schedules of a few threads, up to a number of preemptions.

deno task interleavings [--scenario NAMES] [--preemptions N] [--fault NAME]
                        [--replay SCHEDULE] [--faults]

  --scenario NAMES   only those whose names begin so, separated by commas
  --preemptions N    how many at most (default: ${PREEMPTIONS})
  --fault NAME       with a fault planted, to see it fail
  --replay SCHEDULE  runs one schedule of the first of the scenarios, and shows each step
  --faults           looks for every fault in its scenarios, and says how long it took
  --help             this text

Scenarios:
${SCENARIOS.map(({ name }) => `  ${name}`).join("\n")}

Faults:
${Object.keys(FAULTS).map((name) => `  ${name}`).join("\n")}

The exit code is 0, 1 if a schedule failed or a fault was not found, or 2 if
the command line makes no sense.`;

/**
 * Reads the command line.
 *
 * @param args The arguments.
 * @returns What it asks for.
 * @throws {RangeError} If it holds something unknown.
 */
export function readOptions(args: string[]): RunOptions {
  const unknown: string[] = [];
  const read = parseArgs(args, {
    boolean: ["help", "faults"],
    string: ["scenario", "preemptions", "fault", "replay"],
    alias: { help: "h" },
    unknown: (arg) => {
      unknown.push(arg);
      return false;
    },
  });
  unknown.push(...read._.map(String));
  const refuse = (must: string, received: string): never => {
    throw new RangeError(
      `Cannot read the command line as ${must}: received ${
        received || "nothing"
      }`,
    );
  };
  if (unknown.length > 0) {
    refuse(
      "its arguments must be --scenario, --preemptions, --fault, --replay, --faults or --help",
      unknown.join(" "),
    );
  }
  const { help, faults, fault, preemptions = `${PREEMPTIONS}`, replay } = read;
  const names = (read.scenario ?? "").split(",");
  const scenarios = SCENARIOS.filter((scenario) =>
    names.some((name) => scenario.name.startsWith(name))
  );
  if (scenarios.length === 0) {
    refuse(
      "--scenario must be the beginning of a scenario's name",
      read.scenario!,
    );
  }
  if (fault !== undefined && !Object.hasOwn(FAULTS, fault)) {
    refuse("--fault must be a fault's name", fault);
  }
  if (!/^\d$/.test(preemptions)) {
    refuse(
      `--preemptions must be an integer from 0 to ${MOST_PREEMPTIONS}`,
      preemptions,
    );
  }
  if (replay !== undefined) scheduleOf(replay);
  return {
    help,
    faults,
    scenarios,
    preemptions: Number(preemptions),
    fault: fault as Fault | undefined,
    replay,
  };
}

/** Explores scenarios until one fails; says whether none did. */
async function explore(crew: Crew, options: RunOptions): Promise<boolean> {
  const { scenarios, preemptions, fault } = options;
  const outcomes: Outcome[] = [];
  const failed = await (async () => {
    await using progress = new Progress("interleavings", scenarios.length);
    for (const scenario of scenarios) {
      progress.step(scenario.name);
      const result = await crew.explore(scenario, { preemptions, fault });
      const { name, threads } = scenario;
      outcomes.push({ scenario: name, threads, result });
      if (result.found !== undefined) return scenario;
    }
    return undefined;
  })();
  console.log(outcomesTable(outcomes));
  if (failed === undefined) return true;
  const { schedule, message } = outcomes.at(-1)!.result.found!;
  const { lines } = await crew.replay(failed, schedule, fault);
  console.log(`\n${message}\n\n${describeRun(lines, false)}\n`);
  console.log(
    `All steps: deno task interleavings --scenario "${failed.name}" --replay ${schedule}` +
      (fault === undefined ? "" : ` --fault "${fault}"`),
  );
  return false;
}

/**
 * Looks for a fault in a scenario, with more and more preemptions.
 *
 * @param crew The threads.
 * @param fault The fault.
 * @param scenario The scenario.
 * @param preemptions How many at most.
 */
export async function findFault(
  crew: Crew,
  fault: Fault,
  scenario: Scenario,
  preemptions: number,
): Promise<FaultOutcome> {
  const outcome: FaultOutcome = {
    fault,
    scenario: scenario.name,
    runs: 0,
    time: 0,
    schedule: undefined,
  };
  for (let most = 0; most <= preemptions; most++) {
    const result = await crew.explore(scenario, { preemptions: most, fault });
    outcome.runs += result.all;
    outcome.time += result.time;
    outcome.schedule = result.found?.schedule;
    if (outcome.schedule !== undefined) break;
  }
  return outcome;
}

/** The scenarios in which a fault is to be found. */
export function scenariosOf(fault: Fault): Scenario[] {
  return FAULTS[fault].scenarios.map((wanted) =>
    SCENARIOS.find(({ name }) => name === wanted)!
  );
}

/** Looks for all faults; says whether every one was found. */
async function findFaults(
  crew: Crew,
  { preemptions, scenarios }: RunOptions,
): Promise<boolean> {
  const cases = (Object.keys(FAULTS) as Fault[]).flatMap((fault) =>
    scenariosOf(fault)
      .filter((scenario) => scenarios.includes(scenario))
      .map((scenario) => ({ fault, scenario }))
  );
  const outcomes: FaultOutcome[] = [];
  await (async () => {
    await using progress = new Progress("faults", cases.length);
    for (const { fault, scenario } of cases) {
      progress.step(fault);
      outcomes.push(await findFault(crew, fault, scenario, preemptions));
    }
  })();
  console.log(faultsTable(outcomes));
  return outcomes.every(({ schedule }) => schedule !== undefined);
}

/** Runs one schedule; says whether it did not fail. */
async function replay(
  crew: Crew,
  { scenarios: [scenario], fault, replay }: RunOptions,
): Promise<boolean> {
  const { message, lines } = await crew.replay(scenario, replay!, fault);
  console.log(`${scenario.name}\n\n${describeRun(lines, true)}`);
  console.log(`\n${message ?? "Nothing failed."}`);
  return message === undefined;
}

/** Returns the exit code. */
async function main(): Promise<number> {
  let options: RunOptions;
  try {
    options = readOptions(Deno.args);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.error(`${error.message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const act = options.replay !== undefined
    ? replay
    : options.faults
    ? findFaults
    : explore;
  return await withCrew((crew) => act(crew, options)) ? 0 : 1;
}

// A thread that is stuck would keep the process alive.
if (import.meta.main) Deno.exit(await main());
