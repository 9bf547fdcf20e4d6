/** What an experiment finds, as data: its benchmark file prints it, `deno task report` draws it. */

/** A bar that something has to reach. */
export interface Bar {
  /** What was measured, in a few words. */
  what: string;
  /** The bar, such as "≤ 1.2". */
  bar: string;
  /** What came out, with its spread where it has one. */
  measured: string;
  /** Whether that reaches the bar. */
  met: boolean;
}

/** Rows of text under a row of headings. */
export interface Table {
  title: string;
  head: string[];
  rows: string[][];
  /** What a reader has to know about the figures. */
  notes?: string;
}

/** An axis, with the unit of its values. */
export interface Axis {
  title: string;
  /** "" for a plain number or a ratio. */
  unit: string;
  /** Whether it is logarithmic. @default {false} */
  log?: boolean;
}

/** Lines over a number, or bars over names. */
export interface Chart {
  title: string;
  kind: "line" | "bar";
  x: Axis;
  y: Axis;
  /** Numbers on the x axis for lines, names for bars. */
  series: { name: string; points: [x: number | string, y: number][] }[];
}

/** All that an experiment found. */
export interface Findings {
  bars: Bar[];
  tables: Table[];
  charts: Chart[];
}

/** How to run one. */
export interface RunOptions {
  /** Fewer rounds and shorter ones, for a look. */
  quick: boolean;
  /** Told before each step what it is; there are `steps(options)` of them. */
  onStep: (doing: string) => void;
}

/** An experiment of the report. */
export interface Experiment {
  /** The name of its benchmark file, without `_bench.ts`. */
  name: string;
  title: string;
  /** What it repeats, and what that found. */
  about: string;
  /** The command that prints its core figures. */
  command: string;
  /** How many steps a run has. */
  steps(options: Pick<RunOptions, "quick">): number;
  run(options: RunOptions): Promise<Findings>;
}
