// The well-known patterns, by Atomics and by plain accesses.

import type { Rcu } from "../../mod.ts";
import type { Address } from "../../src/memory/arena.ts";
import { INSTANCES, type Part, type Pattern } from "./_pattern.ts";

/** A word in a cache line of its own for each of two locations. */
const LINE = 16;
const LOCATIONS = 2;

/** What a thread does with two words. */
type Act = (words: Int32Array, x: Address, y: Address) => number;

/** Locations of an instance lie in lines of their own, at another word of them in every round. */
class ClassicPart implements Part {
  readonly prepare: Part["prepare"];
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #act: Act;
  #x = 0;
  #y = 0;

  constructor(
    words: Int32Array,
    base: Address,
    act: Act,
    thread: number,
    threads: number,
  ) {
    this.#words = words;
    this.#base = base;
    this.#act = act;
    this.prepare = [(instance, round) => {
      this.#x = (round * 5) % LINE;
      this.#y = INSTANCES * LINE + (round * 3) % LINE;
      // In turns, so that the lines come from another core in every round.
      if ((instance + round) % threads !== thread) return;
      for (let location = 0; location < LOCATIONS; location++) {
        const at = base + (location * INSTANCES + instance) * LINE;
        for (let i = 0; i < LINE; i++) Atomics.store(words, at + i, 0);
      }
    }];
  }

  act(instance: number): number {
    const at = this.#base + instance * LINE;
    return this.#act(this.#words, at + this.#x, at + this.#y);
  }
}

function classic(
  name: string,
  weak: Pattern["weak"],
  sees: string[][],
  outcome: number[],
  acts: Act[],
): Pattern {
  return {
    name,
    weak,
    sees,
    isWeak: (seen) => outcome.every((of, thread) => seen[thread] === of),
    words: LOCATIONS * LINE,
    phases: 1,
    part: (rcu: Rcu, base: Address, thread: number) =>
      new ClassicPart(
        rcu.memory.words,
        base,
        acts[thread],
        thread,
        acts.length,
      ),
  };
}

const ONE = ["0", "1"];
const BOTH = ["0 0", "0 1", "1 0", "1 1"];
const NOTHING = ["-"];

const storeX: Act = (words, x) => {
  Atomics.store(words, x, 1);
  return 0;
};
const plainStoreX: Act = (words, x) => {
  words[x] = 1;
  return 0;
};

/** A thread's act with its two words swapped. */
function swapped(act: Act): Act {
  return (words, x, y) => act(words, y, x);
}

const storeXLoadY: Act = (words, x, y) => {
  Atomics.store(words, x, 1);
  return Atomics.load(words, y);
};
const plainStoreXLoadY: Act = (words, x, y) => {
  words[x] = 1;
  return words[y];
};
const storeXPlainLoadY: Act = (words, x, y) => {
  Atomics.store(words, x, 1);
  return words[y];
};
const loadXStoreY: Act = (words, x, y) => {
  const seen = Atomics.load(words, x);
  Atomics.store(words, y, 1);
  return seen;
};
const plainLoadXStoreY: Act = (words, x, y) => {
  const seen = words[x];
  words[y] = 1;
  return seen;
};
const storeXStoreY: Act = (words, x, y) => {
  Atomics.store(words, x, 1);
  Atomics.store(words, y, 1);
  return 0;
};
const plainStoreXStoreY: Act = (words, x, y) => {
  words[x] = 1;
  words[y] = 1;
  return 0;
};
const loadXLoadY: Act = (words, x, y) => {
  const first = Atomics.load(words, x);
  return first * 2 + Atomics.load(words, y);
};
const plainLoadXLoadY: Act = (words, x, y) => {
  const first = words[x];
  return first * 2 + words[y];
};
const loadXTwice: Act = (words, x) => {
  const first = Atomics.load(words, x);
  return first * 2 + Atomics.load(words, x);
};

/** All of them: names as in Alglave et al., "Herding cats" (TOPLAS 36(2), 2014). */
export const CLASSICS: Pattern[] = [
  classic("SB", "never", [ONE, ONE], [0, 0], [
    storeXLoadY,
    swapped(storeXLoadY),
  ]),
  classic("MP", "never", [NOTHING, BOTH], [0, 2], [
    storeXStoreY,
    swapped(loadXLoadY),
  ]),
  classic("LB", "never", [ONE, ONE], [1, 1], [
    loadXStoreY,
    swapped(loadXStoreY),
  ]),
  classic("CoRR", "never", [NOTHING, BOTH], [0, 2], [storeX, loadXTwice]),
  classic("IRIW", "never", [NOTHING, NOTHING, BOTH, BOTH], [0, 0, 2, 2], [
    storeX,
    swapped(storeX),
    loadXLoadY,
    swapped(loadXLoadY),
  ]),
  classic("SB, plain accesses", "may", [ONE, ONE], [0, 0], [
    plainStoreXLoadY,
    swapped(plainStoreXLoadY),
  ]),
  classic("SB, Atomics.store and plain loads", "may", [ONE, ONE], [0, 0], [
    storeXPlainLoadY,
    swapped(storeXPlainLoadY),
  ]),
  classic("MP, plain accesses", "may", [NOTHING, BOTH], [0, 2], [
    plainStoreXStoreY,
    swapped(plainLoadXLoadY),
  ]),
  classic("LB, plain accesses", "may", [ONE, ONE], [1, 1], [
    plainLoadXStoreY,
    swapped(plainLoadXStoreY),
  ]),
  classic(
    "IRIW, plain accesses",
    "may",
    [NOTHING, NOTHING, BOTH, BOTH],
    [0, 0, 2, 2],
    [
      plainStoreX,
      swapped(plainStoreX),
      plainLoadXLoadY,
      swapped(plainLoadXLoadY),
    ],
  ),
];
