/** What a worker of the open-and-close experiment does. */
import { type Address, Rcu, type RcuHandle } from "../mod.ts";
import { Callbacks } from "../src/callbacks/_callbacks.ts";
import { GracePeriods } from "../src/grace_periods/_grace_periods.ts";
import { membershipOf } from "../src/rcu.ts";
import { PathCache } from "./_open_close_cache.ts";
import { plantFault } from "./_open_close_fault.ts";
import { OpenFiles } from "./_open_close_files.ts";
import { seeded, uniform } from "./_random.ts";

// Control words, which all workers of a variant share.
/** What to do: a worker waits for it to change. See {@linkcode command}. */
export const COMMAND = 0;
/** Other than 0 once the time is up. */
export const STOP = 1;
/** How many workers have not done yet what they were told; how many have not begun, at first. */
export const BUSY = 2;
/** A word that nobody notifies, to nap on. */
const NAP = 3;
export const CONTROL_WORDS = 16;

/**
 * A command in one word: a worker that takes no part may look at it when the
 * next one is on its way, and must not mix the two.
 *
 * @param turn Which one it is, so that it differs from the one before.
 * @param workers How many workers take part, from the first; below 16.
 * @param task What to do; below 16.
 */
export function command(turn: number, workers: number, task: number): number {
  return (turn << 8 | workers << 4 | task) | 0;
}

/** `close(open(path))`, again and again: what the processor time of is taken. */
export const PAIRS = 1;
/** The same with files freed at once, as if RCU cost nothing: a wrong program. */
export const AT_ONCE = 2;
/** The same, each step for many paths at a time: what the steps' shares are taken from. */
export const STEPS = 3;
/** Leaves. */
export const END = 4;

/** The steps that are timed. */
export const STEP_NAMES = [
  "path walk",
  "dentry lookup",
  "allocation",
  "descriptors",
  "dput",
  "callRcu",
  "freeing",
] as const;
export const CALL_RCU = 5;
/** What `callRcu` invokes: timed inside it, and not counted there. */
export const FREEING = 6;
const STEP_COUNT = STEP_NAMES.length;

/** Paths that a step is timed for at once: enough for the clock to cost nothing. */
export const BATCH = 64;

// What a worker says about a run, in doubles: the ms of each step and how many times it was
// timed, then these.
export const KEPT = STEP_COUNT;
export const OPERATIONS = 2 * STEP_COUNT;
export const LOOKS = OPERATIONS + 1;
export const PEAK = OPERATIONS + 2;
/** What the two last steps took at the end, for the callbacks that still waited. */
export const DRAINED = OPERATIONS + 3;
export const REPORT_DOUBLES = OPERATIONS + 5;

/**
 * What a step takes at most for a batch, in ms, several times what it does take:
 * longer, and the thread had lost its core for a while. Calls of `callRcu` may also
 * look at the callbacks and wait for a period, spinning; freeing depends on how many
 * blocks there are.
 */
const LONGEST = 0.05;
const LONGEST_LOOK = 0.002;
const LONGEST_WAIT = 0.45;
const LONGEST_FREE = 0.0005;

/** What a worker gets. */
export interface OpenerOptions {
  handle: RcuHandle;
  head: Address;
  paths: string[];
  worker: number;
  control: Int32Array;
  report: Float64Array;
  /** Where the fault's words are and its mark, to plant it. */
  fault?: { place: Address; mark: number };
}

/** How many paths are drawn beforehand: a power of two. */
const DRAWS = 2 ** 14;
/** Batches of each task before a worker is ready: by number, as time also passes without a core. */
const WARM_UP = 250;
/** Longest sleep before a worker looks at its command again, in ms. */
const PATIENCE = 1000;
/** A nap while callbacks wait at the end of a run, in ms. */
const PAUSE = 0.5;

/** A worker: does what the control words say, until they say that it ends. */
export function opener(options: OpenerOptions): void {
  const { handle, head, worker, control, report, fault } = options;
  using rcu = Rcu.attach(handle, { name: `worker ${worker}` });
  const clock = wakingClock();
  const watched = watchCallbacks(clock);
  using _fault = fault && plantFault(rcu, fault.place, fault.mark);
  const cache = new PathCache(rcu, head, BATCH);
  const files = new OpenFiles(rcu, cache);
  const { callbacks } = membershipOf(rcu, "measure");
  const loops = makeLoops(rcu, cache, files, options, clock, watched);
  const drain = (): void => {
    rcu.threadOffline();
    for (let left; (left = callbacks.pending) > 0;) {
      watched.reset();
      const start = clock();
      callbacks.processCallbacks();
      const { freeing, longest } = watched;
      const calls = clock() - start - freeing;
      if (callbacks.pending === left) {
        // Looks in vain are those of this loop: without it they are not made, or by later calls.
        Atomics.wait(control, NAP, 0, PAUSE);
        continue;
      }
      report[DRAINED] += Math.min(calls, watched.longestCalls);
      report[DRAINED + 1] += Math.min(freeing, longest);
    }
  };
  for (const task of [AT_ONCE, PAIRS, STEPS]) {
    for (let i = 0; i < WARM_UP; i++) loops[task]();
  }
  drain();
  let last = 0;
  done(control);
  while (true) {
    Atomics.wait(control, COMMAND, last, PATIENCE);
    // Pairs with: the store in `Lab`, before which nobody is busy and STOP is 0.
    const told = Atomics.load(control, COMMAND);
    if (told === last) continue;
    last = told;
    const task = told & 15;
    if (task === END) break;
    if (worker >= (told >> 4 & 15)) continue;
    report.fill(0);
    watched.looks = watched.peak = 0;
    const loop = loops[task];
    do {
      loop();
      report[OPERATIONS] += BATCH;
    } while (Atomics.load(control, STOP) === 0);
    // Every call is paid for in the run that made it.
    drain();
    report[LOOKS] = watched.looks;
    report[PEAK] = watched.peak;
    done(control);
  }
  files.destroy();
}

