// Listening to what an Rcu reports.

import { spy } from "@std/testing/mock";
import type { Rcu } from "../mod.ts";

/** The "error" events of an Rcu since then. */
export interface Errors extends Disposable {
  /** The messages of the events. */
  readonly messages: string[];
  /** The messages of what was printed by `console.error`. */
  readonly printed: string[];
}

/**
 * Collects the "error" events of an Rcu.
 *
 * @param rcu The Rcu.
 * @param options Whether to prevent that they are printed as well.
 * @returns What comes in.
 */
export function errorsOf(
  rcu: Rcu,
  { prevent = true }: { prevent?: boolean } = {},
): Errors {
  const messages: string[] = [];
  const printed: string[] = [];
  const stack = new DisposableStack();
  const log = console.error;
  console.error = spy((error: unknown) => {
    printed.push((error as Error).message);
  });
  stack.defer(() => console.error = log);
  const listen = (event: Event): void => {
    if (prevent) event.preventDefault();
    messages.push((event as ErrorEvent).message);
  };
  rcu.addEventListener("error", listen);
  stack.defer(() => rcu.removeEventListener("error", listen));
  return { messages, printed, [Symbol.dispose]: () => stack.dispose() };
}
