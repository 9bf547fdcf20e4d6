// A thread that joins and leaves.

import { Rcu, type RcuHandle } from "../mod.ts";
import { serve } from "./_workers.ts";

serve({
  /** Joins and leaves; returns how often another thread had the same slot at the time. */
  joinAndLeave({ handle, rounds, owners }: {
    handle: RcuHandle;
    rounds: number;
    owners: Int32Array;
  }): number {
    let clashes = 0;
    for (let round = 0; round < rounds; round++) {
      const rcu = Rcu.attach(handle, { name: `round ${round}` });
      if (Atomics.exchange(owners, rcu.readerId, 1) !== 0) clashes++;
      rcu.read(() => rcu.deferFree(rcu.memory.allocate(4)));
      if (Atomics.exchange(owners, rcu.readerId, 0) !== 1) clashes++;
      rcu.close();
    }
    return clashes;
  },
});
