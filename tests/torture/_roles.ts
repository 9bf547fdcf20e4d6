// What each kind of thread does until the run is over.

import { Rcu, type RcuHandle } from "../../mod.ts";
import { later } from "./_control.ts";
import { ReadingThread } from "./_reading.ts";
import { count } from "./_tally.ts";
import { type Kit, Thread } from "./_thread.ts";
import { UpdatingThread } from "./_updating.ts";

/** A thread's part in a run. */
export interface Part {
  role: Role;
  /** Which of those that have the role. */
  me: number;
  /** How many have it. */
  of: number;
}

/** Longest nap of those who do not read, in ms. */
const LONGEST_NAP = 2;

/** Every role: what it does with a membership, which it leaves open. */
const ROLES = {
  async reader(rcu: Rcu, kit: Kit): Promise<void> {
    const thread = new ReadingThread(rcu, kit);
    while (!kit.control.over) await thread.step();
  },

  async updater(rcu: Rcu, kit: Kit, { me, of }: Part): Promise<void> {
    const thread = new UpdatingThread(rcu, kit, me, of);
    while (!kit.control.over) await thread.step();
    await thread.end();
  },

  /** Moves periods and has nothing to reclaim. */
  async faker(rcu: Rcu, kit: Kit): Promise<void> {
    const { closures, control, random, tally } = kit;
    const thread = new Thread(rcu, kit);
    const ways = [
      () => rcu.synchronize(),
      () => rcu.synchronize({ expedited: true }),
      () => rcu.synchronizeSync(),
      () => rcu.synchronizeSync({ expedited: true }),
      () => void rcu.startPoll(),
      () => void rcu.poll(rcu.startPoll()),
      () => closures.addChain(rcu, 1 + random.below(5)),
      () => rcu.deferFree(rcu.memory.allocate(1 + random.below(100))),
      () => control.nap(random.upTo(LONGEST_NAP)),
      () => later(),
    ];
    while (!control.over) {
      count(tally, "fakes");
      await random.pick(ways)();
      control.stutter(thread.rcu);
      if (random.oneIn(4)) await later();
    }
  },

  /** Changes maps. */
  async traffic(rcu: Rcu, kit: Kit): Promise<void> {
    const { control, random } = kit;
    const { traffic } = new Thread(rcu, kit);
    while (!control.over) {
      traffic!.write();
      control.stutter(rcu);
      if (random.oneIn(4)) await later();
    }
  },

  /** Joins again and again, reads a little, and leaves what it has deferred to others. */
  async joiner(rcu: Rcu, kit: Kit): Promise<void> {
    const { closures, control, random, tally } = kit;
    while (!control.over) {
      const member = Rcu.attach(rcu.handle, { name: "for a moment" });
      count(tally, "joins");
      const thread = new ReadingThread(member, kit);
      for (let i = random.below(6); i >= 0; i--) await thread.step();
      for (let i = random.below(4); i > 0; i--) {
        member.deferFree(member.memory.allocate(1 + random.below(8)));
      }
      if (random.oneIn(2)) closures.add(member);
      // Whoever leaves makes barriers begin anew: they would never end if all the time somebody did.
      const waits = random.oneIn(2);
      while (waits && control.hasBarrier && !control.over) await later();
      closures.close(member);
    }
  },
} satisfies Record<
  string,
  (rcu: Rcu, kit: Kit, part: Part) => Promise<void>
>;

/** The name of a role. */
export type Role = keyof typeof ROLES;

/**
 * Plays a part to the end, and leaves nothing behind.
 *
 * @param rcu The thread's membership.
 * @param kit What the thread has.
 * @param part Its part.
 */
export async function play(rcu: Rcu, kit: Kit, part: Part): Promise<void> {
  const { closures, control, tally } = kit;
  try {
    try {
      await ROLES[part.role](rcu, kit, part);
      await closures.finish(() => rcu.barrier());
    } finally {
      rcu.close();
    }
  } catch (error) {
    tally.errors.push(`${part.role}: ${error}`);
    control.fail();
  }
}

/** Joins a domain as a thread with a role. */
export function join(handle: RcuHandle, { role, me }: Part): Rcu {
  return Rcu.attach(handle, { name: `${role} ${me}` });
}
