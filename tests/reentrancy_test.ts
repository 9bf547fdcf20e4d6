// Whatever of the caller's own code runs inside a call of the package may call the package.

import { assert, assertEquals } from "@std/assert";
import { Rcu, RcuCell, RcuMap, RcuSortedMap, string, u32 } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { ROW, row, World } from "./_entry_points.ts";

type Act = (world: World) => unknown;

/** What the caller's code does inside: whatever there is. */
const ACTS: Record<string, Act> = {
  "set a cell": ({ number }) => number.set(7),
  "update a cell": ({ number }) => number.update((n) => n + 1),
  "set a cell of json": ({ any }) => any.set({ a: [1] }),
  "set an entry": ({ texts }) => texts.set("text 1", 7),
  "set a new entry": ({ texts }) => texts.set("new", 7),
  "update an entry": ({ texts }) => texts.update("text 1", () => 7),
  "insert an entry": ({ texts }) => texts.getOrInsert("fresh", 7),
  "delete an entry": ({ texts }) => texts.delete("text 1"),
  "grow and shrink a map": ({ texts }) => {
    for (let n = 0; n < 100; n++) texts.set(`${n}`, n);
    for (let n = 0; n < 100; n++) texts.delete(`${n}`);
  },
  "clear a map": ({ texts }) => texts.clear(),
  "replace a map": ({ texts }) => texts.replaceAll([["a", 1], ["b", 2]]),
  "iterate over a map": ({ texts }) => [...texts],
  "set a struct": ({ rows }) => rows.set(1, row(2)),
  "view a struct": ({ rcu, rows }) => rcu.read(() => rows.view(1)?.at.name),
  "set a key of bytes": ({ blobs }) => blobs.set(Uint8Array.of(1), 2),
  "set a sorted entry": ({ sorted }) => sorted.set(-1, "x"),
  "update a sorted entry": ({ sorted }) => sorted.update(-1, () => "x"),
  "delete sorted entries": ({ sorted }) => {
    for (let n = 0; n < 5; n++) sorted.delete(-n);
  },
  "replace a sorted map": ({ sorted }) => sorted.replaceAll([[1, "x"]]),
  "look at a range": ({ words }) => [...words.range("w", "ww")],
  "insert a route": ({ fib }) =>
    fib.insert("10.1.0.0/16", { gateway: null, interface: 9 }),
  "delete a route": ({ fib }) => fib.delete("10.1.0.0/16"),
  "load a table": ({ fib }) =>
    fib.load([["10.0.0.0/8", { gateway: null, interface: 1 }]]),
  "set a neighbor": ({ neighbors }) => neighbors.set(1, 1, { state: "stale" }),
  "enter a neighbor": ({ neighbors }) => neighbors.resolve(99, 1),
  "delete a neighbor": ({ neighbors }) => neighbors.delete(1, 1),
  "collect neighbors": ({ neighbors }) => neighbors.collect(),
  "look a route up": ({ cache }) => cache.lookup({ destination: "10.1.9.9" }),
  "hold a route": ({ cache }) =>
    cache.hold({ destination: "10.1.0.0" })?.[Symbol.dispose](),
  "flush the cache": ({ cache }) => cache.flush(),
  "collect routes": ({ cache }) => cache.collect(),
  "renew the secret": ({ cache }) => cache.renewSecret(),
  "wait for a grace period": ({ rcu }) => rcu.synchronizeSync(),
  "poll": ({ rcu }) => rcu.poll(rcu.startPoll()),
  "finish a barrier": ({ rcu }) => rcu.barrierSync(),
  "call back": ({ rcu }) => rcu.callRcu(() => {}),
  "defer a free": ({ rcu }) => rcu.deferFree(rcu.memory.allocate(9)),
  "allocate": ({ rcu }) => rcu.memory.free(rcu.memory.allocate(9)),
  "read": ({ rcu }) => rcu.read(() => rcu.read(() => 1)),
  "go offline and online": ({ rcu }) => {
    rcu.threadOffline();
    rcu.threadOnline();
  },
  "announce a quiescent state": ({ rcu }) => rcu.quiescentState(),
  "take statistics": ({ rcu }) => rcu.stats(),
  "join and leave": ({ rcu }) => Rcu.attach(rcu.handle, { name: "x" }).close(),
  "open structures": ({ rcu }) => {
    RcuCell.open(rcu, "number", { value: u32 });
    RcuSortedMap.open(rcu, "words", { key: string, value: ROW as never });
  },
  "throw": () => {
    throw new Error("Cannot go on");
  },
};

