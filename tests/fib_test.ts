import {
  assert,
  assertEquals,
  assertFalse,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { stub } from "@std/testing/mock";
import fc from "fast-check";
import { Rcu, RcuMap, RcuMemoryError, u32 } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { Fib, lookupOf } from "../src/routing/fib.ts";
import { RECORDS } from "../src/routing/_fib_trie.ts";
import type { Prefix, Route } from "../src/routing/route.ts";
import { assertLists, withDomain } from "./_audit.ts";
import { Oracle, type OraclePrefix, prefixOf, routeOf } from "./_fib_oracle.ts";
import { keptBytes } from "./_fib_memory.ts";
import { againstReaders } from "./_fib_readers.ts";
import { steps } from "./_fib_steps.ts";
import { atEveryStep } from "./_steps.ts";
import type { WriterTask } from "./_fib_tasks.ts";
import { withWorkers } from "./_workers.ts";

const A = routeOf(1);
const B = routeOf(2);
const C = routeOf(3);

/** How many routes a Fib counts references to. */
function recordsOf(fib: Fib): number {
  const { fib: at, membership } = lookupOf(fib, "test");
  return membership.words[at + RECORDS];
}

/** Runs a scenario with a Fib, and asserts that nothing of what it held is left. */
async function withFib(
  use: (fib: Fib, rcu: Rcu) => void | Promise<void>,
  options = {},
): Promise<void> {
  let fib: Fib;
  await withDomain(
    { debug: true, ...options },
    async (rcu) => {
      await use(fib, rcu);
      fib.load([]);
      assertEquals(fib.size, 0);
      return keptBytes(rcu, fib);
    },
    (rcu) => fib = Fib.open(rcu, "fib"),
  );
}

Deno.test("an empty table has no route for any address", async () => {
  await withFib((fib) => {
    assertEquals(fib.size, 0);
    assertEquals(fib.lookup(0), undefined);
    assertEquals(fib.lookup("255.255.255.255"), undefined);
    assertEquals(fib.get("0.0.0.0/0"), undefined);
    assertFalse(fib.delete("0.0.0.0/0"));
    assertEquals([...fib], []);
  });
});

Deno.test("the longest prefix wins, whatever the order of insertion", async () => {
  const prefixes: [string, Route][] = [0, 1, 8, 15, 16, 17, 23, 24, 25, 31, 32]
    .map((length) => [prefixOf(0x0a141e29, length).text, routeOf(length)]);
  await withFib((fib) => {
    for (const order of [prefixes, prefixes.toReversed()]) {
      for (const [prefix, route] of order) fib.insert(prefix, route);
      for (let n = prefixes.length - 1; n >= 0; n--) {
        assertEquals(fib.size, n + 1);
        assertEquals(fib.lookup("10.20.30.41"), prefixes[n][1]);
        assert(fib.delete(prefixes[n][0]));
      }
      assertEquals(fib.lookup("10.20.30.41"), undefined);
    }
  });
});

Deno.test("a prefix holds its first and its last address and not the ones beside", async () => {
  for (let length = 1; length <= 32; length++) {
    const size = 2 ** (32 - length);
    const first = prefixOf(0xa5a5a5a5, length).address;
    await withFib((fib) => {
      fib.insert({ address: first, length }, A);
      assertEquals(fib.lookup(first), A);
      assertEquals(fib.lookup(first + size - 1), A);
      assertEquals(fib.lookup(first - 1), undefined);
      if (first + size < 2 ** 32) {
        assertEquals(fib.lookup(first + size), undefined);
      }
    });
  }
});

Deno.test("insert() of a prefix that is there replaces its route", async () => {
  await withFib((fib) => {
    for (const prefix of ["10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32"]) {
      fib.insert(prefix, A);
      fib.insert(prefix, B);
      assertEquals(fib.get(prefix), B);
    }
    assertEquals(fib.size, 3);
    assertEquals(fib.lookup("10.1.2.3"), B);
  });
});

Deno.test("a prefix that longer ones hide comes to light when they go", async () => {
  await withFib((fib) => {
    fib.insert("10.0.0.0/31", A);
    fib.insert("10.0.0.0/32", B);
    fib.insert("10.0.0.1/32", C);
    assertEquals(fib.get("10.0.0.0/31"), A);
    assert(fib.delete("10.0.0.1/32"));
    assertEquals(fib.lookup("10.0.0.1"), A);
    assertEquals(fib.lookup("10.0.0.0"), B);
  });
});

Deno.test("a short prefix shows through wherever longer ones leave a gap", async () => {
  await withFib((fib) => {
    fib.insert("10.1.2.0/25", B);
    fib.insert("10.1.3.0/24", C);
    for (const short of ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16"]) {
      fib.insert(short, A);
      assertEquals(fib.lookup("10.1.2.1"), B);
      assertEquals(fib.lookup("10.1.2.129"), A);
      assertEquals(fib.lookup("10.1.3.1"), C);
      assertEquals(fib.lookup("10.1.4.1"), A);
      assert(fib.delete(short));
      assertEquals(fib.lookup("10.1.2.129"), undefined);
      assertEquals(fib.lookup("10.1.4.1"), undefined);
    }
  });
});

Deno.test("a route comes back with the fields that it had and no others, frozen", async () => {
  await withFib((fib) => {
    const routes: Route[] = [
      { gateway: null, interface: 0 },
      { gateway: "0.0.0.0", interface: 0 },
      { gateway: "255.255.255.255", interface: 2 ** 32 - 1 },
      { gateway: null, interface: 1, metric: 0 },
      { gateway: null, interface: 1, metric: 2 ** 32 - 1, mtu: 68 },
      { gateway: null, interface: 1, mtu: 65536 },
    ];
    for (const [i, route] of routes.entries()) {
      fib.insert({ address: i * 256, length: 24 }, route);
    }
    for (const [i, route] of routes.entries()) {
      const found = fib.lookup(i * 256 + 1)!;
      assertEquals(found, route);
      assertEquals(Object.keys(found).sort(), Object.keys(route).sort());
      assert(Object.isFrozen(found));
    }
  });
});

Deno.test("lookup() returns one object for a route until the route is gone", async () => {
  await withFib(async (fib, rcu) => {
    fib.insert("10.0.0.0/8", A);
    fib.insert("11.0.0.0/8", { ...A });
    const found = fib.lookup("10.0.0.1");
    assertStrictEquals(fib.lookup("11.0.0.1"), found);
    fib.delete("10.0.0.0/8");
    assertStrictEquals(fib.lookup("11.0.0.1"), found);
    fib.delete("11.0.0.0/8");
    await rcu.barrier();
    fib.insert("10.0.0.0/8", A);
    assertEquals(fib.lookup("10.0.0.1"), found);
    assertNotStrictEquals(fib.lookup("10.0.0.1"), found);
  });
});

Deno.test("a route is found right when its record lies where another one was", async () => {
  await withFib(async (fib, rcu) => {
    const lookup = lookupOf(fib, "test");
    const places = new Set<number>();
    for (let i = 0; i < 1000; i++) {
      fib.insert("10.0.0.0/8", routeOf(i));
      places.add(lookup.lookupRoute(0x0a000001));
      if (i % 7 === 0) assertEquals(fib.lookup("10.0.0.1"), routeOf(i));
      // Now and then more records go than the log of recycled ones holds.
      if (i % 100 > 50 || i > 700) await rcu.barrier();
    }
    assert(places.size < 1000, "no record was where another one had been");
    assertEquals(fib.lookup("10.0.0.1"), routeOf(999));
  });
});

for (const changes of [3, 300]) {
  Deno.test(`a lookup that ends early after ${changes} changes leaves nothing out of date behind`, async () => {
    await withFib((fib, rcu) => {
      let now = 0;
      const change = () => {
        fib.insert("10.0.0.0/8", routeOf(++now));
        rcu.synchronizeSync();
      };
      // Where a stack overflow may end it: at any call.
      for (let at = 0, ended = false; !ended; at++) {
        for (let i = 0; i < 10; i++) {
          change();
          fib.lookup("10.0.0.1");
        }
        for (let i = 0; i < changes; i++) change();
        ended = true;
        try {
          atEveryStep(() => fib.lookup("10.0.0.1"), (step) => {
            if (step !== at) return;
            ended = false;
            throw new RangeError("Maximum call stack size exceeded");
          });
        } catch (error) {
          assert(error instanceof RangeError, `${error}`);
        }
        assertEquals(fib.lookup("10.0.0.1"), routeOf(now));
      }
    });
  });
}

Deno.test("many routes are kept apart", async () => {
  await withFib((fib) => {
    const count = 3000;
    for (let i = 0; i < count; i++) {
      fib.insert({ address: i * 2 ** 12, length: 20 }, routeOf(i));
    }
    for (let i = 0; i < count; i++) {
      assertEquals(fib.lookup(i * 2 ** 12 + 1), routeOf(i));
    }
    for (let i = 0; i < count; i += 2) {
      assert(fib.delete({ address: i * 2 ** 12, length: 20 }));
    }
    for (let i = 0; i < count; i++) {
      const route = i % 2 === 0 ? undefined : routeOf(i);
      assertEquals(fib.lookup(i * 2 ** 12 + 1), route);
    }
  }, { capacity: 2 ** 23 });
});

Deno.test("load() replaces the whole table", async () => {
  await withFib((fib) => {
    fib.insert("10.0.0.0/8", A);
    fib.insert("12.1.2.3/32", A);
    fib.load([
      ["11.0.0.0/8", B],
      [{ address: 0x0b010203, length: 32 }, C],
    ]);
    assertEquals(fib.size, 2);
    assertEquals(fib.lookup("10.0.0.1"), undefined);
    assertEquals(fib.lookup("12.1.2.3"), undefined);
    assertEquals(fib.lookup("11.1.2.3"), C);
    assertEquals(fib.lookup("11.1.2.4"), B);
  });
});

Deno.test("load() takes entries in any order, and the last of several with one prefix", async () => {
  await withFib((fib) => {
    fib.load([
      ["10.1.0.0/16", A],
      ["10.0.0.0/8", A],
      ["10.1.0.0/16", B],
      ["0.0.0.0/0", C],
      ["10.1.0.0/16", C],
      ["10.0.0.0/16", B],
    ]);
    assertEquals([...fib], [
      ["0.0.0.0/0", C],
      ["10.0.0.0/8", A],
      ["10.0.0.0/16", B],
      ["10.1.0.0/16", C],
    ]);
  });
});

Deno.test("load() reads a route when its entry comes, not later", async () => {
  await withFib((fib) => {
    function* entries(): Generator<[string, Route]> {
      const route = { gateway: null, interface: 1 };
      yield ["10.0.0.0/8", route];
      route.interface = 2;
      yield ["11.0.0.0/8", route];
    }
    fib.load(entries());
    assertEquals(fib.lookup("10.0.0.0")?.interface, 1);
    assertEquals(fib.lookup("11.0.0.0")?.interface, 2);
  });
});

Deno.test("load() that fails leaves the table and the memory as they were", async () => {
  await withFib(async (fib, rcu) => {
    fib.insert("10.0.0.0/8", A);
    await rcu.barrier();
    const { live } = rcu.memory.audit();
    assertThrows(() => fib.load([["11.0.0.0/8", B], ["11.0.0.1/8", B]]));
    assertThrows(() =>
      fib.load(function* (): Generator<[string, Route]> {
        yield ["11.0.0.0/24", B];
        throw new Error("no more");
      }())
    );
    assertEquals(rcu.memory.audit().live, live);
    assertEquals([...fib], [["10.0.0.0/8", A]]);
  });
});

Deno.test("load() whose entries close the Rcu frees all of it, and throws what they threw", async () => {
  await withFib(async (fib, rcu) => {
    fib.insert("10.0.0.0/8", A);
    await rcu.barrier();
    const { live } = rcu.memory.audit();
    const load = (end: (member: Rcu) => void) => {
      const member = Rcu.attach(rcu.handle);
      Fib.open(member, "fib").load(function* (): Generator<[string, Route]> {
        for (let i = 0; i < 20; i++) yield [`10.${i}.0.0/16`, routeOf(i)];
        end(member);
      }());
    };
    assertThrows(() => load((member) => member.close()), Error, "closed");
    const own = new Error("my own");
    try {
      load((member) => {
        member.close();
        throw own;
      });
      assert(false);
    } catch (error) {
      assertStrictEquals(error, own);
    }
    await rcu.barrier();
    assertEquals(rcu.memory.audit().live, live);
    assertEquals(recordsOf(fib), 1);
  });
});

Deno.test("insert() in whose middle a callback closes the Rcu lets go of its route", async () => {
  await withFib((fib, rcu) => {
    fib.insert("10.1.2.0/24", A);
    const member = Rcu.attach(rcu.handle);
    const m = membershipOf(member, "test");
    const theirs = Fib.open(member, "fib");
    using stubs = new DisposableStack();
    stubs.use(stub(m.heap, "tryAllocate", () => 0));
    stubs.use(stub(m, "allocate", () => {
      member.close();
      m.assertOpen("allocate");
      return 0;
    }));
    assertThrows(() => theirs.insert("10.1.2.3/32", B), Error, "allocate");
    assertEquals([fib.size, recordsOf(fib)], [1, 1]);
  });
});

Deno.test("an insertion that fails reports its own error, whatever becomes of the lock", async () => {
  await withFib((fib, rcu) => {
    const m = membershipOf(rcu, "test");
    const own = new Error("no memory, say");
    using stubs = new DisposableStack();
    stubs.use(stub(m.heap, "tryAllocate", () => {
      stubs.use(stub(m, "lockToCleanUp", () => {
        throw new Error("its holder is stuck");
      }));
      throw own;
    }));
    try {
      fib.insert("10.1.2.3/32", A);
      assert(false);
    } catch (error) {
      assertStrictEquals(error, own);
    }
  });
});

// Numbers and their memory

/** Lets another member pass a quiescent state whenever this thread naps. */
function passInNaps(other: Rcu): Disposable {
  return stub(Atomics, "wait", () => {
    other.quiescentState();
    return "timed-out";
  });
}

function fill(rcu: Rcu): () => void {
  const taken: number[] = [];
  for (let size = 2 ** 16; size >= 4; size >>= 1) {
    try {
      while (true) taken.push(rcu.memory.allocate(size));
    } catch (error) {
      assert(error instanceof RcuMemoryError);
    }
  }
  return () => taken.splice(0).forEach((block) => rcu.memory.free(block));
}

Deno.test("in full memory a route waits for the number of an earlier one, beside readers that pass", async () => {
  await withFib((fib, rcu) => {
    for (let i = 0; i < 32; i++) fib.insert(`10.${i}.0.0/16`, routeOf(i));
    rcu.barrierSync();
    const empty = fill(rcu);
    using other = Rcu.attach(rcu.handle);
    const theirs = Fib.open(other, "fib");
    {
      using _naps = passInNaps(other);
      for (let i = 0; i < 1000; i++) {
        theirs.lookup("10.0.0.1");
        fib.insert(`10.${i % 32}.0.0/16`, routeOf(100 + i));
      }
    }
    assertEquals(fib.lookup("10.7.0.1"), routeOf(100 + 999));
    empty();
  }, { capacity: 2 ** 21 });
});

Deno.test("in full memory a route that waits in vain for a number says who is in the way", async () => {
  await withFib((fib, rcu) => {
    for (let i = 0; i < 32; i++) fib.insert(`10.${i}.0.0/16`, routeOf(i));
    rcu.barrierSync();
    using other = Rcu.attach(rcu.handle, { name: "slow" });
    const empty = fill(rcu);
    const replace = () => {
      for (let i = 0; i < 200; i++) {
        fib.insert(`10.${i % 32}.0.0/16`, routeOf(100 + i));
      }
    };
    {
      using _section = other.readLock();
      const { size } = fib;
      assertThrows(replace, RcuMemoryError, `("slow") holds the grace period`);
      assertEquals(fib.size, size);
    }
    other.threadOffline();
    replace();
    empty();
  }, { capacity: 2 ** 21, stallTimeout: 50 });
});

Deno.test("beside readers that pass, replacing a route takes no more and more memory", async () => {
  await withFib((fib, rcu) => {
    fib.insert("10.0.0.0/16", A);
    rcu.barrierSync();
    const { live } = rcu.memory.audit();
    using other = Rcu.attach(rcu.handle);
    const theirs = Fib.open(other, "fib");
    using _naps = passInNaps(other);
    for (let i = 0; i < 5000; i++) {
      theirs.lookup("10.0.0.1");
      fib.insert("10.0.0.0/16", routeOf(i));
    }
    assertEquals(rcu.memory.audit().live, live);
  });
});

Deno.test("what routes have taken beside a section that lasts is given back after it, and not before", async () => {
  await withFib((fib, rcu) => {
    fib.insert("10.0.0.0/16", A);
    rcu.barrierSync();
    const { live } = rcu.memory.audit();
    using other = Rcu.attach(rcu.handle);
    const theirs = Fib.open(other, "fib");
    const lookup = lookupOf(theirs, "test");
    fib.load(
      Array.from(
        { length: 3000 },
        (_, i): [Prefix, Route] => [
          { address: i * 2 ** 16, length: 16 },
          routeOf(i),
        ],
      ),
    );
    {
      using _section = other.readLock();
      const number = lookup.lookupRoute(2999 * 2 ** 16);
      assert(number > 2048);
      for (let i = 0; i < 5000; i++) fib.insert("10.0.0.0/16", routeOf(i));
      fib.load([["10.0.0.0/16", A]]);
      assert(rcu.memory.audit().live > live);
      // Not what was freed, which is poisoned.
      assertEquals(lookup.routeAt(number), routeOf(2999));
    }
    other.threadOffline();
    rcu.barrierSync();
    for (let i = 0; i < 5; i++) fib.insert("10.0.0.0/16", routeOf(i));
    rcu.barrierSync();
    assertEquals(rcu.memory.audit().live, live);
    assertEquals(theirs.lookup("10.0.0.1"), routeOf(4));
  }, { capacity: 2 ** 23 });
});

Deno.test("a load() that fails for want of memory gives it all back", async () => {
  await withFib((fib, rcu) => {
    fib.insert("10.0.0.0/8", A);
    rcu.barrierSync();
    const { live } = rcu.memory.audit();
    const entries = function* (): Generator<[Prefix, Route]> {
      for (let i = 0; i < 60_000; i++) {
        yield [{ address: i * 2 ** 16 + 1, length: 32 }, routeOf(i)];
      }
    };
    assertThrows(() => fib.load(entries()), RcuMemoryError);
    assertEquals(rcu.memory.audit().live, live);
    assertEquals(fib.lookup("10.0.0.1"), A);
  });
});

Deno.test("numbers are found right while their memory comes and goes", async () => {
  await withFib((fib, rcu) => {
    using other = Rcu.attach(rcu.handle);
    const theirs = Fib.open(other, "fib");
    for (let round = 0; round < 30; round++) {
      const count = [1, 40, 200, 700][round % 4];
      const route = (i: number) => routeOf(1000 * round + i);
      fib.load(
        Array.from({ length: count }, (_, i): [Prefix, Route] => [
          { address: i * 2 ** 16, length: 16 },
          route(i),
        ]),
      );
      for (let i = 0; i < count; i++) {
        assertEquals(theirs.lookup(i * 2 ** 16), route(i));
        assertEquals(fib.lookup(i * 2 ** 16 + 9), route(i));
      }
      other.threadOffline();
      assertEquals(recordsOf(fib), count);
    }
  });
});

Deno.test("the entries come out in order of address, then length", async () => {
  await withFib((fib) => {
    const texts = [
      "0.0.0.0/0",
      "0.0.0.0/32",
      "9.255.255.255/32",
      "10.0.0.0/8",
      "10.0.0.0/16",
      "10.0.0.0/17",
      "10.0.0.0/24",
      "10.0.0.0/25",
      "10.0.0.128/25",
      "10.0.1.0/24",
      "10.128.0.0/9",
      "255.255.255.255/32",
    ];
    for (const text of texts.toReversed()) fib.insert(text, A);
    assertEquals([...fib].map(([prefix]) => prefix), texts);
    for (const text of texts) assertEquals(fib.get(text), A);
  });
});

Deno.test("the entries can be changed while they are listed", async () => {
  await withFib((fib) => {
    for (let i = 0; i < 64; i++) fib.insert(`${i}.0.0.0/8`, A);
    let listed = 0;
    for (const [prefix] of fib) {
      assert(fib.delete(prefix));
      listed++;
    }
    assertEquals(listed, 64);
  });
});

Deno.test("a table agrees with a search of all prefixes, whatever is done to it", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  const fib = Fib.open(rcu, "fib");
  const { live } = rcu.memory.audit();
  await fc.assert(fc.asyncProperty(steps, async (steps) => {
    const oracle = new Oracle();
    const touched = new Set<number>([0, 2 ** 32 - 1]);
    const touch = ({ address, length }: OraclePrefix) => {
      const end = address + 2 ** (32 - length);
      for (const at of [address - 1, address, end - 1, end]) {
        if (at >= 0 && at < 2 ** 32) touched.add(at);
      }
    };
    for (const step of steps) {
      if (step.do === "insert") {
        touch(step.prefix);
        fib.insert(step.prefix.text, step.route);
        oracle.insert(step.prefix, step.route);
      } else if (step.do === "delete") {
        touch(step.prefix);
        const { address, length } = step.prefix;
        assertEquals(
          fib.delete({ address, length }),
          oracle.delete(step.prefix),
        );
      } else if (step.do === "deleteSome") {
        const entries = oracle.entries();
        if (entries.length === 0) continue;
        const [text] = entries[step.nth % entries.length];
        const [address, length] = text.split("/");
        const octets = address.split(".").map(Number);
        const number = octets.reduce((sum, octet) => sum * 256 + octet, 0);
        assert(oracle.delete(prefixOf(number, Number(length))));
        assert(fib.delete(text));
      } else {
        for (const [prefix] of step.entries) touch(prefix);
        fib.load(step.entries.map(([prefix, route]) => [prefix.text, route]));
        oracle.load(step.entries);
      }
      assertEquals(fib.size, oracle.size);
      for (const address of [...touched].slice(-8)) {
        assertEquals(fib.lookup(address), oracle.lookup(address));
      }
    }
    for (const address of touched) {
      assertEquals(fib.lookup(address), oracle.lookup(address));
    }
    assertEquals([...fib], oracle.entries());
    fib.load([]);
    await rcu.barrier();
    assertEquals(rcu.memory.audit().live, live);
  }));
  assertLists(rcu.memory.words);
});

