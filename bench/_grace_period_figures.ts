/**
 * How long grace periods take, after the kernel's rcuscale: each kind of wait,
 * with few and many registered readers, all idle or one of them busy.
 */
import { Rcu, RcuCell, type RcuHandle, type RcuOptions, u32 } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import {
  consume,
  type Contender,
  interleave,
  type Series,
} from "./_measure.ts";
import { IDLE, obey, Peer } from "./_workers.ts";

const MODULE = import.meta.url;

/** How the end of a grace period is noticed. */
export type Detector = NonNullable<RcuOptions["detector"]>;

/** The ways that are compared. */
export const DETECTORS: readonly Detector[] = ["scan", "classic", "tree"];
/** Readers registered beside the thread that waits. */
export const READERS = [1, 8, 64];
/** What the readers do meanwhile. */
export const STATES = ["idle", "busy"] as const;

export type State = (typeof STATES)[number];

/** What is timed of what blocks the thread. */
export const BLOCKING = [
  "synchronizeSync",
  "synchronizeSync, expedited",
  "startPoll, and poll until it has ended",
  "deferFree and barrierSync",
  "deferFree",
] as const;
/** And of what lets the event loop turn. */
export const TURNING = ["synchronize", "synchronize, expedited"] as const;
/** Those of which polls are counted, too. */
export const POLLING = [BLOCKING[2], ...TURNING] as const;

/** Waits of a run: many where one is too short for the clock. */
const WAITS = { idle: 32, busy: 1 };
/** Frees of a run, which ends with a barrier. */
const FREES = 1024;
/** Reads of a call of the busy reader. */
const READS = 1024;
/** Words of a block. */
const BLOCK = 4;

/** How long each part takes, in ms, and how many rounds the last one has. */
interface Length {
  blocking: Record<State, number>;
  /** Rounds that come before. */
  warmUp: number;
  turning: Record<State, number>;
  /** What the reader does in a round, alone and beside waits. */
  reading: number;
  rounds: number;
}

const FULL: Length = {
  blocking: { idle: 400, busy: 800 },
  warmUp: 20,
  turning: { idle: 50, busy: 250 },
  reading: 20,
  rounds: 7,
};
const QUICK: Length = {
  blocking: { idle: 80, busy: 150 },
  warmUp: 8,
  turning: { idle: 20, busy: 50 },
  reading: 8,
  rounds: 5,
};

/** Nanoseconds a wait, or a free. */
export interface GracePeriodFigures {
  /** By state, then by detector and operation: see {@linkcode title}. */
  series: Record<State, Series>;
  /** How many polls a wait took, likewise. */
  polls: Record<State, Series>;
  /** Reads a second of the busy reader, by detector: undisturbed, and beside endless waits. */
  reads: Record<string, { alone: number[]; besideWaits: number[] }>;
}

/** A detector's name. */
export function nameOf(detector: Detector): string {
  return typeof detector === "string" ? detector : JSON.stringify(detector);
}

/** The name of a series. */
export function title(detector: Detector, operation: string): string {
  return `${nameOf(detector)}: ${operation}`;
}

/** A domain with some readers, one of them in a thread of its own. */
interface Domain {
  detector: Detector;
  rcu: Rcu;
  /** Selects the busy reader's task. */
  task: number;
}

/** The domains of all detectors, and the thread that reads in one of them at a time. */
export class Domains implements AsyncDisposable {
  readonly all: Domain[];
  readonly #idle: Rcu[];
  readonly #reader: Peer;

  private constructor(all: Domain[], idle: Rcu[], reader: Peer) {
    this.all = all;
    this.#idle = idle;
    this.#reader = reader;
  }

  /** Registers so many readers with a domain of each detector. */
  static async open(readers: number): Promise<Domains> {
    const idle: Rcu[] = [];
    const all = DETECTORS.map((detector, n) => {
      const rcu = Rcu.create({
        name: "waiter",
        capacity: 8 * 2 ** 20,
        maxReaders: 128,
        detector,
      });
      RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
      // Several memberships in one thread count as several readers.
      for (let i = 1; i < readers; i++) idle.push(Rcu.attach(rcu.handle));
      return { detector, rcu, task: n + 1 };
    });
    const handles = all.map(({ rcu }) => rcu.handle);
    const reader = await Peer.start(MODULE, "busyReader", handles);
    return new Domains(all, idle, reader);
  }

  /** Has a domain's reader read, or nobody's. */
  read(domain: Domain, state: State): void {
    this.#reader.select(state === "busy" ? domain.task : IDLE);
  }

  /** How much has been read, modulo 2³². */
  get reads(): number {
    return this.#reader.count;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader[Symbol.asyncDispose]();
    for (const rcu of this.#idle) rcu.close();
    for (const { rcu } of this.all) rcu.close();
  }

  /** Ends the reader without waiting, at the end of a program. */
  stop(): void {
    this.#reader.stop();
  }
}

/** Reads in one domain at a time, in sections that pass quiescent states. */
export function busyReader(handles: RcuHandle[], control: Int32Array): void {
  const domains = handles.map((handle) => {
    const rcu = Rcu.attach(handle, { name: "reader" });
    return { rcu, read: cellReader(rcu) };
  });
  let last = 0;
  const rest = () => {
    // Only the domain that is read in knows this reader as one to wait for.
    if (last !== 0) domains[last - 1].rcu.threadOffline();
    last = 0;
  };
  obey(control, (task) => {
    if (task !== last) rest();
    last = task;
    consume(domains[task - 1].read(READS));
    return READS;
  }, rest);
  rest();
  for (const { rcu } of domains) rcu.close();
}

function cellReader(rcu: Rcu): (count: number) => number {
  const cell = RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
  return (count) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += cell.get();
    return sum;
  };
}

