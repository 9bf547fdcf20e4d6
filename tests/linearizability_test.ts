// Histories of real threads, and whether they could have been one operation after the other.

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { NotLinearizable } from "./linearizability/_check.ts";
import { withScenario, withThreads } from "./linearizability/_explore.ts";
import type { Fault } from "./linearizability/_faults.ts";
import {
  cellModel,
  contentsModel,
  type Input,
  keyModel,
  withVersions,
} from "./linearizability/_models.ts";
import { ABSENT, KEYS } from "./linearizability/_plan.ts";
import { type Scenario, SCENARIOS } from "./linearizability/_scenarios.ts";
import {
  linearize,
  type Model,
  type Operation,
} from "./linearizability/_search.ts";

/** What is done for each scenario, ms among it: a short run, however busy the machine is. */
const EFFORT = { plans: 40, time: 100 };
/** How often that is done, at most, until threads have been at a key at once. */
const TRIES = 50;
/** What is done, at most, until a fault shows itself: short batches, for it makes threads slow. */
const EFFORT_WITH_FAULT = { plans: 5_000, rounds: 5, asIs: true };
/** Most steps of a plan that is small; one that is drawn has up to twelve. */
const SMALL = 6;

// The search

/**
 * A history, drawn: a line for each thread, an operation from its first letter
 * to its last one, and a space where the thread does nothing.
 */
function history(
  lines: [line: string, ...does: [input: Partial<Input>, output: number][]][],
): Operation<Input>[] {
  return lines.flatMap(([line, ...does], thread) => {
    const spans = [...line.matchAll(/\S+/g)];
    assertEquals(spans.length, does.length, line);
    return spans.map(({ index, 0: span }, i) => ({
      thread,
      // No two at the same time.
      called: index * 10 + thread,
      returned: (index + span.length) * 10 - 5 + thread,
      input: { action: "get" as const, key: 0, ...does[i][0] },
      output: does[i][1],
    }));
  });
}

const get = (output: number): [Partial<Input>, number] => [{}, output];
const has = (output: number): [Partial<Input>, number] => [
  { action: "has" },
  output,
];
const set = (value: number): [Partial<Input>, number] => [
  { action: "set", value },
  ABSENT,
];
const del = (output: number): [Partial<Input>, number] => [
  { action: "delete" },
  output,
];
const add = (value: number, output: number): [Partial<Input>, number] => [
  { action: "update", value, missing: 0 },
  output,
];
const insert = (value: number, output: number): [Partial<Input>, number] => [
  { action: "getOrInsert", value },
  output,
];

const GOOD: Record<string, Operation<Input>[]> = {
  "nothing": [],
  "one after the other": history([
    ["aa  cc      ", set(1), get(1)],
    ["  bb  dd  ee", get(1), del(1), has(0)],
  ]),
  "a read that takes effect before a write that began earlier": history([
    ["aaaaaaaa  ", set(1)],
    ["  bb    cc", get(0), get(1)],
  ]),
  "a write that takes effect late, after reads of both values": history([
    ["aaaaaaaaaaaaaa", set(1)],
    ["  bb  cc  dd  ", get(0), get(1), get(1)],
  ]),
  "writes in the opposite order of their calls": history([
    ["aaaaaaaa  ", set(1)],
    ["  bb    cc", set(2), get(1)],
  ]),
  "a choice that must be taken back": history([
    ["aaaaaaaaaaaa  ", set(1)],
    ["bbbbbbbbbbbb  ", set(2)],
    ["cccc  ddd   ee", get(2), get(1), get(1)],
  ]),
  "updates that meet": history([
    ["aaaaaa    ", add(1, 3)],
    ["  bbbbbb  ", add(2, 2)],
    ["        cc", get(3)],
  ]),
  "one of two deletions": history([["aaaa", del(1)], ["bbbb", del(0)]]),
  "an insertion between a deletion and a miss": history([
    ["aaaaaa    ", del(1)],
    ["  bbbbbbb ", insert(4, 4)],
    ["   cc     ", has(0)],
  ]),
};

