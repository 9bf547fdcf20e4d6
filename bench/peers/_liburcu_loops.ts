/**
 * The loops that our map runs beside liburcu. Closures over the map, as in a
 * program that has its map in a `const` of a module: the engine takes it for a
 * constant. They are called for a few thousand operations at a time, as it
 * compiles a function that is called often better than a loop that it is in
 * the middle of.
 */
import { f64, type Rcu, RcuMap, u32 } from "../../mod.ts";

/**
 * What the updater does; but for `update`, see `liburcu.c`.
 *
 * `update` is what a user of either library writes to change a value of 32 bits: a `set` here, which
 * stores in place and under a lock; there a new entry in place of the old one, which `call_rcu`
 * frees (`cds_lfht_add_replace`, the table's own way, and what the program calls `replace`).
 */
export type Mode = "read" | "update" | "store" | "replace" | "churn";

/** What the other program calls a mode. */
export function modeOfLiburcu(mode: Mode): string {
  return mode === "update" ? "replace" : mode;
}

/** The map of a mode: for `replace` one whose values are in blocks, which are reclaimed. */
export function openMap(rcu: Rcu, mode: Mode): RcuMap<number, number> {
  const value = mode === "replace" ? f64 : u32;
  return RcuMap.open(rcu, "beside liburcu", { key: u32, value });
}

/** A reader of keys drawn beforehand. */
export interface KeyReader {
  /** Looks up a part of them and returns how many were there. */
  read(from: number, to: number): number;
  /** The sum of all values found so far, as a signed word. */
  sum(): number;
}

export function keyReader(
  map: RcuMap<number, number>,
  keys: Uint32Array,
): KeyReader {
  const total = new Int32Array(1);
  return {
    read(from, to) {
      let hits = 0;
      let sum = 0;
      for (let i = from; i < to; i++) {
        const value = map.get(keys[i]);
        if (value !== undefined) {
          hits++;
          sum = (sum + value) | 0;
        }
      }
      total[0] += sum;
      return hits;
    },
    sum: () => total[0],
  };
}

/** Updates a part of the keys drawn beforehand, each to its place among them. */
export type KeyUpdater = (from: number, to: number) => void;

export function keyUpdater(
  map: RcuMap<number, number>,
  mode: Mode,
  keys: Uint32Array,
  seed: number,
): KeyUpdater {
  if (mode !== "churn") {
    return (from, to) => {
      for (let i = from; i < to; i++) map.set(keys[i], i);
    };
  }
  const state = Int32Array.of(seed);
  return (from, to) => {
    let random = state[0];
    for (let i = from; i < to; i++) {
      // Marsaglia's xorshift32, whose highest bit says which of the two, as in the other program.
      random ^= random << 13;
      random ^= random >>> 17;
      random ^= random << 5;
      // As rculfhash's add_unique, which leaves the value of a key that is there.
      if (random < 0) map.getOrInsert(keys[i], i);
      else map.delete(keys[i]);
    }
    state[0] = random;
  };
}
