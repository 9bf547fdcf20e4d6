// Scenarios: the allocator, and names.

import { RcuCell, u32 } from "../../mod.ts";
import {
  type DomainScene,
  joinDomain,
  layDomain,
  must,
  mustBeTidy,
  napsOf,
  type Scenario,
} from "./_scenario.ts";

/** So large that a magazine holds two, and a page seven. */
const SIZE = 500;

/** Threads that allocate and free more than their magazines hold. */
function depot(name: string, times: number[]): Scenario {
  const scenario: Scenario<DomainScene> = {
    name,
    threads: times.length,
    lay: (buffer) => layDomain(buffer, {}, () => ({})),
    join(thread, buffer, scene) {
      const rcu = joinDomain(buffer, scene);
      const { memory } = rcu;
      return {
        act() {
          const blocks: number[] = [];
          for (let i = 0; i < times[thread]; i++) {
            const block = memory.allocate(SIZE);
            memory.words[block] = block;
            memory.words[block + SIZE - 1] = thread;
            blocks.push(block);
          }
          for (const block of blocks) {
            must(
              memory.words[block] === block &&
                memory.words[block + SIZE - 1] === thread,
              "A block must belong to one thread: another one has written it",
            );
            memory.free(block);
          }
        },
        leave: () => rcu.close(),
      };
    },
    check: (buffer, scene) => mustBeTidy(buffer, scene, () => 0),
    naps: napsOf,
  };
  return scenario as unknown as Scenario;
}

/** Threads that open the same name, of which there is nothing yet. */
const open: Scenario<DomainScene> = {
  name: "memory/two open one name",
  threads: 2,
  lay: (buffer) =>
    layDomain(buffer, {}, (rcu) => {
      RcuCell.open(rcu, "other", { value: u32, initial: 0 });
      return {};
    }),
  join(thread, buffer, scene) {
    const rcu = joinDomain(buffer, scene, 4, 8, 12);
    let cell: RcuCell<number> | undefined;
    return {
      act() {
        cell = RcuCell.open(rcu, "cell", { value: u32, initial: 7 });
        cell.update((n) => n + 1 + thread);
      },
      leave() {
        must(
          cell!.get() === 10,
          `Both must have the same cell: ${cell!.get()}`,
        );
        rcu.close();
      },
    };
  },
  check: (buffer, scene) =>
    mustBeTidy(buffer, scene, (rcu) => {
      const { live } = rcu.memory.audit();
      return live - scene.live;
    }),
  naps: napsOf,
};

export const MEMORY: Scenario[] = [
  depot("memory/depot and pages", [3, 3]),
  open as unknown as Scenario,
];
