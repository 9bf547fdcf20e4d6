// Readers that are stopped anywhere while a writer is at any step: what they find when they go on.

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { json, Rcu, RcuSortedMap, string, u32 } from "../mod.ts";
import { KEY, LEFT, LINK, RED, RIGHT } from "../src/structures/_tree.ts";
import { ChosenHash } from "./_interleave.ts";
import { atEveryStep } from "./_steps.ts";
import { assertTree, Findable, rootLink, treeOf } from "./_tree_checks.ts";

type Ends = [number, number] | undefined;

/** The answers that a map gives, from a sorted list of keys. Values are keys. */
function floorOf(keys: number[], key: number): number | undefined {
  return keys.findLast((other) => other <= key);
}

function ceilingOf(keys: number[], key: number): number | undefined {
  return keys.find((other) => other >= key);
}

const ORDERS: [string, number[]][] = [
  ["ascending", Array.from({ length: 24 }, (_, n) => n)],
  ["descending", Array.from({ length: 24 }, (_, n) => 23 - n)],
  ["mixed", Array.from({ length: 24 }, (_, n) => (n * 7) % 24)],
];

for (const [name, order] of ORDERS) {
  Deno.test(`at every step of insertions and deletions in ${name} order, from every node that a reader may stand on, every other key is found`, () => {
    for (const removal of ORDERS) {
      using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
      using member = Rcu.attach(rcu.handle);
      const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
      const other = RcuSortedMap.open(member, "m", { key: u32, value: u32 });
      // No node is freed: a reader might stand on any that ever was.
      using _section = member.readLock();
      assertEquals(other.size, 0);
      const findable = new Findable(map, order);
      const present = new Set<number>();
      let steps = 0;
      const watch = (key: number, act: () => void) => {
        const states = [[...present].sort((a, b) => a - b)];
        if (present.has(key)) states.push(states[0].filter((k) => k !== key));
        else states.push([...states[0], key].sort((a, b) => a - b));
        const look = () => {
          findable.look(key);
          assertAnswers(other, states, order);
        };
        steps += atEveryStep(act, look);
        look();
      };
      for (const key of order) {
        watch(key, () => map.set(key, key));
        present.add(key);
        assertTree(map);
      }
      for (const key of removal[1]) {
        watch(key, () => assert(map.delete(key)));
        present.delete(key);
        assertTree(map);
      }
      assert(steps > 48 * 6, `${steps} steps`);
      assert(findable.nodes > 36, `${findable.nodes} nodes`);
    }
  });
}

/** Every answer must be that of one of the states. */
function assertAnswers(
  map: RcuSortedMap<number, number>,
  states: number[][],
  keys: number[],
): void {
  const isOneOf = (entry: Ends, of: (keys: number[]) => number | undefined) => {
    const key = entry?.[0];
    assert(states.some((state) => of(state) === key), `${key}`);
    assertEquals(entry?.[1], key);
  };
  isOneOf(map.first(), (state) => state[0]);
  isOneOf(map.last(), (state) => state.at(-1));
  for (const key of keys) {
    const found = map.get(key);
    assert(
      states.some((s) => (s.includes(key) ? key : undefined) === found),
      `${key} → ${found}`,
    );
    isOneOf(map.floor(key), (state) => floorOf(state, key));
    isOneOf(map.ceiling(key), (state) => ceilingOf(state, key));
  }
  const shown = [...map.keys()];
  assert(
    states.some((state) => `${state}` === `${shown}`),
    `${shown} is shown`,
  );
}

Deno.test("the check of searches notices a rotation in place and a deletion that moves the successor", () => {
  const setUp = () => {
    const rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
    const map = RcuSortedMap.open(rcu, "m", { key: u32, value: u32 });
    for (let n = 0; n < 15; n++) map.set(n, n);
    const tree = treeOf(map);
    const findable = new Findable(map, Array.from({ length: 15 }, (_, n) => n));
    return { rcu, tree, words: tree.words, findable };
  };
  {
    const { rcu, tree, words, findable } = setUp();
    using _ = rcu;
    const at = rootLink(tree);
    const down = words[at];
    const up = words[down + RIGHT];
    findable.look();
    words[down + RIGHT] = words[up + LEFT] & LINK;
    words[up + LEFT] = down;
    words[at] = up;
    // Right for whoever starts at the root, wrong for whoever stands on `down`.
    assertThrows(() => findable.look(), Error, "no longer found");
  }
  {
    const { rcu, tree, words, findable } = setUp();
    using _ = rcu;
    const node = words[rootLink(tree)];
    let above = words[node + RIGHT];
    let next = words[above + LEFT] & LINK;
    while ((words[next + LEFT] & LINK) !== 0) {
      above = next;
      next = words[next + LEFT] & LINK;
    }
    const gone = tree.keyOf(tree.probeOf(node));
    words[above + LEFT] = words[next + RIGHT] | (words[above + LEFT] & RED);
    words[node + KEY] = words[next + KEY];
    assertThrows(() => findable.look(gone), Error, "no longer found");
  }
});

/** Something that the overtaking member does. */
type Act = { act: "set" | "delete" | "replaceAll" | "clear"; key: number };

