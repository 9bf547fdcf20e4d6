// Faults of the mutex and of who updates.

import { RcuCell, RcuStallError } from "../../mod.ts";
import { Membership } from "../../src/_membership.ts";
import {
  CHANGES,
  TABLE,
  Table,
  VERSION_COUNT,
} from "../../src/structures/_table.ts";
import { TREE, Tree } from "../../src/structures/_tree.ts";
import { Values } from "../../src/structures/_values.ts";
import { unwatched } from "./_hooks.ts";
import { type Method, patch, patchAtomic } from "../_plant.ts";
import type { Planted } from "./_plant.ts";

/** The flag of `src/sync/_mutex.ts`. */
const WAITERS = 0x8000_0000 | 0;

const LOCKLESS = [
  "updaters/cell",
  "updaters/map: set and delete",
  "updaters/sorted map: the same key",
];

export const UPDATE_FAULTS = {
  // The mutex

  "parks without saying so": {
    scenarios: ["mutex/two threads"],
    plant(heals) {
      patchAtomic(
        heals,
        "compareExchange",
        (exchange, words, address, a, b) =>
          a !== 0 && b === (a | WAITERS)
            ? Atomics.load(words, address)
            : exchange(words, address, a, b),
      );
      patch(
        heals,
        Atomics as { wait: typeof Atomics.wait },
        "wait",
        ((
          _: unknown,
          wait: Method,
          words: Int32Array,
          at: number,
          value: number,
          ms: number,
        ) => wait(words, at, value & ~WAITERS, ms)) as never,
      );
    },
  },

  "gives the mutex back by a load and a store": {
    scenarios: ["mutex/two threads"],
    plant(heals) {
      patchAtomic(heals, "exchange", (_, words, address, value) => {
        const old = Atomics.load(words, address);
        Atomics.store(words, address, value);
        return old;
      });
    },
  },

  "takes the mutex by a load and a store": {
    scenarios: [
      "mutex/two threads",
      ...LOCKLESS,
      "memory/depot and pages",
      "memory/two open one name",
    ],
    plant(heals) {
      patchAtomic(
        heals,
        "compareExchange",
        (exchange, words, address, a, b) => {
          if (a !== 0) return exchange(words, address, a, b);
          const old = Atomics.load(words, address);
          if (old === 0) Atomics.store(words, address, b);
          return old;
        },
      );
    },
  },

  "does not say that others may still be parked": {
    scenarios: ["mutex/three threads"],
    plant(heals) {
      patchAtomic(
        heals,
        "compareExchange",
        (exchange, words, address, a, b) =>
          exchange(words, address, a, a === 0 ? b & ~WAITERS : b),
      );
    },
  },

  "gives the mutex back and wakes nobody": {
    scenarios: ["mutex/two threads"],
    plant(heals) {
      patch(
        heals,
        Atomics as { notify: typeof Atomics.notify },
        "notify",
        (() => 0) as never,
      );
    },
  },

  "takes a mutex when the time is up": {
    scenarios: ["mutex/holder gone"],
    plant(heals) {
      patch(heals, Membership.prototype, "lock", (membership, lock, at) => {
        try {
          lock(at);
        } catch (error) {
          if (!(error instanceof RcuStallError)) throw error;
          Atomics.store(membership.words, at, membership.owner);
        }
      });
    },
  },

  // What a thread remembers

  "tells nobody of a change": {
    scenarios: ["tables/strings remembered beside changes"],
    plant(heals) {
      let changes = -1;
      patch(
        heals,
        Table.prototype,
        "beginChange",
        (table, begin, ...hashes) => {
          changes = table.header + CHANGES;
          begin(...hashes);
        },
      );
      patchAtomic(
        heals,
        "add",
        (add, words, at, by) => at === changes ? 0 : add(words, at, by),
      );
    },
  },

  "moves no version": {
    scenarios: ["tables/strings remembered beside changes"],
    plant(heals) {
      let versions = -1;
      patch(heals, Table.prototype, "beginChange", (table, begin, hash) => {
        versions = table.versionAt(0);
        begin(hash);
      });
      patchAtomic(
        heals,
        "add",
        (add, words, at, by) =>
          at >= versions && at < versions + VERSION_COUNT && versions > 0
            ? 0
            : add(words, at, by),
      );
    },
  },

  // Updaters

  "updates without the lock": {
    scenarios: [
      ...LOCKLESS,
      "tables/map growing beside a deletion",
      "tables/map replaced beside an update",
      "tables/map cleared beside an update",
      "tables/sorted map replaced beside an update",
      "tables/sorted map cleared beside an update",
    ],
    plant(heals) {
      patch(heals, Membership.prototype, "lock", () => {});
      patch(heals, Membership.prototype, "unlock", () => {});
    },
  },

  "updates as get, then set": {
    scenarios: ["updaters/cell"],
    plant(heals) {
      patch(
        heals,
        RcuCell.prototype as RcuCell<number>,
        "update",
        ((
          cell: RcuCell<number>,
          _: unknown,
          fn: (old: number) => number,
        ) => {
          const next = fn(cell.get());
          cell.set(next);
          return next;
        }) as never,
      );
    },
  },

  "frees at once what readers may see": {
    scenarios: [
      "updaters/map: set and delete",
      "updaters/cell and reader",
      "updaters/sorted map: set and delete",
      "tables/map growing beside a reader",
      "tables/map replaced beside a section",
    ],
    plant(heals) {
      patch(
        heals,
        Membership.prototype,
        "retire",
        ({ heap }, _, block) => heap.free(block),
      );
    },
  },

  "does not keep a section to one generation": {
    scenarios: [
      "tables/map replaced beside a section",
      "tables/sorted map replaced beside a section",
    ],
    plant(heals) {
      patch(
        heals,
        Table.prototype,
        "root",
        ({ header, words }) => words[header + TABLE],
      );
      patch(
        heals,
        Tree.prototype,
        "tree",
        ({ header, words }) => words[header + TREE],
      );
    },
  },

  "publishes a value before it is filled in": {
    scenarios: ["updaters/cell and reader", "updaters/map: the same key"],
    plant(heals) {
      let fill = () => {};
      patch(heals, Values.prototype, "store", (_, store, value) => {
        const block = store(value);
        const words = unwatched();
        const payload = words.slice(block + 1, block + 3);
        words.fill(0, block + 1, block + 3);
        fill = () => words.set(payload, block + 1);
        return block;
      });
      // The lock is given back soon after the value was published.
      patch(heals, Membership.prototype, "unlock", (_, unlock, lock) => {
        fill();
        fill = () => {};
        unlock(lock);
      });
    },
  },
} satisfies Record<string, Planted>;
