/** What the threads of the route-cache benchmark tell the one that measures, through shared memory. */
import { median } from "./_measure.ts";
import { BATCH } from "./_route_traffic.ts";

/** How many durations a log keeps. */
const KEPT = 1 << 15;

const COUNT = 0;
const FOUND = 1;
/** Beats are on a line of their own: another thread looks at them. */
const BEATS = 16;
const WORDS = 32;

/** How long batches took, in the order in which they were done. */
export class Log {
  static create(): SharedArrayBuffer {
    return new SharedArrayBuffer(WORDS * 4 + KEPT * 8);
  }

  readonly #words: Int32Array;
  readonly #durations: Float64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer, 0, WORDS);
    this.#durations = new Float64Array(buffer, WORDS * 4, KEPT);
  }

  /** How often the thread has got on, modulo 2³². */
  get beats(): number {
    return Atomics.load(this.#words, BEATS);
  }

  /** It has. */
  beat(): void {
    Atomics.store(this.#words, BEATS, this.#words[BEATS] + 1);
  }

  /** Adds how long `count` batches took, in ms, and how many packets were found. */
  add(durations: Float64Array, count: number, found: number): void {
    const before = this.#words[COUNT];
    for (let i = 0; i < count; i++) {
      this.#durations[(before + i) & (KEPT - 1)] = durations[i];
    }
    Atomics.add(this.#words, FOUND, found);
    Atomics.store(this.#words, COUNT, (before + count) | 0);
  }

  /** Where it is now, for {@linkcode since}. */
  mark(): Mark {
    const count = Atomics.load(this.#words, COUNT);
    return { count, found: Atomics.load(this.#words, FOUND) };
  }

  /** What has been logged since. */
  since(mark: Mark): Logged {
    const now = this.mark();
    const count = Math.min((now.count - mark.count) | 0, KEPT);
    const durations = Float64Array.from(
      { length: count },
      (_, i) => this.#durations[(now.count - count + i) & (KEPT - 1)],
    );
    const found = ((now.found - mark.found) | 0) / (count * BATCH);
    return { durations, found };
  }
}

/** A place in a log. */
export interface Mark {
  count: number;
  found: number;
}

/** A part of a log. */
export interface Logged {
  /** In ms. */
  durations: Float64Array;
  /** The share of the packets that the searches found. */
  found: number;
}

/** A batch that took so many times the median was not running all the time. */
const PREEMPTED = 8;

/**
 * Nanoseconds a packet, and how many ms of the worker's that is of. Left out
 * are batches that lost their core on the way, to the updater or another
 * process, as a function's ticks in a profile leave out what other functions
 * took; those too that spun for a lock whose holder had lost its core, which
 * does not happen in a kernel.
 */
export function summarize(durations: Float64Array): { ns: number; ms: number } {
  if (durations.length === 0) return { ns: NaN, ms: 0 };
  const most = PREEMPTED * median([...durations]);
  const some = durations.filter((duration) => duration <= most);
  const ms = some.reduce((sum, duration) => sum + duration, 0);
  return { ns: ms * 1e6 / (some.length * BATCH), ms };
}

const TICKETS = 0;
const BATCHES = 2;
const LEFT = 3;

/** Has threads forward a number of batches each, at the same time, once. */
export class Burst {
  static create(): SharedArrayBuffer {
    return new SharedArrayBuffer(64);
  }

  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** Lets `threads` threads run, and waits for all of them. */
  run(threads: number, batches: number): void {
    const words = this.#words;
    Atomics.store(words, BATCHES, batches);
    Atomics.store(words, LEFT, threads);
    for (let thread = 0; thread < threads; thread++) {
      Atomics.store(words, TICKETS + thread, 1);
      Atomics.notify(words, TICKETS + thread);
    }
    const deadline = performance.now() + 10_000;
    for (let left; (left = Atomics.load(words, LEFT)) > 0;) {
      if (performance.now() > deadline) throw new Error("A thread is stuck");
      Atomics.wait(words, LEFT, left, 100);
    }
  }

  /** Waits for a while; returns how many batches the thread is to do, or 0. */
  next(thread: number): number {
    const words = this.#words;
    Atomics.wait(words, TICKETS + thread, 0, 20);
    return Atomics.exchange(words, TICKETS + thread, 0) *
      Atomics.load(words, BATCHES);
  }

  /** Says that they are done. */
  done(): void {
    Atomics.sub(this.#words, LEFT, 1);
    Atomics.notify(this.#words, LEFT);
  }
}
