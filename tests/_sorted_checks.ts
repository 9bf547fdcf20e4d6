// What readers of a sorted map look for while others write.

import {
  type KeyCodec,
  Rcu,
  type RcuHandle,
  RcuSortedMap,
  string,
  u32,
} from "../mod.ts";
import { CODECS, type Kind, versionIn } from "./_map_checks.ts";

/** A task's domain and map. */
export interface Task {
  handle: RcuHandle;
  key: "u32" | "string";
  kind: Kind;
}

/** What readers found that must not be. */
export interface SortedFound {
  reads: number;
  /** Keys that are always there and were not, or were passed over. */
  missing: number;
  /** Values that are mixtures, another key's, or freed. */
  wrong: number;
  /** Keys that are out of order, or out of the bounds that were asked for. */
  misplaced: number;
}

/**
 * The n-th key; keys are in the order of their numbers.
 *
 * @param key The codec of the keys.
 * @param n The number, below 65,536.
 * @returns The key.
 */
export function sortedKey(key: "u32" | "string", n: number): number | string {
  return key === "u32" ? n * 0x10001 : `key ${String(n).padStart(5, "0")}`;
}

function numberOf(key: number | string): number {
  return typeof key === "number" ? key / 0x10001 : Number(key.slice(4));
}

/**
 * Opens the map of a task.
 *
 * @param rcu The domain.
 * @param task The task.
 * @returns The map.
 */
export function openSorted(
  rcu: Rcu,
  { key, kind }: Omit<Task, "handle">,
): RcuSortedMap<number | string, unknown> {
  const codec = key === "u32" ? u32 : string;
  return RcuSortedMap.open(rcu, "m", {
    key: codec as unknown as KeyCodec<number | string>,
    value: CODECS[kind],
  });
}

/** Looks at a map in which every key with a number that `every` divides is always there. */
export class SortedWatcher {
  readonly found: SortedFound = {
    reads: 0,
    missing: 0,
    wrong: 0,
    misplaced: 0,
  };
  readonly #map: RcuSortedMap<number | string, unknown>;
  readonly #task: Omit<Task, "handle">;
  readonly #keys: number;
  readonly #every: number;

  constructor(
    map: RcuSortedMap<number | string, unknown>,
    task: Omit<Task, "handle">,
    keys: number,
    every: number,
  ) {
    this.#map = map;
    this.#task = task;
    this.#keys = keys;
    this.#every = every;
  }

  #check(n: number, value: unknown): void {
    this.found.reads++;
    if (versionIn(this.#task.kind, n, value) < 0) this.found.wrong++;
  }

  /** Looks up all keys. */
  get(): void {
    for (let n = 0; n < this.#keys; n++) {
      const value = this.#map.get(sortedKey(this.#task.key, n));
      if (value !== undefined) this.#check(n, value);
      else if (n % this.#every === 0) this.found.missing++;
    }
  }

  /** Looks for what is beside all keys. */
  beside(): void {
    const every = this.#every;
    const last = this.#keys - 1;
    for (let n = 0; n < this.#keys; n++) {
      const key = sortedKey(this.#task.key, n);
      this.#near(this.#map.floor(key), n - n % every, n);
      const next = Math.ceil(n / every) * every;
      if (next <= last) this.#near(this.#map.ceiling(key), n, next);
    }
    this.#near(this.#map.first(), 0, 0);
    this.#near(this.#map.last(), last - last % every, last);
  }

  #near(
    entry: [number | string, unknown] | undefined,
    least: number,
    most: number,
  ): void {
    if (entry === undefined) {
      this.found.missing++;
      return;
    }
    const n = numberOf(entry[0]);
    if (!(n >= least && n <= most)) this.found.misplaced++;
    this.#check(n, entry[1]);
  }

  /**
   * Walks over a range.
   *
   * @param from The first number.
   * @param to One past the last one.
   */
  range(from: number, to: number): void {
    const { key } = this.#task;
    const range = this.#map.range(sortedKey(key, from), sortedKey(key, to));
    this.walk(range, from, to);
  }

  /**
   * Walks over entries.
   *
   * @param entries The entries.
   * @param from The first number.
   * @param to One past the last one.
   */
  walk(
    entries: Iterable<[number | string, unknown]>,
    from: number,
    to: number,
  ): void {
    const every = this.#every;
    let due = Math.ceil(from / every) * every;
    let before = from - 1;
    for (const [key, value] of entries) {
      const n = numberOf(key);
      if (!(n > before && n < to)) this.found.misplaced++;
      for (; due < n; due += every) this.found.missing++;
      if (n === due) due += every;
      before = n;
      this.#check(n, value);
    }
    for (; due < to; due += every) this.found.missing++;
  }
}
