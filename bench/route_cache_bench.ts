/**
 * The experiment of 2002: packets of 32 flows through one route cache, under
 * RCU and under the locks that RCU replaced, measured with what RCU itself
 * costs ("8-CPU (SMP) #s for lockfree rtcache", Dipankar Sarma, May 2002).
 *
 * The report at the end is the measurement: all contenders take turns. The rows
 * of `deno bench` show the figure that matters one contender after the other.
 */
import { Rcu } from "../mod.ts";
import { consume } from "./_measure.ts";
import { printAtEnd, Progress } from "./_report.ts";
import { type Cell, Lab, SITUATIONS } from "./_route_figures.ts";
import { type Figures, report } from "./_route_report.ts";
import { BATCH } from "./_route_traffic.ts";
import { CONTENDERS, loadFib, RCU, SETTINGS } from "./_route_world.ts";

const ROUNDS = 7;
/** Warming up, in ms: each setting. */
const WARM_UP = 2500;
/** Repeating what did not count, in ms: each setting. */
const PATIENCE = 2500;
/** When a setting gets no further rounds, in ms: where others have the cores, each takes longer. */
const TIME = 9000;
/** Measuring what RCU costs, in ms: each setting. */
const OVERHEAD = 1000;

const rcu = Rcu.create({ name: "measuring", capacity: 2 ** 28 });

const { lab, prefixes, figures } = await (async () => {
  const STEPS = 2 + SETTINGS.length * 3;
  await using progress = new Progress("route cache", STEPS);
  const loaded = await loadFib(rcu, (doing) => progress.step(doing));
  const figures: Figures[] = [];
  let lab: Lab | undefined;
  for (const [setting, { name }] of SETTINGS.entries()) {
    await lab?.close();
    progress.step(`${name}: warming 11 threads up`);
    lab = await Lab.open(rcu, loaded, setting);
    lab.warmUp(WARM_UP);
    const before = lab.states();
    progress.step(`${name}: ${ROUNDS} rounds`);
    const cells = measureAll(lab);
    const after = lab.states();
    progress.step(`${name}: what RCU itself costs`);
    const overhead = await lab.overhead(OVERHEAD);
    const { repeated } = lab;
    figures.push({ setting, cells, overhead, before, after, repeated });
  }
  return { lab: lab!, prefixes: loaded.prefixes.address.length, figures };
})();

function measureAll(lab: Lab): Cell[][] {
  const cells: Cell[][] = SITUATIONS.map(() =>
    CONTENDERS.map(() => ({ search: [], whole: [], found: [] }))
  );
  const patience = PATIENCE / ROUNDS / SITUATIONS.length / CONTENDERS.length;
  const start = performance.now();
  for (let round = 0; round < ROUNDS; round++) {
    if (performance.now() - start > TIME) break;
    for (const [n, situation] of SITUATIONS.entries()) {
      for (let i = 0; i < CONTENDERS.length; i++) {
        const contender = (i + round) % CONTENDERS.length;
        lab.measure(contender, situation, cells[n][contender], patience);
      }
    }
  }
  return cells;
}

/** Batches of each worker in an iteration of `deno bench`. */
const BATCHES = 250;

for (const workers of [2, 1]) {
  for (const [contender, name] of CONTENDERS.entries()) {
    const each = workers === 2 ? "each of 2 workers" : "1 worker";
    const packets = (BATCHES * BATCH).toLocaleString("en");
    Deno.bench({
      name,
      group: `${packets} packets by ${each}, updater, ${SETTINGS.at(-1)!.name}`,
      baseline: contender === RCU,
      fn: () => {
        lab.select(contender, { workers, updater: true }, "burst");
        lab.burst(contender, workers, BATCHES);
        consume(workers);
      },
    });
  }
}

printAtEnd(() => report(prefixes, figures));
globalThis.addEventListener("unload", () => lab.stop());
