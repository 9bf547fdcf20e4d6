// The worker that a thread starts which waits, without an event loop, for one that may be dead.

import { Inquest } from "./_inquest.ts";

/** The part of a worker's global scope that is used here. */
interface Scope {
  onmessage: (event: MessageEvent<Int32Array>) => void;
  postMessage(done: true): void;
  close(): void;
}

const scope = globalThis as unknown as Scope;
scope.onmessage = async ({ data }) => {
  try {
    await new Inquest(data).run();
  } finally {
    scope.postMessage(true);
    scope.close();
  }
};
