/**
 * `deno task report`: runs the experiments and writes what they find as one
 * page of HTML with charts.
 */
import { parseArgs } from "@std/cli/parse-args";
import { cpus } from "node:os";
import type { Experiment } from "./_experiment.ts";
import { EXPERIMENTS } from "./_experiments.ts";
import { fetchRoutes } from "./_fetch.ts";
import { duration, type Machine, type Outcome, page } from "./_page.ts";
import { Progress } from "./_report.ts";
import { runAll } from "./_run.ts";

const OUTPUT = "bench/report.html";

/** What the command line asks for. */
export interface ReportOptions {
  help: boolean;
  quick: boolean;
  output: string;
  /** In the order of the page. */
  experiments: Experiment[];
}

/** What `--help` prints. */
export function help(all: readonly Experiment[]): string {
  const longest = Math.max(...all.map(({ name }) => name.length));
  const list = all.map(({ name, title }) =>
    `  ${name.padEnd(longest)}  ${title}`
  );
  return `Runs the experiments and writes a page with what they find.

deno task report [--quick] [--only NAME[,NAME]] [--output FILE]

  --quick        few rounds and short ones: a minute and a half
  --only NAMES   only these experiments
  --output FILE  where the page goes (default: ${OUTPUT})
  --help         this text

The exit code is 0, 1 if an experiment failed, or 2 if the command line is wrong.

Experiments:
${list.join("\n")}`;
}

/**
 * Reads the command line.
 *
 * @throws {RangeError} If it holds something unknown; says what there is.
 */
export function readOptions(
  args: string[],
  all: readonly Experiment[],
): ReportOptions {
  const unknown: string[] = [];
  const read = parseArgs(args, {
    boolean: ["quick", "help"],
    string: ["output", "only"],
    alias: { help: "h" },
    default: { output: OUTPUT },
    unknown: (arg) => {
      unknown.push(arg);
      return false;
    },
  });
  unknown.push(...read._.map(String));
  if (unknown.length > 0) {
    throw new RangeError(
      "Cannot read the command line as its arguments must be --quick, " +
        `--only, --output or --help: received ${unknown.join(" ")}`,
    );
  }
  const { help, quick, output, only } = read;
  if (output === "") {
    throw new RangeError(
      "Cannot write the page as --output must name a file: received nothing",
    );
  }
  return { help, quick, output, experiments: chosen(all, only) };
}

function chosen(all: readonly Experiment[], only?: string): Experiment[] {
  if (only === undefined) return [...all];
  const names = only.split(",").map((name) => name.trim());
  const known = all.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new RangeError(
      `Cannot choose experiments as --only must name some of ` +
        `${known.join(", ")}: received ${
          unknown.map((name) => name || "nothing").join(", ")
        }`,
    );
  }
  return all.filter(({ name }) => names.includes(name));
}

function machine(): Machine {
  const model = cpus()[0]?.model.trim();
  return {
    cores: navigator.hardwareConcurrency,
    ...(model ? { cpu: model } : {}),
    system: Deno.build.target,
    deno: Deno.version.deno,
    v8: Deno.version.v8,
  };
}

/** Whether any of them failed, and so the command. */
export function anyFailed(outcomes: Outcome[]): boolean {
  return outcomes.some(({ error }) => error !== undefined);
}

async function report(
  { quick, output, experiments }: ReportOptions,
): Promise<Outcome[]> {
  if (experiments.some(({ routes }) => routes)) {
    // Without it those that need it fail, and the others need not.
    await fetchRoutes().catch(({ message }) => console.error(message));
  }
  const date = new Date();
  const start = performance.now();
  const steps = experiments.reduce(
    (sum, experiment) => sum + experiment.steps({ quick }),
    0,
  );
  const outcomes = await (async () => {
    await using progress = new Progress("report", steps);
    return await runAll(experiments, quick, progress);
  })();
  const seconds = (performance.now() - start) / 1000;
  const command = ["deno task report", ...Deno.args].join(" ");
  const shown = { outcomes, machine: machine(), date, seconds, quick, command };
  await Deno.writeTextFile(output, await page(shown));
  const bars = outcomes.flatMap(({ findings }) => findings?.bars ?? []);
  const met = bars.filter(({ met }) => met).length;
  console.log(
    `${output}: ${met} of ${bars.length} bars met, in ${duration(seconds)}`,
  );
  return outcomes;
}

/** Finds out before anything is measured that could not be written down. */
async function checkWritable(output: string): Promise<void> {
  try {
    (await Deno.open(output, { create: true, append: true })).close();
  } catch (error) {
    const { message } = error as Error;
    throw new RangeError(
      "Cannot write the page as --output must name a file that can be " +
        `written: received ${output}, ${message}`,
    );
  }
}

/** Returns the exit code. */
async function main(): Promise<number> {
  let options: ReportOptions;
  try {
    options = readOptions(Deno.args, EXPERIMENTS);
    if (!options.help) await checkWritable(options.output);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.error(`${error.message}\n\n${help(EXPERIMENTS)}`);
    return 2;
  }
  if (options.help) {
    console.log(help(EXPERIMENTS));
    return 0;
  }
  const outcomes = await report(options);
  for (const { experiment, error, findings } of outcomes) {
    const { name } = experiment;
    if (error !== undefined) console.error(`${name} failed: ${error}`);
    if (findings?.skipped !== undefined) {
      console.error(`${name} was skipped: ${findings.skipped}`);
    }
  }
  return anyFailed(outcomes) ? 1 : 0;
}

// A thread that is stuck in an experiment would keep the process alive.
if (import.meta.main) Deno.exit(await main());
