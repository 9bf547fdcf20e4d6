// Updates of maps in which threads die.

import { json, Rcu, RcuMap, RcuSortedMap, string, u32 } from "../../mod.ts";
import { MASK, TABLE } from "../../src/structures/_table.ts";
import type { Scenario } from "./_sweep.ts";

// Of any keys, and with what is private.
// deno-lint-ignore no-explicit-any
type AnyMap = any;

/** Entries of a small map. */
const FEW = 12;
/** Entries with which a table has been growing for some time. */
const MANY = 420;
/** Buckets of a table that has been shrinking for some time. */
const BUCKETS = 256;

/** What is done to maps of one kind, and what is found in them. */
class Maps {
  readonly #what: string;
  readonly #open: (rcu: Rcu) => AnyMap;
  readonly #key: (i: number) => unknown;
  readonly #value: (i: number) => unknown;

  constructor(
    what: string,
    open: (rcu: Rcu) => AnyMap,
    key: (i: number) => unknown,
    value: (i: number) => unknown,
  ) {
    this.#what = what;
    this.#open = open;
    this.#key = key;
    this.#value = value;
  }

  /** Updates of every kind. */
  updates(): Scenario[] {
    const key = this.#key;
    const value = this.#value;
    const all = 2 * FEW;
    return [
      this.#scenario(
        "an insertion",
        FEW,
        (map) => map.set(key(FEW), value(1)),
      ),
      this.#scenario("a replacement", FEW, (map) => map.set(key(3), value(77))),
      this.#scenario("a deletion", FEW, (map) => map.delete(key(5))),
      this.#scenario("replaceAll()", FEW, (map) => {
        map.replaceAll([0, 1, 2, 3].map((i) => [key(i), value(i + 50)]));
      }),
      this.#scenario("clear()", FEW, (map) => map.clear()),
      this.#scenario("update()", FEW, (map) => {
        map.update(key(4), () => value(99));
      }),
      this.#scenario("getOrInsert()", FEW, (map) => {
        map.getOrInsert(key(FEW), value(2));
      }),
      this.#scenario("insertions", 0, (map) => {
        for (let i = 0; i < all; i++) map.set(key(i), value(i));
      }, (found) => this.#has(found, 0, found.length)),
      this.#scenario("deletions", all, (map) => {
        for (let i = 0; i < all; i++) map.delete(key(i));
      }, (found) => this.#has(found, all - found.length, all)),
    ];
  }

  /** Updates up to the one that resizes a hash table. Which one that is depends on the map's seed. */
  resizes(): Scenario[] {
    const key = this.#key;
    const value = this.#value;
    const least = 2 * FEW;
    return [
      this.#scenario("insertions until the table grows", least, (map) => {
        let i = least;
        untilResized(map, () => map.set(key(i), value(i++)));
      }, (found) => found.length >= least && this.#has(found, 0, found.length)),
      {
        ...this.#scenario("deletions until the table shrinks", MANY, (map) => {
          let i = MANY - map.size;
          untilResized(map, () => map.delete(key(i++)));
        }, (found) => this.#has(found, MANY - found.length, MANY)),
        prepare: (rcu) => {
          const map = this.#open(rcu);
          for (let i = 0; i < MANY; i++) map.set(key(i), value(i));
          let i = 0;
          while (i < MANY / 2 || bucketsOf(map) !== BUCKETS) {
            map.delete(key(i++));
          }
        },
      },
    ];
  }

  #scenario(
    name: string,
    entries: number,
    act: (map: AnyMap) => void,
    isRight: (found: string[]) => boolean = () => false,
  ): Scenario {
    return {
      name: `${this.#what}: ${name}`,
      prepare: (rcu) => {
        const map = this.#open(rcu);
        for (let i = 0; i < entries; i++) {
          map.set(this.#key(i), this.#value(i));
        }
      },
      act: (rcu) => {
        const map = this.#open(rcu);
        // What is compiled or loaded first belongs to nobody's death.
        map.get(this.#key(0));
        return () => act(map);
      },
      look: (rcu) =>
        [...this.#open(rcu)].map((pair) => JSON.stringify(pair)).sort(),
      goOn: (rcu) => this.#goOn(this.#open(rcu)),
      isRight: (found) => isRight(found as string[]),
    };
  }

  #goOn(map: AnyMap): void {
    const key = this.#key;
    const value = this.#value;
    for (let i = 0; i < 3 * FEW; i++) map.set(key(i), value(i + 1));
    for (let i = 0; i < 3 * FEW; i++) {
      if (JSON.stringify(map.get(key(i))) !== JSON.stringify(value(i + 1))) {
        throw new Error(`key ${i} is not readable`);
      }
    }
    for (let i = 0; i < 3 * FEW; i++) map.delete(key(i));
    map.replaceAll([]);
    // As the deletions left it: whatever had been kept in reserve is there again.
    map.set(key(0), value(0));
    map.replaceAll([]);
  }

  /** Whether the entries of an interval are there, and no others: as far as the thread had come. */
  #has(found: string[], from: number, to: number): boolean {
    const entries = Array.from(
      { length: to - from },
      (_, i) => JSON.stringify([this.#key(from + i), this.#value(from + i)]),
    );
    return JSON.stringify(entries.sort()) === JSON.stringify(found);
  }
}

/** Where a map's table lies, by a plain load, which is no step of a thread that is to die. */
function placeOf({ _table: { words, header } }: AnyMap): number {
  return words[header + TABLE];
}

/** How many buckets it has. */
function bucketsOf(map: AnyMap): number {
  return map._table.words[placeOf(map) + MASK] + 1;
}

/** Updates a map until its table is another one. */
function untilResized(map: AnyMap, update: () => void): void {
  const before = placeOf(map);
  for (let i = 0; placeOf(map) === before; i++) {
    if (i === MANY) throw new Error(`${i} updates do not resize a table`);
    update();
  }
}

const word = (i: number) => i;
const text = (i: number) => `key ${i}`;
const jsonValue = json<{ n: number; more?: string }>();
const object = (n: number) => ({ n, more: "x".repeat(n % 100) });

const words = new Maps(
  "u32 to u32",
  (rcu) => RcuMap.open(rcu, "m", { key: u32, value: u32 }),
  word,
  word,
);
const strings = new Maps(
  "string to json",
  (rcu) => RcuMap.open(rcu, "m", { key: string, value: jsonValue }),
  text,
  object,
);
const sortedWords = new Maps(
  "sorted u32 to u32",
  (rcu) => RcuSortedMap.open(rcu, "m", { key: u32, value: u32 }),
  word,
  word,
);
const sortedStrings = new Maps(
  "sorted string to json",
  (rcu) => RcuSortedMap.open(rcu, "m", { key: string, value: jsonValue }),
  text,
  object,
);

export const MAPS: Scenario[] = [
  ...words.updates(),
  ...words.resizes(),
  ...strings.updates(),
  ...strings.resizes(),
];

export const SORTED_MAPS: Scenario[] = [
  ...sortedWords.updates(),
  ...sortedStrings.updates(),
];
