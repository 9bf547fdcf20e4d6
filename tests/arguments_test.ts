// Bad arguments: one test for each kind that was found to be taken, or refused by a bad error.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  bytes,
  f64,
  Fib,
  json,
  type KeyCodec,
  NeighborTable,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  RouteCache,
  runReclaimer,
  string,
  struct,
  u32,
} from "../mod.ts";

function domain(): Rcu {
  return Rcu.create({ capacity: 2 ** 22, maxReaders: 8, debug: true });
}

/** Acts with bad arguments, and the message of the error that each must be. */
type Refused = [act: (bad: never) => unknown, bad: unknown, message: string];

function assertRefused(refused: Refused[], type: ErrorConstructor): void {
  for (const [act, bad, message] of refused) {
    assertThrows(() => act(bad as never), type, message);
  }
}

function routing(rcu: Rcu) {
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors");
  const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
  return { fib, neighbors, cache };
}

Deno.test("addresses are unsigned wherever they are checked", () => {
  using rcu = domain();
  const { fib, neighbors, cache } = routing(rcu);
  fib.insert("0.0.0.0/0", { gateway: null, interface: 1 });
  const looks: ((address: number) => unknown)[] = [
    (address) => fib.lookup(address),
    (address) => fib.get({ address, length: 32 }),
    (address) => neighbors.lookup(address, 1),
    (address) => neighbors.resolve(address, 1),
    (address) => neighbors.set(address, 1, {}),
    (address) => neighbors.delete(address, 1),
    (destination) => cache.lookup({ destination }),
    (source) => cache.lookup({ destination: 1, source }),
    (destination) => cache.hold({ destination })?.[Symbol.dispose](),
  ];
  for (const look of looks) {
    look(2 ** 32 - 1);
    look(-0);
    for (const bad of [-1, -(2 ** 31), 2 ** 32, 0.5, NaN]) {
      assertThrows(() => look(bad), RangeError, `received ${bad}`);
    }
    for (const bad of [1n, {}, null, [], Symbol("s")]) {
      assertThrows(() => look(bad as never), TypeError, "received ");
    }
  }
  // Unchecked: both say 255.255.255.255.
  assertEquals(
    cache.lookupFields(-1, 0, 0, 0)?.nextHop,
    cache.lookupFields(2 ** 32 - 1, 0, 0, 0)?.nextHop,
  );
});

Deno.test("errors show what they received as it was, and say what of it was wrong", () => {
  using rcu = domain();
  const { fib, neighbors } = routing(rcu);
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  const keyed = RcuMap.open(rcu, "k", { key: u32, value: u32 });
  const route = { gateway: null, interface: 1 };
  const row = struct({ port: u32, at: struct({ name: string, any: json() }) });
  const rows = RcuMap.open(rcu, "rows", { key: u32, value: row });
  const at = { name: "a", any: 1 };
  const u32Must = "as u32 as it must be an integer from 0 to 4294967295";
  const prefixMust = "Cannot use a prefix as its";
  const routeMust = "Cannot use a route as its";
  assertRefused([
    [(bad) => map.set("a", bad), 1n, `a value ${u32Must}: received 1n`],
    [(bad) => keyed.set(bad, 1), "1", `a key ${u32Must}: received "1"`],
    [(bad) => keyed.update(bad, () => 1), "1", `a key ${u32Must}`],
    [(bad) => keyed.getOrInsert(bad, 1), "1", `a key ${u32Must}`],
    [(bad) => keyed.delete(bad), "1", `a key ${u32Must}`],
    [(bad) => keyed.replaceAll([[bad, 1]]), "1", `a key ${u32Must}`],
    [(bad) => keyed.replaceAll([[1, bad]]), "1", `a value ${u32Must}`],
    [(bad) => map.set(bad, 1), 5, "a key as string as it must be a string: re"],
    [
      (bad) => rows.set(1, { port: bad, at }),
      "80",
      `Cannot use the field "port" of a value ${u32Must}: received "80"`,
    ],
    [
      (bad) => rows.set(1, { port: 1, at: { ...at, name: bad } }),
      5,
      'the field "at.name" of a value as string as it must be a string: re',
    ],
    [
      (bad) => rows.set(1, { port: 1, at: { ...at, any: bad } }),
      5n,
      'the field "at.any" of a value as json as JSON.stringify must take it: received 5n (',
    ],
    [(bad) => fib.lookup(bad), 5n, "received 5n"],
    [
      (bad) => fib.insert({ address: bad, length: 8 }, route),
      "10.0.0.0",
      `${prefixMust} address must be an integer from 0 to 4294967295: received "10.0.0.0"`,
    ],
    [
      (bad) => fib.insert({ address: 0, length: bad }, route),
      "8",
      `${prefixMust} length must be an integer from 0 to 32: received "8"`,
    ],
    [(bad) => fib.insert(bad, route), [], `${prefixMust} address must be an`],
    [(bad) => fib.insert(bad, route), 10, "must be a string or have address"],
    [
      (mtu) => fib.insert("10.0.0.0/8", { ...route, mtu }),
      "1500",
      `${routeMust} mtu must be a number: received "1500"`,
    ],
    [
      (bad) => fib.insert("10.0.0.0/8", { ...route, interface: bad }),
      "eth0",
      `${routeMust} interface must be a number: received "eth0"`,
    ],
    [
      (gateway) => fib.insert("10.0.0.0/8", { ...route, gateway }),
      ["10.0.0.1"],
      "received an object of type Array",
    ],
    [(bad) => fib.insert("10.0.0.0/8", bad), "eth0", 'received "eth0"'],
    [(bad) => Fib.open(rcu, bad), {}, "received an object of type Object"],
    [
      (bad) => fib.load([bad]),
      "10.0.0.0/8",
      'Cannot load a table as each must be a pair of prefix and route: received "10.0.0.0/8"',
    ],
    [(bad) => neighbors.lookup(1, bad), 1n, "received 1n"],
    [(bad) => Rcu.attach(bad), "rcu", 'received "rcu"'],
    [(bad) => rcu.callRcu(bad), 1n, "received 1n"],
    [(capacity) => Rcu.create({ capacity }), 4n, "received 4n"],
  ], TypeError);
  assertRefused([
    [(bad) => rcu.memory.allocate(bad), 4n, "received 4n"],
    [(bad) => rcu.memory.free(bad), 4n, "received 4n"],
    [(bad) => rcu.poll(bad), 4n, "received 4n"],
    [
      (gcThreshold1) => NeighborTable.open(rcu, "t", { gcThreshold1 }),
      1000,
      "as its gcThreshold1 must be an integer from 0 to gcThreshold2 (512): received 1000",
    ],
    [(bad) => rows.set(1, { port: bad, at }), -1, 'the field "port" of a'],
  ], RangeError);
  assertEquals([map.size, keyed.size, rows.size, fib.size], [0, 0, 0, 0]);
});

