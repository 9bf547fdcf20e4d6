import {
  assert,
  assertEquals,
  assertNotEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { membershipOf, Rcu } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import {
  NeighborTable,
  type NeighborTableOptions,
} from "../src/routing/neighbor_table.ts";
import {
  DESTINATION,
  LAST_USE,
  NEXT,
  SECRET,
} from "../src/routing/_route_layout.ts";
import { openRouteTable } from "../src/routing/_route_open.ts";
import type { RouteTable } from "../src/routing/_route_table.ts";
import {
  RouteCache,
  type RouteCacheOptions,
} from "../src/routing/route_cache.ts";
import { keptBytes } from "./_fib_memory.ts";
import { atEveryStep } from "./_steps.ts";
import {
  destinationOf,
  DONE,
  gatewayOf,
  HOSTS,
  NETWORKS,
  startRouteWorkers,
  STOP,
} from "./_route_workers.ts";

const CAPACITY = 16 * 2 ** 20;
const MINUTE = 60_000;

type Limits = Omit<RouteCacheOptions, "fib" | "neighbors" | "now">;

/** A cache whose every destination is on the link; the clock stands still, the secret is known. */
function setUp(limits: Limits = {}, table: NeighborTableOptions = {}) {
  const clock = { ms: 1_700_000_000_000 };
  const now = () => clock.ms;
  const rcu = Rcu.create({ capacity: CAPACITY, debug: true });
  const fib = Fib.open(rcu, "fib");
  fib.insert("0.0.0.0/0", { gateway: null, interface: 1 });
  const neighbors = NeighborTable.open(rcu, "neighbors", {
    gcThreshold3: 4096,
    ...table,
    now,
  });
  const options = { fib, neighbors, ...limits, now };
  const cache = RouteCache.open(rcu, "routes", options);
  const inside = openRouteTable(membershipOf(rcu, "test"), "routes", options);
  inside.words[inside.header + SECRET] = 0x5eed;
  /** Looks up at the present time of the clock. */
  const look = (destination: number) => {
    rcu.threadOffline();
    return cache.lookupFields(destination, 0, 0, 0);
  };
  return { rcu, fib, neighbors, cache, clock, inside, look };
}

/** The destinations in a chain, front first. */
function chain({ words, chains }: RouteTable, bucket = 0): number[] {
  const found: number[] = [];
  let entry = words[chains + bucket];
  for (; entry !== 0; entry = words[entry + NEXT]) {
    found.push(words[entry + DESTINATION]);
  }
  return found;
}

// Lookup

Deno.test("RouteCache.lookup answers from the Fib first and from the cache then", () => {
  const { rcu, fib, cache } = setUp();
  fib.insert("10.0.0.0/8", { gateway: "192.0.2.1", interface: 2, mtu: 1400 });
  const key = { destination: "10.1.2.3", source: "10.0.0.1", tos: 4 };
  const first = cache.lookup(key);
  assertEquals(first?.route, {
    gateway: "192.0.2.1",
    interface: 2,
    mtu: 1400,
  });
  assertEquals(first?.nextHop, "192.0.2.1");
  assert(Object.isFrozen(first));
  assert(Object.isFrozen(first?.route));
  assertStrictEquals(cache.lookup(key), first);
  const { lookups, hits, misses, entries, insertions } = cache.stats();
  assertEquals([lookups, hits, misses, entries, insertions], [2, 1, 1, 1, 1]);
  rcu.close();
});

Deno.test("RouteCache takes addresses dotted and unsigned, and unchecked signed, for the same", () => {
  const { rcu, cache } = setUp();
  const first = cache.lookup({ destination: "255.1.2.3", source: "200.0.0.1" });
  assertEquals(first?.nextHop, "255.1.2.3");
  const destination = 0xff010203;
  const source = 0xc8000001;
  assertStrictEquals(cache.lookup({ destination, source }), first);
  for (const change of [0, 2 ** 32]) {
    assertStrictEquals(
      cache.lookupFields(destination - change, source - change, 0, 0),
      first,
    );
  }
  rcu.close();
});

Deno.test("RouteCache.lookup tells keys apart by each of their four parts", () => {
  const { rcu, cache } = setUp({ buckets: 1, elasticity: 100 });
  const base = { destination: 1, source: 2, tos: 3, interface: 4 };
  for (const part of ["destination", "source", "tos", "interface"] as const) {
    cache.lookup({ ...base, [part]: 9 });
  }
  cache.lookup(base);
  assertEquals(cache.stats().insertions, 5);
  for (const part of ["destination", "source", "tos", "interface"] as const) {
    cache.lookup({ ...base, [part]: 9 });
  }
  assertEquals(cache.stats().hits, 4);
  rcu.close();
});

Deno.test("RouteCache.lookup returns undefined for what the Fib has no route for, and caches nothing", () => {
  const { rcu, fib, cache } = setUp();
  fib.delete("0.0.0.0/0");
  assertEquals(cache.lookup({ destination: "10.0.0.1" }), undefined);
  assertEquals(cache.lookup({ destination: "10.0.0.1" }), undefined);
  const { misses, unreachable, entries } = cache.stats();
  assertEquals([misses, unreachable, entries], [2, 2, 0]);
  rcu.close();
});

Deno.test("RouteCache.lookup enters the next hop as a neighbor, and shows what is known of it", () => {
  const { rcu, neighbors, cache } = setUp();
  const found = cache.lookup({ destination: "10.0.0.1" })!;
  assertEquals(found.neighbor?.state, "incomplete");
  neighbors.set("10.0.0.1", 1, { linkAddress: "00:1b:21:3c:9d:f8" });
  assertEquals(found.neighbor?.linkAddress, "00:1b:21:3c:9d:f8");
  assertEquals(neighbors.stats().referenced, 1);
  cache.flush();
  assertEquals(neighbors.stats().referenced, 0);
  neighbors.delete("10.0.0.1", 1);
  assertEquals(found.neighbor, undefined);
  rcu.close();
});

Deno.test("RouteCache.lookup gives the same result in threads of their own", () => {
  const { rcu, cache } = setUp();
  const other = Rcu.attach(rcu.handle);
  const same = RouteCache.open(other, "routes", {
    fib: Fib.open(other, "fib"),
    neighbors: NeighborTable.open(other, "neighbors"),
  });
  const found = cache.lookup({ destination: "10.0.0.1" });
  assertEquals(same.lookup({ destination: "10.0.0.1" })?.route, found?.route);
  const { hits, misses } = same.stats();
  assertEquals([hits, misses], [1, 1]);
  other.close();
  rcu.close();
});

Deno.test("RouteCache hits write the time of last use once a tick", () => {
  const { rcu, clock, inside, look } = setUp({ buckets: 1 });
  const { words } = inside;
  look(1);
  const at = words[inside.chains] + LAST_USE;
  const begin = words[at];
  clock.ms += 9;
  look(1);
  assertEquals(words[at], begin);
  clock.ms += 1;
  look(1);
  assertEquals(words[at], begin + 1);
  clock.ms -= 1_000; // never back
  look(1);
  assertEquals(words[at], begin + 1);
  rcu.close();
});

// Insertion and eviction

Deno.test("RouteCache insertions link at the front of the chain", () => {
  const { rcu, inside, look } = setUp({ buckets: 1 });
  for (const destination of [1, 2, 3]) look(destination);
  look(1); // a hit moves nothing
  assertEquals(chain(inside), [3, 2, 1]);
  rcu.close();
});

Deno.test("RouteCache insertions that find the key move it to the front", async () => {
  const { rcu, cache, neighbors, inside, look } = setUp({ buckets: 1 });
  for (const destination of [1, 2, 3]) look(destination);
  // What another thread does that missed before the entry was there.
  const insert = (destination: number) => {
    const fresh = inside.writer.ask(destination)!;
    return inside.writer.insert(destination, 0, 0, 0, fresh);
  };
  const front = inside.words[inside.chains];
  assertEquals(insert(3), front); // there already: nothing is copied
  assertNotEquals(insert(1), front);
  assertEquals(chain(inside), [1, 3, 2]);
  insert(3);
  assertEquals(chain(inside), [3, 1, 2]);
  const { entries, insertions, replacements } = cache.stats();
  assertEquals([entries, insertions, replacements], [3, 3, 0]);
  assertEquals(neighbors.stats().referenced, 3);
  await rcu.barrier();
  assertEquals(rcu.memory.audit().deferred, 0);
  rcu.close();
});

Deno.test("RouteCache evicts the entry that was unused longest from a chain longer than the elasticity", () => {
  const { rcu, cache, clock, inside, look } = setUp({
    buckets: 1,
    elasticity: 3,
    gcThreshold: 100,
  });
  for (const destination of [1, 2, 3, 4]) {
    look(destination);
    clock.ms += 10;
  }
  assertEquals(chain(inside), [4, 3, 2, 1]);
  look(1); // used last now
  look(5);
  assertEquals(chain(inside), [5, 4, 3, 1]);
  assertEquals(cache.stats().evictions, 1);
  rcu.close();
});

Deno.test("RouteCache evicts the hindmost of several that were unused equally long", () => {
  const { rcu, inside, look } = setUp({
    buckets: 1,
    elasticity: 2,
    gcThreshold: 100,
  });
  for (const destination of [1, 2, 3, 4, 5]) look(destination);
  assertEquals(chain(inside), [5, 4, 3]);
  rcu.close();
});

Deno.test("RouteCache evicts and collects nothing that is held", () => {
  const { rcu, cache, clock, inside, look } = setUp({
    buckets: 1,
    elasticity: 1,
    gcThreshold: 100,
  });
  const holds = [1, 2, 3].map((destination) => cache.hold({ destination })!);
  assertEquals(holds.map(({ result }) => result.nextHop), [
    "0.0.0.1",
    "0.0.0.2",
    "0.0.0.3",
  ]);
  clock.ms += 10;
  look(4);
  assertEquals(chain(inside), [4, 3, 2, 1]);
  holds[2][Symbol.dispose]();
  holds[2][Symbol.dispose](); // the second time does nothing
  look(5);
  assertEquals(chain(inside), [5, 4, 2, 1]);
  clock.ms += 60 * MINUTE;
  inside.collector.collect(0, 0);
  assertEquals(chain(inside), [2, 1]);
  holds[0][Symbol.dispose]();
  holds[1][Symbol.dispose]();
  inside.collector.collect(0, 0);
  assertEquals(chain(inside), []);
  rcu.close();
});

Deno.test("RouteCache.hold keeps its route when the cache is emptied, and its memory goes with it", async () => {
  const { rcu, cache, neighbors, look } = setUp({ buckets: 16 });
  look(1); // what this thread keeps for good
  cache.flush();
  await rcu.barrier();
  const { live } = rcu.memory.audit();
  const hold = cache.hold({ destination: 1 })!;
  cache.flush();
  assertEquals(cache.stats().entries, 0);
  assertEquals(neighbors.stats().referenced, 1);
  await rcu.barrier();
  assert(rcu.memory.audit().live > live);
  assertEquals(hold.result.nextHop, "0.0.0.1");
  hold[Symbol.dispose]();
  assertEquals(neighbors.stats().referenced, 0);
  await rcu.barrier();
  assertEquals(rcu.memory.audit().live, live);
  assertEquals(cache.hold({ destination: 1 })?.result.nextHop, "0.0.0.1");
  rcu.close();
});

Deno.test("RouteTable keeps the same rules under locks for readers too, with entries moved and freed at once", async () => {
  const { rcu, fib, neighbors, clock } = setUp();
  await rcu.barrier();
  const membership = membershipOf(rcu, "test");
  const locked: number[] = [];
  const table = openRouteTable(
    membership,
    "locked",
    {
      fib,
      neighbors,
      buckets: 1,
      elasticity: 3,
      gcThreshold: 100,
      now: () => clock.ms,
    },
    () => ({
      movesInPlace: true,
      lock: (bucket) => locked.push(bucket),
      unlock: (bucket) => assertEquals(locked.pop(), bucket),
      reclaim: (entry) => membership.heap.free(entry),
    }),
  );
  const insert = (destination: number) => {
    const fresh = table.writer.ask(destination)!;
    return table.writer.insert(destination, 0, 0, 0, fresh);
  };
  const entries = [1, 2, 3, 4].map(insert);
  assertEquals(insert(2), entries[1]);
  assertEquals(chain(table), [2, 4, 3, 1]);
  assertEquals(insert(1), entries[0]);
  assertEquals(chain(table), [1, 2, 4, 3]);
  clock.ms += 10;
  insert(5);
  assertEquals(chain(table), [5, 1, 2, 4]);
  clock.ms += 10 * MINUTE;
  assert(table.collector.collect(1, 0));
  assertEquals(chain(table), []);
  assertEquals(neighbors.stats().referenced, 0);
  assertEquals(locked, []);
  assertEquals(rcu.memory.audit().deferred, 0);
  rcu.close();
});

Deno.test("RouteCache.lookupFields runs the caller's code before it goes online, not after", () => {
  const { rcu, cache } = setUp();
  const { reader } = membershipOf(rcu, "test");
  const { _table: table } = cache as unknown as { _table: RouteTable };
  const online: boolean[] = [];
  const find = table.find.bind(table);
  Object.defineProperty(table, "find", {
    value: (...key: Parameters<typeof find>) => {
      online.push(reader.online);
      return find(...key);
    },
  });
  cache.lookupFields(1, 2, 3, 4);
  const odd = (value: number) => ({
    valueOf() {
      rcu.threadOffline();
      return value;
    },
  });
  const args = [1, 2, 3, 4].map(odd) as unknown as [
    number,
    number,
    number,
    number,
  ];
  const result = cache.lookupFields(...args);
  assertStrictEquals(cache.lookupFields(1, 2, 3, 4), result);
  assertEquals(online, [true, true, true]);
  rcu.close();
});

Deno.test("RouteCache counts nothing once its Rcu is closed", () => {
  const { rcu, clock } = setUp();
  const open = (member: Rcu, now: () => number) =>
    RouteCache.open(member, "routes", {
      fib: Fib.open(member, "fib"),
      neighbors: NeighborTable.open(member, "neighbors"),
      now,
    });
  const member = Rcu.attach(rcu.handle);
  const cache = open(member, () => clock.ms);
  cache.lookupFields(1, 0, 0, 0);
  member.close();
  const lookUp = () => cache.lookupFields(1, 0, 0, 0);
  for (let i = 0; i < 1000; i++) assertThrows(lookUp, Error, "closed");
  assertThrows(() => cache.hold({ destination: 1 }), Error, "closed");

  // Where the clock closes it in the middle of a lookup, and another thread gets its place.
  let successor: Rcu | undefined;
  const closing = Rcu.attach(rcu.handle);
  let lookups = 0;
  const doomed = open(closing, () => {
    if (++lookups === 3) {
      closing.close();
      successor = Rcu.attach(rcu.handle);
    }
    return clock.ms + 10_000_000;
  });
  assertThrows(() => doomed.lookupFields(2, 0, 0, 0), Error, "open");
  assertEquals(successor?.readerId, closing.readerId);
  const { lookups: counted, hits, misses, collections } = open(
    successor!,
    () => clock.ms,
  ).stats();
  assertEquals([counted, hits, misses, collections], [2, 0, 2, 0]);
  successor!.close();
  rcu.close();
});

// Collection

Deno.test("RouteCache.collect is ignored within the least interval", () => {
  const { rcu, cache, clock, look } = setUp({ buckets: 1, gcThreshold: 1 });
  look(1);
  cache.collect();
  assertEquals(cache.stats().ignoredCollections, 0);
  clock.ms += 490;
  cache.collect();
  assertEquals(cache.stats().ignoredCollections, 1);
  clock.ms += 10;
  cache.collect();
  const { collections, ignoredCollections } = cache.stats();
  assertEquals([collections, ignoredCollections], [3, 1]);
  rcu.close();
});

Deno.test("RouteCache insertions collect beyond gcThreshold entries, not before", () => {
  const { rcu, cache, look } = setUp({ gcThreshold: 3 });
  for (let i = 0; i < 4; i++) look(i);
  assertEquals(cache.stats().collections, 0);
  look(4);
  assertEquals(cache.stats().collections, 1);
  rcu.close();
});

Deno.test("RouteCache collections let the equilibrium grow by half of what is too much, a bucket's worth at most", () => {
  const { rcu, cache, clock, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 4,
    maxSize: 1000,
    gcMinInterval: 10_000,
    gcTimeout: 2_000_000_000,
  });
  const equilibria: number[] = [];
  const collect = () => {
    clock.ms += 10_000;
    cache.collect();
    equilibria.push(cache.stats().equilibrium);
  };
  for (let i = 0; i < 20; i++) look(i);
  // By the sixth insertion: 5 entries, 4 are fine; half of 1 is 0.
  equilibria.push(cache.stats().equilibrium);
  collect(); // 16 too many: 8, but 4 at most
  collect(); // 12 too many
  collect(); // 8 too many
  collect(); // 4 too many: 2
  collect(); // 2 too many: 1
  assertEquals(equilibria, [4, 8, 12, 16, 18, 19]);
  assertEquals(cache.stats().entries, 20); // all of them young
  rcu.close();
});

