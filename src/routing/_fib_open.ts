// Finding a Fib by its name, or laying an empty one out.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { FibLoad } from "./_fib_load.ts";
import { RouteRecords } from "./_fib_records.ts";
import { FIB_WORDS, ROOT, ROOT_RULES } from "./_fib_trie.ts";

/**
 * Opens a Fib.
 *
 * @param m The thread's membership.
 * @param name The Fib's name.
 * @returns Its address.
 */
export function openFib(m: Membership, name: string): Address {
  return m.roots.open(
    name,
    "fib",
    m.stallTimeout,
    (words) => m.allocate(words),
    () => make(m),
    (fib) => discard(m, fib),
  );
}

/** An empty table is what a load of nothing makes of one that has no root yet. */
function make(m: Membership): Address {
  const fib = m.allocate(FIB_WORDS);
  m.words.fill(0, fib, fib + FIB_WORDS);
  const records = new RouteRecords(m, fib);
  let table: FibLoad | undefined;
  let ready = false;
  let made = false;
  try {
    records.initialize();
    ready = true;
    table = new FibLoad(m, fib);
    table.build([]);
    table.publish();
    made = true;
  } finally {
    table?.dispose();
    if (ready && !made) records.dispose();
    if (!made) m.heap.free(fib);
  }
  return fib;
}

function discard(m: Membership, fib: Address): void {
  new RouteRecords(m, fib).dispose();
  m.heap.free(m.words[fib + ROOT]);
  m.heap.free(m.words[fib + ROOT_RULES]);
  m.heap.free(fib);
}