const BAD: Record<string, Operation<Input>[]> = {
  "a stale read": history([["aa    ", set(1)], ["  bb  ", get(0)]]),
  "a read of a value that nobody wrote": history([
    ["aaaa", set(1)],
    ["bbbb", get(2)],
  ]),
  "a value that comes back": history([
    ["aaaaaaaaaa", set(1)],
    [" bb  cc   ", get(1), get(0)],
  ]),
  "two readers that disagree about the order of writes": history([
    ["aaaaaaaaaa", set(1)],
    ["bbbbbbbbbb", set(2)],
    [" cc  dd   ", get(1), get(2)],
    [" ee  ff   ", get(2), get(1)],
  ]),
  "a lost update": history([
    ["aaaa  cc", add(1, 1), get(2)],
    ["bbbb    ", add(2, 2)],
  ]),
  "a lost write": history([["aa    ", set(1)], ["  bb  ", get(ABSENT)]]),
  "an update of a value that was gone": history([
    ["aa      ", set(5)],
    ["   bb   ", add(1, 1)],
  ]),
  "two deletions of one entry": history([["aaaa", del(1)], ["bbbb", del(1)]]),
  "an entry that outlives its deletion": history([
    ["aa    ", del(1)],
    ["   bb ", has(1)],
  ]),
  "two insertions where nothing was": history([
    ["aa        ", del(1)],
    ["   bbbb   ", insert(1, 1)],
    ["   cccc   ", insert(2, 2)],
  ]),
};

for (const [name, operations] of Object.entries(GOOD)) {
  Deno.test(`the search explains ${name}`, () => {
    const order = linearize(keyModel(0), operations);
    assert(order !== undefined);
    assertExplains(keyModel(0), operations, order);
  });
}

for (const [name, operations] of Object.entries(BAD)) {
  Deno.test(`the search explains no ${name.replace(/^an? /, "")}`, () => {
    assertEquals(linearize(keyModel(0), operations), undefined);
  });
}

/** Asserts that an order is one: of all operations, at the right time, with the right answers. */
function assertExplains<S, I>(
  model: Model<S, I>,
  operations: Operation<I>[],
  order: number[],
): void {
  assertEquals(order.toSorted((a, b) => a - b), [...operations.keys()]);
  assert(explains(model, operations, order), "an order that is none");
}

/** Whether an order explains a history, by the definition. */
function explains<S, I>(
  model: Model<S, I>,
  operations: Operation<I>[],
  order: number[],
): boolean {
  const inTime = order.every((a, i) =>
    order.slice(i + 1).every((b) =>
      operations[b].returned >= operations[a].called &&
      operations[a].after !== b
    )
  );
  let state: S | undefined = model.initial;
  for (const i of order) {
    if (state !== undefined) state = model.step(state, operations[i]);
  }
  return inTime && state !== undefined;
}

function* permutations(of: number[]): Generator<number[]> {
  if (of.length === 0) yield [];
  for (const first of of) {
    for (const rest of permutations(of.filter((i) => i !== first))) {
      yield [first, ...rest];
    }
  }
}

/** Small histories, of any answers, by threads that do one thing at a time. */
const anyHistory: fc.Arbitrary<Operation<Input>[]> = fc.array(
  fc.record({
    thread: fc.nat(2),
    action: fc.constantFrom(
      "get",
      "has",
      "set",
      "delete",
      "getOrInsert",
      "update",
    ),
    value: fc.integer({ min: 1, max: 2 }),
    output: fc.integer({ min: -1, max: 3 }),
    begins: fc.nat(9),
    takes: fc.nat(9),
  }),
  { maxLength: 6 },
).map((drawn) => {
  const free = [0, 0, 0];
  return drawn.map(({ thread, action, value, output, begins, takes }) => {
    const called = free[thread] + begins;
    const returned = called + 1 + takes;
    free[thread] = returned + 1;
    const input = { action, key: 0, value, missing: 0 } as Input;
    return { thread, called, returned, input, output };
  });
});

/** The same with answers that threads could have got from one value that all share. */
const likelyHistory = anyHistory.map((operations) => {
  let value = 0;
  return operations.map((operation) => {
    for (let output = -1; output <= 9; output++) {
      const next = keyModel(0).step(value, { ...operation, output });
      if (next === undefined) continue;
      value = next;
      return { ...operation, output };
    }
    return operation;
  });
});