Deno.test("RouteCache collections let the equilibrium shrink to what there is", () => {
  const { rcu, cache, clock, look } = setUp({ buckets: 4, gcThreshold: 16 });
  for (let i = 0; i < 8; i++) look(i);
  cache.collect();
  assertEquals(cache.stats().equilibrium, 8);
  cache.flush();
  clock.ms += 1_000;
  cache.collect();
  assertEquals(cache.stats().equilibrium, 0);
  rcu.close();
});

Deno.test("RouteCache collections in danger aim at half of the excess, a bucket's worth at least", () => {
  const { rcu, cache, clock, inside, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 1000,
  });
  for (let i = 0; i < 20; i++) look(i);
  inside.collector.collect(2, 0); // 12 beyond 2 a bucket: 6
  assertEquals(cache.stats().equilibrium, 14);
  inside.collector.collect(4, 0); // 4 beyond 4 a bucket: 2, but 4 at least
  assertEquals(cache.stats().equilibrium, 16);
  assertEquals(cache.stats().collected, 0);
  clock.ms += 10 * MINUTE;
  inside.collector.collect(2, 0);
  const { collected, entries } = cache.stats();
  // Whole chains, until it is 6 or more.
  assert(collected >= 6 && collected < 20);
  assertEquals(entries, 20 - collected);
  rcu.close();
});