Deno.test("what is no function, no entries, no signal and no object is refused by an error of this package", async () => {
  using rcu = domain();
  const { fib, cache } = routing(rcu);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const any = RcuCell.open(rcu, "j", { value: json<unknown>(), initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 }).set("a", 1);
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  assertRefused([
    [(bad) => cell.update(bad), 5, "Cannot update a cell as the callback must"],
    [(bad) => map.update("a", bad), undefined, "Cannot update an entry as the"],
    [
      (bad) => map.getOrInsertComputed("b", bad),
      5,
      "Cannot insert an entry as",
    ],
    [
      (bad) => map.getOrInsertComputed("a", bad),
      5,
      "Cannot insert an entry as",
    ],
    [
      (bad) => rcu.read(bad),
      5,
      "Cannot read as the section must be a function",
    ],
    [(bad) => rcu.callRcu(bad), 5, "Cannot call back as the callback must be"],
    [
      (bad) => map.forEach(bad),
      5,
      "Cannot call for each entry as the callback",
    ],
    [
      (bad) => map.replaceAll(bad),
      {},
      "as the entries must be iterable: received an object of type Object",
    ],
    [
      (bad) => map.replaceAll(bad),
      undefined,
      "as the entries must be iterable",
    ],
    [(bad) => fib.load(bad), {}, "Cannot load a table as the entries must be"],
    [
      (bad) => Rcu.create(bad),
      null,
      "Cannot create a domain as its options mus",
    ],
    [
      (bad) => Rcu.attach(rcu.handle, bad),
      "me",
      "as its options must be an obje",
    ],
    [
      (bad) => rcu.synchronizeSync(bad),
      null,
      "as its options must be an object",
    ],
    [
      (bad) => struct(bad),
      undefined,
      "Cannot define a struct as its fields mus",
    ],
    [
      (bad) => cache.lookup(bad),
      undefined,
      "Cannot look up a route as its key",
    ],
    [
      (bad) => cache.lookup(bad),
      "10.0.0.1",
      'must be an object: received "10.0',
    ],
    [(bad) => cache.hold(bad), null, "Cannot hold a route as its key must be"],
    [
      (bad) => any.set(bad),
      1n,
      "Cannot use a value as json as JSON.stringify m",
    ],
    [(bad) => any.set(bad), cyclic, "received an object of type Array (Conver"],
  ], TypeError);
  const mine = new RangeError("mine");
  const rethrown = assertThrows(() =>
    any.set({
      toJSON() {
        throw mine;
      },
    })
  );
  assert(rethrown === mine);
  assertThrows(
    () =>
      rcu.read(() => {
        throw mine;
      }),
    RangeError,
    "mine",
  );
  const signal = new AbortController() as never;
  const waits: (() => Promise<unknown>)[] = [
    () => cell.waitForChange({ signal }),
    () => rcu.synchronize({ signal }),
    () => rcu.barrier({ signal }),
  ];
  for (const wait of waits) {
    await assertRejects(wait, TypeError, "the signal must be an AbortSignal");
  }
  for (const wait of ["synchronize", "barrier"] as const) {
    await assertRejects(() => rcu[wait](null as never), TypeError, "options");
  }
  await assertRejects(() => cell.waitForChange(5 as never), TypeError, "optio");
});

