// What stands between the package and what it shares with other threads: replaced before it loads.

import { Aborted, type Player } from "./_player.ts";
import { READ, WRITE } from "./_board.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const BOTH = READ | WRITE;

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  queueMicrotask: globalThis.queueMicrotask,
  now: performance.now.bind(performance),
};

/** The clock of the machine, in ms. */
export const realNow: () => number = real.now;

/** This thread, while it takes part in an exploration. */
let player: Player | undefined;
/** The memory that is explored, and what the package takes for it. */
let target: Int32Array | undefined;
let watched: Int32Array | undefined;
let spins = false;
let naps: (address: number) => boolean = () => false;

/** How waiting is to be understood. */
export interface Waiting {
  /** Whether a thread that spins goes on; otherwise it lets others go on. */
  spins: boolean;
  /** Whether nobody ever notifies a word: whoever waits for it takes a nap. */
  naps: (address: number) => boolean;
}

/**
 * Has every access of this thread to some words be a step of a player.
 *
 * @param words The words.
 * @param by The player.
 * @param waiting How waiting is to be understood.
 */
export function watch(words: Int32Array, by: Player, waiting: Waiting): void {
  if (target !== words) {
    target = words;
    watched = watchedView(words);
  }
  player = by;
  spins = waiting.spins;
  naps = waiting.naps;
}

/** The memory that is explored, for looks that are no steps. */
export function unwatched(): Int32Array {
  return target!;
}

/** The same, as the package has it: an access is a step. */
export function watchedWords(): Int32Array {
  return watched!;
}

/** Fails the run. */
export function fail(error: unknown): void {
  player!.fail(messageOf(error));
}

/** Lets others go on: the caller waits for them. */
export function giveWay(): void {
  if (player?.playing) player.giveWay();
}

function access(address: number, kind: number, what: string): void {
  if (player!.playing) player!.access(address, kind, what);
}

// Plain accesses

/** Whether a property's name is that of a number: an index, one below 0, `NaN`. */
function isNumber(key: string): boolean {
  const first = key.charCodeAt(0);
  return first >= 48 && first <= 57 || first === 45 || key === "NaN";
}

/** A word beyond the memory would read as `undefined`, and whoever follows it might never end. */
function addressOf(words: Int32Array, key: string): number {
  const address = Number(key);
  if (address >= 0 && address < words.length) return address;
  throw new RangeError(
    `Cannot access a word as its address must lie in the memory: received ${key}`,
  );
}

function watchedView(words: Int32Array): Int32Array {
  const methods: Record<string, unknown> = {
    fill(value: number, from = 0, to = words.length) {
      for (let i = from; i < to; i++) {
        access(i, WRITE, "fill");
        words[i] = value;
      }
    },
    set(values: ArrayLike<number>, at = 0) {
      for (let i = 0; i < values.length; i++) {
        access(at + i, WRITE, "set");
        words[at + i] = values[i];
      }
    },
    copyWithin(to: number, from: number, end = words.length) {
      for (let i = 0; i < end - from; i++) {
        access(from + i, READ, "copy");
        const value = words[from + i];
        access(to + i, WRITE, "copy");
        words[to + i] = value;
      }
    },
  };
  return new Proxy(words, {
    get(_, key) {
      if (typeof key === "string") {
        if (isNumber(key)) {
          const address = addressOf(words, key);
          access(address, READ, "read");
          return words[address];
        }
        if (key in methods) return methods[key];
      }
      const value = Reflect.get(words, key, words);
      return typeof value === "function" ? value.bind(words) : value;
    },
    set(_, key, value) {
      const address = addressOf(words, key as string);
      access(address, WRITE, "write");
      words[address] = value;
      return true;
    },
  });
}

// Atomics

const original = { ...Object.getOwnPropertyDescriptors(Atomics) };

function replaceAtomic(
  name: string,
  make: (call: Any) => (...args: Any[]) => unknown,
): void {
  const call = original[name as keyof typeof original]?.value;
  (Atomics as Any)[name] = make(call);
}

/** What is called when an asynchronous wait is over. */
const sleeps = new Map<number, (result: string) => void>();

// Time

interface FakeTimer {
  due: number;
  task: () => void;
  ref(): void;
  unref(): void;
}

const timers = new Set<FakeTimer>();
/** A timer that is due within so many ms is no sleep: its thread only lets others go on. */
const SOON = 10;

function nothing(): Promise<never> {
  return new Promise(() => {});
}

