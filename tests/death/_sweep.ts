// Every step of an act as the last one of its thread.

import { assert, assertEquals } from "@std/assert";
import { Rcu, type RcuHandle, type RcuOptions } from "../../mod.ts";
import { assertAddsUp, assertLists } from "../_audit.ts";
import { bury, Doom, inOneTurn } from "./_doom.ts";

/** An act in whose middle a thread dies. */
export interface Scenario {
  name: string;
  options?: RcuOptions;
  /** What is there before; for the surviving thread. */
  prepare(rcu: Rcu): void;
  /** What the doomed thread does before, and returns what it dies in; `join` joins once more. */
  act(doomed: Rcu, join: () => void): () => void;
  /** What the surviving thread finds; compared with what it finds before and after an act that nobody dies in. */
  look(rcu: Rcu): unknown;
  /** Does what another thread may want to do then, and empties everything. */
  goOn(rcu: Rcu): void;
  /** Whether anything in between is right, too: an act of several updates. */
  isRight?(found: unknown): boolean;
  /** Whether the surviving thread is in a section meanwhile, so that no grace period ends. */
  beside?: "a reader";
  /** Whether so many callbacks may be counted as lost; without it, none may. */
  mayLose?(lost: number): boolean;
}

/** What there is of a domain: one for every step. */
interface World extends Disposable {
  rcu: Rcu;
  /** The memberships of the thread that is to die. */
  doomed: Rcu[];
  act: () => void;
  /** Has the survivor leave its section, if it is in one. */
  leave: () => void;
}

/** A domain as it is before the act. One buffer serves all steps: only a collection of garbage frees one. */
function found(scenario: Scenario): { handle: RcuHandle; image: Int32Array } {
  const rcu = Rcu.create({
    capacity: 2 ** 21,
    maxReaders: 4,
    ...scenario.options,
  });
  scenario.prepare(rcu);
  rcu.barrierSync();
  rcu.close();
  return { handle: rcu.handle, image: rcu.memory.words.slice() };
}

function begin(
  scenario: Scenario,
  { handle, image }: ReturnType<typeof found>,
  doom: Doom,
): World {
  new Int32Array(handle.buffer).set(image);
  const rcu = Rcu.attach(handle, { name: "survivor" });
  const doomed = [doom.attach(handle)];
  const join = () => void doomed.push(doom.attach(handle));
  const act = inOneTurn(() => scenario.act(doomed[0], join));
  const section = scenario.beside === undefined ? undefined : rcu.readLock();
  const leave = () => {
    section?.[Symbol.dispose]();
    rcu.quiescentState();
  };
  return { rcu, doomed, act, leave, [Symbol.dispose]: () => rcu.close() };
}

/** Bytes that are live when all has been emptied, and everybody but the survivor has gone. */
function end(rcu: Rcu, scenario: Scenario): number {
  const { lost } = rcu.stats().callbacks;
  scenario.goOn(rcu);
  // In a record of the dead.
  const next = inOneTurn(() => Rcu.attach(rcu.handle, { name: "next" }));
  inOneTurn(() => scenario.goOn(next));
  next.close();
  rcu.barrierSync();
  rcu.barrierSync();
  const { callbacks, memory, readers } = rcu.stats();
  assertEquals(readers.map(({ name }) => name), ["survivor"]);
  assertEquals(callbacks.pending, 0, "pending callbacks");
  assertEquals(assertAddsUp(memory).deferred, 0, "deferred bytes");
  assertLists(rcu.memory.words);
  assert(scenario.mayLose?.(lost) ?? lost === 0, `${lost} callbacks are lost`);
  return memory.live;
}

/**
 * Has a thread die before every step of an act, and checks each time that
 * nothing has been lost and nobody is held up.
 *
 * @param scenario The act.
 * @param options How many steps are tried, by default all of them; how many who bury the thread die
 * in the middle of that before one does not; whether the thread's stack unwinds.
 * @returns How many steps there are.
 */
export function sweep(
  scenario: Scenario,
  options: { tries?: number; buriers?: number; unwinds?: boolean } = {},
): number {
  const { tries = Infinity, buriers = 0, unwinds = false } = options;
  const domain = found(scenario);
  const doom = new Doom();
  let before: string;
  let after: string;
  let live: number;
  let steps: number;
  {
    using world = begin(scenario, domain, doom);
    before = show(scenario.look(world.rcu));
    assertEquals(doom.run(world.act, Infinity), false);
    steps = doom.steps;
    world.leave();
    after = show(scenario.look(world.rcu));
    // A thread that leaves in good order: what must be live in the end.
    for (const rcu of world.doomed) doom.run(() => rcu.close(), Infinity);
    live = end(world.rcu, scenario);
  }
  const stride = Math.max(1, Math.floor(steps / tries));
  // Another residue each time: in the long run every step is tried.
  const first = Math.floor(Math.random() * stride);
  for (let at = first; at < steps; at += stride) {
    using world = begin(scenario, domain, doom);
    const { rcu } = world;
    let last = -1;
    try {
      const died = doom.run(world.act, at, unwinds);
      // Of errors, the allocator's last steps are none's.
      assert(died || unwinds, "the thread has died");
      world.leave();
      for (let i = 0, step = at % 13; i < buriers; i++, step += 29) {
        last = step;
        doom.run(() => bury(doom.view, rcu.readerId), step);
      }
      bury(rcu.memory.words, rcu.readerId);
      const found = scenario.look(rcu);
      assert(
        show(found) === before || show(found) === after ||
          scenario.isRight?.(found),
        `found ${show(found)}, neither ${before} nor ${after}`,
      );
      assertEquals(end(rcu, scenario), live, "live bytes");
    } catch (error) {
      throw new Error(
        `${scenario.name}: death before step ${at} of ${steps}${
          last < 0 ? "" : `, of the last burier before its step ${last}`
        }: ${(error as Error).message}`,
        { cause: error },
      );
    }
  }
  return steps;
}

function show(found: unknown): string {
  return JSON.stringify(found);
}
