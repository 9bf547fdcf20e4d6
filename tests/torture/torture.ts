/**
 * `deno task torture`: readers look for what a grace period should have kept
 * from them, in every kind of domain in turn. After the kernel's `rcutorture`.
 */
import { parseArgs } from "@std/cli/parse-args";
import { Progress } from "../../bench/_report.ts";
import { withWorkers } from "../_workers.ts";
import { LEGEND, nameOf, type Outcome, report } from "./_report.ts";
import { CREW, torture, WORKER } from "./_run.ts";
import { CALLBACKS, DETECTORS, type Setting, settingsOf } from "./_settings.ts";
import { add, emptyTally, isBad } from "./_tally.ts";

const SECONDS = 60;
/** Longest turn of a setting, in ms. */
const LONGEST_TURN = 5_000;
/** What a turn takes on top, about, in ms: the start and the end of its workers. */
const AROUND_TURN = 500;

/** What the command line asks for. */
export interface TortureOptions {
  help: boolean;
  seconds: number;
  seed: number;
  settings: Setting[];
}

/** What `--help` prints. */
export const HELP: string =
  `Tortures read sections and grace periods, in every kind of domain in turn.

deno task torture [--seconds N] [--detector NAMES] [--callbacks NAMES] [--seed N]

  --seconds N        how long in all (default: ${SECONDS})
  --detector NAMES   only these: ${Object.keys(DETECTORS).join(", ")}
  --callbacks NAMES  only these: ${Object.keys(CALLBACKS).join(", ")}
  --seed N           what decides all choices (default: drawn, and printed)
  --help             this text

NAMES are separated by commas; "tree" stands for both trees, and so on. Most
domains run what ships, with freed memory poisoned; one of each detector is in
debug mode. The table's columns, of which "turns" says how often a kind of
domain had its turn:

${LEGEND}

The exit code is 0, 1 if something was wrong, or 2 if the command line is.`;

/**
 * Reads the command line.
 *
 * @param args The arguments.
 * @param draw Draws a seed.
 * @returns What it asks for.
 * @throws {RangeError} If it holds something unknown; says what there is.
 */
export function readOptions(
  args: string[],
  draw: () => number = () => crypto.getRandomValues(new Uint32Array(1))[0],
): TortureOptions {
  const unknown: string[] = [];
  const read = parseArgs(args, {
    boolean: ["help"],
    string: ["seconds", "detector", "callbacks", "seed"],
    alias: { help: "h" },
    unknown: (arg) => {
      unknown.push(arg);
      return false;
    },
  });
  unknown.push(...read._.map(String));
  if (unknown.length > 0) {
    throw new RangeError(
      "Cannot read the command line as its arguments must be --seconds, " +
        "--detector, --callbacks, --seed or --help: received " +
        unknown.join(" "),
    );
  }
  const { help, detector, callbacks, seconds, seed } = read;
  return {
    help,
    seconds: seconds === undefined
      ? SECONDS
      : numberOf("--seconds", seconds, 1, 1e7),
    seed: seed === undefined
      ? draw()
      : numberOf("--seed", seed, 0, 2 ** 32 - 1),
    settings: settingsOf(detector, callbacks),
  };
}

function numberOf(
  flag: string,
  text: string,
  least: number,
  most: number,
): number {
  const number = /^\d+$/.test(text) ? Number(text) : NaN;
  if (number >= least && number <= most) return number;
  throw new RangeError(
    `Cannot read the command line as ${flag} must be an integer from ${least} ` +
      `to ${most}: received ${text || "nothing"}`,
  );
}

/**
 * Gives settings their turns until the time is over or one has failed: each at least one.
 *
 * @param options What the command line asks for.
 * @param onTurn Told before each turn whose it is.
 * @returns What became of each setting.
 */
export async function run(
  { settings, seconds, seed }: TortureOptions,
  onTurn: (name: string) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = settings.map((setting) => ({
    setting,
    turns: 0,
    tally: emptyTally(),
  }));
  const { rounds, time } = planOf(settings.length, seconds);
  for (let round = 0; round < rounds; round++) {
    for (const [i, outcome] of outcomes.entries()) {
      const { setting, tally } = outcome;
      onTurn(nameOf(setting));
      const turn = (seed + round * settings.length + i) >>> 0;
      try {
        const found = await withWorkers(
          WORKER,
          CREW.length,
          (...workers) => torture(workers, CREW, setting, turn, { time }),
        );
        add(tally, found);
      } catch (error) {
        // A worker that does not end.
        tally.errors.push(String(error));
      }
      outcome.turns++;
      if (isBad(tally)) return outcomes;
    }
  }
  return outcomes;
}

/** How often each setting has its turn, and how long that is, in ms. */
export function planOf(
  settings: number,
  seconds: number,
): { rounds: number; time: number } {
  const share = seconds * 1000 / settings;
  const rounds = Math.ceil(share / (LONGEST_TURN + AROUND_TURN));
  return { rounds, time: Math.max(100, share / rounds - AROUND_TURN) };
}

/** Whether anything was wrong with any setting, and so with the command. */
export function anyFailed(outcomes: readonly Outcome[]): boolean {
  return outcomes.some(({ tally }) => isBad(tally));
}

/** Returns the exit code. */
async function main(): Promise<number> {
  let options: TortureOptions;
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
  const { settings, seconds, seed } = options;
  console.log(`torture: seed ${seed}`);
  const { rounds } = planOf(settings.length, seconds);
  const outcomes = await (async () => {
    const steps = rounds * settings.length;
    await using progress = new Progress("torture", steps);
    return await run(options, (name) => progress.step(name));
  })();
  console.log(report(outcomes));
  return anyFailed(outcomes) ? 1 : 0;
}

// A thread that is stuck would keep the process alive.
if (import.meta.main) Deno.exit(await main());
