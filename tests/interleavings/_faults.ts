// Faults, planted in the prototypes of the package and in what it calls: what explorations must find.

import { RcuCell, RcuStallError } from "../../mod.ts";
import { Callbacks } from "../../src/callbacks/_callbacks.ts";
import { CallbackCounters } from "../../src/callbacks/_counters.ts";
import { Handover } from "../../src/callbacks/_handover.ts";
import { Orphans } from "../../src/callbacks/_orphans.ts";
import type { GracePeriodCookie } from "../../src/grace_periods/cookie.ts";
import { GracePeriods } from "../../src/grace_periods/_grace_periods.ts";
import { MaskNodes } from "../../src/grace_periods/_mask_nodes.ts";
import { ScanDetector } from "../../src/grace_periods/_scan.ts";
import { Sequence } from "../../src/grace_periods/_sequence.ts";
import {
  HEADER_DETECTOR,
  HEADER_MAX_READERS,
  layout,
} from "../../src/_layout.ts";
import { Membership } from "../../src/_membership.ts";
import { LINE } from "../../src/memory/_size_classes.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";
import { TABLE, Table } from "../../src/structures/_table.ts";
import { Values } from "../../src/structures/_values.ts";
import { unwatched, watchedWords } from "./_hooks.ts";

/** The flag of `src/sync/_mutex.ts`. */
const WAITERS = 0x8000_0000 | 0;

/** A fault, and the scenarios in which each exploration must find it. */
interface Planted {
  scenarios: readonly string[];
  /** Whether it takes seconds to find. */
  rare?: boolean;
  /** @param heals Takes back what was done. */
  plant(heals: DisposableStack): void;
}

// deno-lint-ignore no-explicit-any
type Method = (...args: any) => any;

/** Replaces a method; the new one gets its object, the old one, and the arguments. */
function patch<T extends object, K extends keyof T>(
  heals: DisposableStack,
  target: T,
  name: K,
  instead: T[K] extends Method ? (
      self: T,
      original: T[K],
      ...args: Parameters<T[K]>
    ) => ReturnType<T[K]>
    : never,
): void {
  const original = target[name] as Method;
  heals.defer(() => target[name] = original as T[K]);
  target[name] = function (this: T, ...args: unknown[]) {
    return (instead as Method)(this, original.bind(this), ...args);
  } as T[K];
}

/** Replaces a getter. */
function patchGetter<T extends object, K extends keyof T>(
  heals: DisposableStack,
  target: T,
  name: K,
  instead: (value: T[K]) => T[K],
): void {
  const property = Object.getOwnPropertyDescriptor(target, name)!;
  heals.defer(() => Object.defineProperty(target, name, property));
  Object.defineProperty(target, name, {
    ...property,
    get(this: T) {
      return instead(property.get!.call(this));
    },
  });
}

type Call = (words: Int32Array, address: number, ...of: number[]) => number;

/** Replaces a function of `Atomics`, for all words. */
function patchAtomic(
  heals: DisposableStack,
  name: "add" | "compareExchange" | "exchange" | "load" | "store",
  instead: (original: Call, ...of: Parameters<Call>) => number,
): void {
  patch(
    heals,
    Atomics as unknown as Record<string, Call>,
    name,
    (_, original, ...args) => instead(original, ...args),
  );
}

/** Does something as if no section were open. */
function asIfOutside(reader: Reader, act: () => void): void {
  const { depth } = reader;
  reader.depth = 0;
  act();
  reader.depth = depth;
}

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

const LOCKLESS = [
  "updaters/cell",
  "updaters/map: set and delete",
  "updaters/sorted map: the same key",
];

