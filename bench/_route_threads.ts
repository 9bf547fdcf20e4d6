/** What the threads of the route-cache benchmark run. */
import { Rcu, runReclaimer } from "../mod.ts";
import { Fib } from "../src/routing/fib.ts";
import { consume } from "./_measure.ts";
import { openRoutes, type Routes } from "./_route_contenders.ts";
import { instrument } from "./_route_overhead.ts";
import { Burst, Log } from "./_route_log.ts";
import { BATCH, STREAM } from "./_route_traffic.ts";
import {
  CONTENDERS,
  MTU,
  PRIVATE,
  routeTo,
  type World,
} from "./_route_world.ts";
import { obey, obeyInTurns, paced, untilStopped } from "./_workers.ts";

/** What a forwarding thread does with its packets. */
export const MODES = ["search", "whole", "forward", "burst"] as const;
export type Mode = typeof MODES[number];

/** The number of a task: whose packets, and how. */
export function taskOf(alone: boolean, mode: Mode): number {
  return 1 + MODES.indexOf(mode) + (alone ? MODES.length : 0);
}

/** What a forwarding thread is told. */
export interface ForwarderOptions {
  world: World;
  contender: number;
  /** 0 or 1. */
  worker: number;
  /** The logs of both. */
  logs: SharedArrayBuffer[];
  burst: SharedArrayBuffer;
  /** Whether its event loop turns. */
  inTurns: boolean;
  /** Where the costs of RCU go, if they are to be measured. */
  costs?: SharedArrayBuffer;
}

/** A thread that forwards packets. */
export async function forwardingPeer(
  { world, contender, worker, logs, burst, inTurns, costs }: ForwarderOptions,
  control: Int32Array,
): Promise<void> {
  const publish = costs === undefined ? () => {} : instrument(costs);
  using rcu = Rcu.attach(world.handle, {
    name: `${CONTENDERS[contender]}, ${worker}`,
  });
  const [own, other] = [logs[worker], logs[1 - worker]].map((log) =>
    new Log(log)
  );
  const forwarder = openForwarder(
    openRoutes(rcu, world, contender),
    own,
    other,
  );
  const { whole, halves } = world.traffic;
  const together = navigator.hardwareConcurrency > 1;
  const bursts = new Burst(burst);
  await (inTurns ? obeyInTurns : obey)(control, (task) => {
    const alone = task > MODES.length;
    const packets = alone ? whole : halves[worker];
    const mode = MODES[(task - 1) % MODES.length];
    if (mode === "search" || mode === "whole") {
      return forwarder.measure(packets, mode, alone || !together);
    }
    if (mode === "forward") {
      const batches = 8;
      for (let i = 0; i < batches; i++) forwarder.forward(packets);
      publish();
      return batches * BATCH;
    }
    rcu.threadOffline();
    const batches = bursts.next(worker);
    for (let i = 0; i < batches; i++) forwarder.forward(packets);
    if (batches > 0) bursts.done();
    return batches * BATCH;
  }, () => rcu.threadOffline());
}

/** How long a slice is at least, in ms, and at most, in batches. */
const SLICE = 0.05;
const MOST = 64;
/** Longer, in ms, and another thread had the core in between. */
const LONGEST = 0.5;

