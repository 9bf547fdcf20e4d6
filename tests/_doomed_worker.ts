// A thread that is terminated: it defers blocks, or reclaims, and never closes anything.

import { Rcu, type RcuHandle, runReclaimer } from "../mod.ts";

const scope = globalThis as unknown as {
  onmessage: (
    event: MessageEvent<{ handle: RcuHandle; blocks: number }>,
  ) => void;
  postMessage(message: string): void;
};
scope.onmessage = ({ data: { handle, blocks } }) => {
  if (blocks === 0) void runReclaimer(handle);
  else {
    const rcu = Rcu.attach(handle);
    for (let i = 0; i < blocks; i++) rcu.deferFree(rcu.memory.allocate(8));
    // By then what it has deferred has been handed over.
    setTimeout(() => setTimeout(() => scope.postMessage("deferred"), 20), 20);
  }
};
