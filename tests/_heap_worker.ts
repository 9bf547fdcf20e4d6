// A thread that allocates and frees on demand.

import { Rcu, type RcuHandle } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

let rcu: Rcu;

/** A small generator of numbers, so that a failure can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

serve({
  join({ handle, name }: { handle: RcuHandle; name?: string }): number {
    rcu = Rcu.attach(handle, { name: name ?? "" });
    return rcu.readerId;
  },

  leave(): void {
    rcu.close();
  },

  allocate({ size, count }: { size: number; count: number }): number[] {
    return Array.from({ length: count }, () => rcu.memory.allocate(size));
  },

  free(blocks: number[]): void {
    for (const block of blocks) rcu.memory.free(block);
  },

  deferFree(blocks: number[]): void {
    for (const block of blocks) rcu.deferFree(block);
  },

  openRoots(names: string[]): number[] {
    const membership = membershipOf(rcu, "test");
    return names.map((name) =>
      membership.roots.open(
        name,
        "test",
        PATIENCE,
        (words) => membership.allocate(words),
        () => membership.allocate(1),
        (data) => membership.heap.free(data),
      )
    );
  },

  async barrier(): Promise<void> {
    await rcu.barrier();
  },

  /** Keeps a section open over a block from words[0] until words[1], and says what it held then. */
  hold({ words, pointer, length }: {
    words: Int32Array;
    pointer: number;
    length: number;
  }): number[] {
    return rcu.read(() => {
      const block = rcu.dereference(pointer);
      tell(words, 0);
      waitFor(words, 1);
      return [...rcu.memory.words.subarray(block, block + length)];
    });
  },

  /** Allocates and frees blocks at random, each filled with its own address. */
  churn({ seed, rounds }: { seed: number; rounds: number }): number {
    const below = random(seed);
    const { memory } = rcu;
    const held: [block: number, size: number][] = [];
    let wrong = 0;
    for (let round = 0; round < rounds; round++) {
      if (held.length < 64 && below(2) === 0) {
        const size = below(20) === 0 ? 2_000 + below(9_000) : 1 + below(200);
        const block = memory.allocate(size);
        memory.words.fill(block, block, block + size);
        held.push([block, size]);
      } else if (held.length > 0) {
        const [[block, size]] = held.splice(below(held.length), 1);
        for (let i = 0; i < size; i++) {
          if (memory.words[block + i] !== block) wrong++;
        }
        if (below(2) === 0) memory.free(block);
        else rcu.deferFree(block);
      }
    }
    for (const [block] of held) memory.free(block);
    return wrong;
  },
});
