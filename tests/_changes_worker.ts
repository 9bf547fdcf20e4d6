// A worker that sleeps until a map changes.

import { Rcu, type RcuHandle, RcuMap, RcuSortedMap, u32 } from "../mod.ts";
import { PATIENCE, serve } from "./_workers.ts";

let rcu: Rcu;
let map: RcuMap<number, number> | RcuSortedMap<number, number>;

serve({
  attach(task: { handle: RcuHandle; kind: "RcuMap" | "RcuSortedMap" }) {
    rcu = Rcu.attach(task.handle);
    const kind = task.kind === "RcuMap" ? RcuMap : RcuSortedMap;
    map = kind.open(rcu, "m", { key: u32, value: u32 });
  },
  /** Returns what it finds once that has reached a number. */
  async watch(last: number) {
    const changes = map.changes({ signal: AbortSignal.timeout(PATIENCE) });
    let seen = map.get(7) ?? 0;
    while (seen < last) {
      await changes.next();
      seen = map.get(7) ?? 0;
    }
    await changes.return?.();
    return seen;
  },
  close() {
    rcu.close();
  },
});