Deno.test("deleting everything one by one leaves no node behind", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 23, debug: true });
  const fib = Fib.open(rcu, "fib");
  const prefixes: Prefix[] = [];
  for (let i = 0; i < 500; i++) {
    const address = Math.imul(i, 0x9e3779b1) >>> 0;
    const { address: first, length } = prefixOf(address, 17 + i % 16);
    prefixes.push({ address: first, length });
  }
  const fill = async () => {
    for (const [i, prefix] of prefixes.entries()) {
      fib.insert(prefix, routeOf(i));
    }
    for (const prefix of prefixes) fib.delete(prefix);
    await rcu.barrier();
    return rcu.memory.audit().live;
  };
  // The hash table of routes keeps its size.
  const live = await fill();
  assertEquals(await fill(), live);
  assertEquals(fib.size, 0);
});

Deno.test("an update that does not fit leaves the table as it was", async () => {
  // Room for two roots or so, and not for the third.
  await withFib((fib, rcu) => {
    fib.insert("10.1.2.0/24", A);
    const taken: number[] = [];
    const fill = () => {
      for (let size = 2 ** 16; size >= 4; size >>= 1) {
        try {
          while (true) taken.push(rcu.memory.allocate(size));
        } catch (error) {
          assert(error instanceof RcuMemoryError);
        }
      }
    };
    fill();
    const audit = rcu.memory.audit();
    const entries = [...fib];
    for (const prefix of ["10.1.2.128/25", "10.0.0.0/8", "11.1.1.0/24"]) {
      assertThrows(() => fib.insert(prefix, B), RcuMemoryError);
    }
    assertThrows(() => fib.load([["0.0.0.0/0", B]]), RcuMemoryError);
    assertEquals([...fib], entries);
    assertEquals(rcu.memory.audit(), audit);
    assertEquals(fib.lookup("10.1.2.200"), A);
    for (const block of taken) rcu.memory.free(block);
    fib.insert("10.1.2.128/25", B);
    assertEquals(fib.lookup("10.1.2.200"), B);
  }, { capacity: 2 ** 21 });
});

