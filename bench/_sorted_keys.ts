/**
 * The keys of the sorted map's experiment. Even numbers are there all the time;
 * odd ones come and go, half of them being there. So every search can be checked.
 */
import { type Rcu, RcuSortedMap, u32 } from "../mod.ts";
import { seeded } from "./_random.ts";

/** The map. */
export type Numbers = RcuSortedMap<number, number>;

/** What a key's value is made with: one that no other key has, below 2³¹. */
const MARK = 0x2aaaaaaa;

/** The value of a key, whenever it is there. */
export function valueOf(key: number): number {
  return key ^ MARK;
}

/** Keys are below this where `count` are to be there. */
export function endOfKeys(count: number): number {
  return Math.ceil(count * 2 / 3) * 2;
}

/** Says of each key whether it is there, at first; in memory that threads share. */
export function firstKeys(count: number): Uint8Array {
  const end = endOfKeys(count);
  const present = new Uint8Array(new SharedArrayBuffer(end));
  let left = count - end / 2;
  for (let key = 0; key < end; key += 2) {
    present[key] = 1;
    if (key % 4 === 0 && left-- > 0) present[key + 1] = 1;
  }
  return present;
}

/** The keys that are there, in order. */
export function presentKeys(present: Uint8Array): Uint32Array {
  const keys = new Uint32Array(countOf(present));
  for (let key = 0, n = 0; key < present.length; key++) {
    if (present[key] !== 0) keys[n++] = key;
  }
  return keys;
}

/** How many keys are there. */
export function countOf(present: Uint8Array): number {
  let count = 0;
  for (let key = 0; key < present.length; key++) count += present[key];
  return count;
}

/** A thread's view of a domain's map. */
export function openNumbers(rcu: Rcu): Numbers {
  return RcuSortedMap.open(rcu, "numbers", { key: u32, value: u32 });
}

/** In how many passes a map is filled. */
const PASSES = 16;

/**
 * Fills a map, in several passes over the keys: nodes that are close in the tree
 * are not close in memory then, as they would not be after many updates. A
 * search takes as long as after insertions in random order; filling does not.
 */
export function fill(map: Numbers, present: Uint8Array): void {
  const keys = presentKeys(present);
  function* entries(): Generator<[number, number]> {
    for (let pass = 0; pass < PASSES; pass++) {
      for (let i = pass; i < keys.length; i += PASSES) {
        yield [keys[i], valueOf(keys[i])];
      }
    }
  }
  map.replaceAll(entries());
}

/**
 * Searches for keys at random, and checks what is found.
 *
 * @param end Where keys end.
 * @param seed Which keys.
 * @returns What does so many searches in a map.
 */
export function searcher(
  end: number,
  seed: number,
): (map: Numbers, count: number) => number {
  const random = seeded(seed);
  return (map, count) => {
    for (let i = 0; i < count; i++) {
      const key = (random() * end) | 0;
      const value = map.get(key);
      if (
        value !== valueOf(key) && (value !== undefined || (key & 1) === 0)
      ) throw wrong(key, value);
    }
    return count;
  };
}

/**
 * The same by bisection in a sorted array of one's own, with its values in
 * another one.
 *
 * @param keys The keys in order.
 * @param end Where keys end.
 * @param seed Which keys are looked for.
 * @returns What does so many searches.
 */
export function arraySearcher(
  keys: Uint32Array,
  end: number,
  seed: number,
): (count: number) => number {
  const values = keys.map(valueOf);
  const random = seeded(seed);
  return (count) => {
    for (let i = 0; i < count; i++) {
      const key = (random() * end) | 0;
      const value = bisect(keys, values, key);
      if (
        value !== valueOf(key) && (value !== undefined || (key & 1) === 0)
      ) throw wrong(key, value);
    }
    return count;
  };
}

function bisect(
  keys: Uint32Array,
  values: Uint32Array,
  key: number,
): number | undefined {
  let low = 0;
  let high = keys.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const at = keys[middle];
    if (at === key) return values[middle];
    if (at < key) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}

function wrong(key: number, value: number | undefined): Error {
  return new Error(
    `Cannot trust a map that returns ${value} for ${key}, which ${
      key % 2 === 0 ? "is always there" : "comes and goes"
    } with ${valueOf(key)}`,
  );
}

/**
 * Deletes and inserts keys at random: whatever is there goes, whatever is not
 * comes, so that about as many stay there.
 *
 * @param seed Which keys.
 * @returns What does so many updates of a map, and notes them.
 */
export function updater(
  seed: number,
): (map: Numbers, present: Uint8Array, count: number) => number {
  const random = seeded(seed);
  return (map, present, count) => {
    const end = present.length;
    for (let i = 0; i < count; i++) {
      const key = (random() * end) | 1;
      if (present[key] === 0) {
        map.set(key, valueOf(key));
        present[key] = 1;
      } else {
        if (!map.delete(key)) throw wrong(key, undefined);
        present[key] = 0;
      }
    }
    return count;
  };
}
