// A view of a running domain, as text.

import {
  checkSignal,
  type OptionNames,
  refuseNumber,
  takeOptions,
} from "./_arguments.ts";
import type { StallEvent } from "./grace_periods/stall_event.ts";
import type { StallReport } from "./grace_periods/stall_report.ts";
import { membershipOf, type Rcu } from "./rcu.ts";
import type { RcuStats, ReaderStats } from "./stats.ts";

/**
 * How a domain is watched.
 *
 * @example Twice a second, for a minute at most
 * ```ts
 * import { Rcu, top, type TopOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const options: TopOptions = {
 *   interval: 500,
 *   signal: AbortSignal.timeout(60_000),
 * };
 * const { done } = await top(rcu, options).next();
 * assertEquals(done, false);
 * ```
 */
export interface TopOptions {
  /**
   * Between two tables, in ms, from 1 to 2,147,483,647.
   *
   * @default {1000}
   */
  interval?: number;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

const TOP_OPTIONS: OptionNames<TopOptions> = { interval: true, signal: true };

const ACT = "watch a domain";

/** What a grace period that a table waits for may take, in ms. */
const PATIENCE = 1_000;

/** What has been seen at one moment. */
interface Sight {
  /** In ms. */
  time: number;
  stats: RcuStats;
  /** How long a grace period took just now, in ms; `undefined` if it has not ended. */
  latency: number | undefined;
  /** What stalls there have been, and the last one. */
  stalls: number;
  stall: StallReport | undefined;
}

/**
 * Watches a domain, like `top`: yields a table of it again and again, to be
 * shown in place of the one before. It says who is registered and who is online, how many
 * grace periods end in a second and how long one takes now, how many callbacks
 * wait, where the memory is, and what stalls there were while it was watched.
 *
 * The thread that watches waits for a grace period for each table, which costs
 * the others what any `synchronize` does. Watch from a thread whose event loop turns, a
 * worker of its own for example: it joins by {@linkcode Rcu.connect}.
 *
 * @param rcu The watching thread's membership.
 * @param options How often, and until when.
 * @returns The tables, of some lines of up to 80 characters each and one for each thread. Leaving a
 * `for await` loop ends it.
 * @throws {TypeError} If `rcu` is no `Rcu`, or an option is of the wrong type.
 * @throws {RangeError} If the interval is out of range.
 * @throws {Error} If the membership is closed, be it meanwhile; the signal's reason if it is aborted.
 *
 * @example A terminal's worth of what goes on
 * ```ts
 * import { Rcu, top } from "@grace/rcu";
 * import { assertStringIncludes } from "@std/assert";
 *
 * using rcu = await Rcu.connect("top", { capacity: 4 * 2 ** 20, name: "main" });
 * for await (const table of top(rcu, { interval: 10 })) {
 *   // In a terminal: console.clear(), console.log(table).
 *   assertStringIncludes(table, "1 reader");
 *   assertStringIncludes(table, "main");
 *   break;
 * }
 * ```
 */
export function top(
  rcu: Rcu,
  options: TopOptions = {},
): AsyncGenerator<string, void, void> {
  membershipOf(rcu, ACT);
  const { interval = 1_000, signal } = takeOptions(options, TOP_OPTIONS, ACT);
  checkSignal(signal, ACT);
  if (!Number.isInteger(interval) || interval < 1 || interval >= 2 ** 31) {
    refuseNumber(
      `Cannot ${ACT} as interval must be an integer from 1 to 2147483647`,
      interval,
    );
  }
  return tables(rcu, interval, signal);
}

async function* tables(
  rcu: Rcu,
  interval: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<string, void, void> {
  let stalls = 0;
  let stall: StallReport | undefined;
  const onStall = (event: StallEvent): void => {
    stalls++;
    stall = event.report;
    // It is shown.
    event.preventDefault();
  };
  rcu.addEventListener("stall", onStall);
  try {
    let before: Sight | undefined;
    while (true) {
      signal?.throwIfAborted();
      const latency = await latencyOf(rcu, signal);
      const time = performance.now();
      const now = { time, stats: rcu.stats(), latency, stalls, stall };
      yield tableOf(now, before ?? now);
      before = now;
      await pause(rcu, interval, signal);
    }
  } finally {
    rcu.removeEventListener("stall", onStall as EventListener);
  }
}

/** How long a grace period takes. */
async function latencyOf(
  rcu: Rcu,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const begin = performance.now();
  const limit = AbortSignal.timeout(PATIENCE);
  const either = signal === undefined
    ? limit
    : AbortSignal.any([signal, limit]);
  try {
    await rcu.synchronize({ expedited: true, signal: either });
    return performance.now() - begin;
  } catch (error) {
    signal?.throwIfAborted();
    if (!limit.aborted) throw error;
    return undefined;
  }
}

/** Waits until the next table, the end of the membership or the signal. */
async function pause(
  rcu: Rcu,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const membership = membershipOf(rcu, ACT);
  await membership.whileOpen(signal, async (over) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    over.addEventListener("abort", () => resolve());
    if (over.aborted) resolve();
    await promise;
    clearTimeout(timer);
  });
  signal?.throwIfAborted();
  membership.assertOpen(ACT);
}

function tableOf(now: Sight, before: Sight): string {
  const { stats: { gracePeriods, callbacks, memory, readers } } = now;
  const perSecond = (count: number, was: number): string => {
    const ms = now.time - before.time;
    return ms === 0 ? "-" : whole((count - was) * 1000 / ms);
  };
  const online = readers.filter((reader) => reader.online).length;
  const ended = perSecond(
    gracePeriods.completed,
    before.stats.gracePeriods.completed,
  );
  const invoked = perSecond(
    callbacks.invoked,
    before.stats.callbacks.invoked,
  );
  const latency = now.latency === undefined
    ? `none within ${PATIENCE} ms`
    : `${now.latency.toFixed(2)} ms each`;
  return [
    `${readers.length} reader${
      readers.length === 1 ? "" : "s"
    }, ${online} online`,
    `grace periods  ${ended}/s, ${latency}; ${
      whole(gracePeriods.completed)
    } ended, ${whole(gracePeriods.expedited)} expedited, ${
      whole(gracePeriods.forced)
    } forced`,
    `callbacks      ${whole(callbacks.pending)} pending, ${
      whole(callbacks.peak)
    } at most in a thread; ${invoked}/s invoked, ${whole(callbacks.lost)} lost`,
    `memory         ${mebibytes(memory.capacity)} MiB: ${
      mebibytes(memory.live)
    } live, ${mebibytes(memory.deferred)} deferred, ${
      mebibytes(memory.free)
    } free, ${mebibytes(memory.overhead)} overhead`,
    `stalls         ${whole(now.stalls)}${lastOf(now.stall)}`,
    "",
    row("id", "name", "state", "behind", "pending"),
    ...readers.map((reader) => rowOf(reader, gracePeriods.started)),
  ].join("\n");
}

function lastOf(stall: StallReport | undefined): string {
  if (stall === undefined) return "";
  const [first, ...others] = stall.readers;
  const who = first === undefined
    ? "nobody in the way by now"
    : `reader ${first.id} "${shownName(first.name).slice(0, 16)}"` +
      (others.length === 0 ? "" : `, ${whole(others.length)} more`);
  return `, the last for ${whole(stall.age)} ms: ${who}`;
}

/** A name may hold anything, and is to stay in its place. */
function shownName(name: string): string {
  return name.replaceAll(/\p{C}/gu, "\ufffd").slice(0, 32);
}

function rowOf(
  { id, name, observed, online, pending }: ReaderStats,
  started: number,
): string {
  return row(
    String(id),
    name,
    online ? "online" : "offline",
    online ? whole(started - observed) : "",
    whole(pending),
  );
}

function row(
  id: string,
  name: string,
  state: string,
  behind: string,
  pending: string,
): string {
  return `${id.padStart(4)}  ${shownName(name).padEnd(32)}  ${
    state.padEnd(7)
  }  ${behind.padStart(8)}  ${pending.padStart(12)}`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function mebibytes(value: number): string {
  return (value / 2 ** 20).toLocaleString("en", { maximumFractionDigits: 1 });
}