Deno.test("RouteCache collections go on from where the last one stopped", () => {
  const { rcu, clock, inside, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 1000,
  });
  for (let i = 0; i < 40; i++) look(i);
  const filled = [0, 1, 2, 3].map((bucket) => chain(inside, bucket).length);
  assertEquals(filled.every((length) => length > 4), true);
  clock.ms += 10 * MINUTE;
  const lengths = () =>
    [0, 1, 2, 3].map((bucket) => chain(inside, bucket).length > 0);
  inside.collector.collect(9, 0); // 4 beyond: one chain is enough
  assertEquals(lengths(), [true, false, true, true]);
  inside.collector.collect(6, 0);
  assertEquals(lengths()[2], false);
  rcu.close();
});

Deno.test("RouteCache collections halve the expiry after each entry that is kept", () => {
  const { rcu, clock, inside, look } = setUp({
    buckets: 1,
    elasticity: 100,
    gcThreshold: 1000,
    gcTimeout: 80_000,
    gcInterval: 0,
  });
  const ages = [70_000, 50_000, 40_000, 21_000, 20_000, 0];
  const begin = clock.ms;
  for (const i of [5, 4, 3, 2, 1, 0]) look(i);
  for (const [i, age] of ages.entries()) {
    clock.ms = begin + 100_000 - age;
    look(i);
  }
  assertEquals(chain(inside), [0, 1, 2, 3, 4, 5]);
  // 80 s: kept; 40 s: 1 goes, 2 is kept; 20 s: 3 goes, 4 is kept; 10 s: kept.
  inside.collector.collect(1, 0);
  assertEquals(chain(inside), [0, 2, 4, 5]);
  rcu.close();
});