/** Takes the place of everything in this thread through which a schedule, or time, or chance would act. */
export function install(): void {
  globalThis.Int32Array = new Proxy(Int32Array, {
    construct(kind, args, newTarget) {
      if (target !== undefined && args[0] === target.buffer) return watched!;
      return Reflect.construct(kind, args, newTarget);
    },
  });

  for (
    const [name, kind] of [
      ["load", READ],
      ["store", WRITE],
      ["add", BOTH],
      ["sub", BOTH],
      ["and", BOTH],
      ["or", BOTH],
      ["xor", BOTH],
      ["exchange", BOTH],
      ["compareExchange", BOTH],
    ] as const
  ) {
    replaceAtomic(name, (call) => (words, address, a, b) => {
      if (words !== watched || words === undefined) {
        return call(words, address, a, b);
      }
      access(address, kind, name);
      return call(target, address, a, b);
    });
  }

  replaceAtomic("notify", (call) => (words, address, count = Infinity) => {
    if (words !== watched || words === undefined) {
      return call(words, address, count);
    }
    if (!player!.playing) return 0;
    access(address, BOTH, "notify");
    return player!.notify(address, count);
  });

  replaceAtomic(
    "wait",
    (call) => (words, address, value, timeout = Infinity) => {
      if (words !== watched || words === undefined || !player!.playing) {
        return call(
          words === watched ? target : words,
          address,
          value,
          timeout,
        );
      }
      access(address, READ, "wait");
      if (target![address] !== value) return "not-equal";
      if (naps(address)) {
        player!.nap(timeout);
        return "timed-out";
      }
      const it = player!.enlist(address, timeout);
      while (true) {
        player!.block();
        const over = player!.isOver(it);
        if (over !== undefined) return over;
      }
    },
  );

  replaceAtomic(
    "waitAsync",
    (call) => (words, address, value, timeout = Infinity) => {
      if (words !== watched || words === undefined || !player!.playing) {
        return call(
          words === watched ? target : words,
          address,
          value,
          timeout,
        );
      }
      access(address, READ, "waitAsync");
      if (target![address] !== value) {
        return { async: false, value: "not-equal" };
      }
      const { promise, resolve } = Promise.withResolvers<string>();
      sleeps.set(player!.enlist(address, timeout), resolve);
      return { async: true, value: promise };
    },
  );

  replaceAtomic("pause", () => () => {
    if (!spins) giveWay();
  });

  globalThis.setTimeout = ((task: () => void, ms = 0) => {
    if (!player?.playing) return real.setTimeout(task, ms);
    const timer = { due: player.now + ms, task, ref() {}, unref() {} };
    timers.add(timer);
    return timer;
  }) as Any;

  globalThis.clearTimeout = ((timer: Any) => {
    if (typeof timer === "object" && timer !== null) timers.delete(timer);
    else real.clearTimeout(timer);
  }) as Any;

  globalThis.queueMicrotask = (task: () => void) =>
    real.queueMicrotask(() => {
      try {
        task();
      } catch (error) {
        // Nobody else would catch it.
        if (!(error instanceof Aborted)) throw error;
      }
    });

  Object.defineProperty(performance, "now", {
    value: () => player?.playing ? player.now : real.now(),
  });

  // Nobody dies in an exploration, so nobody is asked: a lock that is granted in its own good time
  // would be no part of the schedule.
  const { locks } = navigator as unknown as { locks: unknown };
  const never = { request: nothing, query: nothing };
  Object.defineProperty(navigator, "locks", {
    get: () => player === undefined ? locks : never,
  });

  // Chance: the same in every run, so that a schedule can be replayed.
  crypto.getRandomValues = <T extends ArrayBufferView | null>(array: T): T => {
    if (array !== null) new Uint8Array(array.buffer).fill(0x5a);
    return array;
  };
  crypto.randomUUID = () => "5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a";
}

/** Microtasks that may follow from one another before a thread counts as idle. */
const MICROTASKS = 40;

/** Lets this turn's microtasks run. */
async function endOfTurn(): Promise<void> {
  for (let i = 0; i < MICROTASKS; i++) await undefined;
}

/**
 * Plays a thread's part: what it does, and the turns of its event loop in between.
 *
 * @param act What it does.
 */
export async function play(act: () => void | Promise<void>): Promise<void> {
  const by = player!;
  timers.clear();
  sleeps.clear();
  by.playing = true;
  try {
    let over = false;
    let failure: unknown;
    const acting = act();
    if (acting instanceof Promise) {
      acting.then(() => over = true, (error) => {
        over = true;
        failure = error;
      });
      while (true) {
        await endOfTurn();
        if (over) break;
        idle(by);
      }
      if (failure !== undefined) throw failure;
    }
    await endOfTurn();
  } catch (error) {
    if (!(error instanceof Aborted)) by.fail(messageOf(error));
  }
  by.playing = false;
  by.end();
}

/** What is wrong, and where. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

/** The event loop has nothing to do: sleeps until it has, and does it. */
function idle(by: Player): void {
  const due = Math.min(Infinity, ...[...timers].map((timer) => timer.due));
  if (due - by.now <= SOON) by.nap(Math.max(0, due - by.now));
  else by.block(due);
  for (const [it, resolve] of sleeps) {
    const over = by.isOver(it);
    if (over === undefined) continue;
    sleeps.delete(it);
    resolve(over);
  }
  for (const timer of [...timers]) {
    if (timer.due > by.now) continue;
    timers.delete(timer);
    timer.task();
  }
}
