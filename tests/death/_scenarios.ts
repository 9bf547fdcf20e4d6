// What threads die in.

import {
  json,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  string,
  u32,
} from "../../mod.ts";
import { PUBLISHED, Trail, UNLINKED } from "../../src/debug/_trail.ts";
import { HEADER_DETECTOR, layout } from "../../src/_layout.ts";
import { membershipOf } from "../../src/rcu.ts";
import type { Address } from "../../src/memory/arena.ts";
import type { Scenario } from "./_sweep.ts";

// deno-lint-ignore no-explicit-any
type AnyMap = RcuMap<any, any> | RcuSortedMap<any, any>;
// deno-lint-ignore no-explicit-any
type Open = (rcu: Rcu) => any;

const KEYS = 12;
const word = (i: number) => i;
const text = (i: number) => `key ${i}`;

function mapScenarios(
  what: string,
  open: Open,
  key: (i: number) => unknown,
  value: (i: number) => unknown,
): Scenario[] {
  const look = (rcu: Rcu) =>
    [...open(rcu)].map((pair) => JSON.stringify(pair)).sort();
  const goOn = (rcu: Rcu) => {
    const map: AnyMap = open(rcu);
    for (let i = 0; i < 3 * KEYS; i++) map.set(key(i), value(i + 1));
    for (let i = 0; i < 3 * KEYS; i++) {
      if (JSON.stringify(map.get(key(i))) !== JSON.stringify(value(i + 1))) {
        throw new Error(`key ${i} is not readable`);
      }
    }
    for (let i = 0; i < 3 * KEYS; i++) map.delete(key(i));
    map.replaceAll([]);
    // As the deletions left it: whatever had been kept in reserve is there again.
    map.set(key(0), value(0));
    map.replaceAll([]);
  };
  const prepare = (count: number) => (rcu: Rcu) => {
    const map: AnyMap = open(rcu);
    for (let i = 0; i < count; i++) map.set(key(i), value(i));
  };
  const scenario = (
    name: string,
    count: number,
    act: (map: AnyMap, rcu: Rcu) => void,
    isRight?: (found: unknown) => boolean,
  ): Scenario => ({
    name: `${what}: ${name}`,
    prepare: prepare(count),
    act: (rcu) => {
      const map: AnyMap = open(rcu);
      // What is compiled or loaded first belongs to nobody's death.
      map.get(key(0));
      return () => act(map, rcu);
    },
    look,
    goOn,
    ...(isRight !== undefined ? { isRight } : {}),
  });
  return [
    scenario("an insertion", KEYS, (map) => map.set(key(KEYS), value(1))),
    scenario("a replacement", KEYS, (map) => map.set(key(3), value(77))),
    scenario("a deletion", KEYS, (map) => map.delete(key(5))),
    scenario(
      "replaceAll()",
      KEYS,
      (map) => map.replaceAll([0, 1, 2, 3].map((i) => [key(i), value(i + 50)])),
    ),
    scenario(
      "insertions",
      0,
      (map) => {
        for (let i = 0; i < 2 * KEYS; i++) map.set(key(i), value(i));
      },
      (found) => isPrefix(found as string[], key, value, 0, 2 * KEYS),
    ),
    scenario(
      "deletions",
      2 * KEYS,
      (map) => {
        for (let i = 0; i < 2 * KEYS; i++) map.delete(key(i));
      },
      (found) =>
        isPrefix(
          found as string[],
          key,
          value,
          2 * KEYS - (found as string[]).length,
          2 * KEYS,
        ),
    ),
  ];
}

/** Whether what was found are the entries of an interval, up to where the thread had come. */
function isPrefix(
  found: string[],
  key: (i: number) => unknown,
  value: (i: number) => unknown,
  from: number,
  to: number,
): boolean {
  if (found.length > to - from) return false;
  const entries = found.map((_, i) =>
    JSON.stringify([key(from + i), value(from + i)])
  );
  return JSON.stringify(entries.sort()) === JSON.stringify(found);
}

const jsonValue = json<{ n: number; more?: string }>();
const object = (n: number) => ({ n, more: "x".repeat(n) });

export const MAPS: Scenario[] = [
  ...mapScenarios(
    "u32 to u32",
    (rcu) => RcuMap.open(rcu, "m", { key: u32, value: u32 }),
    word,
    word,
  ),
  ...mapScenarios(
    "string to json",
    (rcu) => RcuMap.open(rcu, "m", { key: string, value: jsonValue }),
    text,
    object,
  ),
];

export const SORTED_MAPS: Scenario[] = [
  ...mapScenarios(
    "sorted u32 to u32",
    (rcu) => RcuSortedMap.open(rcu, "m", { key: u32, value: u32 }),
    word,
    word,
  ),
  ...mapScenarios(
    "sorted string to json",
    (rcu) => RcuSortedMap.open(rcu, "m", { key: string, value: jsonValue }),
    text,
    object,
  ),
];

const cell = (rcu: Rcu) =>
  RcuCell.open(rcu, "c", { value: string, initial: "first" });
const wordCell = (rcu: Rcu) =>
  RcuCell.open(rcu, "w", { value: u32, initial: 1 });

/** A scenario in which no structure changes. */
function plain(
  name: string,
  act: Scenario["act"],
  options?: Scenario["options"],
): Scenario {
  return {
    name,
    ...(options !== undefined ? { options } : {}),
    prepare: () => {},
    act,
    look: () => 0,
    goOn: (rcu) => {
      const block = rcu.memory.allocate(8);
      rcu.deferFree(block);
    },
  };
}

