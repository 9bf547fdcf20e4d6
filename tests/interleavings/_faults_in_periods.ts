// Faults of sections, periods, registration and reports.

import type { GracePeriodCookie } from "../../src/grace_periods/cookie.ts";
import { GracePeriods } from "../../src/grace_periods/_grace_periods.ts";
import { MaskNodes } from "../../src/grace_periods/_mask_nodes.ts";
import { ScanDetector } from "../../src/grace_periods/_scan.ts";
import { Sequence } from "../../src/grace_periods/_sequence.ts";
import { LINE } from "../../src/memory/_size_classes.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable } from "../../src/readers/_slots.ts";
import { unwatched, watchedWords } from "./_hooks.ts";
import { asIfOutside, patch } from "../_plant.ts";
import type { Planted } from "./_plant.ts";

export const PERIOD_FAULTS = {
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
      patch(heals, Reader.prototype, "leave", (_, leave) => {
        leave();
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
} satisfies Record<string, Planted>;