Deno.test("RouteCache collections that miss their goal halve the expiry", () => {
  const { rcu, cache, clock, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 4,
    maxSize: 1000,
    gcTimeout: 80_000,
  });
  for (let i = 0; i < 5; i++) look(i);
  assertEquals(cache.stats().expiry, 80_000);
  cache.collect();
  assertEquals(cache.stats().missedGoals, 1);
  assertEquals(cache.stats().expiry, 40_000);
  clock.ms += 1_000;
  cache.collect();
  assertEquals(cache.stats().expiry, 20_000);
  assertEquals(cache.stats().overflows, 0);
  rcu.close();
});

Deno.test("RouteCache collections that meet their goal let the expiry grow by the least interval, up to the timeout", () => {
  const { rcu, cache, clock, inside, look } = setUp({
    buckets: 16,
    elasticity: 100,
    gcThreshold: 4,
    maxSize: 1000,
    gcTimeout: 80_000,
    gcMinInterval: 30_000,
    gcInterval: 0,
  });
  for (let i = 0; i < 100; i++) look(i);
  cache.collect(); // too soon: an insertion has collected, and missed
  assertEquals(cache.stats().expiry, 40_000);
  clock.ms += 100_000;
  assert(cache.collect() > 0);
  const { entries, expiry } = cache.stats();
  assert(entries >= 4); // or it would be reset
  assertEquals(expiry, 70_000);
  inside.collector.collect(0, 30_000);
  assertEquals(cache.stats().expiry, 70_000); // too soon
  clock.ms += 30_000;
  for (let i = 0; i < 8; i++) look(1000 + i);
  clock.ms += 30_000;
  cache.collect();
  assertEquals(cache.stats().expiry, 80_000);
  rcu.close();
});