Deno.test("what belongs to its thread cannot be posted, and the error says what can", () => {
  using rcu = domain();
  const { fib, neighbors, cache } = routing(rcu);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  const posted: [unknown, string][] = [
    [rcu, "an Rcu, of which only the handle, rcu.handle, is for other threads"],
    [map, "an RcuMap, which other threads open by its name"],
    [cell, "an RcuCell, which other threads open by its name"],
    [fib, "a Fib, which other threads open by its name"],
    [neighbors, "a NeighborTable, which other threads open by its name"],
    [cache, "a RouteCache, which other threads open by its name"],
  ];
  const { port1, port2 } = new MessageChannel();
  for (const [what, message] of posted) {
    assertThrows(() => port1.postMessage(what), DOMException, message);
    assert(!Deno.inspect(what).includes("Symbol("), message);
    assertEquals(JSON.stringify(what), "{}");
  }
  assertThrows(
    () => port1.postMessage(rcu.memory),
    DOMException,
    "the memory of an Rcu, of which only the handle, rcu.handle, is for",
  );
  port1.close();
  port2.close();
});

Deno.test("options that do not exist are refused with those that do", async () => {
  using rcu = domain();
  const { fib, neighbors } = routing(rcu);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const bad = { maxReader: 3 } as never as Record<never, never>;
  const must =
    /^Cannot .+ as its options must be among .+: received "maxReader"$/;
  const acts: (() => unknown)[] = [
    () => Rcu.create(bad),
    () => Rcu.attach(rcu.handle, bad),
    () => rcu.synchronize(bad),
    () => rcu.synchronizeSync(bad),
    () => rcu.barrier(bad),
    () => cell.waitForChange(bad),
    () => RcuCell.open(rcu, "c", { value: u32, ...bad }),
    () => RcuMap.open(rcu, "m", { key: u32, value: u32, ...bad }),
    () => RcuSortedMap.open(rcu, "s", { key: u32, value: u32, ...bad }),
    () => runReclaimer(rcu.handle, bad),
    () => NeighborTable.open(rcu, "neighbors", bad),
    () => RouteCache.open(rcu, "routes", { fib, neighbors, ...bad }),
  ];
  for (const act of acts) {
    const { message } = await assertRejects(
      async () => await act(),
      TypeError,
    );
    assert(must.test(message), message);
  }
  assertThrows(
    () => Rcu.create(bad),
    TypeError,
    "Cannot create a domain as its options must be among capacity, maxReaders, ",
  );
  assertEquals(rcu.stats().readers.length, 1);
});

Deno.test("a bad key is called a key by whatever takes one, also where it only reads", () => {
  using rcu = domain();
  const bad = 5 as never;
  for (const Kind of [RcuMap, RcuSortedMap]) {
    const maps = [string, bytes, u32, f64].map((key) =>
      Kind.open(rcu, `${Kind.name} of ${key.schema}`, {
        key: key as KeyCodec<unknown>,
        value: u32,
      })
    );
    for (const map of maps) {
      const wrong = Symbol("no key");
      const acts: (() => unknown)[] = [
        () => map.get(wrong),
        () => map.has(wrong),
        () => rcu.read(() => map.view(wrong)),
        () => map.set(wrong, 1),
        () => map.delete(wrong),
        () => map.getOrInsert(wrong, 1),
        () => map.getOrInsertComputed(wrong, () => 1),
        () => map.update(wrong, () => 1),
        () => map.replaceAll([[wrong, 1]]),
      ];
      if (map instanceof RcuSortedMap) {
        acts.push(
          () => map.floor(wrong),
          () => map.ceiling(wrong),
          () => [...map.range(wrong)],
          () => [...map.range(undefined, wrong)],
        );
      }
      for (const act of acts) {
        assertThrows(act, TypeError, "Cannot use a key as ", String(act));
      }
    }
    const [texts] = maps;
    assertThrows(
      () => texts.update("a", bad),
      TypeError,
      "Cannot update an entry as the callback must be a function: received 5",
    );
  }
});
