// Faults of dying and burying, planted in the prototypes of the package: what a sweep must find.

import {
  CallbackCounters,
  HANDED,
  LOST,
} from "../../src/callbacks/_counters.ts";
import { Orphans } from "../../src/callbacks/_orphans.ts";
import { Heap, HELD } from "../../src/memory/_heap.ts";
import { Journal } from "../../src/memory/_journal.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";
import { patch, patchAtomic, patchGetter } from "../_plant.ts";

/** A fault, and a scenario in which it must be found. */
interface Planted {
  scenario: string;
  /** @param heals Takes back what was done. */
  plant(heals: DisposableStack): void;
}

/** Every fault, by what it does. */
export const FAULTS: Readonly<Record<string, Planted>> = {
  "an update that stores at once, not when it is committed": {
    scenario: "sorted u32 to u32: an insertion",
    plant(heals) {
      let words: Int32Array;
      // The lock is taken before.
      patchAtomic(heals, "compareExchange", (original, ...access) => {
        words = access[0];
        return original(...access);
      });
      patch(heals, Journal.prototype, "store", (_, store, address, value) => {
        store(address, value);
        Atomics.store(words, address, value);
      });
    },
  },
  "an update that does not say what it links": {
    scenario: "u32 to u32: an insertion",
    plant: (heals) => patch(heals, Journal.prototype, "join", () => {}),
  },
  "an update that does not say what it unlinks": {
    scenario: "u32 to u32: deletions",
    plant: (heals) => patch(heals, Journal.prototype, "leave", () => {}),
  },
  "a block that changes lists without being named": {
    scenario: "callbacks collect beside a reader",
    plant: (heals) => patch(heals, Heap.prototype, "takeInHand", () => {}),
  },
  "a burial that does not make the stores of what was committed": {
    scenario: "sorted u32 to u32: an insertion",
    plant: (heals) =>
      patch(heals, Journal.prototype, "recoverStores", () => {}),
  },
  "a burial that takes every update for committed": {
    scenario: "u32 to u32: an insertion",
    plant: (heals) =>
      patchGetter(heals, Journal.prototype, "hasHappened", () => true),
  },
  "a burial that lets be what was allocated and not published": {
    scenario: "large blocks come and go",
    plant(heals) {
      patch(
        heals,
        Heap.prototype,
        "forEachMarked",
        (_, forEachMarked, visit) =>
          forEachMarked((block, kind) => {
            if (kind !== HELD) visit(block, kind);
          }),
      );
    },
  },
  "a burial that leaves the allocator half way": {
    scenario: "magazines are filled, emptied and flushed",
    plant: (heals) => patch(heals, Heap.prototype, "recover", () => {}),
  },
  "a burial that keeps the magazines": {
    scenario: "large blocks come and go",
    plant: (heals) => patch(heals, Heap.prototype, "flush", () => {}),
  },
  "a burial that forgets deferred blocks": {
    scenario: "callbacks collect beside a reader",
    plant: (heals) => patch(heals, Orphans.prototype, "leave", () => {}),
  },
  "a burial that does not settle the account of callbacks": {
    scenario: "closures are enqueued",
    plant: (heals) =>
      patch(heals, CallbackCounters.prototype, "settle", () => 0),
  },
  "a burial that counts no closure as lost": {
    scenario: "closures are enqueued",
    plant(heals) {
      let line = 0;
      patch(
        heals,
        CallbackCounters.prototype,
        "settle",
        (self, settle, reader) => {
          line = self.line(reader);
          const lost = settle(reader);
          line = 0;
          return lost;
        },
      );
      patchAtomic(heals, "add", (add, words, at, value) => {
        return add(
          words,
          line !== 0 && at === line + LOST ? line + HANDED : at,
          value,
        );
      });
    },
  },
  "a burial that keeps the locks": {
    scenario: "u32 to u32: a replacement",
    plant: (heals) => patch(heals, Journal.prototype, "forEachLock", () => {}),
  },
  "a burial that keeps the record": {
    scenario: "a thread joins, scan",
    plant: (heals) =>
      patch(heals, ReaderTable.prototype, "unregister", () => {}),
  },
};
