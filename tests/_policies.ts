// Every callback policy, for tests of what is true of all of them.

import type { RcuOptions } from "../mod.ts";

/** Name → what makes a domain follow it. Nothing here starts a worker. */
export const POLICIES: Record<string, RcuOptions> = {
  "immediate": { callbacks: { mode: "immediate" } },
  "throttled": { callbacks: { mode: "throttled" } },
  "throttled with ticks": {
    callbacks: { mode: "throttled", maxBatch: 3, plugTicks: 2 },
  },
  "offloaded without a reclaimer": {
    callbacks: { mode: "offloaded" },
    reclaimer: "none",
  },
};

/** Those that start a worker. */
export const OFFLOADED: Record<string, RcuOptions> = {
  "offloaded": { callbacks: { mode: "offloaded" } },
  "offloaded with a delay": {
    callbacks: { mode: "offloaded", delay: 60_000 },
  },
  "offloaded in real time": {
    callbacks: { mode: "offloaded", realTime: true },
  },
};
