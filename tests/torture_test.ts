/** A short torture, and proof that it finds what it looks for. The long one is `deno task torture`. */
import {
  assert,
  assertEquals,
  assertGreater,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { Rcu, type RcuHandle } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { withDomain } from "./_audit.ts";
import { type TestWorker, withWorkers } from "./_workers.ts";
import { age, createElement, judge, Places, see } from "./torture/_element.ts";
import { type Fault, FAULTS } from "./torture/_faults.ts";
import { READING } from "./torture/_reading.ts";
import { nameOf, type Outcome, report } from "./torture/_report.ts";
import { CREW, SMALL_CREW, torture, WORKER } from "./torture/_run.ts";
import {
  CALLBACKS,
  DETECTORS,
  type Setting,
  settingsOf,
} from "./torture/_settings.ts";
import {
  add,
  emptyTally,
  isBad,
  tooOld,
  violations,
} from "./torture/_tally.ts";
import { UPDATING } from "./torture/_updating.ts";
import { anyFailed, planOf, readOptions } from "./torture/torture.ts";

const SEED = 2002;
/** Updates of a setting: each updater disposes in all ways at least once. */
const UPDATES = 30;
/** Longest run, in ms, however loaded the machine is. */
const TIME = 20_000;
/** Updates after which a planted fault has been missed. */
const MANY = 3_000;

for (const detector of Object.keys(DETECTORS)) {
  Deno.test(`no reader sees what a grace period of ${detector} should have kept from it`, async () => {
    const all = emptyTally();
    await withWorkers(WORKER, CREW.length, async (...workers) => {
      for (const [i, setting] of settingsOf(detector).entries()) {
        const length = { updates: UPDATES, time: TIME };
        const tally = await torture(workers, CREW, setting, SEED + i, length);
        assert(!isBad(tally), report([{ setting, turns: 1, tally }]));
        assertGreater(tally.ages[0], 0, setting.callbacks);
        add(all, tally);
      }
    });
    const done = [...Object.keys(READING), ...Object.keys(UPDATING)];
    for (const way of [...done, "joins", "thrown", "map writes", "fakes"]) {
      assertGreater(all.did[way] ?? 0, 0, way);
    }
    assertGreater(all.ages[1], 0, "elements that were unlinked under a reader");
  });
}

/** Each fault, and the detectors with which it is planted. */
const PLANTED: Record<Fault, string[]> = {
  "a detector that skips a reader": Object.keys(DETECTORS),
  "a quiescent state at the end of an inner section": ["scan", "tree-2"],
  "a quiescent state when leaf reads have used the budget up": ["classic"],
  "a quiescent state when a section polls": ["tree-16"],
  "a period that begins before the unlinking": ["scan", "tree-16"],
  "a period in progress that counts as a whole one": ["classic"],
  "a thread that joins and is not counted": ["scan", "tree-2"],
  "a thread that joins and announces itself at its first quiescent state": [
    "tree-2",
  ],
  "callbacks that run a period early": ["scan"],
};

/** Kinds of domain to plant a fault in: the first detector's also in debug mode. */
function* settingsFor(detectors: string[]): Generator<Setting> {
  for (const [i, detector] of detectors.entries()) {
    const settings = settingsOf(detector, "immediate");
    yield* settings.filter(({ debug }) => !debug || i === 0);
  }
}

for (const [fault, detectors] of Object.entries(PLANTED)) {
  for (const setting of settingsFor(detectors)) {
    Deno.test(`${fault} is found out with ${nameOf(setting)}`, async () => {
      assert(fault in FAULTS);
      const tally = await withWorkers(
        WORKER,
        SMALL_CREW.length,
        (...workers) => {
          const length = { updates: MANY, time: TIME };
          const planted = fault as Fault;
          return torture(workers, SMALL_CREW, setting, SEED, length, planted);
        },
      );
      assertGreater(violations(tally), 0, JSON.stringify(tally));
    });
  }
}

// What the harness is made of

for (const debug of [true, false]) {
  const name =
    `an element is right until a period has ended since it was unlinked, and wrong once it is freed or another, ${
      debug ? "with" : "without"
    } debug`;
  Deno.test(name, () =>
    withDomain({ debug, poisons: !debug }, (rcu) => {
      assertEquals(membershipOf(rcu, "check").debug, debug);
      const { words } = rcu.memory;
      const pointers = Places.create(rcu);
      const places = new Places(rcu, pointers);
      const element = createElement(rcu, 7);
      const tally = emptyTally();
      for (const place of [0, 2]) {
        places.publish(place, element);
        assertEquals(rcu.read(() => see(words, places, place)), {
          element,
          serial: 7,
        });
        places.publish(place, 0);
        assertEquals(rcu.read(() => see(words, places, place)), undefined);
      }
      const judged = [judge(words, { element, serial: 7 }, tally)];
      for (let i = 0; i < 2; i++) {
        age(words, element);
        judged.push(judge(words, { element, serial: 7 }, tally));
      }
      judged.push(judge(words, { element, serial: 8 }, tally));
      rcu.synchronizeSync();
      rcu.memory.free(element);
      judged.push(judge(words, { element, serial: 7 }, tally));
      assertEquals(judged, [true, true, false, false, false]);
      assertEquals(tally.ages.slice(0, 3), [1, 1, 1]);
      assertEquals([tally.reused, tally.poisoned], [1, 1]);
      assertEquals([tooOld(tally), violations(tally)], [1, 3]);
      rcu.memory.free(pointers);
    }, Places.openCells));
}

Deno.test("what a run leaves behind is a failure of it", async () => {
  const [setting] = settingsOf("scan", "immediate");
  const leave: Record<string, (member: Rcu) => void> = {
    "a block": (member) => {
      member.memory.allocate(8);
      member.close();
    },
    "a membership": () => {},
    "nothing": (member) => member.close(),
  };
  for (const [what, act] of Object.entries(leave)) {
    let member: Rcu;
    const tasks: Record<string, (argument: { handle: RcuHandle }) => unknown> =
      {
        join: ({ handle }) => member = Rcu.attach(handle),
        play: () => (act(member), emptyTally()),
      };
    const worker: TestWorker = {
      call: (task, argument) =>
        Promise.resolve(tasks[task](argument as never) as never),
    };
    const crew = ["reader"] as const;
    const tally = await torture([worker], crew, setting, SEED, { time: 20 });
    member!.close();
    assertEquals(violations(tally), 0);
    assertEquals(
      tally.errors.map((error) => error.startsWith("afterwards: ")),
      what === "nothing" ? [] : [true],
      what,
    );
  }
});

Deno.test("the report has a line for each setting and says what was wrong", () => {
  const outcomes: Outcome[] = settingsOf("tree", "throttled").map(
    (setting) => ({ setting, turns: 1, tally: emptyTally() }),
  );
  const calm = report(outcomes);
  for (const name of ["tree-2, throttled-1 ", "tree-16, throttled-16", "all"]) {
    assertStringIncludes(calm, `| ${name}`);
  }
  assertEquals(calm.includes("failed"), false);
  assertStringIncludes(calm, `Nothing was wrong in ${outcomes.length} of`);
  assertEquals(anyFailed(outcomes), false);
  const { tally } = outcomes[1];
  tally.ages[3] = 4;
  tally.errors.push("reader: Error: no");
  const wrong = report(outcomes);
  assertStringIncludes(wrong, "tree-16, throttled-1 failed");
  assertStringIncludes(wrong, "wrong with tree-16, throttled-1.");
  assertStringIncludes(wrong, "3: 4");
  assertStringIncludes(wrong, "reader: Error: no");
  assertEquals(anyFailed(outcomes), true);
});

// The command line

Deno.test("readOptions() of the torture takes all settings, 60 s and a drawn seed unless told otherwise", () => {
  const detectors = Object.keys(DETECTORS).length;
  const all = detectors * (Object.keys(CALLBACKS).length + 1);
  const { settings, ...rest } = readOptions([], () => 9);
  assertEquals(rest, { help: false, seconds: 60, seed: 9 });
  assertEquals(settings.length, all);
  // What ships is tortured with all of them.
  const shipped = settings.filter(({ debug }) => !debug).map(nameOf);
  assertEquals(new Set(shipped).size, all - detectors);
  const narrow = readOptions(
    ["--seconds=5", "--detector", "tree,scan", "--callbacks=offloaded-0"]
      .concat(["--seed", "4294967295"]),
  );
  assertEquals([narrow.seconds, narrow.seed], [5, 2 ** 32 - 1]);
  assertEquals(
    narrow.settings.map(nameOf),
    ["", ", debug"].flatMap((mode) =>
      ["scan", "tree-2", "tree-16"].map((name) => `${name}, offloaded-0${mode}`)
    ),
  );
});

Deno.test("readOptions() of the torture names what it does not know", () => {
  const wrong: [string[], string][] = [
    [["--sceonds", "5", "x"], "received --sceonds"],
    [["--seconds", "0"], "--seconds must be an integer from 1"],
    [["--seconds=1e3"], "received 1e3"],
    [["--seed=-1"], "--seed must be an integer from 0"],
    [["--detector", "skan"], "scan, classic, tree-2, tree-16: received skan"],
    [["--detector", "scan,"], "tree-16: received nothing"],
  ];
  for (const [args, message] of wrong) {
    assertThrows(() => readOptions(args), RangeError, message);
  }
});

Deno.test("the turns of a torture fill its time and none outlasts a worker's patience", () => {
  for (const seconds of [1, 5, 60, 3_600]) {
    for (const settings of [1, 4, 24]) {
      const { rounds, time } = planOf(settings, seconds);
      assert(Number.isInteger(rounds) && rounds > 0);
      assert(time >= 100 && time <= 5_000, `${time} ms`);
      if (seconds / settings > 1) {
        assertGreater(rounds * settings * time, seconds * 400);
      }
    }
  }
});
