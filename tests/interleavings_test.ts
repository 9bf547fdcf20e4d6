/** A short exploration, and proof that it finds what it looks for. The whole one is `deno task interleavings`. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { type Event, READ, START, WRITE } from "./interleavings/_board.ts";
import { withCrew } from "./interleavings/_explore.ts";
import { type Fault, FAULTS, isRare } from "./interleavings/_faults.ts";
import type { Scenario } from "./interleavings/_scenario.ts";
import { SCENARIOS } from "./interleavings/_scenarios.ts";
import { scheduleOf, seedOf } from "./interleavings/_schedule.ts";
import { Search } from "./interleavings/_search.ts";
import { TOYS } from "./interleavings/_toys.ts";
import {
  findFault,
  HELP,
  readOptions,
  scenariosOf,
} from "./interleavings/run.ts";

/** Schedules of each scenario that the suite runs at most. */
const MOST = 40;

function named(name: string): Scenario {
  return [...SCENARIOS, ...TOYS].find((scenario) => scenario.name === name)!;
}

Deno.test("no scenario fails under its first schedules of one preemption", () =>
  withCrew(async (crew) => {
    for (const scenario of SCENARIOS) {
      const { found, all } = await crew.explore(scenario, {
        preemptions: 1,
        most: MOST,
      });
      assertEquals(found, undefined, scenario.name);
      assert(all > 1);
    }
  }));

Deno.test("a planted fault is found", () =>
  withCrew(async (crew) => {
    for (const fault of Object.keys(FAULTS) as Fault[]) {
      if (isRare(fault)) continue;
      const [scenario] = scenariosOf(fault);
      const { schedule } = await findFault(crew, fault, scenario, 2);
      assert(schedule !== undefined, `${fault} in ${scenario.name}`);
    }
  }));

Deno.test("a schedule that failed fails again when it is replayed, and is described step by step", () =>
  withCrew(async (crew) => {
    const scenario = named("mutex/two threads");
    const fault = "gives the mutex back by a load and a store";
    const { schedule } = await findFault(crew, fault, scenario, 1);
    const failed = await crew.replay(scenario, schedule!, fault);
    assert(failed.message!.startsWith("A sleeper must be woken"));
    assertEquals(
      failed.lines.map(({ step }) => step),
      failed.lines.map((_, i) => i + 1),
    );
    const sites = failed.lines.map(({ text }) => text);
    assert(sites.some((text) => /^wait 16 .*src\/sync\/_park.ts:/.test(text)));
    const sound = await crew.replay(scenario, "default");
    assertEquals(sound.message, undefined);
  }));

// The exploration itself

Deno.test("an exploration reaches every outcome that one without reductions reaches", () =>
  withCrew(async (crew) => {
    for (
      const [name, preemptions] of [
        ["toy/race of two", 3],
        ["toy/race of three", 2],
        ["tree/reports of one leaf", 1],
      ] as const
    ) {
      const [reduced, whole] = [
        await crew.explore(named(name), { preemptions, keepsOutcomes: true }),
        await crew.explore(named(name), {
          preemptions,
          keepsOutcomes: true,
          unreduced: true,
        }),
      ];
      assertEquals(
        reduced.outcomes.toSorted(),
        whole.outcomes.toSorted(),
        name,
      );
      assert(reduced.all < whole.all, name);
      assert(reduced.complete && whole.complete);
    }
  }));

Deno.test("an exploration finds lost updates, sleepers that nobody wakes, and runs that do not end or not repeat themselves", () =>
  withCrew(async (crew) => {
    for (
      const [name, message] of [
        ["toy/lost update", /An update was lost/],
        ["toy/sleeper that is not woken", /all of them wait for ever/],
        ["toy/sleeper that a timeout rescues", /nothing but its timeout/],
        ["toy/thread that never ends", /must end within/],
        ["toy/threads that do not repeat themselves", /must repeat itself/],
      ] as const
    ) {
      const { found } = await crew.explore(named(name), { preemptions: 1 });
      assert(message.test(found?.message ?? ""), found?.message);
    }
    const woken = named("toy/sleeper that is woken");
    const { found } = await crew.explore(woken, { preemptions: 2 });
    assertEquals(found, undefined);
  }));

