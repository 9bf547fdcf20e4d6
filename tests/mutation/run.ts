/**
 * `deno task mutation`: changes the package in a thousand small ways, one at a
 * time, and says which of them no test notices. By StrykerJS, whose command
 * runner instruments a copy of the project and runs a command for each mutant.
 */
import { runCommand } from "../_command_line.ts";
import { argumentsFor, PLANS, targetsOf } from "./_plan.ts";
import { type MutationReport, summary, survivors } from "./_report.ts";

const STRYKER = "npm:@stryker-mutator/core@~9.6";
/** What tests may take with a mutant: so many times as long as without, and so many ms more. */
const PATIENCE = { factor: 5, more: 3_000 };
/** More than all groups of tests are given together, in ms. */
const LONGEST = 3_600_000;

const USAGE =
  `Changes src/ in small ways, one at a time, and says what no test notices.

deno task mutation [FOLDER | FILE[:FROM-TO]]...

  FOLDER  ${Object.keys(PLANS).join(", ")} (default: all of them)
  FILE    a file of one of them, such as src/sync/_mutex.ts, or some lines of it
  --help  this text

Takes an hour or more for all. tests/README.md says what is known of survivors.
The exit code is 0, whatever survives, 1 if a run was not possible, or 2 if the
command line makes no sense.`;

/** How long each group of a folder's tests may take with a mutant, in ms. */
async function limitsOf(folder: string, options: string[]): Promise<number[]> {
  const limits: number[] = [];
  for (const group of PLANS[folder]) {
    const begin = performance.now();
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: argumentsFor(group, options),
      stdout: "null",
    }).output();
    if (!success) throw new Error(`Tests fail without a mutant: ${group}`);
    const time = performance.now() - begin;
    limits.push(Math.ceil(PATIENCE.factor * time + PATIENCE.more));
  }
  return limits;
}

/** Mutates files and runs their folder's tests. Leaves nothing behind. */
async function mutate(
  folder: string,
  files: string[],
  options: string[],
): Promise<MutationReport | undefined> {
  const limits = await limitsOf(folder, options);
  const temporary = await Deno.makeTempDir({ prefix: "mutation_" });
  try {
    const config = `${temporary}/config.json`;
    const report = `${temporary}/report.json`;
    const deno = Deno.execPath();
    const command = [
      `${deno} run --quiet --no-check --allow-read=. --allow-run=${deno}`,
      `tests/mutation/attempt.ts ${folder} ${limits} ${options.join(" ")}`,
    ].join(" ");
    await Deno.writeTextFile(
      config,
      JSON.stringify({
        mutate: files,
        testRunner: "command",
        commandRunner: { command },
        plugins: [],
        // Tests run without a type check.
        disableTypeChecks: false,
        ignorePatterns: ["/bench/data", "/coverage"],
        tempDirName: `${temporary}/copies`,
        concurrency: navigator.hardwareConcurrency,
        timeoutMS: LONGEST,
        allowConsoleColors: false,
        reporters: ["json", "dots"],
        jsonReporter: { fileName: report },
      }),
    );
    const { success } = await new Deno.Command(deno, {
      args: ["run", "-A", "-q", STRYKER, "run", config],
      stdout: "inherit",
      stderr: "inherit",
    }).output();
    if (!success) return undefined;
    return JSON.parse(await Deno.readTextFile(report));
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

/** What StrykerJS is to mutate, by folder, and what `tests/_std/pick.ts` printed. */
interface Asked {
  targets: Map<string, string[]>;
  options: string[];
}

function read(args: string[]): Asked | "help" {
  if (args.includes("--help") || args.includes("-h")) return "help";
  const options = args.filter((arg) => arg.startsWith("--import-map"));
  const rest = args.filter((arg) => !options.includes(arg));
  return { targets: targetsOf(rest), options };
}

/** Returns the exit code. */
async function main({ targets, options }: Asked): Promise<number> {
  const lines: string[] = [];
  for (const [folder, files] of targets) {
    console.log(`\n${folder}`);
    const report = await mutate(folder, files, options);
    if (report === undefined) return 1;
    console.log(`\n${survivors(report)}`);
    lines.push(summary(folder, report));
  }
  console.log(lines.join("\n"));
  return 0;
}

await runCommand(USAGE, () => read(Deno.args), main);
