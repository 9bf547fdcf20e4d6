// A worker that reads and stops itself in the same turn.

import { Rcu, RcuCell, type RcuHandle, u32 } from "../mod.ts";

/** What it is to do. */
export interface ClosingTask {
  handle: RcuHandle;
  /** Whether it leaves the domain before. */
  leaves: boolean;
  /** The lock that it holds for life. */
  life: string;
}

interface Scope {
  onmessage: (event: MessageEvent<ClosingTask>) => void;
  postMessage(message: string): void;
  close(): void;
}

const scope = self as unknown as Scope;
const { locks } = navigator as unknown as {
  locks: { request(name: string, granted: () => unknown): void };
};

scope.onmessage = ({ data: { handle, leaves, life } }) => {
  locks.request(life, () => {
    // In a turn of its own, so that the lock is held.
    setTimeout(() => {
      const rcu = Rcu.attach(handle, { name: "gone" });
      RcuCell.open(rcu, "cell", { value: u32 }).get();
      scope.postMessage("bye");
      if (leaves) rcu.close();
      scope.close();
    });
    return new Promise(() => {});
  });
};
