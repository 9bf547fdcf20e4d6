// Scenarios: structures of a domain, and what is reclaimed beside their readers.

import {
  f64,
  type Rcu,
  RcuCell,
  RcuMap,
  type RcuOptions,
  RcuSortedMap,
  u32,
} from "../../mod.ts";
import { membershipOf } from "../../src/rcu.ts";
import {
  type DomainScene,
  joinDomain,
  layDomain,
  must,
  mustBe,
  mustBeTidy,
  napsOf,
  type Part,
  reclaim,
  type Scenario,
  until,
} from "./_scenario.ts";

/** Sizes of the blocks that cells and maps of numbers need, in words. */
const SIZES = [4];

// A pointer of one's own

interface PointerScene extends DomainScene {
  pointer: number;
}

/** One thread replaces what another one reads, and lets it be freed. */
function pointer(
  name: string,
  detector: NonNullable<RcuOptions["detector"]>,
): Scenario {
  const scenario: Scenario<PointerScene> = {
    name: `reclaim/${name}`,
    threads: 2,
    lay: (buffer) =>
      layDomain(buffer, { detector, debug: true }, (rcu) => {
        const { memory } = rcu;
        const pointer = memory.allocate(4);
        rcu.assignPointer(pointer, element(rcu, 1));
        return { pointer };
      }),
    join(thread, buffer, scene) {
      const { pointer } = scene;
      const rcu = joinDomain(buffer, scene, 4);
      return {
        act: thread === 0
          ? () => {
            const fresh = element(rcu, 2);
            const old = rcu.read(() => rcu.dereference(pointer));
            rcu.assignPointer(pointer, fresh);
            rcu.deferFree(old);
            until(() => {
              reclaim(rcu);
              return membershipOf(rcu, "look").callbacks.pending === 0;
            });
            // The same block again, unless it is not free yet.
            rcu.memory.free(element(rcu, 3));
          }
          : () => {
            let last = 0;
            for (let i = 0; i < 2; i++) {
              rcu.read(() => {
                const value = valueOf(rcu, rcu.dereference(pointer));
                must(
                  value >= last && value <= 2,
                  `It must be 1, then 2: ${value}`,
                );
                last = value;
              });
              rcu.quiescentState();
            }
          },
        leave: () => rcu.close(),
      };
    },
    check: (buffer, scene) => mustBeTidy(buffer, scene, () => 0),
    naps: napsOf,
  };
  return scenario as unknown as Scenario;
}

/** A block of a value and its complement. */
function element(rcu: Rcu, value: number): number {
  const { memory } = rcu;
  const block = memory.allocate(4);
  memory.words[block] = value;
  memory.words[block + 1] = ~value;
  return block;
}

function valueOf({ memory }: Rcu, block: number): number {
  const { words } = memory;
  const value = words[block];
  must(words[block + 1] === ~value, "A value must be whole: it is not");
  mustBe(words[block], value, "The value, at a second look in the section,");
  return value;
}

// Structures

/** What a thread does with a structure. */
type Act<T> = (structure: T, rcu: Rcu) => void;

/** What threads do with a structure at once. */
interface Use<T> {
  open: (rcu: Rcu) => T;
  /** Fills it in the beginning. */
  prepare?: (structure: T) => void;
  acts: Act<T>[];
  /** Looks at it in the end, and says how many bytes more than in the beginning are live. */
  check: (structure: T) => number;
  /** Sizes of the blocks that are needed, in words. */
  sizes?: number[];
}

/** Makes a scenario of threads that use a structure at once. */
export function structure<T>(
  name: string,
  { open, prepare, acts, check, sizes = SIZES }: Use<T>,
): Scenario {
  const scenario: Scenario<DomainScene> = {
    name,
    threads: acts.length,
    lay: (buffer) =>
      layDomain(buffer, { debug: true }, (rcu) => {
        const made = open(rcu);
        prepare?.(made);
        for (const size of sizes) rcu.memory.free(rcu.memory.allocate(size));
        return {};
      }),
    join(thread, buffer, scene): Part {
      const rcu = joinDomain(buffer, scene, ...sizes);
      const mine = open(rcu);
      return {
        act: () => acts[thread](mine, rcu),
        leave: () => rcu.close(),
      };
    },
    check: (buffer, scene) =>
      mustBeTidy(buffer, scene, (rcu) => check(open(rcu))),
    naps: napsOf,
  };
  return scenario as unknown as Scenario;
}

/** A value that no half of it would be. */
const PI = Math.PI;

function openCell(rcu: Rcu): RcuCell<number> {
  return RcuCell.open(rcu, "cell", { value: f64, initial: PI });
}

const increment: Act<RcuCell<number>> = (cell, rcu) => {
  cell.update((n) => n + PI);
  reclaim(rcu);
};

function isThree(cell: RcuCell<number>): number {
  mustBe(cell.get(), 3 * PI, "The cell after two increments");
  return 0;
}

/** Bytes of an entry: its node and its value. */
export const ENTRY = 32;

function openMap(rcu: Rcu): RcuMap<number, number> {
  return RcuMap.open(rcu, "map", { key: u32, value: f64 });
}

function openSorted(rcu: Rcu): RcuSortedMap<number, number> {
  return RcuSortedMap.open(rcu, "sorted", { key: u32, value: f64 });
}

type AnyMap = RcuMap<number, number> | RcuSortedMap<number, number>;

const set = (key: number, value: number): Act<AnyMap> => (map, rcu) => {
  map.set(key, value);
  reclaim(rcu);
};

/** A key that is always there must be found, whatever happens to its neighbours. */
const look: Act<AnyMap> = (map) => {
  mustBe(map.get(2)!, PI, "What nobody changes");
  const seen = map.get(1);
  must(
    seen === undefined || seen === PI || seen === 2 * PI,
    `A value must be one that was set: it is ${seen}`,
  );
};

const remove = (key: number): Act<AnyMap> => (map, rcu) => {
  map.delete(key);
  reclaim(rcu);
};

const MAPS = [["map", openMap], ["sorted map", openSorted]] as const;

export const UPDATES: Scenario[] = [
  pointer("scan", "scan"),
  pointer("classic", "classic"),
  pointer("tree", { type: "tree", fanout: 2 }),
  structure("updaters/cell", {
    open: openCell,
    acts: [increment, increment],
    check: isThree,
  }),
  structure("updaters/cell and reader", {
    open: openCell,
    acts: [
      increment,
      (cell) => {
        let last = 0;
        for (let i = 0; i < 2; i++) {
          const value = cell.get();
          must(
            [PI, 2 * PI, 3 * PI].includes(value) && value >= last,
            `A cell must hold what was set: it holds ${value}`,
          );
          last = value;
        }
      },
      increment,
    ],
    check: isThree,
  }),
  ...MAPS.flatMap(([name, open]) => [
    structure<AnyMap>(`updaters/${name}: the same key`, {
      open,
      prepare: (map) => map.set(2, PI),
      acts: [set(1, PI), set(1, 2 * PI), look],
      check: (map) => {
        mustBe(map.size, 2, "The map's size");
        must([PI, 2 * PI].includes(map.get(1)!), "One of them must be there");
        return ENTRY;
      },
    }),
    structure<AnyMap>(`updaters/${name}: set and delete`, {
      open,
      prepare: (map) => map.set(1, PI).set(2, PI),
      acts: [remove(1), set(1, 2 * PI), look],
      check: (map) => {
        const left = map.get(1);
        must(left === undefined || left === 2 * PI, `Left: ${left}`);
        return left === undefined ? -ENTRY : 0;
      },
    }),
  ]),
];
