// A thread that reads or writes the linked list of a user.

import { type Address, Rcu, type RcuHandle } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { SortedList } from "./_list.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

let rcu: Rcu;
let list: SortedList;

serve({
  join({ handle, head, name }: {
    handle: RcuHandle;
    head: Address;
    name: string;
  }): void {
    rcu = Rcu.attach(handle, { name });
    list = new SortedList(rcu, head);
  },

  async leave(): Promise<void> {
    await rcu.barrier();
    rcu.close();
  },

  /** Adds and deletes odd keys at random; the even ones are always there. */
  write({ rounds, most }: { rounds: number; most: number }): void {
    let state = 99;
    for (let round = 0; round < rounds; round++) {
      state = Math.imul(state, 0x41c64e6d) + 12345 | 0;
      const key = ((state >>> 8) % (most / 2)) * 2 + 1;
      if (!list.add(key)) list.delete(key);
    }
    for (let key = 1; key < most; key += 2) list.delete(key);
  },

  /** Walks until words[1] is set: every even key is found, in order. Returns how many walks. */
  walk({ words, most }: { words: Int32Array; most: number }): number {
    const deadline = performance.now() + PATIENCE;
    let walks = 0;
    while (Atomics.load(words, 1) === 0) {
      const keys = list.keys();
      const even = keys.filter((key) => key % 2 === 0);
      const sorted = keys.every((key, i) => i === 0 || keys[i - 1] < key);
      if (even.length !== most / 2 || !sorted) {
        throw new Error(`A walk found ${keys}`);
      }
      if (walks++ === 0) Atomics.add(words, 0, 1);
      if (performance.now() > deadline) throw new Error("Nobody said stop");
    }
    return walks;
  },

  /** Frees what it deletes at once, past what debug mode checks: a fault. */
  deleteTooEarly(key: number): void {
    const { heap } = membershipOf(rcu, "delete");
    list.delete(key, (node) => heap.free(node));
  },

  /** One walk that pauses at a key until words[1] is set. */
  walkSlowly(words: Int32Array): number[] {
    return list.keys(() => {
      tell(words, 0);
      waitFor(words, 1);
    });
  },
});
