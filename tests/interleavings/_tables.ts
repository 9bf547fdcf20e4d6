// Scenarios: a map that grows, and one that is replaced as a whole.

import { f64, Rcu, RcuMap, RcuSortedMap, string, u32 } from "../../mod.ts";
import { CLASS_WORDS, classOf } from "../../src/memory/_size_classes.ts";
import { MASK, TABLE, tableWords } from "../../src/structures/_table.ts";
import { unwatched } from "./_hooks.ts";
import {
  CAPACITY,
  must,
  mustBe,
  reclaim,
  type Scenario,
  until,
} from "./_scenario.ts";
import { ENTRY, structure } from "./_updates.ts";

type Numbers = RcuMap<number, number>;

function open(rcu: Rcu): Numbers {
  // Now, not in the middle of a run.
  keys();
  return openMap(rcu);
}

function openMap(rcu: Rcu): Numbers {
  return RcuMap.open(rcu, "map", { key: u32, value: f64 });
}

/** Where a map's table is. */
function tableOf(map: Numbers, words: Int32Array): number {
  const { _table } = map as unknown as { _table: { header: number } };
  return words[_table.header + TABLE];
}

/** Keys after which a fresh map grows: the last one has it do so. */
function keysThatGrow(): number[] {
  using rcu = Rcu.create({ capacity: CAPACITY, maxReaders: 4 });
  const map = openMap(rcu);
  const { words } = rcu.memory;
  const table = tableOf(map, words);
  const keys: number[] = [];
  for (let key = 1; tableOf(map, words) === table; key++) {
    map.set(key, key);
    keys.push(key);
  }
  return keys;
}

let known: number[] | undefined;
const keys = (): number[] => known ??= keysThatGrow();

/** Buckets of a fresh map, and of one that has grown once. */
const BUCKETS = [16, 32];
const [SMALL, LARGE] = BUCKETS.map((n) =>
  4 * CLASS_WORDS[classOf(tableWords(n))]
);

/** All keys that were there from the beginning, and the last one if it is to be. */
function mustHaveGrown(map: Numbers, without: number): number {
  const entries = keys().filter((key) => key !== without);
  mustBe(map.size, entries.length, "The map's size");
  for (const key of entries) mustBe(map.get(key)!, key, `The value of ${key}`);
  const words = unwatched();
  mustBe(words[tableOf(map, words) + MASK] + 1, BUCKETS[1], "Its buckets");
  return LARGE - SMALL + (entries.length + 1 - keys().length) * ENTRY;
}

function grow(map: Numbers, rcu: Rcu): void {
  const key = keys().at(-1)!;
  map.set(key, key);
  reclaim(rcu);
}

function fill(map: Numbers): void {
  for (const key of keys().slice(0, -1)) map.set(key, key);
}

const SIZES = [3, 4, ...BUCKETS.map(tableWords)];

type AnyMap = RcuMap<number, number> | RcuSortedMap<number, number>;

const KINDS: [string, (rcu: Rcu) => AnyMap][] = [
  ["map", openMap],
  [
    "sorted map",
    (rcu) => RcuSortedMap.open(rcu, "sorted", { key: u32, value: f64 }),
  ],
];

/** More lookups than a thread makes after a change before it looks what the change has voided. */
const CAUGHT_UP = 20;

/** Bytes of the entry "done": its node, with the key in it, and its value. */
const DONE = 48;

export const TABLES: Scenario[] = [
  structure<RcuMap<string, string>>(
    "tables/strings remembered beside changes",
    {
      open: (rcu) =>
        RcuMap.open(rcu, "strings", { key: string, value: string }),
      prepare: (map) => map.set("a", "1").set("b", "1"),
      sizes: [4, 8, ...SIZES],
      acts: [
        (map, rcu) => {
          map.set("a", "2").set("b", "2").set("done", "");
          reclaim(rcu);
        },
        (map) => {
          // Both are remembered, before the changes, between them or after them.
          const seen = ["a", "b"].map((key) => map.get(key)!);
          until(() => map.has("done"));
          for (let i = 0; i < CAUGHT_UP; i++) map.get("nothing");
          for (const [i, key] of ["a", "b"].entries()) {
            const now = map.get(key)!;
            must(now === "2", `${key} must be new: ${seen[i]}, then ${now}`);
          }
        },
      ],
      check: (map) => {
        must(map.get("a") === "2" && map.get("b") === "2", "Both must be new");
        return DONE;
      },
    },
  ),
  structure<Numbers>("tables/map growing beside a reader", {
    open,
    prepare: fill,
    sizes: SIZES,
    acts: [grow, (map) => {
      const all = keys();
      for (const key of [all[0], all.at(-2)!]) {
        mustBe(map.get(key)!, key, "What nobody changes");
      }
      const last = all.at(-1)!;
      const found = map.get(last);
      must(found === undefined || found === last, `It is ${found}`);
    }],
    check: (map) => mustHaveGrown(map, NaN),
  }),
  structure<Numbers>("tables/map growing beside a deletion", {
    open,
    prepare: fill,
    sizes: SIZES,
    acts: [grow, (map, rcu) => {
      must(map.delete(keys()[0]), "It must have been there");
      must(map.get(keys()[0]) === undefined, "It must be gone");
      reclaim(rcu);
    }],
    check: (map) => {
      // Whoever deletes first keeps the map from growing.
      const words = unwatched();
      const buckets = words[tableOf(map, words) + MASK] + 1;
      if (buckets === BUCKETS[1]) return mustHaveGrown(map, keys()[0]);
      mustBe(map.size, keys().length - 1, "The map's size");
      return 0;
    },
  }),
  ...KINDS.flatMap(([kind, openKind]) => [
    structure<AnyMap>(`tables/${kind} replaced beside a section`, {
      open: openKind,
      prepare: (map) => map.set(1, 1).set(2, 1),
      sizes: SIZES,
      acts: [
        (map, rcu) => {
          map.replaceAll([[1, 2], [2, 2]]);
          reclaim(rcu);
        },
        (map, rcu) => {
          rcu.read(() => {
            const [one, two] = [map.get(1), map.get(2)];
            must(one === two && (one === 1 || one === 2), `${one}, ${two}`);
          });
        },
      ],
      check: (map) => {
        mustBe(map.get(1)! + map.get(2)!, 4, "The sum of both");
        return 0;
      },
    }),
    structure<AnyMap>(`tables/${kind} replaced beside an update`, {
      open: openKind,
      prepare: (map) => map.set(1, 1),
      sizes: SIZES,
      acts: [
        (map, rcu) => {
          map.replaceAll([[1, 2]]);
          reclaim(rcu);
        },
        (map, rcu) => {
          map.set(1, 3);
          must([2, 3].includes(map.get(1)!), `It must be new: ${map.get(1)}`);
          reclaim(rcu);
        },
      ],
      check: (map) => {
        must([2, 3].includes(map.get(1)!), `It is ${map.get(1)}`);
        return 0;
      },
    }),
    structure<AnyMap>(`tables/${kind} cleared beside an update`, {
      open: openKind,
      prepare: (map) => map.set(1, 1),
      sizes: SIZES,
      acts: [
        (map, rcu) => {
          map.clear();
          reclaim(rcu);
        },
        (map, rcu) => {
          map.set(1, 3);
          reclaim(rcu);
        },
      ],
      check: (map) => {
        must([undefined, 3].includes(map.get(1)), `It is ${map.get(1)}`);
        mustBe(map.size, map.has(1) ? 1 : 0, "The map's size");
        return map.has(1) ? 0 : -ENTRY;
      },
    }),
  ]),
];
