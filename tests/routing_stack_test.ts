// What a stack overflow leaves behind in the routing structures: nothing.

import { assert, assertEquals } from "@std/assert";
import { Fib, NeighborTable, Rcu, RouteCache } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertLists } from "./_audit.ts";
import { keptBytes } from "./_fib_memory.ts";
import { settle } from "./_settle.ts";
import { atEveryDepth } from "./_stack.ts";

const DEFAULT = { gateway: null, interface: 1 };

function open(rcu: Rcu) {
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors");
  const cache = RouteCache.open(rcu, "routes", {
    fib,
    neighbors,
    buckets: 16,
    now: () => 1_700_000_000_000,
  });
  let i = 0;
  const next = () => ++i;
  const route = () => ({ gateway: null, interface: next() });
  const flow = () => 0x0b000000 + (next() % 100);
  const host = () => 0x0a000000 + (next() % 50);
  const middle = () => `10.${next() % 7}.${i % 5}.0/24`;
  const acts: Record<string, () => void> = {
    "Fib.insert": () => fib.insert(middle(), route()),
    "Fib.delete": () => fib.delete(middle()),
    "Fib.load": () =>
      fib.load([["0.0.0.0/0", DEFAULT], ["10.1.2.3/32", route()]]),
    "Fib.get": () => fib.get(middle()),
    "Fib.lookup": () => fib.lookup(flow()),
    "Fib.@@iterator": () => [...fib],
    "NeighborTable.set": () =>
      neighbors.set(host(), 1, { linkAddress: "00:00:00:00:00:01" }),
    "NeighborTable.lookup": () => neighbors.lookup(host(), 1),
    "NeighborTable.resolve": () => neighbors.resolve(host(), 1),
    "NeighborTable.delete": () => neighbors.delete(host(), 1),
    "NeighborTable.collect": () => neighbors.collect(),
    "NeighborTable.@@iterator": () => [...neighbors],
    "RouteCache.lookupFields": () => cache.lookupFields(flow(), i % 3, 0, 0),
    "RouteCache.hold": () =>
      cache.hold({ destination: flow() })?.[Symbol.dispose](),
    "RouteCache.flush": () => cache.flush(),
    "RouteCache.renewSecret": () => cache.renewSecret(),
    "RouteCache.collect": () => cache.collect(),
  };
  const empty = async () => {
    cache.flush();
    for (const { address, interface: link } of neighbors) {
      neighbors.delete(address, link);
    }
    fib.load([]);
    const { entries, referenced } = neighbors.stats();
    assertEquals([fib.size, entries, referenced], [0, 0, 0]);
    assertEquals(cache.stats().entries, 0);
    return await settle(rcu) - keptBytes(rcu, fib);
  };
  return { fib, acts, empty };
}

function names(): string[] {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  return Object.keys(open(rcu).acts);
}

for (const name of names()) {
  Deno.test(`${name}() that overflows the stack leaves no lock taken, no section open and no block behind`, async () => {
    const options = { capacity: 2 ** 23, maxReaders: 4, stallTimeout: 200 };
    using rcu = Rcu.create({ ...options, debug: true });
    using other = Rcu.attach(rcu.handle);
    const { fib, acts, empty } = open(rcu);
    const others = open(other).acts;
    fib.insert("0.0.0.0/0", DEFAULT);
    const live = await empty();
    fib.insert("0.0.0.0/0", DEFAULT);
    for (let round = 0; round < 200; round++) {
      for (const act of Object.values(acts)) act();
    }
    const { reader } = membershipOf(rcu, "test");
    let overflows = 0;
    for (let pad = 0; pad < 30; pad++) {
      overflows += atEveryDepth(acts[name], pad);
      assertEquals(reader.depth, 0);
      await new Promise((resolve) => setTimeout(resolve));
      for (const act of Object.values(others)) act();
      other.synchronizeSync();
    }
    assert(overflows > 0);
    assertEquals(await empty(), live);
    assertLists(rcu.memory.words);
  });
}
