// A thread that defers, reads, or reclaims for others.

import { Rcu, type RcuHandle, runReclaimer } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

let rcu: Rcu;
let controller: AbortController;

/** What became of a flood. */
export interface Flood {
  /** The most that waited in the whole domain, of what was seen. */
  peak: number;
  /** Those freed by this thread itself. */
  own: number;
}

serve({
  join(handle: RcuHandle): number {
    rcu = Rcu.attach(handle);
    return rcu.readerId;
  },

  leave(): void {
    rcu.close();
  },

  /** Defers blocks in one turn; returns the closures that ran in this thread by the end. */
  async defer({ blocks, closures }: {
    blocks: number;
    closures: number;
  }): Promise<number> {
    let ran = 0;
    for (let i = 0; i < blocks; i++) rcu.deferFree(rcu.memory.allocate(8));
    for (let i = 0; i < closures; i++) rcu.callRcu(() => ran++);
    const deadline = performance.now() + PATIENCE;
    while (ran < closures && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return ran;
  },

  /** Defers blocks in one turn, once words[0] is set. */
  flood({ words, blocks }: { words: Int32Array; blocks: number }): Flood {
    const membership = membershipOf(rcu, "flood");
    const before = membership.callbacks.invoked;
    let peak = 0;
    waitFor(words, 0);
    for (let i = 1; i <= blocks; i++) {
      rcu.deferFree(rcu.memory.allocate(4));
      if (i % 64 === 0) peak = Math.max(peak, membership.pendingOfAll());
    }
    return { peak, own: membership.callbacks.invoked - before };
  },

  /** One turn full of sections, from words[0] until words[1]. */
  read(words: Int32Array): number {
    const deadline = performance.now() + PATIENCE;
    let sections = 0;
    while (Atomics.load(words, 1) === 0) {
      rcu.read(() => sections++);
      if (sections === 1) tell(words, 0);
      if (performance.now() > deadline) throw new Error("Nobody said stop");
    }
    return sections;
  },

  /** Is the reclaimer until the end of the domain, or until `abort`. */
  async reclaim(handle: RcuHandle): Promise<string> {
    controller = new AbortController();
    await runReclaimer(handle, { signal: controller.signal, name: "mine" });
    return controller.signal.aborted ? "aborted" : "ended";
  },

  abort(): void {
    controller.abort();
  },
});