Deno.test("updates wait for the memory of earlier ones where it is short", async () => {
  // Each replaces the root, of which there is room for few.
  await withFib((fib) => {
    fib.insert("10.1.2.0/24", A);
    for (let i = 0; i < 200; i++) {
      fib.insert("0.0.0.0/0", routeOf(i));
      assertEquals(fib.lookup("9.9.9.9"), routeOf(i));
      assertEquals(fib.lookup("10.1.0.0"), routeOf(i));
      assertEquals(fib.lookup("10.1.2.0"), A);
    }
  }, { capacity: 2 ** 21, highWater: 100_000 });
});

Deno.test("inside a read section an update that would have to wait for memory throws", async () => {
  await withFib((fib, rcu) => {
    rcu.read(() => {
      assertThrows(
        () => {
          for (let i = 0; i < 200; i++) fib.insert("0.0.0.0/0", routeOf(i));
        },
        RcuMemoryError,
        "inside a read section",
      );
      const metric = fib.lookup("9.9.9.9")!.metric!;
      assertEquals(fib.get("0.0.0.0/0"), routeOf(metric));
    });
    fib.insert("0.0.0.0/0", A);
  }, { capacity: 2 ** 21 });
});

Deno.test("a callback may update the table whose update waits for memory", async () => {
  await withFib((fib, rcu) => {
    let inside = 0;
    for (let i = 0; i < 100; i++) {
      rcu.callRcu(() => {
        fib.insert(`10.0.${inside++}.0/24`, A);
      });
      fib.insert("0.0.0.0/0", routeOf(i));
    }
    rcu.barrierSync();
    assertEquals(inside, 100);
    assertEquals(fib.size, 101);
  }, { capacity: 2 ** 21 });
});