Deno.test("RouteCache collections reset the expiry below gcThreshold entries", () => {
  const { rcu, cache, clock, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 4,
    maxSize: 1000,
    gcTimeout: 80_000,
  });
  for (let i = 0; i < 6; i++) look(i);
  clock.ms += 500;
  cache.collect();
  assertEquals(cache.stats().expiry, 20_000);
  cache.flush();
  clock.ms += 500;
  cache.collect();
  assertEquals(cache.stats().expiry, 80_000);
  rcu.close();
});

Deno.test("RouteCache counts an overflow where a collection leaves it full, and answers all the same", () => {
  const { rcu, cache, clock, look } = setUp({
    buckets: 1,
    elasticity: 1000,
    gcThreshold: 4,
    maxSize: 8,
  });
  for (let i = 0; i < 8; i++) look(i);
  assertEquals(cache.stats().overflows, 0);
  assertEquals(look(8)?.nextHop, "0.0.0.8");
  const full = cache.stats();
  assertEquals([full.entries, full.overflows], [8, 1]);
  assertEquals(full.expiry, 0); // it has been around until there was nothing to halve
  assert(full.missedGoals > 10);
  assertEquals(look(8)?.nextHop, "0.0.0.8");
  assertEquals(cache.stats().overflows, 2);
  clock.ms += 10; // now they are older than 0
  look(8);
  const after = cache.stats();
  assertEquals([after.entries, after.overflows], [1, 2]);
  rcu.close();
});

Deno.test("RouteCache collections take young entries whose route has changed", () => {
  const { rcu, fib, clock, inside, look } = setUp({
    buckets: 1,
    elasticity: 100,
    gcThreshold: 1000,
  });
  for (let i = 0; i < 4; i++) look(i);
  fib.insert("0.0.0.2/31", { gateway: "192.0.2.1", interface: 1 });
  clock.ms += 1_000;
  inside.collector.collect(1, 0);
  assertEquals(chain(inside), [1, 0]);
  rcu.close();
});

Deno.test("RouteCache expires a share of its chains with the first insertion after each gcInterval", () => {
  const { rcu, cache, clock, inside, look } = setUp({
    buckets: 4,
    elasticity: 100,
    gcThreshold: 1000,
    gcInterval: 60_000,
    gcTimeout: 120_000,
  });
  for (let i = 0; i < 40; i++) look(i);
  const lengths = [0, 1, 2, 3].map((bucket) => chain(inside, bucket).length);
  clock.ms += 59_990;
  look(100);
  assertEquals(cache.stats().expired, 0);
  clock.ms += 60_020; // the first forty are old now
  look(101);
  // Half of the chains in half of the timeout: 1 and 2. A young front halves the expiry, no more.
  assertEquals(cache.stats().expired, lengths[1] + lengths[2]);
  clock.ms += 60_000;
  look(102);
  assertEquals(cache.stats().expired, 41); // but for the last two
  rcu.close();
});

// Neighbours

