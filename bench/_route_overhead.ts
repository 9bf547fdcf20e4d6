/**
 * What RCU itself costs, function by function: the table of 2002 that answered
 * "the overhead has just been moved to wherever the RCU work is now done".
 *
 * The functions are replaced on the prototypes of their classes, before
 * anything is opened, in threads that do nothing but this. Each call is timed,
 * and what calls inside it took is subtracted: a row is what its own code
 * took, what that calls included unless it has a row itself. The clock costs
 * more than some of these functions. So the same is done first with functions
 * that do nothing, inside one that calls them: what a call is charged for
 * nothing, and what its caller is, is taken off for each call. Some
 * of them would be compiled into their callers and now are not: that remains.
 *
 * Off, which it is unless {@linkcode instrument} is called, it costs nothing:
 * nothing in `src/` knows of it. There is no counter there, no flag and no
 * branch that asks for one; a thread that is not told to measure runs the
 * functions as they were written, whatever other threads do, because each
 * thread has classes of its own.
 */
import { Callbacks } from "../src/callbacks/_callbacks.ts";
import { Handover } from "../src/callbacks/_handover.ts";
import { Timer } from "../src/callbacks/_timer.ts";
import { GracePeriods } from "../src/grace_periods/_grace_periods.ts";
import { ScanDetector } from "../src/grace_periods/_scan.ts";
import { TreeDetector } from "../src/grace_periods/_tree.ts";
import { Membership } from "../src/_membership.ts";
import { Heap } from "../src/memory/_heap.ts";
import { Reader } from "../src/readers/_reader.ts";

type Method = (
  this: unknown,
  ...passed: [a: unknown, b: unknown, c: unknown, d: unknown]
) => unknown;

/** As many arguments as are passed on: named ones, for others would cost more than what is measured. */
const PASSED = 4;

/** A function, whether its calls are counted, and how long one takes at most, in ms. */
interface Timed {
  counted: boolean;
  most: number;
  /** Puts what times it in its place. */
  install(time: (method: Method) => Method): void;
}

/** No list is moved on, and nobody waits, in these: longer, and the thread had lost its core. */
const SHORT = 0.02;
const LONG = 1;
/** `LONGEST_OVERLOAD_WAIT` is 64 ms. */
const WAIT = 65;

/** A method. */
const on = (
  of: { prototype: object },
  name: string,
  most: number,
  counted = true,
): Timed => ({
  counted,
  most,
  install(time) {
    const methods = of.prototype as Record<string, Method>;
    methods[name] = time(methods[name]);
  },
});

/** What timers run: private, so it is found where it is handed to them. */
const turns = (most: number): Timed => ({
  counted: true,
  most,
  install(time) {
    const { start } = Timer.prototype;
    const known = new WeakMap<() => void, () => void>();
    Timer.prototype.start = function (task, ms) {
      let timed = known.get(task);
      if (timed === undefined) {
        timed = time(task) as () => void;
        known.set(task, timed);
      }
      start.call(this, timed, ms);
    };
  },
});

/** Rows of the table, and what is in them. */
const ROWS: readonly [name: string, functions: readonly Timed[]][] = [
  ["callRcu", [
    on(Callbacks, "deferFree", SHORT),
    on(Callbacks, "callRcu", SHORT),
    on(Membership, "retire", SHORT, false),
  ]],
  ["processCallbacks", [on(Callbacks, "processCallbacks", LONG)]],
  ["invokeCallbacks", [on(Callbacks, "invokeCallbacks", LONG)]],
  ["checkQuiescentState", [
    on(Reader, "checkQuiescentState", SHORT),
    on(Reader, "goOnline", SHORT),
    on(Reader, "goOffline", SHORT),
  ]],
  ["checkCallbacks", [
    on(Callbacks, "checkCallbacks", SHORT),
    // What overload makes an updater wait.
    on(GracePeriods, "wait", WAIT, false),
  ]],
  ["registerBatch", [
    on(GracePeriods, "registerBatch", SHORT),
    on(GracePeriods, "start", SHORT, false),
  ]],
  // `classic` is a tree of one node.
  ["report, of the detector", [
    on(ScanDetector, "report", SHORT),
    on(TreeDetector, "report", SHORT),
  ]],
  ["passed, of the detector", [
    on(ScanDetector, "passed", SHORT),
    on(TreeDetector, "passed", SHORT),
  ]],
  ["turns of timers", [turns(LONG)]],
  // To the reclaimer, and what that does for its loop.
  ["handing over", [
    on(Handover, "push", SHORT),
    on(Handover, "wake", LONG, false),
    on(Handover, "want", LONG, false),
    on(Handover, "take", LONG, false),
    on(Callbacks, "help", LONG, false),
    on(Callbacks, "adopt", LONG, false),
    on(Handover, "beat", SHORT, false),
    on(Handover, "prepareToSleep", SHORT, false),
    on(Handover, "sleep", LONG, false),
    on(Heap, "flush", LONG, false),
  ]],
];

