/** Workers that open and close files together, in a domain of their own. */
import process from "node:process";
import { type Address, Rcu, type RcuOptions } from "../mod.ts";
import type { Membership } from "../src/_membership.ts";
import { membershipOf } from "../src/rcu.ts";
import { PathCache, somePaths } from "./_open_close_cache.ts";
import { faultWords, timesForced } from "./_open_close_fault.ts";
import {
  AT_ONCE,
  BATCH,
  BUSY,
  CALL_RCU,
  COMMAND,
  command,
  CONTROL_WORDS,
  DRAINED,
  END,
  KEPT,
  LOOKS,
  type OpenerOptions,
  OPERATIONS,
  PAIRS,
  PEAK,
  REPORT_DOUBLES,
  STEP_NAMES,
  STEPS,
  STOP,
} from "./_open_close_worker.ts";
import { inFreshWorker } from "./_workers.ts";

/** For many more blocks than ever wait at once: no allocation waits for a grace period. */
const CAPACITY = 64 * 2 ** 20;
const MAX_READERS = 16;

const OPENER = import.meta.resolve("./_open_close_worker.ts");

/** Longest wait for workers, in ms: this only ends a hang. */
const PATIENCE = 30_000;
/** How often the callbacks that wait are counted while workers run, in ms. */
const LOOK = 5;

/** What is measured: a detector, and how overload is met. */
export interface Variant {
  name: string;
  /** Whatever `Rcu.create` is to take or to refuse. */
  detector: string;
  /** Callbacks of a thread that count as overload. */
  highWater: number;
  /** Whether beyond them every call forces a period, as in 2009. */
  fault: boolean;
}

/** A domain as a variant has it. */
function createDomain(
  { detector, highWater }: Pick<Variant, "detector" | "highWater">,
): Rcu {
  return Rcu.create({
    name: "measuring",
    capacity: CAPACITY,
    maxReaders: MAX_READERS,
    highWater,
    detector: detector as NonNullable<RcuOptions["detector"]>,
  });
}

/** Whether this version of the package has what a variant needs. */
export function isKnown(variant: Variant): boolean {
  try {
    createDomain(variant).close();
    return true;
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return false;
    throw error;
  }
}

/** A path cache in a domain of its own. */
export interface Domain {
  rcu: Rcu;
  paths: string[];
  head: Address;
  cache: PathCache;
  /** What was live before, in bytes. */
  empty: number;
}

/** Makes a path cache in a domain of its own. */
export function createCache(
  variant: Pick<Variant, "detector" | "highWater">,
): Domain {
  const rcu = createDomain(variant);
  const empty = rcu.memory.audit().live;
  const paths = somePaths();
  const head = PathCache.create(rcu);
  const cache = new PathCache(rcu, head, 1);
  for (const path of paths) cache.insert(path);
  rcu.threadOffline();
  return { rcu, paths, head, cache, empty };
}

/** The tasks of a run. */
export type Task = typeof PAIRS | typeof AT_ONCE | typeof STEPS;

/** What a run came to: times are ns an operation. */
export interface Run {
  operations: number;
  /** Processor time of the whole process. */
  cpu: number;
  /** What the machine's cores did else, for others or for nobody. */
  idle: number;
  /** Each step; NaN where steps were not timed. */
  steps: number[];
  /** Looks at the callbacks, in all. */
  looks: number;
  periods: number;
  /** Periods that overload forced, in all. */
  forced: number;
  /** The most callbacks that waited in one thread. */
  peak: number;
  /** The most of all threads, as far as seen. */
  pending: number;
  /** The most bytes that files took, as far as seen; NaN if nobody looked. */
  bytes: number;
}

