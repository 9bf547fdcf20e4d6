/** Takes the figures of the route-cache benchmark. */
import process from "node:process";
import type { Rcu } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import {
  RouteCache,
  type RouteCacheStats,
} from "../src/routing/route_cache.ts";
import type { NeighborTableStats } from "../src/routing/neighbor_table.ts";
import { Burst, Log, summarize } from "./_route_log.ts";
import { type Cost, costsSince, createCosts } from "./_route_overhead.ts";
import { type Mode, taskOf, updateOf } from "./_route_threads.ts";
import {
  CONTENDERS,
  type LoadedFib,
  makeWorld,
  openTables,
  PRIVATE,
  RCU,
  type World,
} from "./_route_world.ts";
import { IDLE, Peer } from "./_workers.ts";

const THREADS = import.meta.resolve("./_route_threads.ts");

/** Two workers of a contender. */
interface Pair {
  peers: Peer[];
  logs: Log[];
  burst: Burst;
}

/** Who forwards beside whom. */
export interface Situation {
  workers: number;
  updater: boolean;
}

/** All of them, in the order of the report; the last one is where the bars are. */
export const SITUATIONS: readonly Situation[] = [1, 2].flatMap((workers) =>
  [false, true].map((updater) => ({ workers, updater }))
);

/** What a contender did in a situation: one number a round, NaN where it got no cores. */
export interface Cell {
  /** Nanoseconds a packet: the search alone, and the whole. */
  search: number[];
  whole: number[];
  /** The share of packets that the search found. */
  found: number[];
}

/** What a shared cache holds and has done. */
export interface State {
  cache: RouteCacheStats;
  neighbors: NeighborTableStats;
}

/** What RCU cost, with two workers and the updater. */
export interface Overhead {
  costs: Cost[];
  /** What of that the reclaimer's thread did; empty without one. */
  reclaimer: Cost[];
  lookups: number;
  seconds: number;
  gracePeriods: number;
  /** The most callbacks that were seen waiting, and bytes. */
  pending: number;
  deferred: number;
}

/** How long a contender runs before it is measured, and while it is, in ms. */
const SETTLE = 10;
const RUN = 25;
/** The part of a run that is to be left of each worker, for the run to count. */
const LEAST_SHARE = 0.2;
/** After how long a run with nothing left of a worker is given up, in ms. */
const GIVE_UP = 200;

/** Who is in a laboratory. */
export interface LabOptions {
  /** Those that are measured. @default {all of them} */
  contenders?: readonly number[];
  /** Whether the threads' event loops turn, as policies that use timers need it. @default {false} */
  inTurns?: boolean;
}

/** The thread that reclaims, and what it has spent. */
interface Reclaimer {
  peer: Peer;
  costs: SharedArrayBuffer;
}

/** The caches of a setting, and the threads that use them. */
export class Lab {
  /** Runs that did not count. */
  repeated = 0;
  readonly #rcu: Rcu;
  readonly #world: World;
  readonly #inTurns: boolean;
  readonly #pairs: Map<number, Pair>;
  readonly #updater: Peer;
  readonly #reclaimer: Reclaimer | undefined;

  private constructor(
    rcu: Rcu,
    world: World,
    inTurns: boolean,
    pairs: Map<number, Pair>,
    updater: Peer,
    reclaimer: Reclaimer | undefined,
  ) {
    this.#rcu = rcu;
    this.#world = world;
    this.#inTurns = inTurns;
    this.#pairs = pairs;
    this.#updater = updater;
    this.#reclaimer = reclaimer;
  }

  static async open(
    rcu: Rcu,
    loaded: LoadedFib,
    setting: number,
    { contenders = [...CONTENDERS.keys()], inTurns = false }: LabOptions = {},
  ): Promise<Lab> {
    const world = makeWorld(rcu, loaded, setting);
    const offloaded = membershipOf(rcu, "measure").handover !== undefined;
    const reclaimer = offloaded ? await startReclaimer(world) : undefined;
    const pairs = await Promise.all(
      contenders.map(async (contender) =>
        [contender, await startPair(world, contender, inTurns)] as const
      ),
    );
    const updater = await Peer.start(THREADS, "updatingPeer", {
      world,
      inTurns,
    });
    return new Lab(rcu, world, inTurns, new Map(pairs), updater, reclaimer);
  }

