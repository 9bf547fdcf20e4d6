/**
 * The denial of service of 2004: a flood of random destinations through the
 * route cache, with each callback policy, in one long turn and in many short
 * ones ("RCU for low latency", Dipankar Sarma).
 *
 * The table at the end is the measurement. The rows of `deno bench` show what
 * lookups cost that all miss, insert and evict.
 */
import { inText } from "./_findings.ts";
import {
  createRouter,
  flood,
  POLICIES,
  readPrefixes,
} from "./_flood_figures.ts";
import { lookUp, LOOKUPS, openCache } from "./_flood_threads.ts";
import { consume } from "./_measure.ts";
import { printAtEnd, Progress } from "./_report.ts";
import { quickTurn, Thread } from "./_thread.ts";

/** Lookups until the chains are as long as they get. */
const FILL = 100_000;
/** Prefixes of the rows' Fib. */
const PREFIXES = 10_000;

const findings = await (async () => {
  const steps = flood.steps({ quick: false });
  await using progress = new Progress("flood", steps);
  return await flood.run({
    quick: false,
    onStep: (doing) => progress.step(doing),
  });
})();

const all = await readPrefixes();
const prefixes = {
  address: all.address.subarray(0, PREFIXES),
  length: all.length.subarray(0, PREFIXES),
  asn: all.asn.subarray(0, PREFIXES),
};
const reclaimer = new Thread(import.meta.resolve("./_flood_threads.ts"));

for (const callbacks of POLICIES) {
  const rcu = createRouter(callbacks, prefixes);
  if (callbacks.mode === "offloaded") {
    reclaimer.call("reclaimer", rcu.handle).catch(() => {});
  }
  const cache = openCache(rcu, "roomy");
  let destination = lookUp(cache, FILL, 1);
  Deno.bench({
    name: callbacks.mode,
    group: `${LOOKUPS} lookups of random destinations, and a turn`,
    baseline: callbacks.mode === "immediate",
    fn: async () => {
      destination = lookUp(cache, LOOKUPS, destination);
      consume(destination);
      await quickTurn();
    },
  });
}

printAtEnd(() => inText(findings));
globalThis.addEventListener("unload", () => reclaimer[Symbol.dispose]());
