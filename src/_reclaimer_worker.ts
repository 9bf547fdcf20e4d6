// The worker that an Rcu starts for its domain. It says when it ends.

import type { RcuHandle } from "./options.ts";
import { runIdleReclaimer } from "./reclaimer.ts";

/** The part of a worker's global scope that is used here. */
interface Scope {
  onmessage: (event: MessageEvent<RcuHandle>) => void;
  postMessage(message: null): void;
  close(): void;
}

/** Without work for so long it ends: a worker keeps the process alive. In ms. */
const IDLE_TIMEOUT = 1_000;

const scope = globalThis as unknown as Scope;
scope.onmessage = async ({ data }) => {
  await runIdleReclaimer(data, IDLE_TIMEOUT);
  scope.postMessage(null);
  scope.close();
};
