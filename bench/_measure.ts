/**
 * Measuring on a machine that others use: contenders take turns, and what
 * counts is the ratio of two that ran one after the other.
 */

/** One side of a comparison. */
export interface Contender {
  name: string;
  /** How many operations a run is. */
  operations: number;
  /** What is timed. Returns something that depends on all of its results. */
  run: (round: number) => number;
  /** What comes before it, not timed. */
  before?: (round: number) => void;
  /** What comes after it, not timed. */
  after?: (round: number) => void;
  /** Whether the run that has just ended counts; otherwise it is repeated, or left out. */
  counts?: () => boolean;
}

/** How to take turns. */
export interface InterleaveOptions {
  /** How many rounds are timed. */
  rounds: number;
  /** How many rounds come before them. @default {3} */
  warmUp?: number;
  /** How long runs are repeated that do not count, in ms in all. @default {3000} */
  patience?: number;
  /** After how many ms fewer rounds will do, where others use the machine. @default {2500} */
  budget?: number;
}

/** Few rounds, and little time for them, where a look will do. */
export function effort(
  options: InterleaveOptions,
  quick: boolean,
): InterleaveOptions {
  if (!quick) return options;
  const { rounds, warmUp = 3 } = options;
  return {
    rounds: Math.max(FEWEST, Math.ceil(rounds / 4)),
    warmUp: Math.ceil(warmUp / 4),
    patience: 250,
    budget: 250,
  };
}

/** Nanoseconds an operation, one number a round, by contender; NaN where none counted. */
export type Series = Record<string, number[]>;

/** How often a run may be repeated. */
const TRIES = 20;
/** How many rounds are few enough, and how many pairs a ratio needs. */
const FEWEST = 5;

const sink = new Float64Array(1);

/** Takes a result where no engine can tell that nobody looks at it. */
export function consume(value: number): void {
  sink[0] += value;
}

/**
 * Runs contenders in turn, each round beginning with another one, after
 * rounds that only warm up.
 */
export async function interleave(
  contenders: Contender[],
  { rounds, warmUp = 3, patience = 3000, budget = 2500 }: InterleaveOptions,
): Promise<Series> {
  const end = performance.now() + budget;
  const series: Series = {};
  for (const { name } of contenders) series[name] = [];
  for (let round = 0; round < warmUp + rounds; round++) {
    for (let i = 0; i < contenders.length; i++) {
      const contender = contenders[(i + round) % contenders.length];
      const { name, operations, counts } = contender;
      let took = time(contender, round);
      for (let tries = 1; counts !== undefined && !counts(); tries++) {
        patience -= took;
        if (tries < TRIES && patience > 0) took = time(contender, round);
        else {
          took = NaN;
          break;
        }
      }
      if (round >= warmUp) series[name].push(took * 1e6 / operations);
    }
    await turn();
    if (round - warmUp >= FEWEST && performance.now() > end) break;
  }
  return series;
}

function time({ run, before, after }: Contender, round: number): number {
  before?.(round);
  const start = performance.now();
  const result = run(round);
  const took = performance.now() - start;
  after?.(round);
  consume(result);
  return took;
}

/** Lets the event loop have a turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/**
 * Warms up for `warmUp` ms at least, and tells how many operations take `ms`.
 * In many short calls: an engine compiles a function that is called often
 * better than a loop that it is in the middle of.
 */
export function calibrate(
  run: (count: number) => number,
  { ms, warmUp = 30 }: { ms: number; warmUp?: number },
): number {
  const FEW = 500;
  const CALLS = 200;
  const start = performance.now();
  // By number too: time also passes while others have the core.
  for (
    let calls = 0;
    calls < CALLS || performance.now() - start < warmUp;
    calls++
  ) consume(run(FEW));
  for (let count = FEW;; count *= 2) {
    const start = performance.now();
    consume(run(count));
    const took = performance.now() - start;
    if (took >= ms / 4) return Math.max(FEW, Math.round(count * ms / took));
  }
}

/** The middle of some numbers; those that are NaN do not count. */
export function median(numbers: number[]): number {
  return quantile(numbers, 0.5);
}

/** The number below which `share` of some numbers are; NaN of none. */
export function quantile(numbers: number[], share: number): number {
  const sorted = numbers.filter((n) => !Number.isNaN(n)).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at % 1);
}

/** How many times `a` is `b`: the median of the rounds, and their quartiles. */
export interface Ratio {
  median: number;
  low: number;
  high: number;
}

/** Compares two contenders, round by round; NaN if few rounds count. */
export function ratio(a: number[], b: number[]): Ratio {
  const ratios = a.map((value, i) => value / b[i])
    .filter((n) => !Number.isNaN(n));
  if (ratios.length < FEWEST) return { median: NaN, low: NaN, high: NaN };
  return {
    median: median(ratios),
    low: quantile(ratios, 0.25),
    high: quantile(ratios, 0.75),
  };
}