Deno.test("the generation moves with every change of an answer", async () => {
  await withFib((fib) => {
    const lookup = lookupOf(fib, "test");
    let last = lookup.generation();
    const moves = (change: () => void) => {
      change();
      const now = lookup.generation();
      assert(now !== last);
      last = now;
    };
    for (const prefix of ["10.0.0.0/8", "10.0.0.0/24", "10.0.0.0/32"]) {
      moves(() => fib.insert(prefix, A));
      moves(() => fib.insert(prefix, B));
    }
    moves(() => fib.load([["10.0.0.0/8", A]]));
    moves(() => fib.delete("10.0.0.0/8"));
    assertFalse(fib.delete("10.0.0.0/8"));
    assertEquals(lookup.generation(), last);
    assertEquals(last % 2, 0);
  });
});

Deno.test("prefixes with the same route share a record", async () => {
  await withFib((fib) => {
    const lookup = lookupOf(fib, "test");
    fib.insert("10.0.0.0/8", A);
    fib.insert("11.1.1.0/24", { ...A });
    fib.insert("12.0.0.0/8", B);
    const record = lookup.lookupRoute(0x0a000000);
    assertEquals(lookup.lookupRoute(0x0b010101), record);
    assert(lookup.lookupRoute(0x0c000000) !== record);
    assertEquals(lookup.lookupRoute(0x0d000000), 0);
    assertEquals(lookup.routeAt(record), A);
    assertEquals(lookup.routeAt(0), undefined);
  });
});

