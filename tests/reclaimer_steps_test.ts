// The reclaimer's loop by itself, among parts that only say what it does.

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { BEAT_INTERVAL } from "../src/callbacks/_handover.ts";
import {
  reclaim,
  type ReclaimerSettings,
} from "../src/callbacks/_reclaimer.ts";

type Options = Partial<
  Pick<ReclaimerSettings, "delay" | "realTime" | "idleTimeout" | "isAlone">
>;

/** Runs the loop among fakes, until something that it does aborts it. */
async function play(
  { handed: first = 0, ...options }: Options & { handed?: number },
  script: (
    world: {
      clock: { now: number };
      handed: { count: number };
      callbacks: { pending: number; invoked: number };
      orphans: { count: number };
      end: AbortController;
      log: unknown[];
    },
    what: string,
    times: number,
  ) => void,
): Promise<unknown[]> {
  const log: unknown[] = [];
  const clock = { now: 1000 };
  const handed = { count: first };
  const orphans = { count: 0 };
  const state = { pending: 0, invoked: 0 };
  const end = new AbortController();
  const world = { clock, handed, callbacks: state, orphans, end, log };
  const times: Record<string, number> = {};
  const note = (what: string, ...details: unknown[]) => {
    times[what] = (times[what] ?? 0) + 1;
    if (times[what] > 200) throw new Error(`It goes on for ever: ${what}`);
    log.push(details.length === 0 ? what : [what, ...details].join(" "));
    script(world, what, times[what]);
  };
  const settings = {
    words: new Int32Array(new SharedArrayBuffer(64)),
    nap: 5,
    callbacks: {
      get pending() {
        return state.pending;
      },
      get invoked() {
        return state.invoked;
      },
      help: (wait: boolean) => note("help", wait),
      adopt: () => {},
      processCallbacks: () => note("process"),
    },
    handover: {
      get count() {
        return handed.count;
      },
      beat: () => {},
      prepareToSleep: () => {
        note("prepare");
        return handed.count === 0;
      },
      cancelSleep: () => note("cancel"),
      sleep: (ms: number) => {
        note("sleep", ms);
        return Promise.resolve();
      },
    },
    heap: { flush: () => note("flush") },
    periods: { watch: () => {} },
    orphans,
    delay: 0,
    realTime: false,
    idleTimeout: Infinity,
    isAlone: () => false,
    signal: end.signal,
    ...options,
  };
  const { setTimeout } = globalThis;
  using _now = stub(performance, "now", () => clock.now);
  using _wait = stub(Atomics, "wait", (...[, at, value, ms]: unknown[]) => {
    note("nap", at, value, ms);
    return "timed-out";
  });
  using _timers = stub(
    globalThis,
    "setTimeout",
    ((task: () => void, ms: number) => {
      note("turn", ms);
      return setTimeout(task, 0);
    }) as never,
  );
  await reclaim(settings as unknown as ReclaimerSettings);
  return log;
}

const without = (log: unknown[], what: string) =>
  log.filter((one) => one !== what);

Deno.test("a reclaimer that is called off before it begins does nothing", async () => {
  const end = AbortSignal.abort();
  await reclaim({ signal: end } as unknown as ReclaimerSettings);
});

Deno.test("a reclaimer without work sleeps a beat at a time, until the signal ends it", async () => {
  const log = await play({}, ({ end }, what, times) => {
    if (what === `sleep` && times === 3) end.abort();
  });
  const round = ["process", "prepare", `sleep ${BEAT_INTERVAL}`];
  assertEquals(log, [...round, ...round, ...round]);
});

Deno.test("what is handed over is taken at once, and what has been freed is given to others before it sleeps", async () => {
  const log = await play({}, (world, what, times) => {
    if (what === "sleep" && times === 1) world.handed.count = 5;
    if (what === "help") {
      world.handed.count = 0;
      world.callbacks.pending = 5;
    }
    if (what === "nap" && times === 2) world.callbacks.invoked = 1;
    if (what === "process" && world.callbacks.invoked === 1) {
      world.callbacks.pending = 0;
    }
    if (what === "sleep" && times === 2) world.end.abort();
  });
  assertEquals(log, [
    "process",
    "prepare",
    `sleep ${BEAT_INTERVAL}`,
    "help true",
    "process",
    "nap 5 0 0.05",
    "process",
    "nap 5 0 0.1",
    "process",
    "flush",
    "prepare",
    `sleep ${BEAT_INTERVAL}`,
  ]);
});

Deno.test("while a reader is in the way it naps longer and longer, 1 ms at most, and has a turn every eight naps", async () => {
  const log = await play({}, (world, what, times) => {
    world.callbacks.pending = 1;
    if (what === "turn" && times === 2) world.end.abort();
  });
  const naps = (...lengths: number[]) => lengths.map((ms) => `nap 5 0 ${ms}`);
  assertEquals(without(log, "process"), [
    ...naps(0.05, 0.1, 0.2, 0.4, 0.8, 1, 1),
    "turn 0",
    ...naps(1, 1, 1, 1, 1, 1, 1),
    "turn 0",
  ]);
});

