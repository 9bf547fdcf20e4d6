// Scenarios: a mutex changes hands, and one whose holder is gone.

import { RcuStallError } from "../../mod.ts";
import { membershipOf } from "../../src/rcu.ts";
import {
  acquire,
  isHeldBy,
  lockOwner,
  release,
} from "../../src/sync/_mutex.ts";
import { unwatched } from "./_hooks.ts";
import {
  type DomainScene,
  joinDomain,
  layDomain,
  must,
  mustBe,
  type Scenario,
} from "./_scenario.ts";

const MUTEX = 16;
const COUNTER = 32;
/** More than any wait of these scenarios takes. */
const TIMEOUT = 10_000;

/** Threads that take turns. */
function handOver(name: string, threads: number, times: number): Scenario {
  return {
    name,
    threads,
    spins: true,
    lay: () => ({}),
    join: (thread, buffer) => {
      const words = new Int32Array(buffer);
      const owner = lockOwner(thread, 1);
      return {
        act() {
          for (let i = 0; i < times; i++) {
            must(
              acquire(words, MUTEX, owner, TIMEOUT),
              "A wait for a mutex that is given back must not time out",
            );
            // What a thread does that nobody is to come between.
            words[COUNTER]++;
            release(words, MUTEX);
          }
        },
      };
    },
    check() {
      mustBe(unwatched()[COUNTER], threads * times, "The counter");
      mustBe(unwatched()[MUTEX], 0, "The mutex");
    },
  };
}

interface HeldScene extends DomainScene {
  lock: number;
}

/** The first thread ends with the mutex; the others must not take it, and say whose it is. */
const held: Scenario<HeldScene> = {
  name: "mutex/holder gone",
  threads: 3,
  rescues: true,
  lay: (buffer) =>
    layDomain(buffer, { stallTimeout: 120 }, (rcu) => {
      const lock = rcu.memory.allocate(4);
      rcu.memory.words.fill(0, lock, lock + 4);
      return { lock };
    }),
  join(thread, buffer, scene) {
    const rcu = joinDomain(buffer, scene);
    const membership = membershipOf(rcu, "lock");
    const { lock } = scene;
    return {
      act() {
        if (thread === 0) return membership.lock(lock);
        try {
          membership.lock(lock);
        } catch (error) {
          must(error instanceof RcuStallError, String(error));
          const { readers } = (error as RcuStallError).report;
          must(
            readers.length === 1 && readers[0].id !== thread,
            `The holder must be named: ${error}`,
          );
          return;
        }
        // It was faster than the thread that keeps it.
        membership.unlock(lock);
      },
      leave() {
        if (thread === 0) {
          must(
            isHeldBy(unwatched(), lock, membership.owner),
            "A mutex must stay with its holder: it does not",
          );
        }
        rcu.close();
      },
    };
  },
};

export const MUTEXES: Scenario[] = [
  handOver("mutex/two threads", 2, 2),
  handOver("mutex/three threads", 3, 1),
  held as unknown as Scenario,
];
