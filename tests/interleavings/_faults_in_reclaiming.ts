// Faults of the reclaimer, of sleepers and of barriers.

import { RcuCell } from "../../mod.ts";
import { Callbacks } from "../../src/callbacks/_callbacks.ts";
import { CallbackCounters } from "../../src/callbacks/_counters.ts";
import { Handover } from "../../src/callbacks/_handover.ts";
import { Orphans } from "../../src/callbacks/_orphans.ts";
import {
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
} from "../../src/_layout.ts";
import { Membership } from "../../src/_membership.ts";
import { unwatched, watchedWords } from "./_hooks.ts";
import { type Method, patch, patchAtomic, patchGetter } from "../_plant.ts";
import type { Planted } from "./_plant.ts";

/** Where the words of the stack are on which blocks are handed over. */
function handoverBase(): number {
  const words = unwatched();
  return layout(
    words.length,
    words[HEADER_MAX_READERS],
    words[HEADER_DETECTOR],
  ).handover;
}
// As in src/callbacks/_handover.ts, whose own these are.
const HEAD = 0;
const COUNT = 1;
const LOCK = 4;

export const RECLAIMING_FAULTS = {
  // The reclaimer

  "resigns after the last take": {
    scenarios: ["handover/the reclaimer goes"],
    plant(heals) {
      const late: (() => void)[] = [];
      patch(
        heals,
        Handover.prototype,
        "resign",
        (_, resign, owner) => void late.push(() => resign(owner)),
      );
      patch(heals, Membership.prototype, "close", (_, close) => {
        close();
        for (const resign of late.splice(0)) resign();
      });
    },
  },

  "does not look again whether there is a reclaimer": {
    scenarios: ["handover/the reclaimer goes"],
    plant(heals) {
      let pushed = false;
      patch(heals, Handover.prototype, "push", (_, push, ...of) => {
        pushed = push(...of);
        return pushed;
      });
      patchGetter(heals, Handover.prototype, "holder", (holder) => {
        if (!pushed) return holder;
        pushed = false;
        return 1;
      });
    },
  },

  "lets two threads have the list at once": {
    scenarios: [
      "handover/two push: the reclaimer goes",
      "handover/somebody helps: the reclaimer goes",
    ],
    plant(heals) {
      patchAtomic(
        heals,
        "compareExchange",
        (exchange, words, address, expected, value) =>
          address === handoverBase() + LOCK
            ? 0
            : exchange(words, address, expected, value),
      );
    },
  },

  "counts what it hands over when it has let go of it": {
    scenarios: ["barrier/a reclaimer in between"],
    plant(heals) {
      let late = 0;
      patch(
        heals,
        Handover.prototype,
        "push",
        (_, push, head, tail, count, from) => {
          unwatched()[handoverBase() + COUNT] -= count;
          late = count;
          return push(head, tail, count, from);
        },
      );
      // After it has counted them as handed over.
      patch(heals, Handover.prototype, "wake", (_, wake) => {
        if (late !== 0) {
          Atomics.add(watchedWords(), handoverBase() + COUNT, late);
          late = 0;
        }
        wake();
      });
    },
  },

  "takes the stack without the lock": {
    scenarios: ["barrier/a reclaimer in between"],
    plant(heals) {
      patch(
        heals,
        Callbacks.prototype,
        "help",
        (_, help) => help(false),
      );
    },
  },

  // Sleeping

  "looks at the stack before it says that it will sleep": {
    scenarios: ["parking/reclaimer"],
    plant(heals) {
      patch(heals, Handover.prototype, "prepareToSleep", (handover) => {
        const at = handoverBase() + HEAD;
        if (Atomics.load(watchedWords(), at) !== 0) return false;
        handover.announceSleep();
        return true;
      });
    },
  },

  "wakes the reclaimer before it pushes": {
    scenarios: ["parking/reclaimer that is awaited"],
    plant(heals) {
      let woken = false;
      patch(heals, Handover.prototype, "push", (handover, push, ...of) => {
        handover.wake();
        woken = true;
        return push(...of);
      });
      patch(heals, Handover.prototype, "wake", (_, wake) => {
        if (!woken) wake();
        woken = false;
      });
    },
  },

  "leaves without waking the reclaimer": {
    scenarios: ["parking/reclaimer"],
    plant(heals) {
      let leaving = false;
      patch(heals, Handover.prototype, "wake", (_, wake) => {
        if (!leaving) wake();
      });
      patch(heals, Membership.prototype, "close", (_, close) => {
        leaving = true;
        close();
        leaving = false;
      });
    },
  },

  "counts itself as a waiter when it sleeps already": {
    scenarios: ["parking/cell: one waiter"],
    plant(heals) {
      let waits = false;
      let count = () => {};
      patch(heals, RcuCell.prototype, "waitForChange", (_, wait, options) => {
        waits = true;
        return wait(options);
      });
      patchAtomic(heals, "add", (add, words, address, value) => {
        if (!waits) return add(words, address, value);
        waits = false;
        count = () => void add(words, address, value);
        return 0;
      });
      patch(
        heals,
        Atomics as { waitAsync: typeof Atomics.waitAsync },
        "waitAsync",
        ((_: unknown, wait: Method, ...of: unknown[]) => {
          const sleep = wait(...of);
          count();
          count = () => {};
          return sleep;
        }) as never,
      );
    },
  },

  "looks for waiters before it moves the version": {
    scenarios: ["parking/cell: one waiter", "parking/cell: two waiters"],
    plant(heals) {
      // As in src/structures/cell.ts, whose own these are.
      const versionToWaiters = 1;
      let cell = 0;
      let seen = -1;
      patch(heals, RcuCell.prototype, "set", (self, set, value) => {
        cell = (self as unknown as { _cell: number })._cell;
        set(value);
      });
      patchAtomic(heals, "store", (store, words, address, value) => {
        if (cell !== 0 && address === cell + 1) {
          seen = Atomics.load(words, address + versionToWaiters);
        }
        return store(words, address, value);
      });
      patchAtomic(heals, "load", (load, words, address) => {
        if (seen < 0 || address !== cell + 2) return load(words, address);
        const waiters = seen;
        seen = -1;
        return waiters;
      });
    },
  },

  // Barriers

  "a barrier that does not look at what is handed over": {
    scenarios: ["barrier/a reclaimer in between"],
    plant(heals) {
      let within = false;
      patch(heals, Callbacks.prototype, "help", (_, help, wait) => {
        if (!within) help(wait);
      });
      patch(heals, Membership.prototype, "barrierSync", (_, barrier, ms) => {
        within = true;
        try {
          barrier(ms);
        } finally {
          within = false;
        }
      });
    },
  },

  "a barrier that takes what others have deferred for done": {
    scenarios: ["barrier/both blocks"],
    plant(heals) {
      patch(
        heals,
        CallbackCounters.prototype,
        "enqueued",
        (counters, _, reader) => counters.done(reader),
      );
    },
  },

  "a barrier that does not notice who leaves": {
    scenarios: ["barrier/the other leaves"],
    plant(heals) {
      patchGetter(heals, Orphans.prototype, "departures", () => 0);
    },
  },
} satisfies Record<string, Planted>;
