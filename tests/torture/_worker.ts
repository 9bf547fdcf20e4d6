// A tortured thread.

import type { Address, Rcu, RcuHandle } from "../../mod.ts";
import { serve } from "../_workers.ts";
import { Closures } from "./_closures.ts";
import { Control, type ControlParts } from "./_control.ts";
import { type Fault, plant } from "./_faults.ts";
import { Random } from "./_random.ts";
import { join, type Part, play } from "./_roles.ts";
import { emptyTally, type Tally } from "./_tally.ts";

/** What a thread is told when the run begins. */
export interface Orders {
  control: ControlParts;
  seed: number;
  pointers: Address;
  traffic: boolean;
}

let rcu: Rcu;
let part: Part;

serve({
  /** Plants a fault in this thread, for good. */
  plant(fault: Fault): void {
    plant(fault);
  },

  join(order: { handle: RcuHandle; part: Part }): number {
    part = order.part;
    rcu = join(order.handle, part);
    return rcu.readerId;
  },

  async play(orders: Orders): Promise<Tally> {
    const { seed, pointers, traffic } = orders;
    const tally = emptyTally();
    const control = new Control(orders.control);
    const kit = {
      control,
      random: new Random(seed, rcu.readerId),
      tally,
      closures: new Closures(control, tally),
      pointers,
      traffic,
    };
    await play(rcu, kit, part);
    return tally;
  },
});