Deno.test("RouteCache counts a neighbor-table overflow after one retry, and answers all the same", () => {
  const { rcu, cache, neighbors, look } = setUp(
    { buckets: 1, gcThreshold: 1000 },
    { gcThreshold3: 2 },
  );
  look(1);
  look(2);
  assertEquals(look(3)?.nextHop, "0.0.0.3");
  const { entries, neighborOverflows, overflows, collections } = cache.stats();
  assertEquals([entries, neighborOverflows, overflows], [2, 1, 0]);
  assertEquals(collections, 1);
  assertEquals(neighbors.stats().overflows, 2);
  assertEquals(neighbors.size, 2);
  assertEquals(cache.hold({ destination: 3 }), undefined);
  assertEquals(look(1)?.nextHop, "0.0.0.1");
  rcu.close();
});

Deno.test("RouteCache collects harder once to make room in the neighbor table", () => {
  const { rcu, cache, clock, neighbors, look } = setUp(
    { buckets: 1, gcThreshold: 1000, gcInterval: 0, secretInterval: 0 },
    { gcThreshold2: 2, gcThreshold3: 2 },
  );
  look(1);
  look(2);
  clock.ms += 10 * MINUTE;
  assertEquals(cache.collect(), 0); // far from gcThreshold: nothing to do
  assertEquals(look(3)?.nextHop, "0.0.0.3");
  const { entries, neighborOverflows, collected } = cache.stats();
  assertEquals([entries, neighborOverflows, collected], [1, 0, 2]);
  assertEquals(neighbors.stats().overflows, 1);
  assertEquals(neighbors.lookup(3, 1)?.state, "incomplete");
  rcu.close();
});

// The Fib changes

Deno.test("RouteCache finds a more specific route as soon as there is one", async () => {
  const { rcu, fib, cache, look } = setUp();
  look(0x0a000001);
  fib.insert("10.0.0.0/8", { gateway: "192.0.2.1", interface: 2 });
  const found = look(0x0a000001);
  assertEquals(found?.route.gateway, "192.0.2.1");
  assertEquals(found?.neighbor?.interface, 2);
  fib.delete("10.0.0.0/8");
  assertEquals(look(0x0a000001)?.route.gateway, null);
  fib.delete("0.0.0.0/0");
  assertEquals(look(0x0a000001), undefined);
  const { entries, replacements, unreachable } = cache.stats();
  assertEquals([entries, replacements, unreachable], [1, 2, 1]);
  await rcu.barrier();
  assertEquals(look(0x0a000001), undefined);
  rcu.close();
});

for (const how of ["insert", "load"] as const) {
  Deno.test(`RouteCache never goes back behind what a thread has seen, at any step of Fib.${how}()`, () => {
    const { rcu, fib, clock } = setUp();
    const member = Rcu.attach(rcu.handle);
    const theirs = Fib.open(member, "fib");
    const cache = RouteCache.open(member, "routes", {
      fib: theirs,
      neighbors: NeighborTable.open(member, "neighbors"),
      now: () => clock.ms,
    });
    const cached = (source: number) =>
      cache.lookupFields(0x0a000001, source, 0, 0)!.route.interface;
    const seen: number[] = [];
    for (let version = 1; version <= 3; version++) {
      const route = { gateway: null, interface: version };
      const change = () =>
        how === "insert"
          ? fib.insert("10.0.0.0/8", route)
          : fib.load([["10.0.0.0/8", route]]);
      if (version > 1) seen.push(cached(1));
      const steps = version === 1
        ? (change(), 0)
        : atEveryStep(change, (step) => {
          // Of an earlier version, of none, straight from the Fib, and what was cached by all that.
          const fresh = version * 1000 + step;
          seen.push(cached(1), cached(fresh), cached(1));
          seen.push(theirs.lookup("10.0.0.1")!.interface, cached(fresh));
          seen.push(cached(1), cached(version * 1000));
        });
      seen.push(cached(1), cached(version * 1000 + steps - 1));
      assertEquals(seen.at(-1), version);
    }
    assertEquals(seen, seen.toSorted((a, b) => a - b));
    member.close();
    rcu.close();
  });
}

Deno.test("RouteCache keeps what a change of the Fib does not touch", () => {
  const { rcu, fib, cache, look } = setUp();
  const found = look(0x0a000001);
  fib.insert("192.168.0.0/16", { gateway: "192.0.2.1", interface: 2 });
  assertStrictEquals(look(0x0a000001), found);
  assertStrictEquals(look(0x0a000001), found);
  const { hits, misses, revalidations } = cache.stats();
  assertEquals([hits, misses, revalidations], [2, 1, 1]);
  rcu.close();
});

Deno.test("RouteCache does not take a route for the one that had its memory before", async () => {
  const { rcu, fib, cache, look } = setUp();
  fib.insert("10.0.0.0/8", { gateway: "192.0.2.1", interface: 2 });
  const first = look(0x0a000001);
  for (let i = 0; i < 50; i++) {
    const gateway = `192.0.2.${2 + (i & 1)}`;
    fib.insert("10.0.0.0/8", { gateway, interface: 2 });
    await rcu.barrier();
    assertEquals(look(0x0a000001)?.route.gateway, gateway);
  }
  assertNotStrictEquals(look(0x0a000001), first);
  assertEquals(cache.stats().replacements, 50);
  rcu.close();
});