for (
  const [what, histories] of [
    ["any answers", anyHistory],
    ["likely answers", likelyHistory],
  ] as const
) {
  Deno.test(`the search finds for small histories of ${what} what trying all orders finds`, () => {
    const verdicts = new Set<boolean>();
    const model = keyModel(0);
    fc.assert(
      fc.property(histories, (operations) => {
        let possible = false;
        for (const order of permutations([...operations.keys()])) {
          possible ||= explains(model, operations, order);
          if (possible) break;
        }
        verdicts.add(possible);
        const found = linearize(model, operations);
        assertEquals(found !== undefined, possible);
        if (found !== undefined) assertExplains(model, operations, found);
      }),
      { numRuns: 300 },
    );
    assertEquals(verdicts, new Set([true, false]));
  });
}

Deno.test("the search refuses a history whose operations do not fit its sets", () => {
  const operations = Array.from({ length: 53 }, (_, i) => ({
    thread: 0,
    called: 2 * i,
    returned: 2 * i + 1,
    input: { action: "get", key: 0 } as Input,
    output: 0,
  }));
  assertThrows(() => linearize(keyModel(0), operations), RangeError);
  assert(linearize(keyModel(0), operations.slice(1)) !== undefined);
});

Deno.test("the search remembers what cannot be: what would take 6,000,000,000 orders takes no time", () => {
  // 13 writes at once, and then a value that nobody wrote.
  const lines = Array.from(
    { length: 13 },
    (_, i) => ["aa  ", set(i % 2)] as [string, [Partial<Input>, number]],
  );
  const operations = history([...lines, ["  bb", get(7)]]);
  let steps = 0;
  const model = keyModel(0);
  const counting: Model<number, Input> = {
    ...model,
    step: (state, operation) => {
      steps++;
      return model.step(state, operation);
    },
  };
  assertEquals(linearize(counting, operations), undefined);
  assert(steps < 14 * 2 ** 14, `${steps} steps`);
});

// The models

const version = (output: number): [Partial<Input>, number] => [
  { action: "version" },
  output,
];

for (
  const [name, possible, operations] of [
    [
      "a value that shows before its version",
      true,
      history([["aaaaaaaaaa", set(1)], [
        "bb  cc  dd",
        get(1),
        version(7),
        version(8),
      ]]),
    ],
    [
      "a version that shows before its value",
      false,
      history([["aaaaaaaaaa", set(1)], ["bb  cc    ", version(8), get(0)]]),
    ],
    [
      "a version that goes back",
      false,
      history([["aaaaaaaaaa", set(1)], ["bb  cc    ", version(8), version(7)]]),
    ],
    [
      "a version that misses a change",
      false,
      history([
        ["aaaa    ", set(1)],
        ["bbbb    ", add(1, 1)],
        ["      cc", version(8)],
      ]),
    ],
    [
      "a second change that shows before the version of the first one",
      false,
      history([
        ["aaaaaaaaaa", set(1)],
        ["bbbbbbbbbb", add(1, 2)],
        ["cc  dd    ", get(2), version(7)],
      ]),
    ],
    [
      "a version that is counted modulo 2^32",
      true,
      history([["aa    cc", set(1), version(8)], ["  bb    ", get(1)]]),
    ],
  ] as const
) {
  Deno.test(`a cell ${possible ? "may" : "must not"} have ${name}`, () => {
    const order = linearize(cellModel(0, 7), withVersions(operations));
    assertEquals(order !== undefined, possible);
  });
}

/** A section's read of a key. */
const read = (
  key: number,
  output: number,
  ends = false,
): [Partial<Input>, number] => [
  { action: "section", section: "s", key, ends },
  output,
];
const replaceAll = (...contents: number[]): [Partial<Input>, number] => [
  { action: "replaceAll", contents },
  ABSENT,
];

for (
  const [name, possible, operations] of [
    [
      "all of the old contents after a replacement",
      true,
      history([
        ["   aa        ", replaceAll(1, 2, 3)],
        ["bb    cc   dd", read(0, 0), read(1, 0), read(2, 0, true)],
      ]),
    ],
    [
      "some of the old and some of the new contents",
      false,
      history([
        ["   aa    ", replaceAll(1, 2, 3)],
        ["bb    cc ", read(0, 0), read(1, 2, true)],
      ]),
    ],
    [
      "the old contents although it began after the replacement",
      false,
      history([["aa    ", replaceAll(1, 2, 3)], ["   bb ", read(0, 0, true)]]),
    ],
    [
      "a change of the contents that it sees",
      true,
      history([
        ["   aa        ", set(9)],
        ["bb    cc     ", read(1, 0), read(0, 9, true)],
      ]),
    ],
    [
      "a change that came after the replacement, in the old contents",
      false,
      history([
        ["   aa  bb    ", replaceAll(1, 2, 3), set(9)],
        ["cc        dd ", read(1, 0), read(0, 9, true)],
      ]),
    ],
    [
      "old contents in a second section",
      false,
      history([
        ["   aa          ", [{ action: "clear" }, ABSENT]],
        ["bb   cc   dd   ", read(0, 0), read(1, 0, true), read(0, 0, true)],
      ]),
    ],
  ] as const
) {
  Deno.test(`a section ${possible ? "may" : "must not"} see ${name}`, () => {
    const model = contentsModel(new Array(KEYS).fill(0));
    assertEquals(linearize(model, operations) !== undefined, possible);
  });
}

