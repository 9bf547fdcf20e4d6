import { assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import fc from "fast-check";
import { type ConnectOptions, Rcu, RcuMap, u32 } from "../mod.ts";
import { assertLists } from "./_audit.ts";
import type { Found } from "./_connect_worker.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";

const WORKER = "./_connect_worker.ts";
const SMALL: ConnectOptions = { capacity: 2 ** 22, maxReaders: 8 };

/** A name that no other test has. */
function fresh(): string {
  return `test ${crypto.randomUUID()}`;
}

/** The Web Locks that say who is there. */
async function presences(name: string): Promise<number> {
  const { locks } = navigator as unknown as {
    locks: { query(): Promise<{ held: { name: string }[] }> };
  };
  const { held } = await locks.query();
  return held.filter((lock) => lock.name.endsWith(JSON.stringify(name))).length;
}

/** Waits until nobody is there any more. */
async function untilGone(name: string): Promise<void> {
  let left = 1;
  const look = async () => left = await presences(name);
  while (left > 0) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

Deno.test("threads that connect to a name share one domain, whoever comes first", async () => {
  const name = fresh();
  await withWorkers(WORKER, 2, async (a, b) => {
    const first = await a.call<Found>("connect", { name, options: SMALL });
    const second = await b.call<Found>("connect", { name });
    using rcu = await Rcu.connect(name, { name: "main" });
    assertEquals([first.id, second.id], [rcu.handle.id, rcu.handle.id]);
    assertEquals([first.readers, second.readers], [1, 2]);
    await a.call("put", [1, 10]);
    assertEquals(await b.call<number>("get", 1), 10);
    const map = RcuMap.open(rcu, "numbers", { key: u32, value: u32 });
    assertEquals(map.get(1), 10);
    await a.call("close");
    await b.call("close");
    await rcu.barrier();
    assertLists(rcu.memory.words);
    assertEquals(rcu.stats().readers.map(({ name }) => name), ["main"]);
  });
  await untilGone(name);
});

Deno.test("of threads that connect at the same moment one creates the domain", async () => {
  await withWorkers(WORKER, 4, async (...workers) => {
    for (let round = 0; round < 5; round++) {
      const name = fresh();
      const [rcu, ...found] = await Promise.all([
        Rcu.connect(name, SMALL),
        ...workers.map((worker) =>
          worker.call<Found>("connect", { name, options: SMALL })
        ),
      ]);
      const ids = [rcu.handle.id, ...found.map(({ id }) => id)];
      assertEquals(new Set(ids).size, 1);
      rcu.close();
      for (const worker of workers) await worker.call("close");
      await untilGone(name);
    }
  });
});

Deno.test("one thread may connect to a name more than once, and to several names", async () => {
  const [a, b] = [fresh(), fresh()];
  await withWorkers(WORKER, 1, async (worker) => {
    const found = await worker.call<Found[]>("connectAll", [a, b, a, a]);
    const ids = found.map(({ id }) => id);
    assertEquals(ids, [ids[0], ids[1], ids[0], ids[0]]);
    assertNotEquals(ids[0], ids[1]);
    using rcu = await Rcu.connect(a);
    assertEquals([rcu.handle.id, rcu.readerId], [ids[0], 3]);
  });
});

Deno.test("a worker of a worker finds the domain", async () => {
  const name = fresh();
  await withWorkers(WORKER, 1, async (worker) => {
    using rcu = await Rcu.connect(name, SMALL);
    const nested = await worker.call<Found>("nested", name);
    assertEquals(nested.id, rcu.handle.id);
  });
});

Deno.test("a domain is there until the last thread that connected has closed, and a new one after that", async () => {
  const name = fresh();
  const first = await Rcu.connect(name, SMALL);
  const second = await Rcu.connect(name);
  first.close();
  const third = await Rcu.connect(name);
  assertEquals(third.handle.id, first.handle.id);
  second.close();
  third.close();
  await untilGone(name);
  using other = await Rcu.connect(name, SMALL);
  assertNotEquals(other.handle.id, first.handle.id);
});

Deno.test("closing twice ends a presence once", async () => {
  const name = fresh();
  using stays = await Rcu.connect(name, SMALL);
  const goes = await Rcu.connect(name);
  await until("both", () => stays.stats().readers.length === 2);
  assertEquals(await presences(name), 2);
  goes.close();
  goes.close();
  while (await presences(name) > 1) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assertEquals(await presences(name), 1);
});

Deno.test("a creator that ends right after is not missed by those who joined, and not found by those who come", async () => {
  const name = fresh();
  await withWorkers(WORKER, 1, async (joins) => {
    let created = "";
    // The worker ends without closing.
    await withWorkers(WORKER, 1, async (creates) => {
      created = (await creates.call<Found>("connect", { name, options: SMALL }))
        .id;
      const { id } = await joins.call<Found>("connect", { name });
      assertEquals(id, created);
    });
    using rcu = await Rcu.connect(name);
    assertEquals(rcu.handle.id, created);
    await joins.call("close");
  });
  await untilGone(name);
  let dead = "";
  await withWorkers(WORKER, 1, async (creates) => {
    dead = (await creates.call<Found>("connect", { name, options: SMALL })).id;
  });
  using rcu = await Rcu.connect(name, SMALL);
  assertNotEquals(rcu.handle.id, dead);
});

Deno.test("whoever asks for another domain than there is gets to know what is different", async () => {
  const name = fresh();
  using rcu = await Rcu.connect(name, {
    ...SMALL,
    detector: "tree",
    callbacks: { mode: "throttled", maxBatch: 8 },
  });
  const wrong: [ConnectOptions, string][] = [
    [{ capacity: 2 ** 23 }, "capacity must be what the domain has, 4194304"],
    [{ maxReaders: 9 }, "maxReaders must be what the domain has, 8"],
    [
      { detector: "scan" },
      'detector must be what the domain has, {"type":"tree"',
    ],
    [{ callbacks: { mode: "throttled" } }, '"maxBatch":8'],
    [{ highWater: 5 }, "highWater must be what the domain has, 10000"],
    [{ stallTimeout: 5 }, "stallTimeout must be what the domain has, 10000"],
    [{ debug: true }, "debug must be what the domain has, false"],
  ];
  for (const [options, message] of wrong) {
    await assertRejects(() => Rcu.connect(name, options), RangeError, message);
  }
  // Nothing of it is left, and what is the same may be said in other words.
  assertEquals(rcu.stats().readers.length, 1);
  const same: ConnectOptions[] = [
    { capacity: 2 ** 22 + 5, debug: false },
    { detector: { type: "tree", fanout: 16 }, name: "a thread's own" },
    { callbacks: { maxBatch: 8, plugTicks: 0, mode: "throttled" } },
  ];
  for (const options of same) (await Rcu.connect(name, options)).close();
});

Deno.test("bad arguments of connect are refused before anything happens", async () => {
  const wrong: [unknown, unknown, string][] = [
    [1, {}, "the domain's name must be a string: received 1"],
    [undefined, {}, "the domain's name must be a string"],
    ["x", null, "its options must be an object"],
    ["x", { capcity: 1 }, 'received "capcity"'],
    ["x", { capacity: 1 }, "capacity must be an integer"],
    ["x", { timeout: 0 }, "timeout must be an integer from 1"],
    ["x", { timeout: Infinity }, "timeout must be an integer from 1"],
    ["x", { signal: {} }, "the signal must be an AbortSignal"],
    ["x", { name: 5 }, "its name must be a string"],
    ["x", { reclaimer: "yes" }, 'reclaimer must be "worker" or "none"'],
  ];
  for (const [name, options, message] of wrong) {
    await assertRejects(
      () => Rcu.connect(name as string, options as ConnectOptions),
      Error,
      message,
    );
  }
  assertEquals(await presences("x"), 0);
});

Deno.test("any string is a name of its own", async () => {
  const seen = new Map<string, Rcu>();
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 8 }),
          fc.constantFrom(
            "",
            "-",
            "\ud800",
            "\udc00",
            "\ufffd",
            "é",
            "e\u0301",
          ),
        ),
        async (name) => {
          const rcu = await Rcu.connect(name, { capacity: 2 ** 21 });
          const before = seen.get(name);
          if (before === undefined) {
            for (const other of seen.values()) {
              assertNotEquals(other.handle.id, rcu.handle.id);
            }
            seen.set(name, rcu);
          } else {
            assertEquals(rcu.handle.id, before.handle.id);
            rcu.close();
          }
        },
      ),
      { numRuns: 12 },
    );
  } finally {
    for (const rcu of seen.values()) rcu.close();
  }
});

