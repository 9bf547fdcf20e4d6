// What a scenario is, and what scenarios share.

import { Rcu, type RcuHandle, type RcuOptions } from "../../mod.ts";
import { assertListsQuickly } from "./_lists.ts";
import { createDomain } from "../../src/_domain.ts";
import {
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
  POISONS,
} from "../../src/_layout.ts";
import { membershipOf } from "../../src/rcu.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";
import { fail, giveWay, unwatched } from "./_hooks.ts";

/** Bytes of the memory that is explored: those of the smallest domain. */
export const CAPACITY = 2 ** 21;

/** One thread's part of a run. */
export interface Part {
  /** What it does, step by step as the schedule has it. */
  act(): void | Promise<void>;
  /** What it does when all have acted, in one piece, the threads one after the other. */
  leave?(): void;
}

/** What threads know of the world beside its memory; cloned. */
export type Scene = Record<string, unknown>;

/** A handful of threads that do something at once, small enough to try all schedules. */
export interface Scenario<S extends Scene = Scene> {
  readonly name: string;
  readonly threads: number;
  /** Whether a thread that spins for a lock goes on until it parks. */
  readonly spins?: boolean;
  /** Whether a timeout may be what ends a sleep when nothing else can happen. */
  readonly rescues?: boolean;
  /** Lays the memory out, once: every run begins with it as it is then. */
  lay(buffer: SharedArrayBuffer): S;
  /** Has a thread join for one run, in one piece, the threads one after the other. */
  join(thread: number, buffer: SharedArrayBuffer, scene: S): Part;
  /** Throws if something is wrong in the end; in the first thread, all others having left. */
  check?(buffer: SharedArrayBuffer, scene: S): void;
  /** Words that nobody notifies. */
  naps?(buffer: SharedArrayBuffer, scene: S): number[];
}

/** Waits until something is so; others go on meanwhile. */
export function until(isSo: () => boolean): void {
  while (!isSo()) giveWay();
}

/** Throws unless something is so. */
export function must(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(what);
}

/** Throws unless two numbers are the same. */
export function mustBe(actual: number, expected: number, what: string): void {
  if (actual !== expected) {
    throw new Error(`${what} must be ${expected}: it is ${actual}`);
  }
}

// Worlds that are a domain

/** A scene with a domain. */
export interface DomainScene extends Scene {
  /** The handle without its buffer. */
  domain: Omit<RcuHandle, "buffer">;
  /** Bytes that are live in the beginning. */
  live: number;
}

/**
 * Lays out a domain.
 *
 * @param buffer The memory.
 * @param options The domain's options.
 * @param make Makes what the scenario needs in it.
 * @returns The scene: what `make` returned, and the domain.
 */
export function layDomain<T extends Scene>(
  buffer: SharedArrayBuffer,
  options: RcuOptions,
  make: (rcu: Rcu) => T,
): T & DomainScene {
  const { handle, words } = createDomain({
    capacity: CAPACITY,
    maxReaders: 4,
    ...options,
    debug: false,
  });
  // Poison shows what is freed too early. What else debug mode writes down depends on how long it
  // takes, so that no run would repeat itself.
  if (options.debug) words[HEADER_DEBUG] = POISONS;
  new Int32Array(buffer).set(words);
  const { kind, version, id } = handle;
  const domain = { kind, version, id };
  const rcu = Rcu.attach({ ...domain, buffer });
  const made = make(rcu);
  rcu.barrierSync();
  const { live } = rcu.memory.audit();
  rcu.close();
  return { ...made, domain, live };
}

/**
 * Joins the domain of a scene. An error that it reports fails the run.
 *
 * @param buffer The memory.
 * @param scene The scene.
 * @param sizes Blocks of these sizes, in words, are at hand without a lock afterwards.
 * @returns The membership.
 */
export function joinDomain(
  buffer: SharedArrayBuffer,
  { domain }: DomainScene,
  ...sizes: number[]
): Rcu {
  const rcu = Rcu.attach({ ...domain, buffer });
  rcu.addEventListener("error", (event) => {
    event.preventDefault();
    fail((event as ErrorEvent).error);
  });
  for (const size of sizes) rcu.memory.free(rcu.memory.allocate(size));
  return rcu;
}

/** Does at once what the turns that follow an update would do for its thread's callbacks. */
export function reclaim(rcu: Rcu): void {
  membershipOf(rcu, "reclaim").callbacks.processCallbacks();
}

/**
 * Throws unless a domain that all threads have left has everything in its place.
 *
 * @param buffer The memory.
 * @param scene The scene.
 * @param grown How many bytes more than in the beginning are to be live.
 */
export function mustBeTidy(
  buffer: SharedArrayBuffer,
  { domain, live }: DomainScene,
  grown: (rcu: Rcu) => number,
): void {
  const rcu = Rcu.attach({ ...domain, buffer });
  rcu.barrierSync();
  const { readers, callbacks, memory } = rcu.stats();
  mustBe(readers.length, 1, "The number of threads in the end");
  mustBe(callbacks.pending, 0, "What waits in the end");
  mustBe(memory.deferred, 0, "Deferred memory in the end");
  mustBe(memory.live, live + grown(rcu), "Live memory in the end");
  assertListsQuickly(unwatched());
  rcu.close();
}

/** The words of a domain's readers on which nobody is notified. */
export function napsOf(buffer: SharedArrayBuffer): number[] {
  const words = new Int32Array(buffer);
  const maxReaders = words[HEADER_MAX_READERS];
  const { readers } = layout(words.length, maxReaders, words[HEADER_DETECTOR]);
  const table = new ReaderTable(words, readers, maxReaders);
  return Array.from({ length: maxReaders }, (_, i) => table.nap(i));
}
