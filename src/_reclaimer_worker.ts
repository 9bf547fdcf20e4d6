// The worker that an Rcu starts for its domain. It says when it ends, and why if it has failed.

import type { RcuHandle } from "./options.ts";
import { runIdleReclaimer } from "./reclaimer.ts";

/** The part of a worker's global scope that is used here. */
interface Scope {
  onmessage: (event: MessageEvent<RcuHandle>) => void;
  postMessage(failure: string | null): void;
  close(): void;
}

/** Without work for so long it ends: a worker keeps the process alive. In ms. */
const IDLE_TIMEOUT = 1_000;

const scope = globalThis as unknown as Scope;
scope.onmessage = async ({ data }) => {
  let failure: string | null = null;
  try {
    await runIdleReclaimer(data, IDLE_TIMEOUT);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  scope.postMessage(failure);
  scope.close();
};
