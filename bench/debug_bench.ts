/**
 * What debug mode costs: the same acts with it and without.
 *
 * The table at the end is the measurement: a domain of each kind, in a thread
 * of its own, so that neither teaches the engine what the other one does; they
 * take turns, and ratios are those of batches that ran one after the other. The
 * rows of `deno bench` show, in one thread, those acts that take no stack down:
 * how often one is taken depends on what else a thread does.
 */
import { type ActName, ACTS, openActs } from "./_debug_costs.ts";
import { consume, median, ratio, type Series } from "./_measure.ts";
import { printAtEnd, Progress, short, spread, table } from "./_report.ts";
import { Thread } from "./_thread.ts";

const ROUNDS = 25;
/** Rounds before those that count. */
const WARM_UP = 3;
/** The acts that take no stack down. */
const WITHOUT_STACK = ACTS.slice(0, 4);
/** Acts an iteration of `deno bench`. */
const FEW = 100;

const COSTS = import.meta.resolve("./_debug_costs.ts");

interface Compared {
  base: Series;
  debug: Series;
}

function empty(): Series {
  return Object.fromEntries(ACTS.map((name) => [name, []]));
}

/** Measures each act in both domains, in turn. */
async function compare(step: (doing: string) => void): Promise<Compared> {
  using base = new Thread(COSTS);
  using debug = new Thread(COSTS);
  const found: Compared = { base: empty(), debug: empty() };
  const threads = { base, debug };
  await base.call("open", { debug: false });
  await debug.call("open", { debug: true });
  const measure = async (kind: keyof Compared, name: ActName, out: boolean) => {
    const time = await threads[kind].call<number>("measure", { name });
    if (out) found[kind][name].push(time);
  };
  for (const name of ACTS) {
    step(name);
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const counts = round >= WARM_UP;
      const order = ["base", "debug"] as const;
      for (const kind of round % 2 === 0 ? order : order.toReversed()) {
        await measure(kind, name, counts);
      }
    }
  }
  return found;
}

const compared = await (async () => {
  await using progress = new Progress("debug mode", ACTS.length);
  return await compare((doing) => progress.step(doing));
})();

const modes = { "without debug": openActs(false), "debug": openActs(true) };
for (const name of WITHOUT_STACK) {
  for (const [mode, acts] of Object.entries(modes)) {
    Deno.bench({
      name: mode,
      group: `${FEW} times ${name}`,
      baseline: mode === "without debug",
      fn: () => consume(acts[name](FEW)),
    });
  }
}

printAtEnd(() => {
  const rows = ACTS.map((name) => [
    name,
    short(median(compared.base[name])),
    short(median(compared.debug[name])),
    spread(ratio(compared.debug[name], compared.base[name])),
  ]);
  return `${
    table([["debug mode", "without, ns", "with, ns", "× without"], ...rows])
  }

Medians of rounds in which both took turns, with the quartiles of the ratios.`;
});
