// Real threads that die, and what must be true afterwards.

import { assert, assertEquals } from "@std/assert";
import { Rcu } from "../../mod.ts";
import { assertAddsUp, assertLists } from "../_audit.ts";
import { KEYS, roundsMap, sortedRounds } from "../_mortal_tasks.ts";
import { BEGUN, DONE, DYING, startMortal, untilAlone } from "../_mortals.ts";
import type { Scenario } from "./_sweep.ts";

/** A domain in which threads die. */
export function create(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8, name: "main" });
}

/** Asserts that nothing is left of a thread that has died. */
export async function assertWhole(rcu: Rcu, live?: number): Promise<void> {
  await untilAlone(rcu);
  await rcu.barrier();
  const { callbacks, memory } = rcu.stats();
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
  assertEquals(callbacks.pending, 0);
  assertEquals(memory.deferred, 0);
  if (live !== undefined) assertEquals(memory.live, live);
}

/**
 * Has a real thread die before some atomic accesses of an act, one after another.
 *
 * @param scenario The act.
 * @param steps The accesses.
 * @returns How often one died; the act may have fewer.
 */
export async function dieAtSteps(
  scenario: Scenario,
  steps: Iterable<number>,
): Promise<number> {
  using rcu = create();
  scenario.prepare(rcu);
  let died = 0;
  for (const at of steps) {
    using mortal = startMortal(rcu, scenario.name, at);
    await mortal.reached(DONE);
    const survived = Atomics.load(mortal.state, 0) === DONE;
    if (survived) mortal.terminate();
    else died++;
    await assertWhole(rcu);
    if (survived) break;
  }
  scenario.goOn(rcu);
  await assertWhole(rcu);
  return died;
}

/**
 * Has threads die in rounds of updates, of which each must be a whole one.
 *
 * @param times How many.
 */
export async function dieAtRandom(times: number): Promise<void> {
  using rcu = create();
  const map = roundsMap(rcu);
  const sorted = sortedRounds(rcu);
  for (let i = 0; i < KEYS; i++) map.set(`key ${i}`, { round: 0 });
  for (let i = 0; i < times; i++) {
    const turns = i % 3 === 0;
    const at = turns ? -1 : Math.floor(Math.random() * 20_000);
    using mortal = startMortal(rcu, turns ? "turns" : "rounds", at);
    await mortal.reached(BEGUN);
    if (turns) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      mortal.terminate();
    } else await mortal.reached(DYING);
    await assertWhole(rcu);
    const rounds = Array.from(
      { length: KEYS },
      (_, key) => map.get(`key ${key}`)!.round,
    );
    const broken = rounds.findIndex((round) => round !== rounds[0]);
    if (broken > 0) {
      assert(
        rounds.slice(broken).every((round) => round === rounds[broken]),
        `rounds ${rounds} of a death before access ${at}`,
      );
    }
    assertEquals([...sorted].length, sorted.size);
    for (let key = 0; key < KEYS; key++) {
      map.set(`key ${key}`, { round: 0 });
      sorted.set(key, 0);
    }
  }
  for (const key of [...map.keys()]) map.delete(key);
  await assertWhole(rcu);
}