  #pair(contender: number): Pair {
    const pair = this.#pairs.get(contender);
    if (pair === undefined) throw new RangeError(`No contender ${contender}`);
    return pair;
  }

  /** Has a contender run from now on, and nobody else. */
  select(contender: number, { workers, updater }: Situation, mode: Mode): void {
    for (const [n, { peers }] of this.#pairs) {
      if (n !== contender) { for (const peer of peers) peer.select(IDLE); }
    }
    for (const [n, peer] of this.#pair(contender).peers.entries()) {
      peer.select(n < workers ? taskOf(workers === 1, mode) : IDLE);
    }
    this.#updater.select(updater ? updateOf(contender) : IDLE);
  }

  /** Has everybody rest. */
  rest(): void {
    this.#updater.select(IDLE);
    for (const { peers } of this.#pairs.values()) {
      for (const peer of peers) peer.select(IDLE);
    }
  }

  /** Lets all contenders fill their caches, and their code be compiled. */
  warmUp(ms: number): void {
    for (const contender of this.#pairs.keys()) {
      for (const workers of [1, 2]) {
        const mode = workers === 1 ? "search" : "whole";
        this.select(contender, { workers, updater: true }, mode);
        nap(ms / 2 / this.#pairs.size);
      }
    }
    this.rest();
  }

  /**
   * Runs a situation once and adds what came out to a cell. Runs are repeated,
   * `patience` ms in all, in which a worker had too little of a core.
   */
  measure(
    contender: number,
    situation: Situation,
    cell: Cell,
    patience: number,
  ): void {
    const search = this.#run(contender, situation, "search", patience / 2);
    cell.search.push(search.ns);
    cell.found.push(search.found);
    const whole = this.#run(contender, situation, "whole", patience / 2);
    cell.whole.push(whole.ns);
  }

  #run(
    contender: number,
    situation: Situation,
    mode: Mode,
    patience: number,
  ): { ns: number; found: number } {
    const logs = this.#pair(contender).logs.slice(0, situation.workers);
    const start = performance.now();
    for (;; this.repeated++) {
      this.select(contender, situation, mode);
      nap(SETTLE);
      const marks = logs.map((log) => log.mark());
      nap(RUN);
      this.rest();
      const logged = logs.map((log, n) => log.since(marks[n]));
      const parts = logged.map(({ durations }) => summarize(durations));
      const least = Math.min(...parts.map(({ ms }) => ms));
      const took = performance.now() - start;
      if (least >= LEAST_SHARE * RUN || (least > 0 && took > patience)) {
        const found = mean(logged.map(({ found }) => found));
        return { ns: mean(parts.map(({ ns }) => ns)), found };
      }
      if (took > GIVE_UP) return { ns: NaN, found: NaN };
    }
  }

  /** The workers of a contender forward some batches each. */
  burst(contender: number, workers: number, batches: number): void {
    this.#pair(contender).burst.run(workers, batches);
  }

  /** What the shared caches hold and have done, by contender. */
  states(): State[] {
    const states = CONTENDERS.keys().filter((n) => n < PRIVATE).map((n) => {
      const { name, options } = openTables(this.#rcu, this.#world.setting, n);
      return {
        cache: RouteCache.open(this.#rcu, name, options).stats(),
        neighbors: options.neighbors.stats(),
      };
    }).toArray();
    this.#rcu.threadOffline();
    return states;
  }

  /**
   * Forwards for some ms under RCU, with two workers and the updater, and times
   * no call.
   */
  forward(ms: number): Forwarded {
    this.select(RCU, { workers: 2, updater: true }, "forward");
    nap(ms / 3);
    const { peers } = this.#pair(RCU);
    const counts = peers.map((peer) => peer.count);
    const usage = process.cpuUsage();
    const start = performance.now();
    nap(ms);
    const lookups = countSince(peers, counts);
    const took = performance.now() - start;
    const { user, system } = process.cpuUsage(usage);
    this.rest();
    return {
      rate: lookups * 1000 / took,
      cpu: (user + system) * 1000 / lookups,
    };
  }

  /** Measures for some ms what RCU costs, in threads of their own. */
  async overhead(ms: number): Promise<Overhead> {
    const own = [0, 1, 2].map(createCosts);
    const inTurns = this.#inTurns;
    const { peers } = await startPair(this.#world, RCU, inTurns, own);
    const updater = await Peer.start(THREADS, "updatingPeer", {
      world: this.#world,
      inTurns,
      costs: own[2],
    });
    const others = this.#reclaimer === undefined ? [] : [this.#reclaimer.costs];
    for (const peer of peers) peer.select(taskOf(false, "forward"));
    updater.select(updateOf(RCU));
    nap(ms / 3);
    const before = own.map(copyOf);
    const othersBefore = others.map(copyOf);
    const counts = peers.map((peer) => peer.count);
    const periods = this.#rcu.stats().gracePeriods.completed;
    let pending = 0;
    let deferred = 0;
    const start = performance.now();
    let took = 0;
    while ((took = performance.now() - start) < ms) {
      nap(3);
      const { callbacks, memory } = this.#rcu.stats();
      this.#rcu.threadOffline();
      pending = Math.max(pending, callbacks.pending);
      deferred = Math.max(deferred, memory.deferred);
    }
    const lookups = countSince(peers, counts);
    const costs = costsSince(
      [...own, ...others],
      [...before, ...othersBefore],
    );
    const reclaimer = others.length === 0
      ? []
      : costsSince(others, othersBefore);
    const completed = this.#rcu.stats().gracePeriods.completed - periods;
    this.#rcu.threadOffline();
    await Promise.all(
      [...peers, updater].map((peer) => peer[Symbol.asyncDispose]()),
    );
    return {
      costs,
      reclaimer,
      lookups,
      seconds: took / 1000,
      gracePeriods: completed,
      pending,
      deferred,
    };
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    const peers = this.#pairs.values().flatMap(({ peers }) => peers);
    await Promise.all(
      [this.#updater, ...peers].map((peer) => peer[Symbol.asyncDispose]()),
    );
    await this.#reclaimer?.peer[Symbol.asyncDispose]();
  }

  /** Ends all threads without waiting. */
  stop(): void {
    this.#updater.stop();
    for (const { peers } of this.#pairs.values()) {
      for (const peer of peers) peer.stop();
    }
    this.#reclaimer?.peer.stop();
  }
}

/** How forwarding went while no call was timed. */
export interface Forwarded {
  /** Lookups a second, of both workers. */
  rate: number;
  /** Processor time of all threads of the process for a lookup, in ns. */
  cpu: number;
}

function countSince(peers: Peer[], counts: number[]): number {
  return peers.reduce(
    (sum, { count }, n) => sum + ((count - counts[n]) >>> 0),
    0,
  );
}

function copyOf(costs: SharedArrayBuffer): Float64Array {
  return new Float64Array(costs).slice();
}

async function startReclaimer(world: World): Promise<Reclaimer> {
  const costs = createCosts();
  const peer = await Peer.start(THREADS, "reclaimingPeer", { world, costs });
  return { peer, costs };
}

async function startPair(
  world: World,
  contender: number,
  inTurns: boolean,
  costs?: SharedArrayBuffer[],
): Promise<Pair> {
  const logs = [0, 1].map(() => Log.create());
  const burst = Burst.create();
  const peers = await Promise.all(
    logs.map((_, worker) =>
      Peer.start(THREADS, "forwardingPeer", {
        world,
        contender,
        worker,
        logs,
        burst,
        inTurns,
        ...(costs === undefined ? {} : { costs: costs[worker] }),
      })
    ),
  );
  return {
    peers,
    logs: logs.map((log) => new Log(log)),
    burst: new Burst(burst),
  };
}

const napping = new Int32Array(new SharedArrayBuffer(4));

function nap(ms: number): void {
  Atomics.wait(napping, 0, 0, ms);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
