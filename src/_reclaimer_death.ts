// Proof that a reclaimer is dead: the Web Lock that it holds for as long as it has the claim.

import type { Membership } from "./_membership.ts";

/** The Web Locks of this process, which Deno has and its types lack. */
interface Locks {
  request<T>(
    name: string,
    options: { ifAvailable: boolean },
    granted: (lock: unknown) => T | Promise<T>,
  ): Promise<T>;
}

function locks(): Locks | undefined {
  return (navigator as unknown as { locks?: Locks }).locks;
}

function lockName(id: string, owner: number): string {
  return `@grace/rcu reclaimer ${owner} of ${id}`;
}

/**
 * Does something while others can see that this thread lives.
 *
 * @param id The domain's id.
 * @param owner The thread, as the holder of the claim.
 * @param act What to do.
 */
export async function whileAlive(
  id: string,
  owner: number,
  act: () => Promise<void>,
): Promise<void> {
  const manager = locks();
  // Without Web Locks nobody gets a proof: what a reclaimer that was terminated had taken stays deferred.
  if (manager === undefined) return await act();
  await manager.request(lockName(id, owner), { ifAvailable: false }, act);
}

/**
 * Takes over from a silent reclaimer if it is dead. A lock is granted only
 * when the thread that held it has stopped, so silence alone takes nothing from anybody.
 *
 * @param id The domain's id.
 * @param membership Who takes over.
 */
export async function buryIfDead(
  id: string,
  membership: Membership,
): Promise<void> {
  const dead = membership.handover?.holder ?? 0;
  if (dead === 0) return;
  await locks()?.request(
    lockName(id, dead),
    { ifAvailable: true },
    (lock) => {
      if (lock !== null && !membership.closed) membership.bury(dead);
    },
  );
}
