// A worker whose sections await.

import { Rcu, type RcuHandle, Srcu, type SrcuSection } from "../mod.ts";
import { PATIENCE, serve } from "./_workers.ts";

let rcu: Rcu;
const sections: SrcuSection[] = [];

serve({
  attach(handle: RcuHandle) {
    rcu = Rcu.attach(handle, { name: "holder" });
  },
  /** Begins sections that stay open. */
  begin({ name, count }: { name: string; count: number }) {
    const srcu = Srcu.open(rcu, name);
    for (let i = 0; i < count; i++) sections.push(srcu.read());
  },
  /** Ends some of them, the oldest first. */
  end(count: number) {
    for (const section of sections.splice(0, count)) section[Symbol.dispose]();
  },
  /** Looks again and again, across awaits, at a block whose first word says whether it is in use. */
  async look({ pointer, rounds }: { pointer: number; rounds: number }) {
    const { words } = rcu.memory;
    const srcu = Srcu.open(rcu, "blocks");
    let wrong = 0;
    let looks = 0;
    const reader = async () => {
      for (let i = 0; i < rounds; i++) {
        await using _section = srcu.read();
        const block = rcu.read(() => rcu.dereference(pointer));
        for (let awaits = 0; awaits < i % 3; awaits++) {
          await new Promise((resolve) => setTimeout(resolve));
          looks++;
          if (Atomics.load(words, block) !== 1) wrong++;
        }
      }
    };
    await Promise.all([reader(), reader(), reader()]);
    return { wrong, looks };
  },
  /** Waits for the sections of others. */
  async synchronize(name: string) {
    const signal = AbortSignal.timeout(PATIENCE);
    await Srcu.open(rcu, name).synchronize({ signal });
  },
  close() {
    rcu.close();
  },
});
