import { assert, assertEquals, assertThrows } from "@std/assert";
import { Rcu } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import {
  neighborsOf,
  NeighborTable,
  type NeighborTableOptions,
} from "../src/routing/neighbor_table.ts";
import { ticksOf } from "../src/routing/_route_clock.ts";
import { startNeighborWorkers } from "./_route_workers.ts";

const CAPACITY = 4 * 2 ** 20;
const MAC = "00:1b:21:3c:9d:f8";

/** A table with a clock that stands still until it is told to move. */
function setUp(options: NeighborTableOptions = {}) {
  const clock = { ms: 1_700_000_000_000 };
  const rcu = Rcu.create({ capacity: CAPACITY, debug: true });
  const table = NeighborTable.open(rcu, "n", {
    ...options,
    now: () => clock.ms,
  });
  return { rcu, table, clock, store: neighborsOf(table, "test") };
}

function enter(table: NeighborTable, from: number, to: number): void {
  for (let i = from; i < to; i++) assert(table.resolve(i, 1) !== undefined);
}

Deno.test("NeighborTable finds an entry by address and interface alone", () => {
  const { rcu, table } = setUp();
  assertEquals(table.lookup("10.0.0.1", 1), undefined);
  table.set("10.0.0.1", 1, { linkAddress: MAC });
  assertEquals(table.lookup(0x0a000001, 1), {
    address: "10.0.0.1",
    interface: 1,
    linkAddress: MAC,
    state: "reachable",
  });
  assertEquals(table.lookup("10.0.0.1", 2), undefined);
  assertEquals(table.lookup("10.0.0.2", 1), undefined);
  rcu.close();
});

Deno.test("NeighborTable takes the largest address and interface", () => {
  const { rcu, table } = setUp();
  table.set("255.255.255.255", 0xffffffff, {
    linkAddress: "FF-FF-FF-FF-FF-FE",
  });
  assertEquals(table.lookup(0xffffffff, 0xffffffff), {
    address: "255.255.255.255",
    interface: 0xffffffff,
    linkAddress: "ff:ff:ff:ff:ff:fe",
    state: "reachable",
  });
  rcu.close();
});

Deno.test("NeighborTable.resolve enters what is not there as incomplete", () => {
  const { rcu, table } = setUp();
  const neighbor = table.resolve("10.0.0.1", 1);
  assertEquals(neighbor?.state, "incomplete");
  assertEquals(neighbor?.linkAddress, null);
  assert(Object.isFrozen(neighbor));
  assert(table.resolve("10.0.0.1", 1) === neighbor);
  assertEquals(table.size, 1);
  rcu.close();
});

Deno.test("NeighborTable.set keeps what it is not given", () => {
  const { rcu, table } = setUp();
  table.set("10.0.0.1", 1, { linkAddress: MAC, state: "permanent" });
  assertEquals(table.set("10.0.0.1", 1, { state: "stale" })?.linkAddress, MAC);
  assertEquals(table.set("10.0.0.1", 1, {})?.state, "reachable");
  const without = table.set("10.0.0.1", 1, { linkAddress: null });
  assertEquals(without?.state, "incomplete");
  assertEquals(without?.linkAddress, null);
  rcu.close();
});

Deno.test("NeighborTable.set reads each field of the update once", () => {
  using rcu = Rcu.create();
  const table = NeighborTable.open(rcu, "neighbors");
  const reads: string[] = [];
  const found = table.set("10.0.0.1", 1, {
    get linkAddress() {
      reads.push("linkAddress");
      return reads.length > 2 ? "not an address" : "00:00:00:00:00:01";
    },
    get state() {
      reads.push("state");
      return "stale" as const;
    },
  });
  assertEquals(found?.linkAddress, "00:00:00:00:00:01");
  assertEquals(reads, ["linkAddress", "state"]);
});