// The secret

Deno.test("RouteCache.renewSecret draws another secret and empties the cache", () => {
  const { rcu, cache, inside, look } = setUp();
  for (let i = 0; i < 100; i++) look(i);
  const before = inside.words[inside.header + SECRET];
  cache.renewSecret();
  assertNotEquals(inside.words[inside.header + SECRET], before);
  assertEquals(cache.stats().entries, 0);
  for (let i = 0; i < 100; i++) look(i);
  for (let i = 0; i < 100; i++) look(i);
  const { entries, hits, flushes } = cache.stats();
  assertEquals([entries, hits, flushes], [100, 100, 1]);
  rcu.close();
});

Deno.test("RouteCache renews its secret with the first insertion after secretInterval", () => {
  const { rcu, cache, clock, inside, look } = setUp({ secretInterval: 5_000 });
  look(1);
  clock.ms += 4_990;
  look(2);
  assertEquals(inside.words[inside.header + SECRET], 0x5eed);
  clock.ms += 10;
  look(1); // a hit: no
  assertEquals(inside.words[inside.header + SECRET], 0x5eed);
  look(3);
  assertNotEquals(inside.words[inside.header + SECRET], 0x5eed);
  const { entries, flushes } = cache.stats();
  assertEquals([entries, flushes], [1, 1]);
  rcu.close();
});

// Memory

Deno.test("RouteCache gives every byte back", async () => {
  const { rcu, cache, neighbors, clock, look } = setUp(
    { buckets: 64, elasticity: 4, maxSize: 200 },
    { gcThreshold1: 0, gcStaleTime: 0 },
  );
  const { live } = rcu.memory.audit();
  for (let i = 0; i < 2_000; i++) {
    look(i);
    if (i % 100 === 0) clock.ms += 500;
  }
  const { insertions, evictions, collected, expired, entries } = cache.stats();
  assertEquals(insertions, evictions + collected + expired + entries);
  cache.flush();
  assertEquals(cache.stats().entries, 0);
  assertEquals(neighbors.stats().referenced, 0);
  clock.ms += 1_000;
  neighbors.collect();
  assertEquals(neighbors.size, 0);
  await rcu.barrier();
  const audit = rcu.memory.audit();
  assertEquals(audit.live, live);
  assertEquals(audit.deferred, 0);
  rcu.close();
});

Deno.test("RouteCache answers without caching where there is no memory", () => {
  const { rcu, cache, look } = setUp();
  look(1);
  // Nothing is left, not even in the magazines: an entry takes 16 words.
  for (let words = 2 ** 16; words >= 16;) {
    try {
      rcu.memory.allocate(words);
    } catch {
      words /= 2;
    }
  }
  assertEquals(look(2)?.nextHop, "0.0.0.2");
  const { entries, overflows } = cache.stats();
  assertEquals([entries, overflows], [1, 1]);
  assertEquals(look(1)?.nextHop, "0.0.0.1");
  rcu.close();
});

// Threads

Deno.test("RouteCache gives right answers in several threads while routes change and the cache is emptied", async () => {
  const rcu = Rcu.create({ capacity: CAPACITY, debug: true });
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors", {
    gcThreshold1: 0,
    gcThreshold2: 256,
    gcThreshold3: 512,
    gcStaleTime: 0,
  });
  const cache = RouteCache.open(rcu, "routes", {
    fib,
    neighbors,
    buckets: 64,
    elasticity: 4,
    maxSize: 256,
    gcMinInterval: 0,
  });
  const route = (network: number, phase: number) => {
    const gateway = gatewayOf(network, phase);
    fib.insert(`10.0.${network}.0/24`, { gateway, interface: phase % 3 });
  };
  const lastPhase = 400;
  for (let network = 0; network < NETWORKS; network++) {
    for (let phase = 0; phase <= 12; phase++) route(network, phase);
    route(network, lastPhase);
  }
  await rcu.barrier();
  const { live } = rcu.memory.audit();

  const { control, wrong } = startRouteWorkers(rcu, 3);
  for (let phase = 0; phase <= lastPhase; phase++) {
    for (let network = 0; network < NETWORKS; network++) route(network, phase);
    if (phase % 8 === 3) cache.flush();
    if (phase % 64 === 7) cache.renewSecret();
    if (phase % 16 === 5) neighbors.collect();
    // At most a few lookups a phase: whatever the threads' speed, they meet all of it.
    const done = Atomics.load(control, DONE);
    while (Atomics.load(control, DONE) === done) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }
  Atomics.store(control, STOP, 1);
  assertEquals(await wrong, 0);

  const { hits, misses, replacements, evictions } = cache.stats();
  for (const count of [hits, misses, replacements, evictions]) {
    assert(count > 0);
  }
  for (let i = 0; i < NETWORKS * HOSTS; i++) {
    const destination = destinationOf(i);
    const found = cache.lookup({ destination });
    assertEquals(found?.route, fib.lookup(destination));
  }
  cache.flush();
  assertEquals(cache.stats().entries, 0);
  assertEquals(neighbors.stats().referenced, 0);
  for (const { address, interface: link } of neighbors) {
    neighbors.delete(address, link);
  }
  await rcu.barrier();
  const audit = rcu.memory.audit();
  assertEquals(audit.deferred, 0);
  assertEquals(audit.live - keptBytes(rcu, fib), live);
  rcu.close();
});

