/** Showing how far a benchmark is, and what came out. */
import { ProgressBar } from "@std/cli/unstable-progress-bar";
import type { Bar, Experiment, RunOptions, Table } from "./_experiment.ts";
import { consume, type Ratio } from "./_measure.ts";

/** How far a benchmark is, on stderr: a bar on a terminal, else a line a step. */
export class Progress implements AsyncDisposable {
  readonly #title: string;
  readonly #steps: number;
  readonly #bar: ProgressBar | undefined;
  #done = -1;
  #doing = "starting";

  constructor(title: string, steps: number) {
    this.#title = title;
    this.#steps = steps;
    if (!Deno.stderr.isTerminal()) return;
    this.#bar = new ProgressBar({
      max: steps,
      barLength: 30,
      formatter: ({ styledTime, progressBar }) =>
        fitted(
          `[${styledTime}] [${progressBar}] ${this.#title}: ${this.#doing}`,
        ),
    });
  }

  /** Says that the step before is done and what the next one is. */
  step(doing: string): void {
    this.#done++;
    this.#doing = doing;
    if (this.#bar !== undefined) this.#bar.value = this.#done;
    else {
      console.error(
        `${this.#title} ${this.#done + 1}/${this.#steps}: ${doing}`,
      );
    }
  }

  /** Says that the first `steps` steps are done, or will never be. */
  skipTo(steps: number): void {
    this.#done = steps - 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#bar === undefined) return;
    this.#bar.value = this.#steps;
    this.#doing = "measured";
    await this.#bar.stop();
  }
}

/** What a terminal's line has room for: a longer one could not be overwritten. */
function fitted(line: string): string {
  return line.slice(0, Deno.consoleSize().columns - 1);
}

/** Measures what an experiment does, at its full length, showing how far it is. */
export async function atFullLength<T>(
  { name, steps }: Experiment,
  measure: (options: RunOptions) => Promise<T>,
): Promise<T> {
  const title = name.replaceAll("_", " ");
  await using progress = new Progress(title, steps({ quick: false }));
  return await measure({
    quick: false,
    onStep: (doing) => progress.step(doing),
  });
}

/** Lines up the columns of a table: the first on the left, the others on the right. */
export function table(rows: string[][]): string {
  const widths = rows[0].map((_, column) =>
    Math.max(...rows.map((row) => row[column].length))
  );
  const lines = rows.map((row) =>
    row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
    ).join(" | ")
  );
  const rule = widths.map((width) => "-".repeat(width)).join(" | ");
  return [lines[0], rule, ...lines.slice(1)]
    .map((line) => `| ${line} |`).join("\n");
}

/** A table in text, with what is to be known about it. */
export function shown({ head, rows, notes }: Table): string {
  const lines = table([head, ...rows]);
  return notes === undefined ? lines : `${lines}\n\n${notes}`;
}

/** Bars in text. */
export function shownBars(bars: Bar[]): string {
  return table([
    ["what is to be reached", "measured", "bar", ""],
    ...bars.map(({ what, measured, bar, met: reached }) => [
      what,
      measured,
      bar,
      met(reached),
    ]),
  ]);
}

/** Whether a bar is reached. */
export function met(reached: boolean): string {
  return reached ? "met" : "NOT MET";
}

/** A number in three digits; a dash where nothing was measured. */
export function short(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const digits = 2 - Math.floor(Math.log10(Math.abs(value)));
  return value.toLocaleString("en", {
    minimumFractionDigits: Math.min(Math.max(digits, 0), 2),
    maximumFractionDigits: Math.min(Math.max(digits, 0), 2),
  });
}

/** A whole number. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** A ratio with the quartiles of its rounds. */
export function spread({ median, low, high }: Ratio): string {
  if (Number.isNaN(median)) return "–";
  return `${short(median)} (${short(low)}–${short(high)})`;
}

/** How long the reporter of `deno bench` may take to print its last line, in ms. */
const REPORTER = 300;

/**
 * Prints a report after what `deno bench` prints of this file. To be called
 * after the last `Deno.bench`.
 */
export function printAtEnd(report: () => string): void {
  // The summary of a group is printed when the next one begins, and that of the last group only
  // with the next file: so the last one is a group that has none.
  const emptyLoop = () => {
    let sum = 0;
    for (let i = 0; i < 10_000; i++) sum += i & 63;
    consume(sum);
  };
  Deno.bench("an empty loop of 10,000", { group: "for scale" }, emptyLoop);
  globalThis.addEventListener("unload", () => {
    // Rows are printed by another thread: let it finish, nothing else can be awaited here.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REPORTER);
    console.log(`\n${report()}\n`);
  });
}