/** Says that this worker has done what it was told. */
function done(control: Int32Array): void {
  if (Atomics.sub(control, BUSY, 1) === 1) Atomics.notify(control, BUSY);
}

/** A clock, in ms, that stands still from now on while this thread sleeps. */
function wakingClock(): () => number {
  let slept = 0;
  const { wait } = Atomics;
  // Not the overload of 64 bits: nobody here has words of those.
  Atomics.wait = ((words: Int32Array, at, value: number, ms) => {
    const start = performance.now();
    const result = wait(words, at, value, ms);
    slept += performance.now() - start;
    return result;
  }) as typeof wait;
  return () => performance.now() - slept;
}

/** What a thread does about its callbacks. */
interface Watched {
  /** How often it looks at them. */
  looks: number;
  /** The most that waited when it did. */
  peak: number;
  /** How long it has freed blocks, in ms, and how long that takes at most. */
  freeing: number;
  longest: number;
  /** How long all else that calls do takes at most. */
  longestCalls: number;
  /** Begins anew, for a batch. */
  reset(): void;
}

/** Notes that from now on. A thread does it once in 64 calls, past the fault's mark at each: some ns. */
function watchCallbacks(clock: () => number): Watched {
  const watched: Watched = {
    looks: 0,
    peak: 0,
    freeing: 0,
    longest: 0,
    longestCalls: LONGEST,
    reset() {
      watched.freeing = watched.longest = 0;
      watched.longestCalls = LONGEST;
    },
  };
  const { processCallbacks, invokeCallbacks } = Callbacks.prototype;
  const { wait } = GracePeriods.prototype;
  Callbacks.prototype.processCallbacks = function (...args): void {
    watched.looks++;
    watched.longestCalls += LONGEST_LOOK;
    watched.peak = Math.max(watched.peak, this.pending);
    processCallbacks.apply(this, args);
  };
  GracePeriods.prototype.wait = function (...args): boolean {
    watched.longestCalls += LONGEST_WAIT;
    return wait.apply(this, args);
  };
  Callbacks.prototype.invokeCallbacks = function (ready, most): void {
    const { pending } = this;
    const start = clock();
    invokeCallbacks.call(this, ready, most);
    watched.freeing += clock() - start;
    watched.longest += LONGEST + (pending - this.pending) * LONGEST_FREE;
  };
  return watched;
}

/** A batch of each task. */
function makeLoops(
  rcu: Rcu,
  cache: PathCache,
  files: OpenFiles,
  { paths, worker, report }: OpenerOptions,
  clock: () => number,
  watched: Watched,
): Record<number, () => void> {
  const draws = uniform(DRAWS, paths.length, seeded(worker + 1));
  let draw = 0;
  const nextPath = (): string => {
    draw = (draw + 1) & (DRAWS - 1);
    return paths[draws[draw]];
  };
  const dentries = new Int32Array(BATCH);
  const opened = new Int32Array(BATCH);

  let mark = 0;
  const begin = (): void => {
    watched.reset();
    mark = clock();
  };
  const end = (step: number): void => {
    const now = clock();
    const took = now - mark;
    mark = now;
    if (took > LONGEST) return;
    report[step] += took;
    report[KEPT + step]++;
  };
  const endOfCalls = (): void => {
    const { freeing, longest, longestCalls } = watched;
    const calls = clock() - mark - freeing;
    if (calls > longestCalls || freeing > longest) return;
    report[CALL_RCU] += calls;
    report[KEPT + CALL_RCU]++;
    report[FREEING] += freeing;
    report[KEPT + FREEING]++;
  };

  return {
    [PAIRS]() {
      for (let i = 0; i < BATCH; i++) files.close(files.open(nextPath()));
    },
    [AT_ONCE]() {
      for (let i = 0; i < BATCH; i++) files.closeAtOnce(files.open(nextPath()));
    },
    [STEPS]() {
      begin();
      for (let i = 0; i < BATCH; i++) cache.parse(nextPath(), i);
      end(0);
      for (let i = 0; i < BATCH; i++) dentries[i] = cache.walk(i);
      end(1);
      for (let i = 0; i < BATCH; i++) opened[i] = files.create(dentries[i]);
      end(2);
      for (let i = 0; i < BATCH; i++) opened[i] = files.install(opened[i]);
      for (let i = 0; i < BATCH; i++) opened[i] = files.uninstall(opened[i]);
      end(3);
      for (let i = 0; i < BATCH; i++) {
        cache.putParents(i);
        cache.put(dentries[i]);
      }
      end(4);
      for (let i = 0; i < BATCH; i++) rcu.deferFree(opened[i]);
      endOfCalls();
    },
  };
}