Deno.test("prefixes that are not prefixes are refused with an error that shows them", async () => {
  await withFib((fib) => {
    for (
      const text of [
        "",
        "/",
        "10.0.0.0",
        "10.0.0.0/",
        "/8",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/-1",
        "10.0.0.0/8 ",
        " 10.0.0.0/8",
        "10.0.0/8",
        "10.0.0.0.0/8",
        "10.0.0.256/32",
        "010.0.0.0/8",
        "10..0.0/8",
        "10.0.0.0/8/8",
        "10.0.0.0x/8",
        "0x0a.0.0.0/8",
        "١٠.0.0.0/8",
        "::/0",
      ]
    ) {
      for (
        const act of [
          () => fib.insert(text, A),
          () => fib.delete(text),
          () => fib.get(text),
          () => fib.load([[text, A]]),
        ]
      ) {
        assertThrows(act, RangeError, `received ${JSON.stringify(text)}`);
      }
    }
    assertThrows(
      () => fib.insert("10.0.0.1/8", A),
      RangeError,
      "must be 0, as in 10.0.0.0/8: received 10.0.0.1/8",
    );
    assertThrows(
      () => fib.insert({ address: 1, length: 0 }, A),
      RangeError,
      "received 0.0.0.1/0",
    );
    assertThrows(
      () => fib.insert({ address: -1, length: 8 }, A),
      RangeError,
      "received -1",
    );
    assertThrows(
      () => fib.insert({ address: 0, length: 8.5 }, A),
      RangeError,
      "received 8.5",
    );
    for (const what of [null, undefined, 8, {}, { address: 1 }]) {
      assertThrows(
        () => fib.insert(what as unknown as Prefix, A),
        TypeError,
        "Cannot use a prefix",
      );
    }
    assertEquals(fib.size, 0);
  });
});

