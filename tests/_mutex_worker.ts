// A thread that counts under a lock.

import { Rcu, type RcuHandle } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { acquire, lockOwner, release } from "../src/sync/_mutex.ts";
import { isWorker } from "../src/sync/_web_locks.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

function spinUntilParked(words: Int32Array, lock: number): void {
  const deadline = performance.now() + PATIENCE;
  while (Atomics.load(words, lock) >= 0) {
    if (performance.now() > deadline) throw new Error("Nobody parked");
  }
}

serve({
  isWorker,

  /** Adds to a plain counter, load and store apart, under a lock. */
  count({ words, lock, counter, owner, rounds }: {
    words: Int32Array;
    lock: number;
    counter: number;
    owner: number;
    rounds: number;
  }): number {
    let overlaps = 0;
    for (let i = 0; i < rounds; i++) {
      if (!acquire(words, lock, lockOwner(owner, 1), PATIENCE)) {
        throw new Error("The lock never came");
      }
      const before = words[counter];
      words[counter + 1] = owner;
      for (let spin = i & 63; spin > 0; spin--) words[counter + 2] = spin;
      if (words[counter + 1] !== owner) overlaps++;
      words[counter] = before + 1;
      release(words, lock);
    }
    return overlaps;
  },

  /** Takes the lock, says so, and gives it back when somebody is parked on it; so many times. */
  releaseWhenParked({ words, lock, turn, done, rounds }: {
    words: Int32Array;
    lock: number;
    turn: number;
    done: number;
    rounds: number;
  }): void {
    for (let i = 1; i <= rounds; i++) {
      if (!acquire(words, lock, lockOwner(1, 1), PATIENCE)) {
        throw new Error("The lock never came");
      }
      tell(words, turn, i);
      spinUntilParked(words, lock);
      release(words, lock);
      waitFor(words, done, i);
    }
  },

  /** Holds a structure's lock as a member of a domain, from words[0] until words[1]. */
  hold({ handle, lock, words, name }: {
    handle: RcuHandle;
    lock: number;
    words: Int32Array;
    name: string;
  }): void {
    using rcu = Rcu.attach(handle, { name });
    const membership = membershipOf(rcu, "test");
    membership.lock(lock);
    tell(words, 0);
    waitFor(words, 1);
    membership.unlock(lock);
  },

  /** Once somebody is parked on a lock, makes another thread its holder. */
  handOver({ words, lock, owner }: {
    words: Int32Array;
    lock: number;
    owner: number;
  }): void {
    spinUntilParked(words, lock);
    Atomics.store(words, lock, owner | 0x8000_0000);
  },
});
