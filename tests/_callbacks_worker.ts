// A thread that defers.

import { Rcu, type RcuHandle } from "../mod.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

let rcu: Rcu;

serve({
  join({ handle, name }: { handle: RcuHandle; name?: string }): number {
    rcu = Rcu.attach(handle, { name: name ?? "" });
    return rcu.readerId;
  },

  leave(): void {
    rcu.close();
  },

  /** Enqueues closures that count themselves, and blocks. */
  enqueue({ counter, closures, blocks }: {
    counter: number;
    closures: number;
    blocks: number;
  }): void {
    const { memory } = rcu;
    for (let i = 0; i < closures; i++) {
      rcu.callRcu(() => Atomics.add(memory.words, counter, 1));
    }
    for (let i = 0; i < blocks; i++) rcu.deferFree(memory.allocate(8));
  },

  /** Enqueues, and blocks outside of any section from words[0] until words[1]. */
  block({ handle, words }: { handle: RcuHandle; words: Int32Array }): void {
    using blocker = Rcu.attach(handle, { name: "blocker" });
    for (let i = 0; i < 2; i++) blocker.callRcu(() => {});
    blocker.threadOffline();
    tell(words, 0);
    waitFor(words, 1);
  },

  /** Enqueues and closes in the same turn. */
  enqueueAndLeave(amount: {
    counter: number;
    closures: number;
    blocks: number;
  }): void {
    const { memory } = rcu;
    for (let i = 0; i < amount.closures; i++) {
      rcu.callRcu(() => Atomics.add(memory.words, amount.counter, 1));
    }
    for (let i = 0; i < amount.blocks; i++) rcu.deferFree(memory.allocate(8));
    rcu.close();
  },

  /** Enqueues turn after turn, from words[0] until words[1]. */
  async enqueueUntil(words: Int32Array): Promise<number> {
    const deadline = performance.now() + PATIENCE;
    let ran = 0;
    while (Atomics.load(words, 1) === 0) {
      for (let i = 0; i < 50; i++) {
        rcu.callRcu(() => ran++);
        rcu.deferFree(rcu.memory.allocate(4));
      }
      tell(words, 0);
      await new Promise((resolve) => setTimeout(resolve));
      if (performance.now() > deadline) throw new Error("Nobody said stop");
    }
    await rcu.barrier();
    return ran;
  },
});
