/**
 * Takes the figures of the open-and-close experiment.
 *
 * How processor time is attributed to functions. Workers run `close(open(path))`
 * for many paths at once, step by step: 64 path walks, 64 lookups, 64
 * allocations, and so on. So one reading of the clock serves 64 calls, and no
 * step is charged for it. The clock is not that of the processor, which for a
 * thread ticks in 10 ms: naps are taken off, and a batch of a step in which the
 * thread lost its core, which then is gone for milliseconds, is left out and
 * taken to be like the others. The other way, differences between runs with and
 * without a function, was left: what is small against the whole drowns in the
 * whole's noise, and cache misses move from one function to another.
 *
 * That it is right shows in the same runs by the processor time of the process,
 * which is exact and which other programs cannot add to: what the steps do not
 * account for is "other", most of it the engine's own threads. What callbacks
 * wait for at the end of a run is paid for in the run.
 */
import { Lab, type Run, type Variant } from "./_open_close_lab.ts";
import { AT_ONCE, PAIRS, STEPS } from "./_open_close_worker.ts";

/** How many workers run at a time. */
export const WORKERS = [1, 2, 4, 8] as const;

/** What was measured with a number of workers: a run each round. */
export interface Setting {
  workers: number;
  /** Step by step. */
  steps: Run[];
  /** As it is. */
  pairs: Run[];
  /** Freed at once. */
  atOnce: Run[];
  /** A run for the memory alone: its times do not count. */
  watched: Run;
}

/** How long things take, in ms. */
interface Times {
  rounds: number;
  warmUp: number;
  steps: number;
  pairs: number;
  /** After this fewer rounds will do, where others use the machine. */
  budget: number;
}

/** As few rounds as a ratio may have. */
const FEWEST = 5;

const FULL: Times = {
  rounds: 7,
  warmUp: 250,
  steps: 50,
  pairs: 20,
  budget: 3500,
};
const QUICK: Times = {
  rounds: FEWEST,
  warmUp: 50,
  steps: 20,
  pairs: 10,
  budget: 0,
};

/**
 * Measures a variant: numbers of workers take turns, each round beginning with
 * another one.
 */
export async function measure(
  variant: Variant,
  quick: boolean,
): Promise<Setting[]> {
  const { rounds, warmUp, steps, pairs, budget } = quick ? QUICK : FULL;
  const most = WORKERS[WORKERS.length - 1];
  await using lab = await Lab.start(variant, most);
  await lab.run(STEPS, most, warmUp);
  const settings: Setting[] = [];
  for (const workers of WORKERS) {
    const watched = await lab.run(STEPS, workers, steps, true);
    settings.push({ workers, steps: [], pairs: [], atOnce: [], watched });
  }
  const end = performance.now() + budget;
  for (let round = 0; round < rounds; round++) {
    if (round >= FEWEST && performance.now() > end) break;
    for (let i = 0; i < settings.length; i++) {
      const setting = settings[(i + round) % settings.length];
      const { workers } = setting;
      setting.steps.push(await lab.run(STEPS, workers, steps));
      setting.pairs.push(await lab.run(PAIRS, workers, pairs));
      setting.atOnce.push(await lab.run(AT_ONCE, workers, pairs));
    }
  }
  await lab.close();
  return settings;
}
