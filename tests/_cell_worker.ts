// What workers do in the tests of RcuCell and of opening by name.

import { json, Rcu, RcuCell, type RcuHandle, RcuMap, u32 } from "../mod.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

/** Every task's domain. */
interface Task {
  handle: RcuHandle;
}

serve({
  openTogether(
    { handle, words, rounds, me }: Task & {
      words: Int32Array;
      rounds: number;
      me: number;
    },
  ): void {
    using rcu = Rcu.attach(handle);
    for (let round = 0; round < rounds; round++) {
      // Both are here before either opens.
      tell(words, me, round + 1);
      waitFor(words, 1 - me, round + 1);
      const map = RcuMap.open(rcu, `map ${round}`, { key: u32, value: u32 });
      map.set(me, round);
      const value = { value: u32, initial: 0 };
      RcuCell.open(rcu, `cell ${round}`, value).update((n) => n + 1);
      // Nobody overtakes: the other one has seen the first word by now.
      tell(words, 2 + me, round + 1);
      waitFor(words, 3 - me, round + 1);
    }
  },

  /** Sets an entry each time that word 0 moves, and says so in word 1, until word 0 is below 0. */
  setOnDemand({ handle, words }: Task & { words: Int32Array }): void {
    using rcu = Rcu.attach(handle);
    const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
    for (let n = 0;; n++) {
      Atomics.wait(words, 0, n, PATIENCE);
      if (Atomics.load(words, 0) < 0) return;
      map.set(1, n + 1);
      tell(words, 1, n + 1);
    }
  },

  incrementCells({ handle, times }: Task & { times: number }): void {
    using rcu = Rcu.attach(handle);
    const numbers = RcuCell.open(rcu, "n", { value: u32 });
    const any = RcuCell.open(rcu, "j", { value: json<{ n: number }>() });
    for (let i = 0; i < times; i++) {
      numbers.update((n) => n + 1);
      any.update(({ n }) => ({ n: n + 1 }));
    }
  },

  async play(
    { handle, me, last }: Task & { me: number; last: number },
  ): Promise<number> {
    using rcu = Rcu.attach(handle);
    const cell = RcuCell.open(rcu, "ball", { value: json<{ n: number }>() });
    const timer = setTimeout(() => {}, PATIENCE);
    let hits = 0;
    while (true) {
      const since = cell.version;
      const { n } = cell.get();
      if (n >= last) break;
      if (n % 2 === me) {
        cell.set({ n: n + 1 });
        hits++;
      } else {
        const signal = AbortSignal.timeout(PATIENCE);
        await cell.waitForChange({ since, signal });
      }
    }
    clearTimeout(timer);
    return hits;
  },
});
