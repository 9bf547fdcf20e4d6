/**
 * The thread whose latency is measured: a load that creates and deletes many
 * objects at once, and a timer; and the reader that makes their reclamation
 * wait meanwhile.
 */
import { setImmediate } from "node:timers";
import { type Address, Rcu, type RcuHandle, runReclaimer } from "../mod.ts";
import { HEADER_DEBUG, POISONS } from "../src/_layout.ts";
import { quickTurn } from "./_thread.ts";
import { obey } from "./_workers.ts";

/** Objects that are replaced in a burst. */
export const BURST = 9_000;
/** Those of them that are replaced at once, before timers have their turn: well under 100 µs. */
export const SLICE = 20;
/** Words of an object: as many as fit a page twice. */
export const OBJECT = 2040;
/** Objects that are alive. */
const LIVE = 6_144;

/** Which domain's reader has to hold a section, from 1, or 0; and which one does. */
const WANTED = 0;
const HELD = 1;

/** How to take part. */
export interface LoadOptions {
  handle: RcuHandle;
  /** Words through which the reader is told when to read. */
  gate: Int32Array;
  /** The domain's number there, from 1. */
  domain: number;
  /** Whether objects are freed at once, without any callback, as if nobody ever read. */
  plain: boolean;
}

/** What a round found. */
export interface Round {
  /** How late each tick of 1 ms was, in ms. */
  late: Float64Array;
  /** When the reader let go, in ms from the beginning. */
  released: number;
  /** A slice of the load, in µs: half of them took less. */
  slice: number;
  /** How long they took in all, in ms. */
  busy: number;
}

/** A table of objects, and what is done to it. */
export class Load {
  readonly rcu: Rcu;
  readonly #options: LoadOptions;
  readonly #table: Address;
  #at = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.rcu = Rcu.attach(options.handle, { name: "load" });
    const { memory } = this.rcu;
    this.#table = memory.allocate(LIVE);
    for (let i = 0; i < LIVE; i++) {
      this.rcu.assignPointer(this.#table + i, memory.allocate(OBJECT));
    }
  }

  /** Replaces some objects, going through the table. */
  replace(count: number): void {
    const { rcu } = this;
    const { plain } = this.#options;
    const { words } = rcu.memory;
    for (let i = 0; i < count; i++) {
      const pointer = this.#table + this.#at;
      this.#at = (this.#at + 1) % LIVE;
      const fresh = rcu.memory.allocate(OBJECT);
      words[fresh] = i;
      const old = rcu.read(() => rcu.dereference(pointer));
      rcu.assignPointer(pointer, fresh);
      if (plain) rcu.memory.free(old);
      else rcu.deferFree(old);
    }
  }

  /** Watches a timer for so many ms, in which there is one burst. */
  async round(ms: number): Promise<Round> {
    const slices = new Float64Array(BURST / SLICE);
    const start = performance.now();
    const watched = watch(ms);
    await this.#holdReader(true);
    for (let n = 0; n < slices.length; n++) {
      const start = performance.now();
      this.replace(SLICE);
      slices[n] = performance.now() - start;
      // Not by messages, which let timers starve.
      await new Promise(setImmediate);
    }
    await this.#holdReader(false);
    const released = performance.now() - start;
    const late = await watched;
    slices.sort();
    return {
      late,
      released,
      slice: slices[slices.length >> 1] * 1000,
      busy: slices.reduce((sum, slice) => sum + slice),
    };
  }

  async #holdReader(holds: boolean): Promise<void> {
    const { gate, domain } = this.#options;
    const deadline = performance.now() + 10_000;
    Atomics.store(gate, WANTED, holds ? domain : 0);
    Atomics.notify(gate, WANTED);
    while (holds && Atomics.load(gate, HELD) !== domain) {
      if (performance.now() > deadline) throw new Error("The reader is stuck");
      await quickTurn();
    }
  }
}

/**
 * A timer of 1 kHz: how late each of its ticks is, from when it was due.
 * Ticks that the thread missed count as well, each with the time for which it
 * had to wait: a stall of 10 ms makes ten ticks late, not one.
 */
export function watch(ms: number): Promise<Float64Array> {
  const late = new Float64Array(ms);
  const start = performance.now();
  let next = 1;
  return new Promise((resolve) => {
    const tick = () => {
      const now = performance.now() - start;
      for (; next <= ms && next <= now; next++) late[next - 1] = now - next;
      if (next > ms) resolve(late);
      else setTimeout(tick, 1);
    };
    setTimeout(tick, 1);
  });
}

let load: Load | undefined;

/** Opens a thread's load. */
export function openLoad(options: LoadOptions): void {
  load = new Load(options);
}

/** See {@linkcode Load.round}. */
export function round(ms: number): Promise<Round> {
  return load!.round(ms);
}

/** Leaves the domain. */
export function closeLoad(): void {
  load!.rcu.close();
}

/** Reads in the domain that wants it, in a section that lasts as long as it is wanted. */
export function holder(
  { handles, gate }: { handles: RcuHandle[]; gate: Int32Array },
  control: Int32Array,
): void {
  const domains = handles.map((handle) =>
    Rcu.attach(handle, { name: "reader" })
  );
  obey(control, () => {
    const wanted = Atomics.load(gate, WANTED);
    if (wanted === 0) {
      Atomics.wait(gate, WANTED, 0, 20);
      return 0;
    }
    const rcu = domains[wanted - 1];
    rcu.read(() => {
      Atomics.store(gate, HELD, wanted);
      while (Atomics.load(gate, WANTED) === wanted) {
        Atomics.wait(gate, WANTED, wanted, 20);
      }
    });
    rcu.threadOffline();
    Atomics.store(gate, HELD, 0);
    return 1;
  }, () => {});
  for (const rcu of domains) rcu.close();
}

/** Frees what others have deferred, until the domain is at its end. */
export function reclaimer(handle: RcuHandle): Promise<void> {
  return runReclaimer(handle);
}

/**
 * Has the threads that join a domain from now on fill what they free, as debug
 * mode does: then a free takes as long as one that does something.
 */
export function poisonFreed(rcu: Rcu): void {
  rcu.memory.words[HEADER_DEBUG] = POISONS;
}

/** What a burst costs that is freed at once, in ms: half of some take less. */
export function batchCosts(): {
  words: number;
  poisoned: boolean;
  ms: number;
}[] {
  return [
    { words: 16, poisoned: false },
    { words: OBJECT, poisoned: false },
    { words: OBJECT, poisoned: true },
  ].map(({ words, poisoned }) => {
    const capacity = 96 * 2 ** 20;
    using domain = Rcu.create({ capacity, maxReaders: 3 });
    if (poisoned) poisonFreed(domain);
    using rcu = Rcu.attach(domain.handle);
    using reader = Rcu.attach(rcu.handle);
    const times: number[] = [];
    for (let round = 0; round < 9; round++) {
      const section = reader.readLock();
      for (let i = 0; i < BURST; i++) {
        rcu.deferFree(rcu.memory.allocate(words));
      }
      section[Symbol.dispose]();
      reader.threadOffline();
      const start = performance.now();
      rcu.barrierSync();
      times.push(performance.now() - start);
    }
    return { words, poisoned, ms: times.sort((a, b) => a - b)[4] };
  });
}