/** Where code of the caller's runs inside a call of the package. */
const SITES: Record<string, (world: World, act: () => void) => unknown> = {
  "a section": ({ rcu }, act) => rcu.read(act),
  "an explicit section": ({ rcu }, act) => {
    using _section = rcu.readLock();
    act();
  },
  "a callback": ({ rcu }, act) => {
    const caught = catching(act);
    rcu.callRcu(caught.act);
    rcu.barrierSync();
    caught.rethrow();
  },
  "a listener for errors": ({ rcu }, act) => {
    const caught = catching(act);
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      caught.act();
    }, { once: true });
    rcu.callRcu(() => {
      throw new Error("of a callback");
    });
    rcu.barrierSync();
    caught.rethrow();
  },
  "an iteration over a map": ({ texts }, act) => {
    for (const _ of texts) act();
  },
  "an iteration over a map in a section": ({ rcu, texts }, act) =>
    rcu.read(() => {
      for (const _ of texts.values()) act();
    }),
  "forEach() of a map": ({ texts }, act) => texts.forEach(act),
  "an iteration over a sorted map": ({ sorted }, act) => {
    for (const _ of sorted.range(-3)) act();
  },
  "an iteration over routes": ({ fib }, act) => {
    for (const _ of fib) act();
  },
  "an iteration over neighbors": ({ neighbors }, act) => {
    for (const _ of neighbors) act();
  },
  "the function of RcuCell.update()": ({ number }, act) =>
    number.update((n) => (act(), n)),
  "the function of RcuMap.update()": ({ texts }, act) =>
    texts.update("text 1", (old) => (act(), old ?? 1)),
  "the function of RcuSortedMap.update()": ({ sorted }, act) =>
    sorted.update(-1, (old) => (act(), old ?? "x")),
  "the function of RcuMap.getOrInsertComputed()": ({ texts }, act) =>
    texts.getOrInsertComputed("fresh", () => (act(), 1)),
  "the entries of RcuMap.replaceAll()": ({ texts }, act) =>
    texts.replaceAll(during(act, [["text 1", 1], ["new", 2]])),
  "the entries of RcuSortedMap.replaceAll()": ({ sorted }, act) =>
    sorted.replaceAll(during(act, [[1, "x"], [-1, "y"]])),
  "the entries of Fib.load()": ({ fib }, act) =>
    fib.load(during(act, [["10.1.0.0/16", { gateway: null, interface: 3 }]])),
  "the toJSON() of a value": ({ texts }, act) =>
    texts.set("text 1", { toJSON: () => (act(), 1) }),
  "a field of a struct": ({ rows }, act) => {
    const value = row(1);
    return rows.set(1, {
      at: value.at,
      get n() {
        act();
        return 1;
      },
    });
  },
  "a field of a route": ({ fib }, act) =>
    fib.insert("10.1.0.0/16", {
      gateway: null,
      get interface() {
        act();
        return 1;
      },
    }),
  "a field of what is set of a neighbor": ({ neighbors }, act) =>
    neighbors.set(1, 1, {
      get state() {
        act();
        return "failed" as const;
      },
    }),
  "a field of a route's key": ({ cache }, act) =>
    cache.lookup({
      get destination() {
        act();
        return "10.1.2.3";
      },
    }),
  "an option": ({ rcu }, act) =>
    RcuMap.open(rcu, "rows", {
      value: ROW,
      get key() {
        act();
        return u32;
      },
    }),
  "the clock of a table": (world, act) => {
    // Once: it would ask for the time itself.
    world.onClock = () => {
      world.onClock = () => {};
      act();
    };
    world.neighbors.resolve(77, 1);
  },
  "the clock of a cache": (world, act) => {
    world.onClock = () => {
      world.onClock = () => {};
      act();
    };
    world.cache.lookup({ destination: "10.3.9.9" });
  },
};

/** What throws where nobody catches it, throws later. */
function catching(act: () => void) {
  let error: unknown;
  return {
    act: () => {
      try {
        act();
      } catch (thrown) {
        error = thrown;
      }
    },
    rethrow: () => {
      if (error !== undefined) throw error;
    },
  };
}

function* during<T>(act: () => void, entries: T[]): Generator<T> {
  for (const entry of entries) {
    yield entry;
    act();
  }
}

function assertSays(error: unknown, inside: string): void {
  assert(error instanceof Error, String(error));
  assert(/^Cannot /.test(error.message), `${inside}: ${error.stack}`);
}

/** Fills the structures again and returns how many bytes they take. */
function restored(world: World): number {
  world.onClock = () => {};
  world.restore();
  world.use();
  const memory = assertAddsUp(world.rcu.memory.audit());
  assertEquals(memory.deferred, 0);
  assertLists(world.rcu.memory.words);
  return memory.live;
}

for (const [site, enter] of Object.entries(SITES)) {
  Deno.test(`in ${site} the caller may do anything, or is told why not, and nothing is lost`, () => {
    using world = new World(false);
    const live = restored(world);
    for (const [what, act] of Object.entries(ACTS)) {
      let acts = 0;
      try {
        enter(world, () => {
          // An iteration may meet what is put in, an update be tried again.
          if (++acts < 10) act(world);
        });
      } catch (error) {
        assertSays(error, what);
      }
      assert(acts > 0, `${what}: never came in`);
      const { depth } = membershipOf(world.rcu, "check").reader;
      assertEquals(depth, 0, `${what}: a section is open`);
      assertEquals(restored(world), live, `${what}: bytes are lost`);
      assertEquals(world.rcu.stats().readers.length, 1, what);
    }
  });

  Deno.test(`in ${site} the caller may close the Rcu, or is told why not, and nothing is lost`, () => {
    using world = new World(false);
    const { handle } = world.rcu;
    using other = Rcu.attach(handle);
    restored(world);
    other.barrierSync();
    const { live } = other.memory.audit();
    try {
      enter(world, () => world.rcu.close());
    } catch (error) {
      assertSays(error, "close");
    }
    world.onClock = () => {};
    world.rcu.close();
    other.barrierSync();
    const { memory, readers } = other.stats();
    assertEquals([readers.length, memory.deferred], [1, 0]);
    assertAddsUp(memory);
    assertLists(other.memory.words);
    assert(memory.live <= live + 4096, `${memory.live} of ${live} are live`);
  });
}
