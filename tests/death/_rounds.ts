// Rounds of updates, of which each must be a whole one whoever dies in it, and what is there after each.

import { assertEquals } from "@std/assert";
import {
  json,
  type Rcu,
  RcuMap,
  RcuSortedMap,
  string,
  u32,
} from "../../mod.ts";

/** Keys that every round updates, in this order. */
const KEYS = 40;
/** Further keys: inserted in as many rounds, then deleted in as many, so that the table is resized. */
const MORE = 128;

/** The maps that rounds go through. */
interface RoundsMaps {
  map: RcuMap<string, { round: number }>;
  sorted: RcuSortedMap<number, number>;
}

function open(rcu: Rcu): RoundsMaps {
  const value = json<{ round: number }>();
  return {
    map: RcuMap.open(rcu, "rounds", { key: string, value }),
    sorted: RcuSortedMap.open(rcu, "sorted", { key: u32, value: u32 }),
  };
}

/**
 * Puts everything where round 0 leaves it.
 *
 * @param rcu The membership.
 */
export function startOver(rcu: Rcu): void {
  const { map, sorted } = open(rcu);
  const keys = Array.from({ length: KEYS }, (_, key) => key);
  map.replaceAll(keys.map((key) => [`key ${key}`, { round: 0 }]));
  sorted.replaceAll(keys.map((key) => [key, 0]));
}

/** What a round does to one of the further keys. */
function moreOf(round: number): { key: string; inserts: boolean } {
  const turn = (round - 1) % (2 * MORE);
  return { key: `more ${turn % MORE}`, inserts: turn < MORE };
}

/**
 * A round: every key gets its number, in the sorted map every third round deletes them.
 *
 * @param rcu The membership.
 * @param round Its number, from 1.
 */
export function doRound(rcu: Rcu, round: number): void {
  const { map, sorted } = open(rcu);
  for (let key = 0; key < KEYS; key++) {
    map.set(`key ${key}`, { round });
    if (round % 3 === 0) sorted.delete(key);
    else sorted.set(key, round);
  }
  const { key, inserts } = moreOf(round);
  if (inserts) map.set(key, { round });
  else map.delete(key);
  rcu.callRcu(() => {});
}

/** What rounds leave, and the updates that the last of them has made. */
class Oracle {
  readonly map = new Map<string, number>();
  readonly sorted = new Map<number, number>();

  /**
   * @param rounds Whole rounds.
   * @param updates Updates of the round after them.
   */
  constructor(rounds: number, updates: number) {
    for (let key = 0; key < KEYS; key++) {
      this.map.set(`key ${key}`, 0);
      this.sorted.set(key, 0);
    }
    for (let round = 1; round <= rounds; round++) this.#do(round, Infinity);
    this.#do(rounds + 1, updates);
  }

  #do(round: number, updates: number): void {
    for (let update = 0; update < Math.min(updates, 2 * KEYS); update++) {
      const key = update >> 1;
      if (update % 2 === 0) this.map.set(`key ${key}`, round);
      else if (round % 3 === 0) this.sorted.delete(key);
      else this.sorted.set(key, round);
    }
    if (updates <= 2 * KEYS) return;
    const { key, inserts } = moreOf(round);
    if (inserts) this.map.set(key, round);
    else this.map.delete(key);
  }
}

/**
 * Asserts that what is there is what some number of updates leaves, in their order.
 *
 * @param rcu The membership.
 * @returns The whole rounds that have been done.
 */
export function assertRounds(rcu: Rcu): number {
  const { map, sorted } = open(rcu);
  const found = {
    map: new Map([...map].map(([key, { round }]) => [key, round])),
    sorted: new Map(sorted),
  };
  assertEquals([map.size, sorted.size], [found.map.size, found.sorted.size]);
  // The last key has the number of the last whole round.
  const rounds = found.map.get(`key ${KEYS - 1}`)!;
  const last = (key: number) => found.map.get(`key ${key}`) !== rounds;
  let begun = 0;
  while (begun < KEYS && last(begun)) begun++;
  const expected = [];
  for (const whole of [rounds, rounds - 1]) {
    const least = whole === rounds ? Math.max(0, 2 * begun - 1) : 2 * KEYS - 1;
    for (let updates = least; updates <= least + 2; updates++) {
      if (whole >= 0) expected.push(new Oracle(whole, updates));
    }
  }
  const show = (
    { map, sorted }: { map: Map<string, number>; sorted: Map<number, number> },
  ) => JSON.stringify([[...map].sort(), [...sorted].sort(([a], [b]) => a - b)]);
  const shown = show(found);
  if (!expected.some((oracle) => show(oracle) === shown)) {
    assertEquals(shown, show(expected[0]));
  }
  return rounds;
}