Deno.test("addresses that are not addresses are refused with an error that shows them", async () => {
  await withFib((fib) => {
    for (const text of ["", "10.0.0", "10.0.0.0/8", "1.2.3.04", "a.b.c.d"]) {
      assertThrows(
        () => fib.lookup(text),
        RangeError,
        `received ${JSON.stringify(text)}`,
      );
    }
    for (const number of [-1, 2 ** 32, 1.5, NaN, Infinity]) {
      assertThrows(
        () => fib.lookup(number),
        RangeError,
        `received ${number}`,
      );
    }
    for (const what of [null, undefined, {}, 1n]) {
      assertThrows(() => fib.lookup(what as unknown as string), TypeError);
    }
    assertEquals(fib.lookup(-0), undefined);
  });
});

Deno.test("routes that are not routes are refused with an error that shows them", async () => {
  await withFib((fib) => {
    const wrong: [unknown, ErrorConstructor, string][] = [
      [null, TypeError, "received null"],
      ["10.0.0.1", TypeError, 'received "10.0.0.1"'],
      [{ interface: 1 }, TypeError, "received undefined"],
      [{ gateway: 1, interface: 1 }, TypeError, "received 1"],
      [{ gateway: "10.0.0", interface: 1 }, RangeError, 'received "10.0.0"'],
      [{ gateway: null }, TypeError, "received undefined"],
      [{ gateway: null, interface: "1" }, TypeError, 'received "1"'],
      [{ gateway: null, interface: -1 }, RangeError, "received -1"],
      [{ gateway: null, interface: 1.5 }, RangeError, "received 1.5"],
      [{ gateway: null, interface: 1, metric: -1 }, RangeError, "metric"],
      [{ gateway: null, interface: 1, metric: null }, TypeError, "metric"],
      [{ gateway: null, interface: 1, mtu: 67 }, RangeError, "from 68"],
      [{ gateway: null, interface: 1, mtu: 2 ** 32 }, RangeError, "mtu"],
    ];
    for (const [route, kind, text] of wrong) {
      assertThrows(
        () => fib.insert("10.0.0.0/8", route as Route),
        kind,
        text,
      );
      assertThrows(() => fib.load([["10.0.0.0/8", route as Route]]), kind);
    }
    assertEquals(fib.size, 0);
  });
});