/** Every fault, by what it does. */
export const FAULTS = {
  // Sections and periods

  "skips a slot in the scan": {
    scenarios: ["period/scan/sections", "reclaim/scan"],
    plant(heals) {
      let looking = false;
      patch(
        heals,
        ReaderTable.prototype,
        "slot",
        (_, slot, index) => slot(looking && index === 1 ? 0 : index),
      );
      patch(heals, ScanDetector.prototype, "passed", (_, passed, sequence) => {
        looking = true;
        try {
          return passed(sequence);
        } finally {
          looking = false;
        }
      });
    },
  },

  "announces a quiescent state before the section ends": {
    scenarios: [
      "period/scan/nested sections",
      "period/classic/nested sections",
      "period/tree/nested sections",
    ],
    plant(heals) {
      patch(
        heals,
        Reader.prototype,
        "checkQuiescentState",
        (reader, check) => asIfOutside(reader, check),
      );
    },
  },

  "goes online when its first section is over": {
    scenarios: ["period/scan/sections", "reclaim/tree"],
    plant(heals) {
      patch(heals, Reader.prototype, "enter", (reader, enter) => {
        const { online } = reader;
        enter();
        if (online || !reader.online) return;
        reader.budget = 0;
        asIfOutside(reader, () => reader.goOffline());
        reader.online = true;
      });
    },
  },

  "takes a period in progress for a whole one": {
    scenarios: ["period/scan/two updaters", "period/tree/two updaters"],
    plant(heals) {
      patch(
        heals,
        Sequence.prototype,
        "cookie",
        (sequence, cookie) =>
          sequence.inProgress()
            ? sequence.started() as GracePeriodCookie
            : cookie(),
      );
    },
  },

  "frees one period early": {
    scenarios: [
      "period/classic/sections",
      "reclaim/classic",
      "period/tree/sections",
    ],
    plant(heals) {
      patch(
        heals,
        GracePeriods.prototype,
        "poll",
        (_, poll, cookie) => poll((cookie - 1) as GracePeriodCookie),
      );
    },
  },

  "takes a half turn that is not counted yet for none": {
    scenarios: ["turn of the word/half", "turn of the word/whole"],
    plant(heals) {
      patch(heals, Sequence.prototype, "started", (sequence) => {
        // As in src/grace_periods/_sequence.ts, without what corrects it.
        const epoch = Atomics.load(watchedWords(), sequence.address + 1);
        return epoch * 2 ** 30 + ((sequence.current() & 0x7fff_ffff) >>> 1);
      });
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

  // Registration

  "counts itself when its first section is over": {
    scenarios: [
      "period/scan/a thread comes and goes",
      "period/classic/a thread comes and goes",
      "period/tree/a thread comes and goes",
    ],
    plant(heals) {
      let raise = () => {};
      patch(heals, ReaderTable.prototype, "register", (table, register) => {
        const at = table.slot(0) - LINE;
        const before = unwatched()[at];
        const record = register();
        const after = unwatched()[at];
        unwatched()[at] = before;
        raise = () => Atomics.store(watchedWords(), at, after);
        return record;
      });
      patch(heals, Reader.prototype, "exit", (_, exit) => {
        exit();
        raise();
        raise = () => {};
      });
    },
  },

  "leaves and stays online": {
    scenarios: [
      "period/scan/a thread comes and goes",
      "period/tree/threads take a record in turn",
      "period/scan/threads take a record in turn",
      "period/classic/threads take a record in turn",
    ],
    plant(heals) {
      patch(heals, Reader.prototype, "close", (reader, close) => {
        asIfOutside(reader, () => {
          reader.goOffline = () => {};
          close();
        });
      });
    },
  },

  // Trees

  "reports to the parent too early": {
    scenarios: ["tree/reports of one leaf", "tree/reports of two leaves"],
    plant(heals) {
      patch(heals, MaskNodes.prototype, "report", (_, report, ...of) => {
        report(...of);
        return true;
      });
    },
  },

  "keeps what a mask said of the period before": {
    scenarios: ["period/classic/two updaters", "period/tree/two updaters"],
    rare: true,
    plant(heals) {
      patch(heals, MaskNodes.prototype, "report", (_, report, ...of) => {
        const [node, , , sequence] = of;
        // As in src/grace_periods/_mask_nodes.ts: what the mask is about.
        unwatched()[node + 1] = sequence;
        return report(...of);
      });
    },
  },

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

  // Updaters

  "updates without the lock": {
    scenarios: [
      ...LOCKLESS,
      "tables/growing beside a deletion",
      "tables/replaced beside an update",
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
      "tables/growing beside a reader",
      "tables/replaced beside a section",
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
    scenarios: ["tables/replaced beside a section"],
    plant(heals) {
      patch(
        heals,
        Table.prototype,
        "root",
        ({ header, words }) => words[header + TABLE],
      );
    },
  },

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
        push(...of);
        pushed = true;
      });
      patchGetter(heals, Handover.prototype, "holder", (holder) => {
        if (!pushed) return holder;
        pushed = false;
        return 1;
      });
    },
  },

  "takes the stack by a load and a store": {
    scenarios: [
      "handover/two push: the reclaimer goes",
      "handover/somebody helps: the reclaimer goes",
    ],
    plant(heals) {
      patchAtomic(heals, "exchange", (exchange, words, address, value) => {
        if (address !== handoverBase() + HEAD) {
          return exchange(words, address, value);
        }
        const old = Atomics.load(words, address);
        Atomics.store(words, address, value);
        return old;
      });
    },
  },

  "counts what it hands over when it has pushed it": {
    scenarios: ["barrier/a reclaimer in between"],
    rare: true,
    plant(heals) {
      patch(
        heals,
        Handover.prototype,
        "push",
        (_, push, head, tail, count) => {
          const at = handoverBase() + COUNT;
          unwatched()[at] -= count;
          push(head, tail, count);
          Atomics.add(watchedWords(), at, count);
        },
      );
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
        push(...of);
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

/** The name of a fault. */
export type Fault = keyof typeof FAULTS;

/** Whether a fault takes seconds to find. */
export function isRare(fault: Fault): boolean {
  const { rare = false }: Planted = FAULTS[fault];
  return rare;
}

/**
 * Plants a fault in this thread.
 *
 * @param fault Which one.
 * @returns Takes it back.
 */
export function plant(fault: Fault): () => void {
  const heals = new DisposableStack();
  FAULTS[fault].plant(heals);
  return () => heals.dispose();
}
