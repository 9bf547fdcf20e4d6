// Listening for stalls.

import type { Rcu, StallReport } from "../mod.ts";
import { until } from "./_workers.ts";

/** The "stall" events of an Rcu since then. */
export interface Stalls extends Disposable {
  /** The reports of the events. */
  readonly reports: StallReport[];
  /** What was printed by `console.warn`. */
  readonly printed: string[];
  /** Waits until so many have come. */
  come(count: number): Promise<void>;
}

/**
 * Collects the "stall" events of an Rcu.
 *
 * @param rcu The Rcu.
 * @param options Whether to prevent that they are printed as well, and what else to do.
 * @returns What comes in.
 */
export function stallsOf(
  rcu: Rcu,
  { prevent = true, then = () => {} }: {
    prevent?: boolean;
    then?: (report: StallReport) => void;
  } = {},
): Stalls {
  const reports: StallReport[] = [];
  const stack = new DisposableStack();
  const { printed } = stack.use(warnings());
  const controller = new AbortController();
  stack.defer(() => controller.abort());
  rcu.addEventListener("stall", (event) => {
    if (prevent) event.preventDefault();
    reports.push(event.report);
    then(event.report);
  }, { signal: controller.signal });
  const come = (count: number) =>
    until(`${count} stalls`, () => reports.length >= count);
  return { reports, printed, come, [Symbol.dispose]: () => stack.dispose() };
}

/**
 * Collects what is printed by `console.warn`.
 *
 * @returns What comes in.
 */
export function warnings(): { printed: string[] } & Disposable {
  const printed: string[] = [];
  const { warn } = console;
  console.warn = (text: string) => void printed.push(text);
  return { printed, [Symbol.dispose]: () => void (console.warn = warn) };
}
