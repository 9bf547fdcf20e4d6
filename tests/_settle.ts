// Waiting for what has been deferred, but not for ever.

import type { Rcu } from "../mod.ts";
import { PATIENCE } from "./_workers.ts";

/**
 * Waits until everything that any thread has deferred is freed.
 *
 * @param rcu The domain.
 * @returns Bytes that are live then.
 */
export async function settle(rcu: Rcu): Promise<number> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE);
  try {
    await rcu.barrier({ signal: patience.signal });
  } finally {
    clearTimeout(timer);
  }
  return rcu.memory.audit().live;
}