Deno.test("open() wants an Rcu, a name, and no other structure of that name", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  assertThrows(() => Fib.open({} as Rcu, "fib"), TypeError, "must be an Rcu");
  assertThrows(
    () => Fib.open(rcu, 1 as unknown as string),
    TypeError,
    "received 1",
  );
  RcuMap.open(rcu, "map", { key: u32, value: u32 });
  assertThrows(() => Fib.open(rcu, "map"), TypeError, "fib");
  assertThrows(
    () => lookupOf({} as Fib, "test"),
    TypeError,
    "fib must be a Fib",
  );
});

Deno.test("open() where there is no room for a table throws and leaks nothing", () => {
  using rcu = Rcu.create({ capacity: 2 ** 21, debug: true });
  const taken: number[] = [];
  assertThrows(() => {
    while (true) taken.push(rcu.memory.allocate(2 ** 14));
  }, RcuMemoryError);
  const { live } = rcu.memory.audit();
  assertThrows(() => Fib.open(rcu, "fib"), RcuMemoryError);
  assertEquals(rcu.memory.audit().live, live);
  for (const block of taken) rcu.memory.free(block);
  Fib.open(rcu, "fib").insert("10.0.0.0/8", A);
  assertEquals(Fib.open(rcu, "fib").lookup("10.0.0.1"), A);
});

