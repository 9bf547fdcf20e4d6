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
import { atFullLength, printAtEnd } from "./_report.ts";
import { measureRoutes, routeCache, routeSteps } from "./_route_experiment.ts";
import { report } from "./_route_report.ts";
import { BATCH } from "./_route_traffic.ts";
import { CONTENDERS, RCU, SETTINGS } from "./_route_world.ts";

const rcu = Rcu.create({ name: "measuring", capacity: 2 ** 28 });

const { lab, loaded, figures } = await atFullLength(
  { ...routeCache, steps: () => routeSteps(false) },
  (options) => measureRoutes(rcu, options),
);

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

printAtEnd(() => report(loaded.prefixes.address.length, figures));
globalThis.addEventListener("unload", () => lab.stop());