/** Sends streams of packets through a contender. */
function openForwarder(routes: Routes, own: Log, other: Log) {
  const durations = new Float64Array(MOST);
  let at = 0;

  /** Searches for a batch; returns how many packets were found. */
  const search = (packets: Int32Array) => {
    const from = at;
    let found = 0;
    routes.begin();
    for (let i = from; i < from + BATCH; i++) {
      if (routes.search(packets[i])) found++;
    }
    routes.end();
    return found;
  };

  /** Forwards what the search of a batch has not found. */
  const makeGood = (packets: Int32Array) => {
    const from = at;
    let links = 0;
    routes.begin();
    for (let i = from; i < from + BATCH; i++) {
      if (!routes.search(packets[i])) {
        links = (links + routes.lookup(packets[i])) | 0;
      }
    }
    routes.end();
    at = (from + BATCH) % STREAM;
    consume(links);
  };

  /** Forwards a batch. */
  const forward = (packets: Int32Array) => {
    const from = at;
    let links = 0;
    routes.begin();
    for (let i = from; i < from + BATCH; i++) {
      links = (links + routes.lookup(packets[i])) | 0;
    }
    routes.end();
    at = (from + BATCH) % STREAM;
    consume(links);
  };

  /**
   * Takes the time of some batches: of all that forwarding is, or of the
   * searches alone. Misses are made good then in their own time, so that the
   * cache sees all packets.
   *
   * Where two are to run at the same time, what counts are slices in which both
   * did: the other one got on too, and this one did not lose its core.
   */
  const measure = (
    packets: Int32Array,
    mode: "search" | "whole",
    alone: boolean,
  ) => {
    const others = other.beats;
    const start = performance.now();
    let found = 0;
    let count = 0;
    let now = start;
    while (count < MOST && now - start < SLICE) {
      if (mode === "whole") forward(packets);
      else found += search(packets);
      const end = performance.now();
      durations[count++] = end - now;
      now = end;
      if (mode === "search") {
        makeGood(packets);
        now = performance.now();
      }
      own.beat();
    }
    const beats = (other.beats - others) | 0;
    if (alone || (beats * 4 >= count && now - start < LONGEST)) {
      own.add(durations, count, found);
    }
    return count * BATCH;
  };

  return { forward, measure };
}

/** Steps of the updater a second. */
export const RATE = 1000;
/** One step in so many changes the Fib; the others bring a newcomer in. */
export const CHANGES_EVERY = 10;

/** What the updating thread is told. */
export interface UpdaterOptions {
  world: World;
  inTurns: boolean;
  costs?: SharedArrayBuffer;
}

/** The number of the updater's task. */
export function updateOf(contender: number): number {
  return 1 + contender;
}

/**
 * A thread that changes routes of destinations that are being sent to, and
 * brings in destinations that nobody has sent to yet; insertions that find the
 * cache too large collect. The private maps have nothing that it could get at.
 */
export async function updatingPeer(
  { world, inTurns, costs }: UpdaterOptions,
  control: Int32Array,
): Promise<void> {
  const publish = costs === undefined ? () => {} : instrument(costs);
  using rcu = Rcu.attach(world.handle, { name: "updater" });
  const caches = CONTENDERS.map((_, n) => openRoutes(rcu, world, n));
  const fib = Fib.open(rcu, "fib");
  const { newcomers, changing } = world.traffic;
  const { address, length, asn } = changing;
  let links = 0;
  const work = paced(control, RATE, (task) => {
    const step = Atomics.add(world.steps, 0, 1);
    if (step % CHANGES_EVERY === 0) {
      const n = step / CHANGES_EVERY;
      const i = n % address.length;
      // Another one each time that it comes around.
      const mtu = MTU - 1 - Math.floor(n / address.length) % 2;
      fib.insert(
        { address: address[i], length: length[i] },
        routeTo(asn[i], mtu),
      );
      return;
    }
    const contender = task - 1;
    if (contender === PRIVATE) return;
    caches[contender].begin();
    links += caches[contender].lookup(newcomers[step % newcomers.length]);
    caches[contender].end();
  });
  await (inTurns ? obeyInTurns : obey)(control, (task) => {
    const done = work(task);
    // It naps between its steps, and a thread that naps must not hold up grace periods.
    rcu.threadOffline();
    publish();
    return done;
  }, () => rcu.threadOffline());
  consume(links);
}

/** How often the reclaimer's costs are copied, in ms. */
const PUBLISHED = 2;

/** The thread that reclaims, if the policy is to have one; its costs are measured. */
export async function reclaimingPeer(
  { world, costs }: { world: World; costs: SharedArrayBuffer },
  control: Int32Array,
): Promise<void> {
  const publish = instrument(costs);
  const stop = new AbortController();
  const { signal } = stop;
  const ended = runReclaimer(world.handle, { signal });
  // It ends by itself only if it fails.
  await Promise.race([ended, untilStopped(control, PUBLISHED, publish)]);
  stop.abort();
  await ended;
}
