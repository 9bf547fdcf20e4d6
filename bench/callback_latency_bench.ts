/**
 * "RCU for low latency" (Dipankar Sarma, 2004): how late a timer is in the
 * thread that runs callbacks, when they run as they become ready, 16 at a time,
 * or in another thread.
 *
 * The tables at the end are the measurement. The rows of `deno bench` show how
 * long an update takes that finds thousands of frees ready.
 */
import { Rcu } from "../mod.ts";
import { inText } from "./_findings.ts";
import {
  callbackLatency,
  CONTENDERS,
  createDomain,
} from "./_latency_figures.ts";
import { BURST, OBJECT } from "./_latency_load.ts";
import { turn } from "./_measure.ts";
import { count, printAtEnd, Progress } from "./_report.ts";
import { Thread } from "./_thread.ts";

/** Frees of an update: enough for its thread to look at what is ready. */
const UPDATE = 128;

const findings = await (async () => {
  const steps = callbackLatency.steps({ quick: false });
  await using progress = new Progress("callback latency", steps);
  return await callbackLatency.run({
    quick: false,
    onStep: (doing) => progress.step(doing),
  });
})();

const reclaimer = new Thread(import.meta.resolve("./_latency_load.ts"));

for (const { name, callbacks, plain } of CONTENDERS) {
  if (plain) continue;
  const rcu = createDomain(callbacks);
  const reader = Rcu.attach(rcu.handle);
  if (callbacks.mode === "offloaded") {
    reclaimer.call("reclaimer", rcu.handle).catch(() => {});
  }
  const defer = (frees: number) => {
    for (let i = 0; i < frees; i++) rcu.deferFree(rcu.memory.allocate(OBJECT));
  };
  Deno.bench({
    name,
    group: `${UPDATE} deferFrees that find ${count(BURST)} ready`,
    baseline: callbacks.mode === "immediate",
    n: 20,
    warmup: 3,
    fn: async (bench) => {
      // In another turn than the last update.
      await turn();
      const section = reader.readLock();
      defer(BURST);
      section[Symbol.dispose]();
      reader.threadOffline();
      bench.start();
      defer(UPDATE);
      bench.end();
      await rcu.barrier();
    },
  });
}

printAtEnd(() => inText(findings));
globalThis.addEventListener("unload", () => reclaimer[Symbol.dispose]());
