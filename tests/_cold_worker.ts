// A thread whose code nobody has run yet: the engine compiles a function when it is called first.

import { Rcu, type RcuHandle } from "../mod.ts";
import { serve } from "./_workers.ts";

/** Levels by which the end of the stack is shifted. */
const SHIFTS = 20;

/** Does something some levels further down. */
function below(levels: number, act: () => void): void {
  if (levels > 0) return below(levels - 1, act);
  act();
}

serve({
  /** Sections in sections until the stack overflows; what is wrong afterwards. */
  sections(handle: RcuHandle): string[] {
    const rcu = Rcu.attach(handle, { name: "cold" });
    const wrong: string[] = [];
    const walk = (): number => rcu.read(() => walk() + 1);
    for (let i = 0; i < SHIFTS; i++) {
      below(i, () => {
        try {
          walk();
          wrong.push("no overflow");
        } catch (error) {
          if (!(error instanceof RangeError)) wrong.push(String(error));
        }
      });
      try {
        rcu.quiescentState();
      } catch (error) {
        wrong.push(String(error));
      }
    }
    rcu.close();
    return wrong;
  },

  /** Joins and leaves wherever the stack ends; says how often that went well. */
  memberships(handle: RcuHandle): number {
    let done = 0;
    const deep = (): void => {
      try {
        deep();
      } catch {
        // The end of the stack.
      }
      if (done === 10) return;
      try {
        Rcu.attach(handle).close();
        done++;
      } catch {
        // No room for it.
      }
    };
    deep();
    return done;
  },

  /** Callbacks at the end of the stack: how many were called of those that were taken. */
  async callbacks(
    handle: RcuHandle,
  ): Promise<{ taken: number; called: number; pending: number }> {
    const rcu = Rcu.attach(handle, { name: "cold" });
    let taken = 0;
    let called = 0;
    const deep = (): number => {
      let depth = 0;
      try {
        depth = deep();
      } catch {
        // The end of the stack.
      }
      if (depth < 1000) {
        try {
          rcu.callRcu(() => called++);
          taken++;
          rcu.deferFree(rcu.memory.allocate(4));
        } catch {
          // No room for the call: it is taken or not.
        }
      }
      return depth + 1;
    };
    for (let i = 0; i < SHIFTS; i++) below(3 * i, deep);
    await rcu.barrier();
    const { pending } = rcu.stats().callbacks;
    rcu.close();
    return { taken, called, pending };
  },
});
