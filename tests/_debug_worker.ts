// A thread that does to blocks what another one will be asked about.

import { type Address, Rcu, type RcuHandle } from "../mod.ts";
import { serve } from "./_workers.ts";

let rcu: Rcu;

function freeInWorker(block: Address): void {
  rcu.memory.free(block);
}
function deferInWorker(block: Address): void {
  rcu.deferFree(block);
}
function publishInWorker(pointer: Address, block: Address): void {
  rcu.assignPointer(pointer, block);
}

serve({
  join({ handle, name }: { handle: RcuHandle; name: string }): number {
    rcu = Rcu.attach(handle, { name });
    return rcu.readerId;
  },
  leave(): void {
    rcu.close();
  },
  free: freeInWorker,
  defer: deferInWorker,
  publish([pointer, block]: [Address, Address]): void {
    publishInWorker(pointer, block);
  },
  /** What is wrong with what it does to a block. */
  blame(block: Address): { message: string; cause: string } {
    try {
      rcu.memory.free(block);
    } catch (error) {
      const { message, cause } = error as Error;
      return { message, cause: (cause as Error).stack! };
    }
    throw new Error(`Block ${block} was freed`);
  },
});
