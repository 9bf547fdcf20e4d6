// A thread that holds a grace period up, waits for one, or reads beside it.

import { Rcu, type RcuHandle, type StallReport } from "../mod.ts";
import { PATIENCE, serve, tell, until, waitFor } from "./_workers.ts";

let rcu: Rcu;
const reports: StallReport[] = [];

serve({
  join({ handle, name }: { handle: RcuHandle; name: string }): number {
    rcu = Rcu.attach(handle, { name });
    rcu.addEventListener("stall", (event) => {
      event.preventDefault();
      reports.push(event.report);
    });
    return rcu.readerId;
  },

  leave(): void {
    rcu.close();
  },

  /** One section from words[0] until words[1]. */
  hold(words: Int32Array): void {
    rcu.read(() => {
      tell(words, 0);
      waitFor(words, 1);
    });
  },

  /** Sections until words[1], counted in words[0]. */
  read(words: Int32Array): void {
    const deadline = performance.now() + PATIENCE;
    while (Atomics.load(words, 1) === 0) {
      rcu.read(() => Atomics.add(words, 0, 1));
      if (performance.now() > deadline) throw new Error("Nobody said stop");
    }
  },

  /** Leaves a deferred block behind. */
  defer(): void {
    rcu.deferFree(rcu.memory.allocate(4));
  },

  /** Waits for a grace period in which so many stalls are reported. */
  async wait(stalls: number): Promise<StallReport[]> {
    reports.length = 0;
    const waiting = rcu.synchronize();
    await until(`${stalls} stalls`, () => reports.length >= stalls);
    waiting.catch(() => {});
    return reports;
  },

  reports: (): StallReport[] => reports,
});