const anyAct: fc.Arbitrary<Act> = fc.record({
  act: fc.constantFrom(
    ...(["set", "set", "delete", "delete", "delete"] as const),
    ...(["set", "set", "delete", "replaceAll", "clear"] as const),
  ),
  key: fc.nat(40),
});

const anyHistory = fc.record({
  before: fc.uniqueArray(fc.nat(40), { minLength: 3, maxLength: 40 }),
  stop: fc.nat(7),
  acts: fc.array(anyAct, { minLength: 1, maxLength: 12 }),
  asked: fc.nat(40),
});

for (
  const question of ["get", "floor", "ceiling", "range", "values"] as const
) {
  Deno.test(`${question}() that is overtaken between two nodes passes over no key that stays, and shows none that never was`, () => {
    let overtaken = 0;
    fc.assert(
      fc.property(anyHistory, ({ before, stop, acts, asked }) => {
        using rcu = Rcu.create({
          capacity: 2 ** 22,
          maxReaders: 4,
          debug: true,
        });
        using member = Rcu.attach(rcu.handle);
        const key = new ChosenHash();
        const mine = RcuSortedMap.open<number, number>(rcu, "m", {
          key,
          value: u32,
        });
        const other = RcuSortedMap.open<number, number>(member, "m", {
          key: new ChosenHash(),
          value: u32,
        });
        for (const k of before) other.set(k, k);
        const present = new Set(before);
        const stay = new Set(before);
        const ever = new Set(before);
        let at = 0;
        let busy = false;
        key.at = () => {
          if (busy || at++ !== stop) return;
          busy = true;
          overtaken++;
          for (const { act, key } of acts) {
            if (act === "set") {
              other.set(key, key);
              present.add(key);
              ever.add(key);
            } else if (act === "delete") {
              other.delete(key);
              present.delete(key);
            } else if (act === "clear") {
              other.clear();
              present.clear();
            } else {
              for (const k of present) if (k % 5 === 0) present.delete(k);
              other.replaceAll([...present].map((k) => [k, k]));
            }
            for (const k of stay) if (!present.has(k)) stay.delete(k);
          }
          busy = false;
        };
        const list = [...ever];
        const might = (found: Ends) => {
          if (found === undefined) return;
          assertEquals(found[1], found[0]);
          assert(ever.has(found[0]), `${found[0]} never was, but ${list}`);
        };
        if (question === "get") {
          const found = mine.get(asked);
          assert(found === asked || !stay.has(asked), `${asked} → ${found}`);
          assert(found === undefined || ever.has(found));
        } else if (question === "floor") {
          const found = mine.floor(asked);
          might(found);
          assert((found?.[0] ?? 0) <= asked);
          for (const k of stay) {
            assert(k > asked || k <= (found?.[0] ?? -1), `${k}, not ${found}`);
          }
        } else if (question === "ceiling") {
          const found = mine.ceiling(asked);
          might(found);
          assert((found?.[0] ?? 99) >= asked);
          for (const k of stay) {
            assert(k < asked || k >= (found?.[0] ?? 99), `${k}, not ${found}`);
          }
        } else {
          const to = question === "range" ? asked + 15 : 99;
          const from = question === "range" ? asked : 0;
          const shown = question === "range"
            ? [...mine.range(from, to)].map((entry) => (might(entry), entry[0]))
            : [...mine.values()];
          shown.forEach((k, i) => {
            assert(ever.has(k) && k >= from && k < to, `${k} is shown`);
            assert(i === 0 || k > shown[i - 1], `${shown} is not ascending`);
          });
          for (const k of stay) {
            assert(k < from || k >= to || shown.includes(k), `${k} is missing`);
          }
        }
        assertTree(other);
      }),
      { numRuns: 500, interruptAfterTimeLimit: 15_000 },
    );
    assert(overtaken > 100, `${overtaken} were overtaken`);
  });
}

for (
  const [name, value, valueOf] of [
    ["string", string, (n: number) => `value ${n}`],
    ["json", json<unknown>(), (n: number) => ({ n })],
  ] as const
) {
  Deno.test(`at every step of an update readers of ${name} find the old value or the new one, and then not the old one again`, () => {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug: true });
    using member = Rcu.attach(rcu.handle);
    const options = { key: string, value: value as typeof string };
    const map = RcuSortedMap.open(rcu, "m", options);
    const other = RcuSortedMap.open(member, "m", options);
    const of = (n: number) => valueOf(n) as string;
    for (let n = 0; n < 12; n++) map.set(`${n}`, of(n));
    for (let n = 0; n < 12; n++) {
      let seen = 0;
      const looks = atEveryStep(() => map.set(`${n}`, of(n + 100)), () => {
        const found = JSON.stringify(other.get(`${n}`));
        const which = [of(n), of(n + 100)]
          .findIndex((value) => JSON.stringify(value) === found);
        assert(which >= seen, `${found}`);
        seen = which;
        for (let m = 0; m < 12; m++) {
          if (m === n) continue;
          assertEquals(other.get(`${m}`), of(m < n ? m + 100 : m));
        }
      });
      assert(looks > 4);
      assertEquals(other.get(`${n}`), of(n + 100));
    }
  });
}
