// A thread whose turns of the event loop a test decides on.

import { stub } from "@std/testing/mock";
import { Rcu, type RcuOptions } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";

/** Blocks are handed to a reclaimer, which is whoever claims to be. */
export const OFFLOADED: RcuOptions = {
  callbacks: { mode: "offloaded" },
  reclaimer: "none",
  highWater: 200,
};

/** A thread whose turns a test decides on, beside a reader that can be in the way. */
export function setUp(options: RcuOptions = {}) {
  const stubs = new DisposableStack();
  const times: number[] = [];
  let next: (() => void) | undefined;
  let held = false;
  stubs.use(stub(
    globalThis,
    "setTimeout",
    ((task: () => void, ms: number) => {
      times.push(ms);
      next = task;
      held = true;
      return times.length;
    }) as never,
  ));
  stubs.use(stub(globalThis, "clearTimeout", () => {
    next = undefined;
  }));
  stubs.use(stub(Deno, "refTimer", () => void (held = true)));
  stubs.use(stub(Deno, "unrefTimer", () => void (held = false)));
  const rcu = stubs.use(
    Rcu.create({ capacity: 2 ** 21, maxReaders: 4, ...options }),
  );
  const other = stubs.use(Rcu.attach(rcu.handle));
  const reader = membershipOf(stubs.use(Rcu.attach(rcu.handle)), "test");
  const slot = reader.readers.slot(reader.index);
  return {
    rcu,
    other,
    callbacks: membershipOf(rcu, "test").callbacks,
    /** Has a reader be in the way, over several turns if need be. */
    block: () => void Atomics.store(rcu.memory.words, slot, 1),
    release: () => void Atomics.store(rcu.memory.words, slot, 0),
    times,
    /** Whether the timer keeps the process alive. */
    isHeld: () => held,
    /** Has the turn come for which the timer was set, if it was. */
    async turn(): Promise<boolean> {
      await undefined;
      const task = next;
      next = undefined;
      task?.();
      await undefined;
      return task !== undefined;
    },
    defer(count: number): void {
      for (let i = 0; i < count; i++) rcu.deferFree(rcu.memory.allocate(4));
    },
    [Symbol.dispose]: () => stubs.dispose(),
  };
}