// The structures

const GROUPS: Record<string, (scenario: Scenario) => boolean> = {
  "a cell": ({ subject }) => subject.structure === "cell",
  "a map": ({ subject, whole }) => subject.structure === "map" && !whole,
  "a sorted map": ({ subject, whole }) =>
    subject.structure === "sortedMap" && !whole,
  "a map that is replaced as a whole": ({ whole }) => whole === true,
};

for (const [name, belongs] of Object.entries(GROUPS)) {
  Deno.test(`${name} does what threads want of it at once in some order, one after the other`, () =>
    withThreads(async (...workers) => {
      let overlaps = 0;
      for (const scenario of SCENARIOS.filter(belongs)) {
        await withScenario(scenario, workers, async (explorer) => {
          // A busy machine may show no meeting in so short a time.
          for (let tries = 0; tries === 0 || overlaps === 0; tries++) {
            assert(tries < TRIES, "no thread met another at a key");
            const found = await explorer.explore(EFFORT);
            assert(
              !found.failed,
              `${scenario.name}: ${fc.defaultReportMessage(found)}`,
            );
            overlaps += explorer.overlaps;
          }
          assert(explorer.rounds > 0);
        });
      }
    }));
}

// The structures with faults

const FAULTY: [Fault, scenarios: string[]][] = [
  ["forgets to void what threads remember", ["RcuMap of string → string"]],
  ["voids what threads remember too early", ["RcuMap of string → json"]],
  ["updates as get, then set", [
    "RcuCell of f64",
    "RcuMap of string → u32",
    "RcuSortedMap of u32 → json",
  ]],
  ["gets or inserts as get, then set", [
    "RcuMap of u32 → string",
    "RcuSortedMap of string → f64",
  ]],
  ["deletes as has, then delete", [
    "RcuMap of string → f64",
    "RcuSortedMap of u32 → u32",
  ]],
  ["does not keep a section to one generation", [
    "RcuMap of u32 → u32, replaced as a whole",
    "RcuSortedMap of string → string, replaced as a whole",
  ]],
];

for (const [fault, names] of FAULTY) {
  Deno.test(`a structure is found out that ${fault}`, () =>
    withThreads(async (...workers) => {
      await Promise.all(workers.map((worker) => worker.call("plant", fault)));
      for (const name of names) {
        const scenario = SCENARIOS.find((scenario) => scenario.name === name);
        await withScenario(scenario!, workers, async (explorer) => {
          const { errorInstance } = await explorer.explore(EFFORT_WITH_FAULT);
          assert(errorInstance instanceof NotLinearizable, name);
        });
      }
    }, 2));
}

Deno.test("of a plan that fails, a small one is left", () =>
  withThreads(async (...workers) => {
    const fault: Fault = "updates as get, then set";
    await Promise.all(workers.map((worker) => worker.call("plant", fault)));
    const scenario = SCENARIOS.find(({ name }) => name === "RcuCell of f64")!;
    await withScenario(scenario, workers, async (explorer) => {
      const { counterexample, errorInstance, numShrinks } = await explorer
        .explore({ plans: 5_000, rounds: 30 });
      assert(errorInstance instanceof NotLinearizable);
      const [{ threads }] = counterexample!;
      const shown = JSON.stringify(threads);
      assert(numShrinks > 0, shown);
      // One update by each of two threads suffices; a step more may be left by chance.
      assertEquals(threads.length, 2);
      assert(threads.flat().length <= SMALL, shown);
      assert(threads.flat().some(({ action }) => action === "update"), shown);
    });
  }, 2));
