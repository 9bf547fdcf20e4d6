// Faults for a thread to have, planted in the prototypes of the package: what a run must catch.

import { type GracePeriodCookie, Rcu } from "../../mod.ts";
import { Callbacks } from "../../src/callbacks/_callbacks.ts";
import { GracePeriods } from "../../src/grace_periods/_grace_periods.ts";
import { ScanDetector } from "../../src/grace_periods/_scan.ts";
import { Sequence } from "../../src/grace_periods/_sequence.ts";
import { TreeDetector } from "../../src/grace_periods/_tree.ts";
import { LINE } from "../../src/memory/_size_classes.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";
import { membershipOf } from "../../src/rcu.ts";
import { asIfOutside, replaceMethod } from "../_plant.ts";
import type { Role } from "./_roles.ts";

/** A fault, and which threads have it. */
interface Planted {
  roles: readonly Role[];
  plant: () => void;
}

/** The words of the domain that the thread joined last. */
function domainWords(): () => Int32Array {
  let words: Int32Array;
  const { attach } = Rcu;
  Rcu.attach = (handle, options) => {
    words = new Int32Array(handle.buffer);
    return attach.call(Rcu, handle, options);
  };
  return () => words;
}

const MOVERS: readonly Role[] = ["updater", "faker"];

/** Every fault, by what it does. */
export const FAULTS = {
  "a detector that skips a reader": {
    roles: MOVERS,
    plant() {
      // Slot 0 is the main thread's, which reads nothing; 1 is the first reader's.
      let looking = false;
      const look = (original: (sequence: number) => boolean, of: number) => {
        looking = true;
        const passed = original(of);
        looking = false;
        return passed;
      };
      replaceMethod(
        ReaderTable.prototype,
        "slot",
        (_, slot, index) => slot(looking && index === 1 ? 0 : index),
      );
      replaceMethod(
        ScanDetector.prototype,
        "passed",
        (_, passed, sequence) => look(passed, sequence),
      );
      replaceMethod(
        TreeDetector.prototype,
        "passed",
        (_, passed, sequence) => look(passed, sequence),
      );
    },
  },

  "a quiescent state at the end of an inner section": {
    roles: ["reader"],
    plant() {
      replaceMethod(Rcu.prototype, "read", (rcu, read, section) => {
        const result = read(section);
        const { reader } = membershipOf(rcu, "plant a fault");
        asIfOutside(reader, () => reader.checkQuiescentState());
        return result;
      });
    },
  },

  "a quiescent state when leaf reads have used the budget up": {
    roles: ["reader"],
    plant() {
      replaceMethod(Reader.prototype, "enter", (reader, enter) => {
        const { budget, depth } = reader;
        enter();
        if (depth === 0) reader.budget = budget;
      });
      replaceMethod(
        Reader.prototype,
        "refill",
        (reader, refill) => asIfOutside(reader, refill),
      );
    },
  },

  "a quiescent state when a section polls": {
    roles: ["reader"],
    plant() {
      let current: Reader | undefined;
      replaceMethod(Reader.prototype, "enter", (reader, enter) => {
        current = reader;
        enter();
      });
      replaceMethod(
        GracePeriods.prototype,
        "poll",
        (_, poll, cookie) =>
          current === undefined
            ? poll(cookie)
            : asIfOutside(current, () => poll(cookie)),
      );
    },
  },

  "a period that begins before the unlinking": {
    roles: ["updater"],
    plant() {
      let begun: GracePeriodCookie | undefined;
      replaceMethod(
        GracePeriods.prototype,
        "start",
        (_, start) => begun ?? start(),
      );
      replaceMethod(
        Rcu.prototype,
        "assignPointer",
        (rcu, assign, pointer, value) => {
          begun = undefined;
          begun = rcu.startPoll();
          // For readers to begin sections in between.
          const { words } = rcu.memory;
          Atomics.wait(words, pointer, Atomics.load(words, pointer), 1);
          assign(pointer, value);
        },
      );
    },
  },

  "a period in progress that counts as a whole one": {
    roles: MOVERS,
    plant() {
      replaceMethod(
        Sequence.prototype,
        "cookie",
        (sequence, cookie) =>
          sequence.inProgress()
            ? sequence.started() as GracePeriodCookie
            : cookie(),
      );
    },
  },

  "a thread that joins and is not counted": {
    roles: ["joiner"],
    plant() {
      const words = domainWords();
      replaceMethod(ReaderTable.prototype, "register", (table, register) => {
        const { count } = table;
        const record = register();
        Atomics.store(words(), table.slot(0) - LINE, count);
        return record;
      });
    },
  },

  "a thread that joins and announces itself at its first quiescent state": {
    roles: ["joiner"],
    plant() {
      const words = domainWords();
      let slot = 0;
      replaceMethod(ReaderTable.prototype, "register", (table, register) => {
        const record = register();
        slot = table.slot(record!.index);
        return record;
      });
      replaceMethod(Reader.prototype, "goOnline", (_, goOnline) => {
        goOnline();
        Atomics.store(words(), slot, 0);
      });
    },
  },

  "callbacks that run a period early": {
    roles: ["updater"],
    plant() {
      let early = 0;
      replaceMethod(
        Callbacks.prototype,
        "processCallbacks",
        (_, process, limited) => {
          early = 1;
          process(limited);
          early = 0;
        },
      );
      replaceMethod(
        GracePeriods.prototype,
        "poll",
        (_, poll, cookie) => poll((cookie - early) as GracePeriodCookie),
      );
    },
  },
} satisfies Record<string, Planted>;

/** The name of a fault. */
export type Fault = keyof typeof FAULTS;

/** Whether a thread with a role is to have a fault. */
export function hasFault(role: Role, fault: Fault): boolean {
  const { roles }: Planted = FAULTS[fault];
  return roles.includes(role);
}

/** Plants a fault in this thread, before it joins a domain. */
export function plant(fault: Fault): void {
  FAULTS[fault].plant();
}