/** An access to word 1, unless it is said otherwise. */
function event(step: number, thread: number, of: Partial<Event> = {}): Event {
  return {
    step,
    thread,
    kind: WRITE,
    ready: thread === 0 ? 2 : 1,
    sleeping: 0,
    to: thread,
    address: 1,
    hash: step,
    ...of,
  };
}

/** The schedules that a search has next, after its first one went in a certain way. */
function after(events: Event[], preemptions = 1): string[] {
  const search = new Search(preemptions, 2, true);
  assertEquals(search.next(), []);
  search.ran(events);
  const seeds: string[] = [];
  for (let next; (next = search.next());) seeds.push(seedOf(next));
  return seeds;
}

Deno.test("a search has each thread begin, for free, and each access preempted", () => {
  assertEquals(
    after([
      event(1, 0, { kind: START }),
      event(2, 0),
      event(3, 0, { kind: READ }),
    ]),
    ["3:1", "2:1", "1:1"],
  );
  assertEquals(after([event(1, 0, { kind: START }), event(2, 0)], 0), ["1:1"]);
});

Deno.test("a search preempts the first two and the last one of many loads of a word", () => {
  const loads = [1, 2, 3, 4, 5].map((step) => event(step, 0, { kind: READ }));
  assertEquals(after(loads), ["5:1", "1:1"]);
});

Deno.test("a search goes no further where a preemption made no difference", () => {
  for (const [address, goesOn] of [[1, true], [2, false]] as const) {
    const search = new Search(2, 2, true);
    search.next();
    search.ran([event(1, 0), event(2, 0)]);
    search.next();
    assertEquals(seedOf(search.next()!), "1:1");
    // Thread 1 acts, then thread 0 does what it was about to do.
    search.ran([event(1, 0), event(2, 1, { address }), event(3, 0)]);
    assertEquals(search.next() !== undefined, goesOn);
  }
});

Deno.test("a schedule's seed says what the schedule is", () => {
  for (const seed of ["default", "17:1", "17:1,42:0"]) {
    assertEquals(seedOf(scheduleOf(seed)), seed);
  }
  for (const seed of ["", "17", "17:1,", "a:1", "1:12"]) {
    assertThrows(() => scheduleOf(seed), RangeError, `received ${seed}`);
  }
});

// The command

Deno.test("readOptions() of the interleavings takes all scenarios and two preemptions unless told otherwise", () => {
  assertEquals(readOptions([]), {
    help: false,
    faults: false,
    scenarios: SCENARIOS,
    preemptions: 2,
    fault: undefined,
    replay: undefined,
  });
  const options = readOptions([
    ...["--scenario", "mutex/two,tree", "--preemptions", "3"],
    ...["--fault", "updates without the lock", "--replay", "1:1"],
  ]);
  assertEquals(options.scenarios.map(({ name }) => name), [
    "tree/reports of two leaves",
    "tree/reports of one leaf",
    "mutex/two threads",
  ]);
  assertEquals(options.preemptions, 3);
  assertEquals(options.fault, "updates without the lock");
  assertEquals(options.replay, "1:1");
});

Deno.test("readOptions() of the interleavings names what it does not know", () => {
  for (
    const [args, message] of [
      [["--bad"], "received --bad"],
      [["more"], "received more"],
      [["--scenario", "none"], "received none"],
      [["--preemptions", "x"], "received x"],
      [["--fault", "toString"], "received toString"],
      [["--replay", "x"], "received x"],
    ] as const
  ) {
    assertThrows(() => readOptions([...args]), RangeError, message);
  }
});

Deno.test("the help of the interleavings names every scenario and every fault", () => {
  for (const { name } of SCENARIOS) assert(HELP.includes(name), name);
  for (const name of Object.keys(FAULTS)) assert(HELP.includes(name), name);
});

Deno.test("scenarios have names of their own, and every one has a fault that it finds", () => {
  const names = [...SCENARIOS, ...TOYS].map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  const proven = Object.keys(FAULTS).flatMap((fault) =>
    scenariosOf(fault as Fault)
  );
  assertEquals(
    SCENARIOS.filter((scenario) => !proven.includes(scenario))
      .map(({ name }) => name),
    [],
  );
});
