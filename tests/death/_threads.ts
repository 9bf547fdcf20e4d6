// Real threads that die, and what must be true afterwards.

import { assert, assertEquals } from "@std/assert";
import { Rcu } from "../../mod.ts";
import { assertAddsUp, assertLists } from "../_audit.ts";
import { BEGUN, DONE, DYING, startMortal, untilAlone } from "../_mortals.ts";
import { assertRounds, startOver } from "./_rounds.ts";
import type { Scenario } from "./_sweep.ts";

/** A domain in which threads die. */
export function create(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8, name: "main" });
}

/**
 * Asserts that nothing is left of a thread that has died.
 *
 * @param rcu The membership of the one who lives.
 * @returns Live bytes.
 */
export async function assertWhole(rcu: Rcu): Promise<number> {
  await untilAlone(rcu);
  await rcu.barrier();
  const { callbacks, memory } = rcu.stats();
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
  assertEquals(callbacks.pending, 0);
  assertEquals(memory.deferred, 0);
  return memory.live;
}

/**
 * Has real threads die before some atomic accesses of an act, one after another.
 *
 * @param scenario The act.
 * @param steps The accesses.
 * @returns How many died; the act may have fewer accesses.
 */
export async function dieAtSteps(
  scenario: Scenario,
  steps: Iterable<number>,
): Promise<number> {
  using rcu = create();
  const look = () => JSON.stringify(scenario.look(rcu));
  // First somebody does it who lives.
  scenario.prepare(rcu);
  const before = look();
  scenario.act(rcu, () => {})();
  const after = look();
  scenario.goOn(rcu);
  const live = await assertWhole(rcu);
  let died = 0;
  for (const at of steps) {
    scenario.prepare(rcu);
    using mortal = startMortal(rcu, scenario.name, at);
    await mortal.reached(DONE);
    const survived = Atomics.load(mortal.state, 0) === DONE;
    if (survived) mortal.terminate();
    else died++;
    const where = `${scenario.name}: death before access ${at}`;
    await assertWhole(rcu);
    const found = look();
    assert(
      found === before || found === after ||
        scenario.isRight?.(JSON.parse(found)),
      `${where}: found ${found}`,
    );
    scenario.goOn(rcu);
    assertEquals(await assertWhole(rcu), live, `${where}: live bytes`);
    if (survived) break;
  }
  return died;
}

/**
 * Has threads die in rounds of updates, somewhere, one after another: every third one is terminated
 * between two turns or in one, the others end themselves before an access.
 *
 * @param times How many.
 */
export async function dieAtRandom(times: number): Promise<void> {
  using rcu = create();
  startOver(rcu);
  const live = await assertWhole(rcu);
  for (let i = 0; i < times; i++) {
    const turns = i % 3 === 0;
    // In the first round, or after some hundreds of them.
    const at = turns ? -1 : Math.floor(10 ** (5.3 * Math.random()));
    using mortal = startMortal(rcu, turns ? "turns" : "rounds", at);
    await mortal.reached(BEGUN);
    if (turns) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      mortal.terminate();
    } else await mortal.reached(DYING);
    try {
      await assertWhole(rcu);
      assertRounds(rcu);
      startOver(rcu);
      assertEquals(await assertWhole(rcu), live, "live bytes");
    } catch (error) {
      const where = turns ? "by terminate()" : `before access ${at}`;
      throw new Error(`death ${i}, ${where}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}
