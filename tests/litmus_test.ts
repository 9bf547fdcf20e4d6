// Outcomes that memory must not show, on real threads: a short run of `deno task litmus`.

import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Counts,
  indexOf,
  INSTANCES,
  outcomesOf,
  type Pattern,
  seenIn,
  weakIn,
} from "./litmus/_pattern.ts";
import { FAULTY, PATTERNS } from "./litmus/_patterns.ts";
import { runPatterns } from "./litmus/_run.ts";
import { table } from "./litmus/_table.ts";
import { CONTROL, verdict } from "./litmus/_verdict.ts";
import { withDomain } from "./_audit.ts";

const ROUNDS = 10;
const ROUNDS_WITH_FAULT = 30;
const TRIES = 20;

Deno.test("threads see nothing that must never be", async () => {
  const results = await runPatterns(PATTERNS, ROUNDS);
  assertEquals(results.length, PATTERNS.length);
  for (const { pattern, instances, outcomes } of results) {
    assertEquals(instances, ROUNDS * INSTANCES);
    const sum = outcomes.reduce((sum, count) => sum + count, 0);
    assertEquals(sum, instances, pattern.name);
  }
  const never = results.filter(({ pattern }) => pattern.weak === "never");
  assert(never.length > 0);
  assertEquals(
    never.filter((counts) => weakIn(counts) > 0).map((counts) =>
      table([counts])
    ),
    [],
  );
  // How much that is worth; a busy machine may show nothing in so short a time.
  console.log(verdict(results, "").text);
});

Deno.test("threads with faults see what must never be", async () => {
  let unseen = FAULTY;
  // On a busy machine threads may not meet for a while.
  for (let tries = 0; tries < TRIES && unseen.length > 0; tries++) {
    const results = await runPatterns(unseen, ROUNDS_WITH_FAULT);
    unseen = results.filter((counts) => weakIn(counts) === 0)
      .map(({ pattern }) => pattern);
  }
  assertEquals(unseen.map(({ name }) => name), []);
});

/** What threads see in an instance if one does its part after the other. */
async function inOrder(pattern: Pattern, order: number[]): Promise<number[]> {
  const seen = pattern.sees.map(() => 0);
  await withDomain({ capacity: 2 ** 23 }, (rcu) => {
    const { words } = rcu.memory;
    const base = rcu.memory.allocate(INSTANCES * pattern.words);
    words.fill(0, base, base + INSTANCES * pattern.words);
    pattern.setUp?.(words, base);
    const parts = pattern.sees.map((_, i) => pattern.part(rcu, base, i));
    for (let phase = 0; phase < pattern.phases; phase++) {
      for (const { prepare } of parts) prepare[phase](0, 0);
    }
    for (const thread of order) seen[thread] = parts[thread].act(0);
    rcu.memory.free(base);
  });
  return seen;
}

for (const pattern of [...PATTERNS, ...FAULTY]) {
  const faulty = FAULTY.includes(pattern);
  Deno.test(
    `"${pattern.name}" done one after the other shows what ${
      faulty ? "must never be" : "may be"
    }`,
    async () => {
      const threads = [...pattern.sees.keys()];
      const outcomes: number[][] = [];
      for (const order of [threads, threads.toReversed()]) {
        outcomes.push(await inOrder(pattern, order));
      }
      assertEquals(outcomes.some((seen) => pattern.isWeak(seen)), faulty);
      // Each order is seen to be one.
      assert(indexOf(outcomes[0]) !== indexOf(outcomes[1]));
      for (const seen of outcomes) {
        seen.forEach((value, i) =>
          assert(pattern.sees[i][value] !== undefined)
        );
      }
    },
  );
}

Deno.test("patterns have names of their own, and as many phases as they say", async () => {
  const all = [...PATTERNS, ...FAULTY];
  assertEquals(new Set(all.map(({ name }) => name)).size, all.length);
  await withDomain({ capacity: 2 ** 23 }, (rcu) => {
    for (const pattern of all) {
      for (const thread of pattern.sees.keys()) {
        const { prepare } = pattern.part(rcu, 0, thread);
        assertEquals(prepare.length, pattern.phases, pattern.name);
      }
    }
  });
});

/** Results in which an outcome was seen so often, and another one once. */
function counts(pattern: Pattern, seen: number[], times: number): Counts {
  const outcomes = new Array(outcomesOf(pattern)).fill(0);
  outcomes[indexOf(seen)] += times;
  outcomes[indexOf(seen.map(() => 1))]++;
  return { pattern, instances: times + 1, outcomes };
}

const [store, plain] = ["SB", CONTROL].map((name) =>
  PATTERNS.find((pattern) => pattern.name === name)!
);

Deno.test("an outcome has a number that leads back to it", () => {
  for (const pattern of PATTERNS) {
    for (let index = 0; index < outcomesOf(pattern); index++) {
      assertEquals(indexOf(seenIn(pattern, index)), index);
    }
  }
});

Deno.test("the verdict fails on what must never be, and on a control that shows nothing where it must", () => {
  const seen = counts(plain, [0, 0], 3);
  const unseen = counts(plain, [0, 1], 3);
  const fine = counts(store, [0, 1], 3);
  const broken = counts(store, [0, 0], 1);
  const fails = (...results: Counts[]) => verdict(results, "x86_64").fails;
  assertEquals(fails(fine, seen), false);
  assertEquals(fails(broken, seen), true);
  assertEquals(fails(fine, unseen), true);
  assertEquals(verdict([fine, unseen], "another").fails, false);
  assertThrows(() => fails(fine), Error, CONTROL);
});

Deno.test("the table shows for each pattern what was seen how often", () => {
  assertEquals(
    table([counts(store, [0, 1], 2), counts(plain, [0, 0], 3)]),
    [
      "pattern             threads  instances  in question  outcomes",
      "SB                  2        3          never be: 0  0 | 1: 2, 1 | 1: 1",
      "SB, plain accesses  2        4          may be: 3    0 | 0 (!): 3, 1 | 1: 1",
    ].join("\n"),
  );
});