Deno.test("NeighborTable.delete marks what is referred to as failed, and takes the rest out", () => {
  const { rcu, table, store } = setUp();
  table.set("10.0.0.1", 1, { linkAddress: MAC });
  const held = store.hold(0x0a000001, 1, ticksOf(store.clock));
  assertEquals(table.delete("10.0.0.1", 1), true);
  assertEquals(table.lookup("10.0.0.1", 1)?.state, "failed");
  assertEquals(table.lookup("10.0.0.1", 1)?.linkAddress, null);
  store.release(held);
  assertEquals(table.delete("10.0.0.1", 1), true);
  assertEquals(table.delete("10.0.0.1", 1), false);
  assertEquals(table.size, 0);
  rcu.close();
});

Deno.test("NeighborTable is shared by all threads that open it", () => {
  const { rcu, table } = setUp();
  const other = Rcu.attach(rcu.handle);
  const same = NeighborTable.open(other, "n");
  same.set("10.0.0.1", 1, { linkAddress: MAC });
  assertEquals(table.lookup("10.0.0.1", 1)?.linkAddress, MAC);
  table.set("10.0.0.1", 1, { state: "failed" });
  assertEquals(same.lookup("10.0.0.1", 1)?.state, "failed");
  other.close();
  rcu.close();
});

Deno.test("NeighborTable iterates over every entry once", () => {
  const { rcu, table } = setUp();
  enter(table, 0, 100);
  const found = [...table].map(({ address }) => address).sort();
  const expected = Array.from({ length: 100 }, (_, i) => `0.0.0.${i}`).sort();
  assertEquals(found, expected);
  rcu.close();
});

// Thresholds

Deno.test("NeighborTable forces nothing below the second threshold", () => {
  const { rcu, table, clock } = setUp({ gcThreshold2: 10, gcThreshold3: 20 });
  clock.ms += 3_600_000;
  enter(table, 0, 10);
  assertEquals(table.stats().forcedCollections, 0);
  assertEquals(table.size, 10);
  rcu.close();
});

Deno.test("NeighborTable forces a collection at the second threshold if the last one was more than 5 s ago", () => {
  const { rcu, table, clock } = setUp({ gcThreshold2: 10, gcThreshold3: 20 });
  enter(table, 0, 10);
  enter(table, 10, 11); // forced; nothing is old enough
  assertEquals(table.stats().forcedCollections, 1);
  assertEquals(table.size, 11);
  clock.ms += 5_000;
  enter(table, 11, 12); // not more than 5 s
  assertEquals(table.stats().forcedCollections, 1);
  clock.ms += 10;
  enter(table, 12, 13);
  const stats = table.stats();
  assertEquals(stats.forcedCollections, 2);
  // 12 and the newcomer, down to 10.
  assertEquals(stats.collected, 3);
  assertEquals(stats.entries, 10);
  rcu.close();
});

Deno.test("NeighborTable forces a collection at the third threshold whenever that was", () => {
  const { rcu, table, clock } = setUp({ gcThreshold2: 10, gcThreshold3: 12 });
  enter(table, 0, 12);
  assertEquals(table.stats().forcedCollections, 1);
  table.set(3, 1, { state: "failed" });
  enter(table, 100, 101);
  assertEquals(table.stats().forcedCollections, 2);
  assertEquals(table.lookup(3, 1), undefined);
  assertEquals(table.size, 12);
  clock.ms += 6_000;
  enter(table, 101, 102);
  assertEquals(table.size, 10);
  assertEquals(table.stats().overflows, 0);
  rcu.close();
});

Deno.test("NeighborTable turns a newcomer away only if nothing could be freed", () => {
  const { rcu, table, clock } = setUp({ gcThreshold2: 4, gcThreshold3: 4 });
  enter(table, 0, 4);
  assertEquals(table.resolve(4, 1), undefined);
  assertEquals(table.set(4, 1, { linkAddress: MAC }), undefined);
  assertEquals(table.stats().overflows, 2);
  assertEquals(table.size, 4);
  assertEquals(table.resolve(3, 1)?.state, "incomplete"); // there already
  clock.ms += 5_010;
  enter(table, 4, 5);
  assertEquals(table.stats().overflows, 2);
  rcu.close();
});