/** Names of the rows. */
export const ROW_NAMES: readonly string[] = ROWS.map(([name]) => name);

const FUNCTIONS = ROWS.flatMap(([, functions], row) =>
  functions.map((timed) => ({ ...timed, row }))
);

// What is kept for each function, and for two more in the calibration.
/** Of calls that kept their core: how long they took in ms, how many they were, and those that they made. */
const TIME = 0;
const KEPT = 1;
const INNER = 2;
const CALLS = 3;
const FIELDS = 4;
const CALIBRATED = FUNCTIONS.length * FIELDS;

/** Room for a thread's costs. */
export function createCosts(): SharedArrayBuffer {
  return new SharedArrayBuffer((CALIBRATED + 2) * 8);
}

const costs = new Float64Array(CALIBRATED + 2 * FIELDS);
/** What the calls inside the one that is running took, in ms, and how many they were. */
let nestedTime = 0;
let nestedCalls = 0;

function timed(method: Method, n: number, most: number): Method {
  if (method.length > PASSED) {
    throw new TypeError(
      `Cannot time ${method.name} as at most ${PASSED} arguments must be enough for it: it has ${method.length}`,
    );
  }
  const at = n * FIELDS;
  return function (a, b, c, d) {
    const outerTime = nestedTime;
    const outerCalls = nestedCalls;
    nestedTime = 0;
    nestedCalls = 0;
    const start = performance.now();
    const result = method.call(this, a, b, c, d);
    const took = performance.now() - start;
    const own = took - nestedTime;
    costs[at + CALLS]++;
    if (own <= most) {
      costs[at + TIME] += own;
      costs[at + KEPT]++;
      costs[at + INNER] += nestedCalls;
    }
    nestedTime = outerTime + took;
    nestedCalls = outerCalls + 1;
    return result;
  };
}

/**
 * Begins to measure in this thread. To be called before anything is opened.
 *
 * @param shared Where the costs go.
 * @returns What copies them there.
 */
export function instrument(shared: SharedArrayBuffer): () => void {
  for (const [n, { install, most }] of FUNCTIONS.entries()) {
    install((method) => timed(method, n, most));
  }
  const out = new Float64Array(shared);
  const { self, inner } = calibrate();
  out[CALIBRATED] = self;
  out[CALIBRATED + 1] = inner;
  return () => {
    for (let i = 0; i < CALIBRATED; i++) out[i] = costs[i];
  };
}

/** What a call that does nothing is charged, and what its caller is for it, in ms. */
function calibrate(): { self: number; inner: number } {
  const CALLED = 1000;
  const nothing = timed((a) => a, FUNCTIONS.length, SHORT);
  const caller = timed(
    (a) => {
      for (let i = 0; i < CALLED; i++) nothing.call(a, a, i, i, i);
      return a;
    },
    FUNCTIONS.length + 1,
    1,
  );
  const own: number[] = [];
  const above: number[] = [];
  for (let round = 0; round < 200; round++) {
    costs.fill(0, CALIBRATED);
    caller.call(undefined, 0, 0, 0, 0);
    own.push(costs[CALIBRATED + TIME] / CALLED);
    above.push(costs[CALIBRATED + FIELDS + TIME] / CALLED);
  }
  costs.fill(0);
  const middle = (values: number[]) => values.sort((a, b) => a - b)[100];
  return { self: middle(own), inner: middle(above) };
}

/** A row: how many calls, and how many ms in all. */
export interface Cost {
  calls: number;
  ms: number;
}

/** What threads have spent since an earlier time. */
export function costsSince(
  buffers: SharedArrayBuffer[],
  before: Float64Array[],
): Cost[] {
  const rows = ROWS.map((): Cost => ({ calls: 0, ms: 0 }));
  for (const [n, buffer] of buffers.entries()) {
    const now = new Float64Array(buffer);
    for (const [f, { row, counted }] of FUNCTIONS.entries()) {
      const [time, kept, inner, calls] = [TIME, KEPT, INNER, CALLS].map((at) =>
        now[f * FIELDS + at] - before[n][f * FIELDS + at]
      );
      if (counted) rows[row].calls += calls;
      if (kept === 0) continue;
      const ms = time - kept * now[CALIBRATED] - inner * now[CALIBRATED + 1];
      // Less than nothing is what the calibration can be wrong by.
      rows[row].ms += Math.max(ms, 0) * calls / kept;
    }
  }
  return rows;
}
