// A thread that reads in the ways in which threads read.

import { Rcu, type RcuHandle } from "../mod.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

let rcu: Rcu;

/** Calls a function until words[1] is set; tells words[0] after the first call. */
function repeat(words: Int32Array, act: () => void): number {
  const deadline = performance.now() + PATIENCE;
  let times = 0;
  while (Atomics.load(words, 1) === 0) {
    act();
    if (times++ === 0) tell(words, 0);
    if (performance.now() > deadline) throw new Error("Nobody said stop");
  }
  return times;
}

/** What happened when a global was used inside a section. */
export interface LazyUse {
  name: string;
  /** Whether microtasks ran in the middle of the section. */
  ranMicrotasks: boolean;
  /** Whether the thread was online in a later section of the turn. */
  inside: boolean;
  /** Whether it was after the section. */
  after: boolean;
}

serve({
  join({ handle, name }: { handle: RcuHandle; name?: string }): number {
    rcu = Rcu.attach(handle, { name: name ?? "" });
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

  /** Begins and polls periods; returns the cookies. Each must have ended when the next is taken. */
  periods(count: number): number[] {
    const cookies: number[] = [];
    const deadline = performance.now() + PATIENCE;
    for (let i = 0; i < count; i++) {
      const cookie = rcu.startPoll();
      while (!rcu.poll(cookie)) {
        if (performance.now() > deadline) throw new Error("It never ended");
      }
      cookies.push(cookie);
    }
    return cookies;
  },

  /** One turn full of sections. */
  sections(words: Int32Array): number {
    return repeat(words, () => rcu.read(() => {}));
  },

  /** One turn full of sections with more leaf reads each than the budget has. */
  longSections(words: Int32Array): number {
    return repeat(words, () =>
      rcu.read(() => {
        for (let i = 0; i < 300; i++) rcu.read(() => {});
      }));
  },

  /** One section, and then a turn that announces what it does. */
  computation({ words, announces }: {
    words: Int32Array;
    announces: boolean;
  }): number {
    rcu.read(() => {});
    return repeat(words, () => announces && rcu.quiescentState());
  },

  /** Uses globals that Deno loads at their first use, in a section of a timer's turn. */
  async lazyGlobals(): Promise<{ uses: LazyUse[]; errors: string[] }> {
    const names = ["WebSocket", "process", "Buffer", "ImageBitmap", "GPU"];
    const uses: LazyUse[] = [];
    const errors: string[] = [];
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      errors.push((event as ErrorEvent).message);
    });
    const isOnline = () => rcu.stats().readers[rcu.readerId].online;
    for (const name of names) {
      await new Promise<void>((resolve) =>
        setTimeout(() => {
          let ranMicrotasks = false;
          const during = rcu.read(() => {
            queueMicrotask(() => ranMicrotasks = true);
            Reflect.get(globalThis, name);
            return ranMicrotasks;
          });
          const after = isOnline();
          const inside = rcu.read(isOnline);
          uses.push({ name, ranMicrotasks: during, inside, after });
          resolve();
        })
      );
    }
    return { uses, errors };
  },
});