Deno.test("NeighborTable never collects what is permanent, referred to, or fresh", () => {
  const { rcu, table, clock, store } = setUp({
    gcThreshold2: 1,
    gcThreshold3: 4,
  });
  table.set(0, 1, { linkAddress: MAC, state: "permanent" });
  const held = store.hold(1, 1, ticksOf(store.clock));
  table.set(1, 1, { state: "failed" });
  clock.ms += 60_000;
  table.set(2, 1, { linkAddress: MAC });
  table.set(3, 1, { state: "failed" });
  enter(table, 4, 5);
  assertEquals([...table].map((n) => n.address).sort(), [
    "0.0.0.0",
    "0.0.0.1",
    "0.0.0.2",
    "0.0.0.4",
  ]);
  assertEquals(table.stats().referenced, 1);
  store.release(held);
  assertEquals(table.stats().referenced, 0);
  enter(table, 5, 6);
  assertEquals(table.lookup(1, 1), undefined);
  rcu.close();
});

Deno.test("NeighborTable.collect does nothing below the first threshold", () => {
  const { rcu, table, clock } = setUp({ gcThreshold1: 4, gcStaleTime: 10_000 });
  enter(table, 0, 3);
  clock.ms += 3_600_000;
  assertEquals(table.collect(), 0);
  enter(table, 3, 4);
  assertEquals(table.collect(), 3);
  assertEquals([...table].map((n) => n.address), ["0.0.0.3"]);
  rcu.close();
});

Deno.test("NeighborTable.collect takes what failed at once, and the rest after the stale time", () => {
  const { rcu, table, clock, store } = setUp({
    gcThreshold1: 0,
    gcStaleTime: 10_000,
  });
  table.set(0, 1, { state: "failed" });
  table.set(1, 1, { linkAddress: MAC });
  table.set(2, 1, { linkAddress: MAC, state: "permanent" });
  const held = store.hold(3, 1, ticksOf(store.clock));
  assertEquals(table.collect(), 1);
  clock.ms += 10_000;
  assertEquals(table.collect(), 0);
  clock.ms += 10;
  assertEquals(table.collect(), 1);
  assertEquals(table.size, 2);
  store.release(held);
  assertEquals(table.collect(), 1);
  rcu.close();
});

Deno.test("NeighborTable lives through a clock that is set back", () => {
  const { rcu, table, clock } = setUp({ gcThreshold1: 0, gcStaleTime: 1_000 });
  enter(table, 0, 2);
  clock.ms -= 3_600_000;
  assertEquals(table.collect(), 0);
  clock.ms += 3_602_000;
  assertEquals(table.collect(), 2);
  rcu.close();
});

// Memory

Deno.test("NeighborTable gives every byte back", async () => {
  const { rcu, table, clock } = setUp({ gcThreshold1: 0, gcStaleTime: 0 });
  const { live } = rcu.memory.audit();
  enter(table, 0, 500);
  for (let i = 0; i < 500; i++) table.set(i, 1, { linkAddress: MAC });
  for (let i = 0; i < 250; i++) table.delete(i, 1);
  clock.ms += 1_000;
  assertEquals(table.collect(), 250);
  await rcu.barrier();
  const audit = rcu.memory.audit();
  assertEquals(audit.live, live);
  assertEquals(audit.deferred, 0);
  rcu.close();
});

Deno.test("NeighborTable survives several threads that enter, change and delete the same entries", async () => {
  const { rcu, table } = setUp({
    gcThreshold1: 0,
    gcThreshold2: 8,
    gcThreshold3: 16,
  });
  const { live } = rcu.memory.audit();
  const wrong = await startNeighborWorkers(rcu, "n", 3);
  assertEquals(wrong, 0);
  const { entries, referenced } = table.stats();
  assertEquals(entries, [...table].length);
  assertEquals(referenced, 0);
  for (const { address, interface: link } of table) table.delete(address, link);
  await rcu.barrier();
  assertEquals(table.size, 0);
  assertEquals(table.stats().referenced, 0);
  const audit = rcu.memory.audit();
  assertEquals(audit.live, live);
  assertEquals(audit.deferred, 0);
  rcu.close();
});

// Arguments

