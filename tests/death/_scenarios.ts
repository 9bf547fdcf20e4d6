// What threads die in.

import {
  Rcu,
  RcuCell,
  RcuMap,
  type RcuOptions,
  RcuSortedMap,
  string,
  u32,
} from "../../mod.ts";
import { PUBLISHED, Trail, UNLINKED } from "../../src/debug/_trail.ts";
import { HEADER_DETECTOR, layout } from "../../src/_layout.ts";
import { membershipOf } from "../../src/rcu.ts";
import type { Address } from "../../src/memory/arena.ts";
import { MAPS, SORTED_MAPS } from "./_map_scenarios.ts";
import type { Scenario } from "./_sweep.ts";

const cell = (rcu: Rcu) =>
  RcuCell.open(rcu, "c", { value: string, initial: "first" });
const wordCell = (rcu: Rcu) =>
  RcuCell.open(rcu, "w", { value: u32, initial: 1 });

/** A scenario in which no structure changes. */
function plain(
  name: string,
  act: Scenario["act"],
  more: Partial<Scenario> = {},
): Scenario {
  return {
    name,
    prepare: () => {},
    act,
    look: () => 0,
    goOn: (rcu) => {
      const block = rcu.memory.allocate(8);
      rcu.deferFree(block);
    },
    ...more,
  };
}

/** Closures, and how many of them may be lost with the thread that has enqueued them. */
class Closures {
  #begun = 0;
  #enqueued = 0;
  #run = 0;

  /** Forgets those of the last thread. */
  reset(): void {
    this.#begun = this.#enqueued = this.#run = 0;
  }

  enqueue(rcu: Rcu): void {
    this.#begun++;
    rcu.callRcu(() => void this.#run++);
    this.#enqueued++;
  }

  /** Those that are in the middle of being enqueued or counted may be lost or not. */
  mayLose(lost: number): boolean {
    return lost >= this.#enqueued - this.#run && lost <= this.#begun;
  }
}

/** A scenario in which closures are enqueued. */
function withClosures(
  name: string,
  act: (rcu: Rcu, closures: Closures) => () => void,
): Scenario {
  const closures = new Closures();
  return plain(name, (rcu) => {
    closures.reset();
    return act(rcu, closures);
  }, { mayLose: (lost) => closures.mayLose(lost) });
}

/** Blocks that go with their thread, unlike those that a user allocates. */
function blocksOf(rcu: Rcu, count: number): Address[] {
  const m = membershipOf(rcu, "test");
  return Array.from({ length: count }, () => m.allocate(5));
}

const OFFLOADED: RcuOptions = {
  callbacks: { mode: "offloaded" },
  reclaimer: "none",
};

const THROTTLED: RcuOptions = { callbacks: { mode: "throttled", maxBatch: 8 } };

/** Leaves lists and magazines that are not empty. */
function depart(rcu: Rcu): () => void {
  const blocks = blocksOf(rcu, 40);
  for (const block of blocks.slice(0, 20)) rcu.deferFree(block);
  for (const block of blocks.slice(20)) rcu.memory.free(block);
  return () => rcu.close();
}

/** What a detector has to do with: another one's masks are shared memory of their own. */
function ofDetector(detector: "scan" | "classic" | "tree"): Scenario[] {
  // 40 records make a tree of two levels.
  const more = { options: { detector, maxReaders: 40 } };
  return [
    plain(`a thread joins, ${detector}`, (_, join) => join, more),
    plain(`a thread leaves, ${detector}`, depart, more),
    plain(`periods are waited for, ${detector}`, (rcu) => () => {
      for (let i = 0; i < 3; i++) {
        rcu.read(() => {});
        rcu.synchronizeSync();
      }
    }, more),
    plain(`quiescent states are announced, ${detector}`, (rcu) => () => {
      for (let i = 0; i < 3; i++) {
        rcu.read(() => {});
        const cookie = rcu.startPoll();
        rcu.quiescentState();
        rcu.threadOffline();
        rcu.threadOnline();
        rcu.poll(cookie);
      }
    }, more),
  ];
}

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
  withClosures("callbacks are enqueued and processed", (rcu, closures) => {
    const blocks = blocksOf(rcu, 70);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
      closures.enqueue(rcu);
      closures.enqueue(rcu);
      rcu.barrierSync();
    };
  }),
  withClosures("closures are enqueued", (rcu, closures) => () => {
    for (let i = 0; i < 5; i++) closures.enqueue(rcu);
  }),
  plain("blocks are handed over", (rcu) => {
    const m = membershipOf(rcu, "test");
    const blocks = blocksOf(rcu, 130);
    m.handover!.claim(m.owner);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
    };
  }, { options: OFFLOADED }),
  plain("callbacks are throttled", (rcu) => {
    const blocks = blocksOf(rcu, 70);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
      rcu.synchronizeSync();
      for (const block of blocksOf(rcu, 70)) rcu.deferFree(block);
    };
  }, { options: THROTTLED }),
  plain("what was handed over is taken back", (rcu) => {
    const m = membershipOf(rcu, "test");
    const blocks = blocksOf(rcu, 70);
    m.handover!.claim(m.owner);
    for (const block of blocks) rcu.deferFree(block);
    return () => rcu.barrierSync();
  }, { options: OFFLOADED }),
  plain("a thread leaves beside a reader", depart, { beside: "a reader" }),
  plain("callbacks collect beside a reader", (rcu) => {
    const blocks = blocksOf(rcu, 200);
    return () => {
      for (const block of blocks) rcu.deferFree(block);
    };
  }, { beside: "a reader" }),
  ...ofDetector("scan"),
  ...ofDetector("classic"),
  ...ofDetector("tree"),
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
    }, { options: { debug: true } }),
    // From then on entries are looked for.
    prepare: (rcu) => void misuseIsFound(rcu),
    look: (rcu) => [entriesAreWhole(rcu), misuseIsFound(rcu)],
  },
];

export const SCENARIOS: Scenario[] = [...OTHERS, ...MAPS, ...SORTED_MAPS];

/**
 * Finds a scenario.
 *
 * @param name Its name.
 * @returns It.
 */
export function scenarioOf(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`No scenario is called ${name}`);
  return found;
}
