import { assert, assertEquals } from "@std/assert";
import { Rcu, RcuMap, u32 } from "../mod.ts";
import {
  type Found,
  keyAt,
  type Kind,
  openMap,
  valueOf,
} from "./_map_checks.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

const ALWAYS = 200;

/** Has workers look at keys that are always there, while something happens. */
async function underReaders(
  rcu: Rcu,
  key: "u32" | "string",
  kind: Kind,
  readers: number,
  act: (map: RcuMap<number | string, unknown>) => void,
): Promise<void> {
  const map = openMap(rcu, "m", key, kind);
  for (let n = 0; n < ALWAYS; n++) {
    map.set(keyAt(key, n), valueOf(kind, n, 0));
  }
  const stop = sharedWords(2);
  await withWorkers("_map_worker.ts", readers, async (...workers) => {
    const task = { handle: rcu.handle, key, kind, stop };
    // The first one looks at few keys all the time, the other one at many.
    const watching = workers.map((worker, me) => {
      const look = me === 0
        ? { always: 4, some: 0 }
        : { always: ALWAYS, some: 2000 };
      return worker.call<Found>("watch", { ...task, ...look });
    });
    await until("all readers read", () => Atomics.load(stop, 1) === readers);
    act(map);
    tell(stop, 0);
    for (const { reads, ...found } of await Promise.all(watching)) {
      assert(reads > 1000, `only ${reads} reads`);
      assertEquals(found, { missing: 0, wrong: 0, older: 0 });
    }
  });
}

Deno.test("a map grows to a million entries and shrinks again, and a reader does not notice", async () => {
  using rcu = Rcu.create({ maxReaders: 8 });
  await underReaders(rcu, "u32", "u32", 1, (map) => {
    const first = 2 ** 20;
    for (let n = 0; n < 1_000_000; n++) map.set(first + n, n);
    assertEquals(map.size, 1_000_000 + ALWAYS);
    for (let n = 0; n < 1_000_000; n += 997) {
      assertEquals(map.get(first + n), n);
    }
    const { live } = rcu.memory.audit();
    // Table included; what the reader holds up is deferred, not live.
    assert(live <= 40 * 1_000_000, `${live} bytes for a million entries`);
    for (let n = 0; n < 1_000_000; n++) map.delete(first + n);
    assertEquals(map.size, ALWAYS);
  });
  await settle(rcu);
  const { live, deferred } = rcu.memory.audit();
  assertEquals(deferred, 0);
  assert(live < 200_000, `${live} bytes for ${ALWAYS} entries`);
});

for (
  const [key, kind] of [["string", "string"], ["string", "u32"], [
    "u32",
    "json",
  ]] as const
) {
  Deno.test(`a map of ${key} to ${kind} grows and shrinks several times, and its readers do not notice`, async () => {
    using rcu = Rcu.create({ maxReaders: 8, debug: true });
    await underReaders(rcu, key, kind, 2, (map) => {
      for (let round = 1; round <= 4; round++) {
        for (let n = ALWAYS; n < 8000; n++) {
          map.set(keyAt(key, n), valueOf(kind, n, round));
        }
        for (let n = ALWAYS; n < 8000; n++) map.delete(keyAt(key, n));
        for (let n = 0; n < ALWAYS; n++) {
          map.set(keyAt(key, n), valueOf(kind, n, round));
        }
      }
      assertEquals(map.size, ALWAYS);
    });
  });
}

Deno.test("two threads that grow and shrink a map together lose nothing", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 26, maxReaders: 8, debug: true });
  const map = openMap(rcu, "m", "string", "string");
  const { live } = rcu.memory.audit();
  for (let n = 0; n < ALWAYS; n++) {
    map.set(keyAt("string", n), valueOf("string", n, 1));
  }
  const stop = sharedWords(3);
  await withWorkers("_map_worker.ts", 1, async (worker) => {
    const churning = worker.call<number>("churn", {
      handle: rcu.handle,
      key: "string",
      kind: "string",
      stop,
      first: 10_000,
      count: 3000,
    });
    for (let round = 0; round < 5 || Atomics.load(stop, 2) < 2; round++) {
      for (let n = 20_000; n < 24_000; n++) {
        map.set(keyAt("string", n), valueOf("string", n, round & 0xff));
      }
      for (let n = 20_000; n < 24_000; n++) {
        assertEquals(
          map.get(keyAt("string", n)),
          valueOf("string", n, round & 0xff),
        );
        assert(map.delete(keyAt("string", n)));
      }
    }
    tell(stop, 0);
    await churning;
  });
  assertEquals(
    new Map(map),
    new Map(Array.from({ length: ALWAYS }, (_, n) => [
      keyAt("string", n),
      valueOf("string", n, 1),
    ])),
  );
  map.clear();
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("a map that has grown and been emptied key by key takes little memory", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 25 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const { live } = rcu.memory.audit();
  for (let n = 0; n < 100_000; n++) map.set(n, n);
  for (let n = 0; n < 100_000; n++) map.delete(n);
  await settle(rcu);
  const left = rcu.memory.audit().live - live;
  assert(left < 4096, `${left} bytes are left`);
});

Deno.test("a map never shrinks below its initial capacity", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 24 });
  const options = { key: u32, value: u32, capacity: 2 ** 14 };
  const map = RcuMap.open(rcu, "m", options);
  const { live } = rcu.memory.audit();
  for (let n = 0; n < 40_000; n++) map.set(n, n);
  for (let n = 0; n < 40_000; n++) map.delete(n);
  await settle(rcu);
  assertEquals(rcu.memory.audit().live, live);
});
