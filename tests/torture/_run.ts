// One run: a domain, its threads, and what must be true afterwards.

import { Rcu } from "../../mod.ts";
import { withDomain } from "../_audit.ts";
import { settle } from "../_settle.ts";
import type { TestWorker } from "../_workers.ts";
import { Control, later, type Length } from "./_control.ts";
import { Places } from "./_element.ts";
import { type Fault, hasFault } from "./_faults.ts";
import { Random } from "./_random.ts";
import type { Part, Role } from "./_roles.ts";
import type { Setting } from "./_settings.ts";
import { add, count, emptyTally, isBad, type Tally } from "./_tally.ts";
import { Traffic } from "./_traffic.ts";
import type { Orders } from "./_worker.ts";

/** The module of the workers. */
export const WORKER = "torture/_worker.ts";
/** One worker each. Readers first: their reader ids are the lowest. */
export const CREW: readonly Role[] = [
  "reader",
  "reader",
  "reader",
  "updater",
  "updater",
  "faker",
  "traffic",
  "joiner",
];
/** Those that find a planted fault. Maps would not survive one. */
export const SMALL_CREW: readonly Role[] = [
  "reader",
  "reader",
  "updater",
  "faker",
  "joiner",
];

/** Most slots that nobody uses, so that readers lie at different places in a tree. */
const SITTERS = 16;
/** How many callbacks are overload: either it comes all the time, or never. */
const HIGH_WATER = [64, 10_000];
/** Longest time between two stops of all, in ms. */
const STUTTER = 150;

/** A run that has gone wrong: what it has left is not looked at. */
class Spoilt extends Error {}

/**
 * Tortures a domain.
 *
 * @param workers One for each of the crew.
 * @param crew Their roles.
 * @param setting The domain.
 * @param seed What decides.
 * @param length How long.
 * @param fault What is planted first.
 * @returns What was found; nothing is left of the run unless that is bad.
 */
export async function torture(
  workers: readonly TestWorker[],
  crew: readonly Role[],
  { options, debug }: Setting,
  seed: number,
  length: Length,
  fault?: Fault,
): Promise<Tally> {
  const tally = emptyTally();
  const traffic = crew.includes("traffic");
  const parts = partsOf(crew);
  const random = new Random(seed, -1);
  const scenario = async (rcu: Rcu): Promise<void> => {
    using sitters = new DisposableStack();
    const count = fault === undefined ? random.below(SITTERS) : 0;
    for (let i = 0; i < count; i++) sitters.use(Rcu.attach(rcu.handle));
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      tally.errors.push(`"error" event: ${(event as ErrorEvent).message}`);
    });
    const pointers = Places.create(rcu);
    for (const [i, worker] of workers.entries()) {
      if (fault !== undefined && hasFault(crew[i], fault)) {
        await worker.call("plant", fault);
      }
      await worker.call("join", { handle: rcu.handle, part: parts[i] });
    }
    const control = Control.start(length);
    const orders: Orders = { control: control.parts, seed, pointers, traffic };
    const [tallies] = await Promise.all([
      Promise.all(
        workers.map((worker) => worker.call<Tally>("play", orders)),
      ),
      stutter(control, workers.length, random, tally),
    ]);
    for (const one of tallies) add(tally, one);
    if (isBad(tally)) throw new Spoilt();
    if (traffic) Traffic.reset(rcu);
    rcu.memory.free(pointers);
    await settle(rcu);
    noteStats(rcu, tally);
  };
  const before = (rcu: Rcu): void => {
    Traffic.open(rcu);
    Places.openCells(rcu);
  };
  try {
    // What is throttled must not pile up, or a barrier takes longer than the run.
    const highWater = options.callbacks?.mode === "throttled"
      ? HIGH_WATER[0]
      : random.pick(HIGH_WATER);
    const domain = {
      maxReaders: 64,
      debug,
      // What is freed too early shows itself either way.
      poisons: !debug,
      highWater,
      ...options,
    };
    await withDomain(domain, scenario, before);
  } catch (error) {
    if (!(error instanceof Spoilt)) tally.errors.push(`afterwards: ${error}`);
  }
  return tally;
}

function partsOf(crew: readonly Role[]): Part[] {
  return crew.map((role, i) => ({
    role,
    me: crew.slice(0, i).filter((other) => other === role).length,
    of: crew.filter((other) => other === role).length,
  }));
}

/** Has everybody stand still now and then. */
async function stutter(
  control: Control,
  threads: number,
  random: Random,
  tally: Tally,
): Promise<void> {
  while (!control.over) {
    const stops = await control.stopAll(threads);
    count(tally, stops ? "stops" : "partial stops");
    const next = Date.now() + random.below(STUTTER);
    while (!control.over && Date.now() < next) await later(5);
  }
}

function noteStats(rcu: Rcu, tally: Tally): void {
  const { gracePeriods, callbacks } = rcu.stats();
  count(tally, "periods", gracePeriods.completed);
  count(tally, "invoked", callbacks.invoked);
}