Deno.test("a thread that has the domain and does not answer is waited for until the time is up, or the signal says so", async () => {
  const name = fresh();
  await withWorkers(WORKER, 1, async (worker) => {
    const { id } = await worker.call<Found>("connect", {
      name,
      options: SMALL,
    });
    const words = sharedWords(1);
    const blocked = worker.call("block", words);
    await assertRejects(
      () => Rcu.connect(name, { timeout: 30 }),
      DOMException,
      "within 30 ms as a thread that is there must answer",
    );
    const reason = new Error("enough");
    const controller = new AbortController();
    const search = Rcu.connect(name, { signal: controller.signal });
    controller.abort(reason);
    assertEquals(await search.catch((error) => error), reason);
    assertEquals(
      await Rcu.connect(name, { signal: AbortSignal.abort(reason) })
        .catch((error) => error),
      reason,
    );
    const patient = Rcu.connect(name);
    tell(words, 0);
    await blocked;
    using rcu = await patient;
    assertEquals(rcu.handle.id, id);
    assertEquals(rcu.stats().readers.length, 2);
  });
});

Deno.test("what else is said on the channel of a name is no answer", async () => {
  const name = fresh();
  const channel = new BroadcastChannel(`@grace/rcu ${JSON.stringify(name)}`);
  const noise = [null, 5, "x", {}, { to: "nobody" }, { to: undefined }];
  channel.onmessage = () => {
    for (const message of noise) channel.postMessage(message);
  };
  try {
    using first = await Rcu.connect(name, SMALL);
    using second = await Rcu.connect(name);
    assertEquals(second.handle.id, first.handle.id);
  } finally {
    channel.close();
  }
});
