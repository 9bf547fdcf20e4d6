/** The experiment of 2002: one route cache, under RCU and under locks. */
import { Rcu } from "../mod.ts";
import type { Experiment, RunOptions } from "./_experiment.ts";
import {
  type Cell,
  Lab,
  type Situation,
  SITUATIONS,
} from "./_route_figures.ts";
import { type Figures, routeFindings } from "./_route_report.ts";
import { measureSystems, SYSTEM_COUNT } from "./_route_systems.ts";
import {
  CONTENDERS,
  type LoadedFib,
  loadFib,
  PRIVATE,
  RCU,
  RW_LOCK,
  SETTINGS,
} from "./_route_world.ts";

/** How long each setting is measured. Times are in ms. */
interface Length {
  rounds: number;
  /** Warming up. */
  warmUp: number;
  /** Repeating what did not count. */
  patience: number;
  /** When there are no further rounds: where others have the cores, each takes longer. */
  time: number;
  /** Measuring what RCU costs. */
  overhead: number;
  /** Indices of {@linkcode SETTINGS}. */
  settings: readonly number[];
  situations: readonly Situation[];
  contenders: readonly number[];
}

const FULL: Length = {
  rounds: 7,
  warmUp: 2500,
  patience: 2500,
  time: 9000,
  overhead: 1000,
  settings: [...SETTINGS.keys()],
  situations: SITUATIONS,
  contenders: [...CONTENDERS.keys()],
};
const QUICK: Length = {
  rounds: 8,
  warmUp: 700,
  patience: 400,
  time: 2000,
  overhead: 300,
  // The two of 2002.
  settings: [0, SETTINGS.length - 1],
  situations: SITUATIONS.slice(-1),
  // What was compared in 2002, and what a thread alone would do.
  contenders: [RCU, RW_LOCK, PRIVATE],
};

/** Packets of 32 flows through one route cache, with what RCU itself costs. */
export const routeCache: Experiment = {
  name: "route_cache",
  title: "Route cache: the experiment of 2002",
  about: "Packets of 32 flows through one route cache, under RCU and under " +
    "the locks that RCU replaced, measured with what RCU itself costs " +
    "(“8-CPU (SMP) #s for lockfree rtcache”, Dipankar Sarma, May 2002, which " +
    "found the base 2.2 times as slow, and 1.4 times where the neighbour " +
    "table overflows).",
  command: "deno task bench:all bench/route_cache_bench.ts",
  routes: true,
  steps: ({ quick }) => routeSteps(quick) + (quick ? 0 : SYSTEM_COUNT),
  async run(options) {
    using rcu = Rcu.create({ name: "measuring", capacity: 2 ** 28 });
    const { lab, loaded, figures } = await measureRoutes(rcu, options);
    await lab.close();
    // The benchmark and a look are about the default, scan and immediate.
    const systems = options.quick
      ? []
      : await measureSystems(loaded, options.onStep);
    return routeFindings(loaded.prefixes.address.length, figures, systems);
  },
};

/** How many steps {@linkcode measureRoutes} has. */
export function routeSteps(quick: boolean): number {
  return 2 + (quick ? QUICK : FULL).settings.length * 3;
}

/** Takes the figures; returns the laboratory of the last setting too, still open. */
export async function measureRoutes(
  rcu: Rcu,
  { quick, onStep }: RunOptions,
): Promise<{ lab: Lab; loaded: LoadedFib; figures: Figures[] }> {
  const length = quick ? QUICK : FULL;
  const loaded = await loadFib(rcu, onStep);
  const figures: Figures[] = [];
  let lab: Lab | undefined;
  for (const setting of length.settings) {
    const { name } = SETTINGS[setting];
    await lab?.close();
    const { contenders } = length;
    onStep(`${name}: warming ${2 * contenders.length + 1} threads up`);
    lab = await Lab.open(rcu, loaded, setting, { contenders });
    lab.warmUp(length.warmUp);
    const before = lab.states();
    onStep(`${name}: ${length.rounds} rounds`);
    const cells = measureAll(lab, length);
    const after = lab.states();
    onStep(`${name}: what RCU itself costs`);
    const overhead = await lab.overhead(length.overhead);
    const { repeated } = lab;
    const { situations } = length;
    figures.push({
      setting,
      situations,
      cells,
      overhead,
      before,
      after,
      repeated,
    });
  }
  return { lab: lab!, loaded, figures };
}

function measureAll(
  lab: Lab,
  { rounds, patience, time, situations, contenders }: Length,
): Cell[][] {
  const cells: Cell[][] = situations.map(() =>
    CONTENDERS.map(() => ({ search: [], whole: [], found: [] }))
  );
  const each = patience / rounds / situations.length / contenders.length;
  const start = performance.now();
  for (let round = 0; round < rounds; round++) {
    if (performance.now() - start > time) break;
    for (const [n, situation] of situations.entries()) {
      for (let i = 0; i < contenders.length; i++) {
        const contender = contenders[(i + round) % contenders.length];
        lab.measure(contender, situation, cells[n][contender], each);
      }
    }
  }
  return cells;
}