Deno.test("after close() every call says that the Rcu is closed", () => {
  const rcu = Rcu.create({ capacity: 2 ** 22 });
  const fib = Fib.open(rcu, "fib");
  fib.insert("10.0.0.0/8", A);
  const listing = fib[Symbol.iterator]();
  rcu.close();
  for (
    const act of [
      () => fib.insert("10.0.0.0/8", B),
      () => fib.delete("10.0.0.0/8"),
      () => fib.lookup("10.0.0.0"),
      () => fib.get("10.0.0.0/8"),
      () => fib.load([]),
      () => listing.next(),
      () => Fib.open(rcu, "fib"),
    ]
  ) {
    assertThrows(act, Error, "closed");
  }
});

// Threads

const THREADS = { capacity: 2 ** 24, debug: true };

Deno.test("readers find the route before or after an insertion or deletion, and never another", async () => {
  using rcu = Rcu.create(THREADS);
  const fib = Fib.open(rcu, "fib");
  const { live } = rcu.memory.audit();
  fib.insert("10.0.0.0/8", routeOf(8));
  // Every level; nodes that come and go; one inside the other.
  const lengths = [9, 12, 15, 16, 17, 20, 23, 24, 25, 28, 31, 32];
  const inside = (address: number) =>
    lengths.filter((length) =>
      prefixOf(address, length).address === prefixOf(0x0a141e29, length).address
    );
  const addresses = [0x0a141e29, 0x0a141e28, 0x0a141eff, 0x0a14ffff, 0x0affffff]
    .map((address) => ({ address, metrics: [8, ...inside(address)] }));
  addresses.push({ address: 0x0b000000, metrics: [-1] });
  await againstReaders(fib, rcu, addresses, false, (i) => {
    const length = lengths[Math.imul(i, 7) % lengths.length];
    const prefix = prefixOf(0x0a141e29, length).text;
    if (i % 3 === 0) fib.delete(prefix);
    else fib.insert(prefix, routeOf(length));
  });
  await rcu.barrier();
  assertEquals(rcu.memory.audit().live, live);
});

for (const length of [0, 8, 15, 16, 20, 24, 28]) {
  Deno.test(`a change of a /${length} shows in all its addresses at once`, async () => {
    using rcu = Rcu.create(THREADS);
    const fib = Fib.open(rcu, "fib");
    const { live } = rcu.memory.audit();
    const prefix = prefixOf(0x0a141e20, length);
    // Longer prefixes inside, so that its addresses lie in many nodes.
    const size = 2 ** (32 - length);
    const addresses = [];
    for (let i = 0; i < 16; i++) {
      const block = prefix.address + i * size / 16;
      addresses.push({ address: block + size / 16 - 1, metrics: [] });
      if (length >= 28) continue;
      fib.insert(prefixOf(block, 32).text, C);
      fib.insert(prefixOf(block + 4, 30).text, C);
      if (length < 20) fib.insert(prefixOf(block, 24).text, C);
    }
    fib.insert(prefix.text, routeOf(1000));
    await againstReaders(
      fib,
      rcu,
      addresses,
      true,
      (i) => {
        fib.insert(prefix.text, routeOf(1001 + i));
      },
      1000,
      300,
    );
    await rcu.barrier();
    assertEquals(rcu.memory.audit().live - keptBytes(rcu, fib), live);
  });
}

Deno.test("load() shows all of the new table or none of it", async () => {
  using rcu = Rcu.create(THREADS);
  const fib = Fib.open(rcu, "fib");
  const { live } = rcu.memory.audit();
  const texts = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24"];
  for (let i = 0; i < 32; i++) texts.push(`10.1.3.${i}/32`, `10.2.${i}.0/24`);
  const table = (metric: number) =>
    texts.map((text): [string, Route] => [text, routeOf(metric)]);
  const addresses = [9, 0x0a000001, 0x0a010001, 0x0a010203, 0x0a01031f]
    .map((address) => ({ address, metrics: [] }));
  fib.load(table(0));
  await againstReaders(
    fib,
    rcu,
    addresses,
    true,
    (i) => {
      fib.load(table(i + 1));
    },
    500,
    500,
  );
  await rcu.barrier();
  assertEquals(rcu.memory.audit().live - keptBytes(rcu, fib), live);
});

Deno.test("two writers in the same nodes lose nothing", async () => {
  using rcu = Rcu.create(THREADS);
  const fib = Fib.open(rcu, "fib");
  const { live } = rcu.memory.audit();
  await withWorkers("_fib_worker.ts", 2, async (...workers) => {
    const listings = await Promise.all(workers.map((worker, own) => {
      const task: WriterTask = { handle: rcu.handle, own, updates: 4000 };
      return worker.call<[string, Route][]>("write", task);
    }));
    assertEquals([...fib], listings.flat());
    assertEquals(fib.size, listings.flat().length);
  });
  fib.load([]);
  await rcu.barrier();
  assertEquals(rcu.memory.audit().live - keptBytes(rcu, fib), live);
});
