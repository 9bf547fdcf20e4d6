// The worker that an Rcu starts for its domain. It tells of stalls; it says when it ends, and why if
// it has failed.

import type { StallReport } from "./grace_periods/stall_report.ts";
import type { RcuHandle } from "./options.ts";
import { runIdleReclaimer } from "./reclaimer.ts";

/** What it tells whoever has started it. */
export type ReclaimerMessage =
  | { stall: StallReport; failure?: undefined }
  /** The end: `null` if all is well. */
  | { failure: string | null; stall?: undefined };

/** The part of a worker's global scope that is used here. */
interface Scope {
  onmessage: (event: MessageEvent<RcuHandle>) => void;
  postMessage(message: ReclaimerMessage): void;
  close(): void;
}

/** Without work for so long it ends: a worker keeps the process alive. In ms. */
const IDLE_TIMEOUT = 1_000;

const scope = globalThis as unknown as Scope;
scope.onmessage = async ({ data }) => {
  let failure: string | null = null;
  try {
    await runIdleReclaimer(
      data,
      IDLE_TIMEOUT,
      (stall) => scope.postMessage({ stall }),
    );
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  scope.postMessage({ failure });
  scope.close();
};