/** The blocking operations of a domain, for `interleave`. */
function waits(
  { detector, rcu }: Domain,
  state: State,
  before: () => void,
  polls: Series,
): Contender[] {
  const count = WAITS[state];
  const blocks: number[] = [];
  const allocate = (length: number) => () => {
    before();
    for (let i = 0; i < length; i++) blocks[i] = rcu.memory.allocate(BLOCK);
  };
  const runs: Omit<Contender, "name">[] = [{
    operations: count,
    before,
    run: () => {
      for (let i = 0; i < count; i++) rcu.synchronizeSync();
      return count;
    },
  }, {
    operations: count,
    before,
    run: () => {
      for (let i = 0; i < count; i++) rcu.synchronizeSync({ expedited: true });
      return count;
    },
  }, {
    operations: count,
    before,
    run: () => {
      let polled = 0;
      for (let i = 0; i < count; i++) {
        const cookie = rcu.startPoll();
        do polled++; while (!rcu.poll(cookie));
      }
      (polls[title(detector, POLLING[0])] ??= []).push(polled / count);
      return polled;
    },
  }, {
    operations: count,
    before: allocate(count),
    run: () => {
      for (let i = 0; i < count; i++) {
        rcu.deferFree(blocks[i]);
        rcu.barrierSync();
      }
      return count;
    },
  }, {
    operations: FREES,
    before: allocate(FREES),
    run: () => {
      for (let i = 0; i < FREES; i++) rcu.deferFree(blocks[i]);
      // All are free again when the clock stops.
      rcu.barrierSync();
      return FREES;
    },
  }];
  return runs.map((run, n) => ({
    ...run,
    name: title(detector, BLOCKING[n]),
  }));
}

/** Waits that let the event loop turn, in turn. */
async function waitInTurns(
  domains: Domains,
  state: State,
  ms: number,
  series: Series,
  polls: Series,
): Promise<void> {
  const count = WAITS[state];
  const end = performance.now() + ms;
  for (let round = 0; round < FEWEST || performance.now() < end; round++) {
    for (const domain of domains.all) {
      const { detector, rcu } = domain;
      domains.read(domain, state);
      using polled = countPolls(rcu);
      for (const operation of TURNING) {
        const expedited = operation === TURNING[1];
        polled.count = 0;
        const start = performance.now();
        for (let i = 0; i < count; i++) await rcu.synchronize({ expedited });
        const took = performance.now() - start;
        // The first rounds warm up.
        if (round < WARM_UP) continue;
        const name = title(detector, operation);
        (series[name] ??= []).push(took * 1e6 / count);
        (polls[name] ??= []).push(polled.count / count);
      }
    }
  }
}

const WARM_UP = 3;
const FEWEST = WARM_UP + 5;

/** Counts how often a thread asks whether a period has ended. */
function countPolls(rcu: Rcu): { count: number } & Disposable {
  const { periods } = membershipOf(rcu, "count polls");
  const counter = {
    count: 0,
    [Symbol.dispose]() {
      Reflect.deleteProperty(periods, "poll");
    },
  };
  const { poll } = periods;
  periods.poll = (cookie) => {
    counter.count++;
    return poll.call(periods, cookie);
  };
  return counter;
}

/** All figures with so many readers. */
export async function gracePeriodFigures(
  { readers, quick }: { readers: number; quick: boolean },
): Promise<GracePeriodFigures> {
  const { blocking, warmUp, turning, reading, rounds } = quick ? QUICK : FULL;
  await using domains = await Domains.open(readers);
  const series: Record<State, Series> = { idle: {}, busy: {} };
  const polls: Record<State, Series> = { idle: {}, busy: {} };
  for (const state of STATES) {
    series[state] = await interleave(
      domains.all.flatMap((domain) =>
        waits(
          domain,
          state,
          () => domains.read(domain, state),
          polls[state],
        )
      ),
      {
        rounds: state === "idle" ? 101 : 401,
        warmUp,
        budget: blocking[state],
      },
    );
  }
  const reads: GracePeriodFigures["reads"] = {};
  for (const domain of domains.all) {
    reads[nameOf(domain.detector)] = disturb(domains, domain, rounds, reading);
  }
  // Last: what counts the polls makes them slower, now and afterwards.
  for (const state of STATES) {
    const ms = turning[state];
    await waitInTurns(domains, state, ms, series[state], polls[state]);
  }
  for (const domain of domains.all) {
    domains.read(domain, "idle");
    const { deferred } = domain.rcu.memory.audit();
    if (deferred !== 0) throw new Error(`${deferred} bytes are still deferred`);
  }
  return { series, polls, reads };
}

/** What endless waiting does to the reader that is waited for. */
function disturb(
  domains: Domains,
  domain: Domain,
  rounds: number,
  ms: number,
): { alone: number[]; besideWaits: number[] } {
  const nap = new Int32Array(new SharedArrayBuffer(4));
  const rate = (work: (end: number) => void): number => {
    domains.read(domain, "busy");
    const before = domains.reads;
    const start = performance.now();
    work(start + ms);
    const took = performance.now() - start;
    return ((domains.reads - before) >>> 0) * 1000 / took;
  };
  const alone: number[] = [];
  const besideWaits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(rate(() => Atomics.wait(nap, 0, 0, ms)));
    besideWaits.push(rate((end) => {
      while (performance.now() < end) domain.rcu.synchronizeSync();
    }));
  }
  return { alone, besideWaits };
}