Deno.test("NeighborTable.open names the option that is wrong", () => {
  const rcu = Rcu.create({ capacity: CAPACITY });
  const refuse = (
    options: Record<string, unknown>,
    kind: typeof RangeError | typeof TypeError,
    message: string,
  ) =>
    assertThrows(
      () => NeighborTable.open(rcu, "n", options as NeighborTableOptions),
      kind,
      message,
    );
  const start = "Cannot open a neighbor table as its ";
  refuse({ gcThreshold3: 0 }, RangeError, `${start}gcThreshold3 must be`);
  refuse({ gcThreshold3: 1.5 }, RangeError, "received 1.5");
  refuse({ gcThreshold3: "9" }, TypeError, 'received "9"');
  refuse(
    { gcThreshold2: 2000 },
    RangeError,
    `${start}gcThreshold2 must be an integer from 1 to gcThreshold3 (1024): received 2000`,
  );
  refuse(
    { gcThreshold1: 600 },
    RangeError,
    `${start}gcThreshold1 must be an integer from 0 to gcThreshold2 (512): received 600`,
  );
  refuse({ gcStaleTime: -1 }, RangeError, `${start}gcStaleTime must be`);
  refuse({ gcStaleTime: NaN }, RangeError, "received NaN");
  refuse({ now: 5 }, TypeError, `${start}now must be a function: received 5`);
  rcu.close();
});

Deno.test("NeighborTable.open refuses options other than the first ones, and takes none", () => {
  const { rcu } = setUp({ gcThreshold3: 2048 });
  NeighborTable.open(rcu, "n");
  NeighborTable.open(rcu, "n", { gcThreshold3: 2048 });
  assertThrows(
    () => NeighborTable.open(rcu, "n", { gcThreshold3: 4096 }),
    TypeError,
    'Cannot open "n" with gcThreshold3 4096 as it must be what it was opened with first: 2048',
  );
  assertThrows(
    () => NeighborTable.open(rcu, "n", { gcStaleTime: 50 }),
    TypeError,
    "gcStaleTime 50 as it must be what it was opened with first: 60000",
  );
  rcu.close();
});

Deno.test("NeighborTable.open refuses names that are taken", () => {
  const rcu = Rcu.create({ capacity: CAPACITY });
  Fib.open(rcu, "fib");
  assertThrows(
    () => NeighborTable.open(rcu, "fib"),
    TypeError,
    'Cannot open "fib" as neighbors',
  );
  rcu.close();
});

Deno.test("NeighborTable names the argument that is wrong", () => {
  const { rcu, table } = setUp();
  assertThrows(
    () => table.lookup("10.0.0", 1),
    RangeError,
    'Cannot look up a neighbor as its address must be an IPv4 address, dotted or an unsigned 32-bit integer: received "10.0.0"',
  );
  assertThrows(() => table.resolve(2 ** 32, 1), RangeError, "4294967296");
  assertThrows(() => table.delete(0.5, 1), RangeError, "received 0.5");
  assertThrows(
    () => table.resolve(1, -1),
    RangeError,
    "Cannot resolve a neighbor as its interface must be an integer from 0 to 4294967295: received -1",
  );
  assertThrows(
    () => table.set(1, 1, { linkAddress: "00:1b:21:3c:9d" }),
    RangeError,
    "Cannot set a neighbor as its link address must be six pairs",
  );
  assertThrows(
    () => table.set(1, 1, { state: "gone" as "failed" }),
    TypeError,
    'Cannot set a neighbor as its state must be one of "incomplete", "reachable", "stale", "failed", "permanent": received "gone"',
  );
  assertThrows(
    () => table.set(1, 1, { state: "reachable" }),
    TypeError,
    'Cannot set a neighbor as a "reachable" one must have a link address: received none',
  );
  assertThrows(
    () => table.set(1, 1, undefined as unknown as Record<string, never>),
    TypeError,
    "Cannot set a neighbor as the update must be an object: received undefined",
  );
  assertEquals(table.size, 0);
  rcu.close();
  assertThrows(() => table.lookup(1, 1), Error, "closed");
  assertThrows(() => table.resolve(1, 1), Error, "closed");
  assertThrows(() => table.collect(), Error, "closed");
});