/** The workers of one domain. They have all started before anything is timed. */
export class Lab implements AsyncDisposable {
  readonly #rcu: Rcu;
  readonly #cache: PathCache;
  readonly #membership: Membership;
  readonly #control = new Int32Array(
    new SharedArrayBuffer(CONTROL_WORDS * Int32Array.BYTES_PER_ELEMENT),
  );
  readonly #reports: Float64Array[] = [];
  readonly #ended: Promise<unknown>;
  readonly #fault: Address;
  #failure: unknown;
  #turn = 0;
  readonly #empty: number;
  /** What is live while no file is open, in bytes. */
  #live = 0;

  private constructor(variant: Variant, workers: number) {
    const { rcu, head, paths, cache, empty } = createCache(variant);
    this.#empty = empty;
    this.#rcu = rcu;
    this.#cache = cache;
    this.#membership = membershipOf(rcu, "measure");
    this.#fault = faultWords(rcu);
    this.#control[BUSY] = workers;
    const ended: Promise<void>[] = [];
    for (let worker = 0; worker < workers; worker++) {
      const report = new Float64Array(
        new SharedArrayBuffer(REPORT_DOUBLES * Float64Array.BYTES_PER_ELEMENT),
      );
      this.#reports.push(report);
      const options: OpenerOptions = {
        handle: rcu.handle,
        head,
        paths,
        worker,
        control: this.#control,
        report,
      };
      if (variant.fault) {
        options.fault = { place: this.#fault, mark: variant.highWater };
      }
      ended.push(
        inFreshWorker<void>(OPENER, "opener", options)
          .catch((error) => this.#failure ??= error),
      );
    }
    this.#ended = Promise.all(ended);
  }

  /**
   * Starts workers.
   *
   * @param variant What they are to show.
   * @param workers How many.
   */
  static async start(variant: Variant, workers: number): Promise<Lab> {
    const lab = new Lab(variant, workers);
    try {
      const deadline = performance.now() + PATIENCE;
      while (Atomics.load(lab.#control, BUSY) > 0) {
        if (lab.#failure !== undefined) throw lab.#failure;
        if (performance.now() > deadline) throw stuck();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      lab.#live = lab.#rcu.memory.audit().live;
    } catch (error) {
      await lab[Symbol.asyncDispose]();
      throw error;
    }
    return lab;
  }

  /**
   * Has workers do something for some time, and asserts that it left nothing behind.
   *
   * @param task What.
   * @param workers How many of them.
   * @param ms For how long.
   * @param audit Whether to audit the memory meanwhile, which takes processor time.
   */
  async run(
    task: Task,
    workers: number,
    ms: number,
    audit = false,
  ): Promise<Run> {
    const rcu = this.#rcu;
    const { sequence } = this.#membership;
    const periods = sequence.completed();
    const forced = this.#forced();
    const cpu = process.cpuUsage();
    const start = performance.now();
    this.#command(task, workers);
    let pending = 0;
    let bytes = audit ? 0 : NaN;
    for (let left = ms; left > 0; left = ms - (performance.now() - start)) {
      Atomics.wait(this.#control, STOP, 0, Math.min(left, LOOK));
      pending = Math.max(pending, this.#membership.pendingOfAll());
      if (!audit) continue;
      const { live, deferred } = rcu.memory.audit();
      bytes = Math.max(bytes, live + deferred - this.#live);
    }
    Atomics.store(this.#control, STOP, 1);
    await this.#finished();
    const wall = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    const reports = this.#reports.slice(0, workers);
    const sum = (at: number) => reports.reduce((sum, r) => sum + r[at], 0);
    const operations = sum(OPERATIONS);
    const used = (user + system) / 1000;
    const cores = navigator.hardwareConcurrency;
    const completed = sequence.completed();
    await this.#assertReclaimed();
    return {
      operations,
      cpu: used * 1e6 / operations,
      idle: Math.max(cores * wall - used, 0) * 1e6 / operations,
      steps: STEP_NAMES.map((_, step) => {
        // Batches in which the thread lost its core are taken to be like the others.
        const each = sum(step) / sum(KEPT + step) / BATCH;
        const drained = step >= CALL_RCU
          ? sum(DRAINED + step - CALL_RCU) / operations
          : 0;
        return (each + drained) * 1e6;
      }),
      looks: sum(LOOKS),
      periods: completed - periods,
      forced: this.#forced() - forced,
      peak: Math.max(...reports.map((report) => report[PEAK])),
      pending,
      bytes,
    };
  }

  #forced(): number {
    return this.#membership.sequence.forced +
      timesForced(this.#rcu, this.#fault);
  }

  #command(task: number, workers: number): void {
    const control = this.#control;
    Atomics.store(control, STOP, 0);
    Atomics.store(control, BUSY, workers);
    // Publish. Pairs with: the load in `opener`.
    Atomics.store(control, COMMAND, command(++this.#turn, workers, task));
    Atomics.notify(control, COMMAND);
  }

  /** Blocks until all are done that were told something. */
  async #finished(): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    for (let busy; (busy = Atomics.load(this.#control, BUSY)) > 0;) {
      const left = deadline - performance.now();
      if (left <= 0) throw this.#failure ?? stuck();
      Atomics.wait(this.#control, BUSY, busy, Math.min(left, 100));
      // A worker that has thrown says so by a message.
      if (Atomics.load(this.#control, BUSY) === busy) {
        await new Promise((resolve) => setTimeout(resolve));
        if (this.#failure !== undefined) throw this.#failure;
      }
    }
  }

  /** Nothing waits, no file is left, no reference is held. */
  async #assertReclaimed(): Promise<void> {
    const rcu = this.#rcu;
    await rcu.barrier();
    const { live, deferred, free, overhead, capacity } = rcu.memory.audit();
    const pending = this.#membership.pendingOfAll();
    const { references } = this.#cache.count();
    rcu.threadOffline();
    if (
      live !== this.#live || deferred !== 0 || pending !== 0 ||
      references !== 0 || live + deferred + free + overhead !== capacity
    ) {
      throw new Error(
        `Cannot trust a run that leaves something behind: ${
          live - this.#live
        } bytes live, ${deferred} deferred, ${pending} callbacks, ${references} references`,
      );
    }
  }

  /** Ends the workers and asserts that they are gone, and everything that was made here. */
  async close(): Promise<void> {
    const rcu = this.#rcu;
    await this.#end();
    if (this.#failure !== undefined) throw this.#failure;
    this.#cache.destroy();
    rcu.deferFree(this.#fault);
    await rcu.barrier();
    const { readers, memory, callbacks } = rcu.stats();
    const { live, deferred } = memory;
    if (
      readers.length !== 1 || live !== this.#empty || deferred !== 0 ||
      callbacks.pending !== 0
    ) {
      throw new Error(
        `Cannot trust workers that leave something behind: ${
          readers.length - 1
        } are there, ${live - this.#empty} bytes live, ${deferred} deferred`,
      );
    }
  }

  async #end(): Promise<void> {
    Atomics.store(this.#control, STOP, 1);
    Atomics.store(this.#control, COMMAND, command(++this.#turn, 0, END));
    Atomics.notify(this.#control, COMMAND);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(stuck()), PATIENCE);
    });
    try {
      await Promise.race([this.#ended, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the workers, whatever they have left behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    this.#rcu.close();
  }
}

function stuck(): Error {
  return new Error(`No answer from the workers within ${PATIENCE} ms`);
}