// Arguments

Deno.test("RouteCache.open names the option that is wrong", () => {
  const rcu = Rcu.create({ capacity: CAPACITY });
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors");
  const refuse = (
    options: Record<string, unknown>,
    kind: typeof RangeError | typeof TypeError,
    message: string,
  ) =>
    assertThrows(
      () =>
        RouteCache.open(
          rcu,
          "routes",
          { fib, neighbors, ...options } as RouteCacheOptions,
        ),
      kind,
      message,
    );
  const start = "Cannot open a route cache as ";
  refuse({ fib: undefined }, TypeError, `${start}fib must be a Fib`);
  refuse(
    { neighbors: fib },
    TypeError,
    `${start}neighbors must be a NeighborTable: received an object of type Fib`,
  );
  refuse(
    { buckets: 48 },
    RangeError,
    `${start}its buckets must be a power of two from 1 to 16777216: received 48`,
  );
  refuse({ buckets: 0 }, RangeError, "received 0");
  refuse({ buckets: "64" }, TypeError, 'received "64"');
  refuse({ gcThreshold: -1 }, RangeError, `${start}its gcThreshold must be`);
  refuse({ maxSize: 0 }, RangeError, `${start}its maxSize must be`);
  refuse({ elasticity: 0 }, RangeError, `${start}its elasticity must be`);
  for (
    const name of ["gcMinInterval", "gcInterval", "gcTimeout", "secretInterval"]
  ) {
    refuse({ [name]: -1 }, RangeError, `${start}its ${name} must be from 0 to`);
    refuse({ [name]: "1s" }, TypeError, `${start}its ${name} must be a number`);
  }
  refuse({ now: 0 }, TypeError, `${start}its now must be a function`);
  assertThrows(
    () => RouteCache.open(rcu, "routes", null as unknown as RouteCacheOptions),
    TypeError,
    "received null",
  );
  assertThrows(
    () => RouteCache.open(rcu, "fib", { fib, neighbors }),
    TypeError,
    'Cannot open "fib" as routes',
  );
  rcu.close();
});

Deno.test("RouteCache.open refuses what differs from the first time", () => {
  const { rcu, fib, neighbors } = setUp({ buckets: 64 });
  RouteCache.open(rcu, "routes", { fib, neighbors });
  RouteCache.open(rcu, "routes", { fib, neighbors, buckets: 64 });
  assertThrows(
    () => RouteCache.open(rcu, "routes", { fib, neighbors, buckets: 32 }),
    TypeError,
    'Cannot open "routes" with buckets 32 as it must be what it was opened with first: 64',
  );
  assertThrows(
    () =>
      RouteCache.open(rcu, "routes", { fib: Fib.open(rcu, "2"), neighbors }),
    TypeError,
    'Cannot open "routes" with this Fib as it must be the one',
  );
  assertThrows(
    () =>
      RouteCache.open(rcu, "routes", {
        fib,
        neighbors: NeighborTable.open(rcu, "3"),
      }),
    TypeError,
    'Cannot open "routes" with this neighbor table as it must be the one',
  );
  const other = Rcu.attach(rcu.handle);
  assertThrows(
    () => RouteCache.open(other, "routes", { fib, neighbors }),
    TypeError,
    "fib must be opened with the same Rcu",
  );
  other.close();
  rcu.close();
});

Deno.test("RouteCache names the part of a key that is wrong", () => {
  const { rcu, cache } = setUp();
  assertThrows(
    () => cache.lookup({ destination: "10.0.0.256" }),
    RangeError,
    'Cannot look up a route as its destination must be an IPv4 address, dotted or an unsigned 32-bit integer: received "10.0.0.256"',
  );
  assertThrows(
    () => cache.lookup({ destination: 1, source: 1.5 }),
    RangeError,
    "as its source must be",
  );
  assertThrows(
    () => cache.lookup({ destination: 1, tos: 256 }),
    RangeError,
    "as its tos must be an integer from 0 to 255: received 256",
  );
  assertThrows(
    () => cache.lookup({ destination: 1, interface: -1 }),
    RangeError,
    "as its interface must be",
  );
  assertThrows(
    () => cache.hold({ destination: null as unknown as string }),
    TypeError,
    "Cannot hold a route as its destination must be",
  );
  rcu.close();
  assertThrows(() => cache.lookup({ destination: 1 }), Error, "closed");
  assertThrows(() => cache.flush(), Error, "closed");
  assertThrows(() => cache.collect(), Error, "closed");
  assertThrows(() => cache.renewSecret(), Error, "closed");
});
