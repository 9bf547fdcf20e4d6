/** Other threads for benchmarks: started before the clock, told what to do through a shared word. */

import { setImmediate } from "node:timers";
import { spawn, type Started } from "./_spawn.ts";

/** What a lab worker is asked to run: an exported function of a module. */
export interface Job {
  module: string;
  name: string;
  args: unknown;
  /** The control words of a {@linkcode Peer}. */
  control?: Int32Array;
}

/** What it answers. */
export type Answer = { result: unknown } | { error: unknown };

function launch(job: Job): { worker: Started; result: Promise<unknown> } {
  const worker = spawn(import.meta.resolve("./_lab_worker.ts"));
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    if ("error" in data) reject(data.error);
    else resolve(data.result);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(event.error ?? new Error(event.message));
  };
  worker.postMessage(job);
  return { worker, result: promise };
}

/**
 * Runs an exported function in a thread of its own, where the engine has seen
 * nothing else: what other figures taught the compiler cannot help or harm.
 */
export async function inFreshWorker<T>(
  module: string,
  name: string,
  args: unknown,
): Promise<T> {
  const { worker, result } = launch({ module, name, args });
  try {
    return await result as T;
  } finally {
    worker.terminate();
  }
}

/** Control words: what to do, what is being done, how much has been done, and one to nap on. */
const WANTED = 0;
const DOING = 1;
const COUNT = 2;
const NAP = 3;

/** A peer that has nothing to do. */
export const IDLE = 0;
const STOP = -1;
const STARTING = -2;

/** A thread that does one of several tasks over and over while another one measures. */
export class Peer implements AsyncDisposable {
  readonly #control: Int32Array;
  readonly #worker: Started;
  readonly #ended: Promise<unknown>;
  #task = IDLE;

  private constructor(
    control: Int32Array,
    worker: Started,
    ended: Promise<unknown>,
  ) {
    this.#control = control;
    this.#worker = worker;
    this.#ended = ended;
  }

  /** Starts an exported function that calls {@linkcode obey} with its second argument. */
  static async start(
    module: string,
    name: string,
    args: unknown,
  ): Promise<Peer> {
    const control = new Int32Array(new SharedArrayBuffer(64));
    control[DOING] = STARTING;
    const { worker, result } = launch({ module, name, args, control });
    const wait = Atomics.waitAsync(control, DOING, STARTING, 30_000);
    const started = wait.async ? wait.value : Promise.resolve(wait.value);
    // Something that keeps the program alive meanwhile, which the wait does not.
    const timer = setInterval(() => {}, 1000);
    try {
      // Whoever never begins has thrown.
      await Promise.race([started, result]);
    } finally {
      clearInterval(timer);
    }
    return new Peer(control, worker, result);
  }

  /** Has a task done from now on, from 1; returns when it is being done. */
  select(task: number): void {
    this.#want(task);
    this.#await(task, 0);
  }

  /**
   * Has several peers do a task from now on; returns when all of them do.
   * Sleeps in between: where there are more threads than cores, they need them.
   */
  static selectAll(peers: Peer[], task: number): void {
    for (const peer of peers) peer.#want(task);
    for (const peer of peers) peer.#await(task, 0.1);
  }

  #want(task: number): void {
    if (task === this.#task) return;
    this.#task = task;
    Atomics.store(this.#control, WANTED, task);
    Atomics.notify(this.#control, WANTED);
  }

  /** Looks whether the task is being done, every `nap` ms. */
  #await(task: number, nap: number): void {
    const deadline = performance.now() + 10_000;
    while (Atomics.load(this.#control, DOING) !== task) {
      if (performance.now() > deadline) throw new Error("A peer is stuck");
      if (nap > 0) Atomics.wait(this.#control, NAP, 0, nap);
    }
  }

  /** Settles when its thread has ended: rejects with what that threw. */
  get ended(): Promise<unknown> {
    return this.#ended;
  }

  /** What its tasks have returned, added up, modulo 2³². */
  get count(): number {
    return Atomics.load(this.#control, COUNT) >>> 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    Atomics.store(this.#control, WANTED, STOP);
    Atomics.notify(this.#control, WANTED);
    await this.#ended;
    this.#worker.terminate();
  }

  /** Ends it without waiting, at the end of a program. */
  stop(): void {
    Atomics.store(this.#control, WANTED, STOP);
    Atomics.notify(this.#control, WANTED);
    this.#worker.terminate();
  }
}

/**
 * A peer's loop. Calls `work` again and again with the task that is wanted,
 * and `rest` before it sleeps for want of one.
 */
export function obey(
  control: Int32Array,
  work: (task: number) => number,
  rest: () => void,
): void {
  while (goOn(control, work, rest));
}

/** As {@linkcode obey}, but every call of `work` is in a turn of the event loop of its own. */
export async function obeyInTurns(
  control: Int32Array,
  work: (task: number) => number,
  rest: () => void,
): Promise<void> {
  // A timer would take a millisecond, and messages let timers starve.
  while (goOn(control, work, rest)) await new Promise(setImmediate);
}

/** Does what is wanted, once; says whether to go on. */
function goOn(
  control: Int32Array,
  work: (task: number) => number,
  rest: () => void,
): boolean {
  const task = Atomics.load(control, WANTED);
  if (Atomics.exchange(control, DOING, task) === STARTING) {
    Atomics.notify(control, DOING);
  }
  if (task === STOP) return false;
  if (task === IDLE) {
    rest();
    Atomics.wait(control, WANTED, IDLE, 50);
  } else {
    Atomics.add(control, COUNT, work(task));
  }
  return true;
}

/** The loop of a peer that works by itself: calls `act` every `ms` until the peer is to end. */
export async function untilStopped(
  control: Int32Array,
  ms: number,
  act: () => void,
): Promise<void> {
  Atomics.store(control, DOING, IDLE);
  Atomics.notify(control, DOING);
  while (Atomics.load(control, WANTED) !== STOP) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    act();
  }
}

/**
 * Makes a peer's task of something to be done at a rate. Sleeps in between,
 * so that a core is left to others; what it could not do in time for want of a
 * core, it leaves.
 *
 * @param control The peer's control words.
 * @param rate How often a second.
 * @param step What to do, once.
 * @returns The task.
 */
export function paced(
  control: Int32Array,
  rate: number,
  step: (task: number) => void,
): (task: number) => number {
  const most = Math.ceil(rate / 50);
  let start = performance.now();
  let done = 0;
  return (task) => {
    let due = Math.floor((performance.now() - start) * rate / 1000) - done;
    if (due <= 0) {
      Atomics.wait(control, NAP, 0, 1);
      return 0;
    }
    if (due > most) {
      start = performance.now();
      done = -most;
      due = most;
    }
    for (let i = 0; i < due; i++) step(task);
    done += due;
    return due;
  };
}