Deno.test("after work the naps are short again", async () => {
  const log = await play({}, (world, what, times) => {
    world.callbacks.pending = 1;
    if (what !== "nap") return;
    if (times === 5) world.callbacks.invoked++;
    if (times === 7) world.end.abort();
  });
  // What was invoked is noticed a round later: it is looked at before the callbacks are.
  const naps = without(log, "process");
  assertEquals(naps.slice(0, 5).at(-1), "nap 5 0 0.8");
  assertEquals(naps.length, 7);
});

Deno.test("with a delay it takes what is handed over so many ms apart, and turns the event loop meanwhile", async () => {
  const log = await play({ handed: 1, delay: 30 }, (world, what, times) => {
    world.handed.count = 1;
    if (what === "turn") world.clock.now += 10;
    if (what === "help" && times === 3) world.end.abort();
  });
  assertEquals(without(log, "process"), [
    "help true",
    "turn 30",
    "turn 20",
    "turn 10",
    "help true",
    "turn 30",
    "turn 20",
    "turn 10",
    "help true",
    "turn 30",
  ]);
});

Deno.test("a delay that is longer than a beat is waited for in beats", async () => {
  const log = await play({ handed: 1, delay: 250 }, (world, what, times) => {
    world.handed.count = 1;
    if (what === "turn") world.clock.now += BEAT_INTERVAL;
    if (what === "help" && times === 2) world.end.abort();
  });
  assertEquals(without(log, "process").slice(0, 5), [
    "help true",
    `turn ${BEAT_INTERVAL}`,
    `turn ${BEAT_INTERVAL}`,
    "turn 50",
    "help true",
  ]);
});

for (const [delay, interval] of [[0, 10], [4, 4], [500, BEAT_INTERVAL]]) {
  Deno.test(`in real time with a delay of ${delay} ms it looks every ${interval} ms and is woken by nobody`, async () => {
    const log = await play({ delay, realTime: true }, (world, what, times) => {
      if (what === "turn") world.clock.now += interval;
      if (what === "turn" && times === 3) world.end.abort();
    });
    assertEquals(without(log, "process"), Array(3).fill(`turn ${interval}`));
  });
}

Deno.test("where it is never out of work, it has a turn every eight batches", async () => {
  const log = await play({ handed: 1 }, (world, what, times) => {
    world.handed.count = 1;
    if (what === "turn" && times === 2) world.end.abort();
  });
  const rounds = without(without(log, "process"), "prepare");
  assertEquals(rounds, [
    ...Array(8).fill("help true"),
    "turn 0",
    ...Array(8).fill("help true"),
    "turn 0",
  ]);
});

Deno.test("it ends when it is alone and nothing is left, not before", async () => {
  for (const left of ["handed", "orphans"] as const) {
    const log = await play({ isAlone: () => true }, (world, what, times) => {
      // Something comes in at first.
      if (what === "process" && times === 1) world[left].count = 1;
      if (what === "sleep" || what === "help" || times > 3) {
        world[left].count = 0;
      }
    });
    assert(log.length > 2, left);
  }
  const log = await play({ isAlone: () => true }, () => {});
  assertEquals(log, ["process"]);
});

Deno.test("it notices that it is alone between its announcement to sleep and the sleep", async () => {
  let alone = false;
  const log = await play({ isAlone: () => alone }, (_, what) => {
    if (what === "prepare") alone = true;
  });
  assertEquals(log, ["process", "prepare", "cancel"]);
});

Deno.test("it ends after so long without work, and not while a delay is not over", async () => {
  const log = await play({ idleTimeout: 250 }, ({ clock }, what) => {
    if (what === "sleep") clock.now += 100;
  });
  assertEquals(log.filter((one) => one === "process").length, 4);
  const delayed = await play(
    { idleTimeout: 20, delay: 500 },
    (world, what, times) => {
      if (what === "process" && times === 1) world.handed.count = 1;
      if (what === "help") world.handed.count = 0;
      if (what === "turn" || what === "sleep") world.clock.now += 50;
    },
  );
  // 500 ms from the batch on, and 20 more.
  assertEquals(
    delayed.filter((one) => `${one}`.startsWith("sleep")).length,
    11,
  );
});

Deno.test("what it frees or gets counts as work", async () => {
  for (const work of ["invoked", "pending"] as const) {
    const log = await play({ idleTimeout: 150 }, (world, what, times) => {
      if (what === "sleep" || what === "nap") world.clock.now += 100;
      if (what === "process") {
        if (times <= 5) world.callbacks[work]++;
        else world.callbacks.pending = 0;
      }
    });
    assert(log.filter((one) => one === "process").length >= 7, work);
  }
});