/** Blocks that go with their thread, unlike those that a user allocates. */
function blocksOf(rcu: Rcu, count: number): Address[] {
  const m = membershipOf(rcu, "test");
  return Array.from({ length: count }, () => m.allocate(5));
}

const OFFLOADED = {
  callbacks: { mode: "offloaded" },
  reclaimer: "none",
} as const;

/** A view of a debug domain's trail: whose entries are looked at, and written, directly. */
function trailOf(rcu: Rcu): Trail {
  const { owner, readers, words } = membershipOf(rcu, "test");
  const detector = words[HEADER_DETECTOR];
  const { trail } = layout(words.length, readers.size, detector, true);
  return new Trail(words, trail!, owner);
}

/** Tags of no block, and the word that points there. */
const TAGS = [100, 200, 300];
const POINTER = 50;

/** Whether each entry is whole, or is not there. */
function entriesAreWhole(rcu: Rcu): boolean {
  const trail = trailOf(rcu);
  return TAGS.map((tag) => trail.find(tag)).every((entry) =>
    entry === undefined ||
    (entry.pointer === POINTER && entry.published !== undefined &&
      (entry.state === PUBLISHED ||
        (entry.state === UNLINKED && entry.cookie === 7 &&
          entry.ended !== undefined)))
  );
}

/** Whether a block that is published may not be freed. */
function misuseIsFound(rcu: Rcu): boolean {
  const { memory } = rcu;
  const [root, block] = [memory.allocate(1), memory.allocate(1)];
  memory.words[root] = 0;
  rcu.assignPointer(root, block);
  try {
    memory.free(block);
    return false;
  } catch {
    rcu.assignPointer(root, 0);
    for (const each of [root, block]) rcu.deferFree(each);
    return true;
  }
}

export const OTHERS: Scenario[] = [
  {
    name: "a cell of strings is set",
    prepare: (rcu) => void cell(rcu),
    act: (rcu) => {
      const it = cell(rcu);
      return () => it.set("second");
    },
    look: (rcu) => cell(rcu).get(),
    goOn: (rcu) => cell(rcu).set("third"),
  },
  {
    name: "a cell of words is set",
    prepare: (rcu) => void wordCell(rcu),
    act: (rcu) => {
      const it = wordCell(rcu);
      return () => it.set(2);
    },
    look: (rcu) => [wordCell(rcu).get(), wordCell(rcu).version],
    goOn: (rcu) => wordCell(rcu).set(3),
  },
  {
    name: "a map is opened",
    prepare: () => {},
    act: (rcu) => () => {
      RcuMap.open(rcu, "n", { key: string, value: string });
    },
    look: () => 0,
    goOn: (rcu) =>
      void RcuMap.open(rcu, "n", { key: string, value: string }).set("a", "b"),
  },
  {
    name: "a sorted map is opened",
    prepare: () => {},
    act: (rcu) => () => {
      RcuSortedMap.open(rcu, "n", { key: string, value: string });
    },
    look: () => 0,
    goOn: (rcu) =>
      void RcuSortedMap.open(rcu, "n", { key: string, value: string })
        .set("a", "b"),
  },
  plain("callbacks are enqueued and processed", (rcu) => {
    const blocks = blocksOf(rcu, 70);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
      rcu.callRcu(() => {});
      rcu.callRcu(() => {});
      rcu.barrierSync();
    };
  }),
  plain("blocks are handed over", (rcu) => {
    const m = membershipOf(rcu, "test");
    const blocks = blocksOf(rcu, 130);
    m.handover!.claim(m.owner);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
    };
  }, OFFLOADED),
  plain("what was handed over is taken back", (rcu) => {
    const m = membershipOf(rcu, "test");
    const blocks = blocksOf(rcu, 70);
    m.handover!.claim(m.owner);
    for (const block of blocks) rcu.deferFree(block);
    return () => rcu.barrierSync();
  }, OFFLOADED),
  plain("a thread joins", (_, join) => join),
  plain("a thread leaves", (rcu) => {
    const blocks = blocksOf(rcu, 40);
    for (const block of blocks.slice(0, 20)) rcu.deferFree(block);
    for (const block of blocks.slice(20)) rcu.memory.free(block);
    return () => rcu.close();
  }),
  plain("large blocks come and go", (rcu) => () => {
    for (let i = 0; i < 2; i++) {
      const blocks = [9_000, 5_000, 2_000].map((size) =>
        membershipOf(rcu, "test").allocate(size)
      );
      for (const block of blocks) membershipOf(rcu, "test").heap.free(block);
    }
  }),
  plain("magazines are filled, emptied and flushed", (rcu) => () => {
    const m = membershipOf(rcu, "test");
    const blocks = Array.from({ length: 150 }, () => m.allocate(100));
    for (const block of blocks) m.heap.free(block);
    m.heap.scavenge();
  }),
  {
    ...plain("what is done to blocks is recorded in debug mode", (rcu) => {
      const trail = trailOf(rcu);
      return () => {
        for (const tag of TAGS) {
          trail.publish(tag, POINTER, 0);
          trail.unlink(tag, POINTER, 7, 0);
        }
        trail.publish(TAGS[1], POINTER, 0);
      };
    }, { debug: true }),
    // From then on entries are looked for.
    prepare: (rcu) => void misuseIsFound(rcu),
    look: (rcu) => [entriesAreWhole(rcu), misuseIsFound(rcu)],
  },
];
