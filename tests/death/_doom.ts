// A thread that dies at a given step, without another thread.

import { Rcu, type RcuHandle } from "../../mod.ts";
import { windUp } from "../../src/_estate.ts";
import {
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
} from "../../src/_layout.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";

const ACCESSES = [
  "add",
  "and",
  "compareExchange",
  "exchange",
  "load",
  "notify",
  "or",
  "store",
  "sub",
  "wait",
] as const;
// deno-lint-ignore no-explicit-any
const globals = globalThis as any;

type Access = (words: Int32Array, ...rest: unknown[]) => unknown;

/** Thrown where the thread dies, and by everything that it still does while its stack unwinds. */
class Death extends Error {}

/** Views of shared memory whose plain stores are steps, too: the view → the array behind it. */
const behind = new WeakMap<object, Int32Array>();

/** Whether a step is one of the allocator's own, which call nothing that throws. */
function inAllocator(): boolean {
  const { stackTraceLimit } = Error as { stackTraceLimit?: number };
  Object.assign(Error, { stackTraceLimit: Infinity });
  const stack = new Error().stack!;
  Object.assign(Error, { stackTraceLimit });
  const step = stack.split("\n").find((line) => line.includes("/src/"));
  return step !== undefined && step.includes("/src/memory/_heap.ts");
}

/** Gets the view through which memory is about to be touched. */
let acting: (view: Int32Array) => void = () => {};

/** Before anything of the package is used. */
for (const name of ACCESSES) {
  const original = Atomics[name] as unknown as Access;
  const access: Access = (words, ...rest) => {
    acting(words);
    return original(behind.get(words) ?? words, ...rest);
  };
  Object.assign(Atomics, { [name]: access });
}

/** A view whose plain stores are steps. */
function watch(words: Int32Array): Int32Array {
  const view: Int32Array = new Proxy(words, {
    get: (target, key) => {
      const value = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...rest: unknown[]) => {
        if (/^(fill|set|copyWithin)$/.test(String(key))) acting(view);
        return value.apply(target, rest);
      };
    },
    set: (target, key, value) => {
      acting(view);
      return Reflect.set(target, key, value, target);
    },
  });
  behind.set(view, words);
  return view;
}

/**
 * Does something of which nothing is left for a further turn: a dead thread has none.
 *
 * @param act What.
 * @returns What it returns.
 */
export function inOneTurn<T>(act: () => T): T {
  const { queueMicrotask } = globalThis;
  globals.queueMicrotask = () => {};
  try {
    return act();
  } finally {
    globals.queueMicrotask = queueMicrotask;
  }
}

/**
 * Has one thread play two: its memberships, and one that dies at some step.
 *
 * A step is an atomic access or a plain store, whatever makes it. The memory is
 * put back to what it was at the death when the stack has been unwound, so `finally` and
 * `catch` blocks, which a thread that dies does not run, change nothing.
 */
export class Doom {
  /** Steps of the last act. */
  steps = 0;
  #at = Infinity;
  #view: Int32Array | undefined;
  #dead = false;
  #unwinds = false;
  #image: Int32Array | undefined;
  #words: Int32Array | undefined;

  /**
   * Joins a domain as the thread that is to die.
   *
   * @param handle The domain's handle.
   * @returns Its membership.
   */
  attach(handle: RcuHandle): Rcu {
    const array = Int32Array;
    this.#words = new Int32Array(handle.buffer);
    const watched = watch(this.#words);
    this.#view = watched;
    globalThis.Int32Array = new Proxy(array, {
      construct: (target, [source, ...rest]) =>
        source === handle.buffer
          ? watched
          : Reflect.construct(target, [source, ...rest]),
    });
    try {
      return Rcu.attach(handle, { name: "doomed" });
    } finally {
      globalThis.Int32Array = array;
    }
  }

  #step(): void {
    if (this.#dead && !this.#unwinds) throw new Death();
    if (this.steps++ !== this.#at) return;
    if (this.#unwinds && inAllocator()) {
      this.#at++;
      return;
    }
    this.#dead = true;
    if (this.#unwinds) throw new Death();
    this.#image ??= this.#words!.slice();
    this.#image.set(this.#words!);
    throw new Death();
  }

  /** The memory in which every store is a step. */
  get view(): Int32Array {
    return this.#view!;
  }

  /**
   * Does something as the thread that is to die.
   *
   * @param act What.
   * @param at The step before which it dies.
   * @param unwinds Whether an error ends it that is thrown there, or at the first step after that is
   * none of the allocator's: it dies when nobody has caught it.
   * @returns Whether it has died.
   */
  run(act: () => void, at: number, unwinds = false): boolean {
    this.#at = at;
    this.#unwinds = unwinds;
    this.steps = 0;
    this.#dead = false;
    acting = (words) => {
      if (words === this.#view) this.#step();
    };
    try {
      inOneTurn(act);
    } catch (error) {
      if (!this.#dead) throw error;
    } finally {
      acting = () => {};
    }
    if (this.#dead && !unwinds) this.#words!.set(this.#image!);
    return this.#dead;
  }
}

/**
 * Buries every member but one, as somebody who has the proof does.
 *
 * @param words The domain's words.
 * @param survivor The record of the one.
 */
export function bury(words: Int32Array, survivor: number): void {
  const places = layout(
    words.length,
    words[HEADER_MAX_READERS],
    words[HEADER_DETECTOR],
  );
  const readers = new ReaderTable(
    words,
    places.readers,
    words[HEADER_MAX_READERS],
  );
  const dead: number[] = [];
  for (let index = 0; index < readers.size; index++) {
    if (index !== survivor && readers.lifeOf(index) !== 0) dead.push(index);
  }
  windUp(words, dead);
}
