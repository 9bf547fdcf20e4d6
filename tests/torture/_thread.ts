// What every tortured thread has.

import type { Address, Rcu } from "../../mod.ts";
import { Closures } from "./_closures.ts";
import type { Control } from "./_control.ts";
import { Places } from "./_element.ts";
import type { Random } from "./_random.ts";
import type { Tally } from "./_tally.ts";
import { Traffic } from "./_traffic.ts";

/** What a thread has for the whole run. */
export interface Kit {
  control: Control;
  random: Random;
  tally: Tally;
  closures: Closures;
  /** Where the places' pointers are. */
  pointers: Address;
  /** Whether there are maps as well. */
  traffic: boolean;
}

/** One membership and what goes with it. */
export class Thread {
  readonly rcu: Rcu;
  readonly kit: Kit;
  readonly places: Places;
  /** The maps, if there are any. */
  readonly traffic: Traffic | undefined;

  constructor(rcu: Rcu, kit: Kit) {
    this.rcu = rcu;
    this.kit = kit;
    this.places = new Places(rcu, kit.pointers);
    this.traffic = kit.traffic ? new Traffic(rcu, kit) : undefined;
    kit.closures.listen(rcu);
  }
}
