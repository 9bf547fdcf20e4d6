import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Rcu, type RcuOptions } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { show } from "../src/memory/_codec.ts";
import { assertAddsUp, withDomain } from "./_audit.ts";

Deno.test("create() without options makes a domain of 256 MiB for 64 threads", () => {
  using rcu = Rcu.create();
  assertEquals(rcu.readerId, 0);
  const { capacity, live, deferred } = assertAddsUp(rcu.memory.audit());
  assertEquals([capacity, live, deferred], [2 ** 28, 0, 0]);
  assertEquals(rcu.stats(), {
    gracePeriods: { started: 0, completed: 0, expedited: 0, forced: 0 },
    callbacks: { pending: 0, peak: 0, invoked: 0, lost: 0 },
    memory: rcu.memory.audit(),
    readers: [{ id: 0, name: "", online: false, observed: 0, pending: 0 }],
  });
  const others = Array.from({ length: 63 }, () => Rcu.attach(rcu.handle));
  assertThrows(() => Rcu.attach(rcu.handle), RangeError, "at most 64 threads");
  for (const other of others) other.close();
});

Deno.test("options at their limits are taken", () => {
  const taken: RcuOptions[] = [
    { capacity: 2 ** 21, maxReaders: 1 },
    { capacity: 2 ** 21 + 16_383 },
    { capacity: 2 ** 22, maxReaders: 512 },
    { capacity: 2 ** 27, maxReaders: 4_096 },
    { highWater: 1, stallTimeout: 1 },
    { highWater: 2 ** 31 - 1, stallTimeout: 2 ** 31 - 1 },
    { detector: "scan", callbacks: { mode: "immediate" }, debug: true },
    { detector: "classic", maxReaders: 1, capacity: 2 ** 21 },
    { detector: "tree", maxReaders: 4_096 },
    { detector: { type: "tree", fanout: 2 }, maxReaders: 4_096 },
    { detector: { type: "tree", fanout: 32 }, maxReaders: 4_096 },
  ];
  for (const options of taken) {
    using rcu = Rcu.create(options);
    const { capacity } = rcu.memory.audit();
    assertEquals(capacity % 16_384, 0);
    assert(capacity <= (options.capacity ?? 2 ** 28));
    assert(capacity > (options.capacity ?? 2 ** 28) - 16_384);
    const { stallTimeout, debug } = membershipOf(rcu, "test");
    assertEquals(stallTimeout, options.stallTimeout ?? 10_000);
    assertEquals(debug, options.debug ?? false);
  }
});

Deno.test("each option that is out of range is an error that names it and what it was", () => {
  const integers: Record<string, unknown[]> = {
    capacity: [0, 2 ** 21 - 1, 2 ** 33 + 1, NaN, 2 ** 22 + 0.5, "4194304", -1],
    maxReaders: [0, 4_097, 1.5, "8", null],
    highWater: [0, -1, 2 ** 31, 0.5, Infinity],
    stallTimeout: [0, -1, 2 ** 31, NaN],
  };
  for (const [name, values] of Object.entries(integers)) {
    for (const value of values) {
      const error = assertThrows(
        () => Rcu.create({ [name]: value } as RcuOptions),
        typeof value === "number" ? RangeError : TypeError,
        `Cannot create a domain as ${name} must be an integer from `,
      );
      assert(
        error.message.endsWith(`: received ${show(value)}`),
        error.message,
      );
    }
  }
  const others: [object, new () => Error, string][] = [
    ...["magic", "", null, 1, {}, { type: "scan" }, ["tree"], 10n].map((
      detector,
    ): [object, new () => Error, string] => [
      { detector },
      RangeError,
      'detector must be "scan", "classic", "tree" or { type: "tree", fanout }: ' +
      `received ${show(detector)}`,
    ]),
    ...[undefined, 1, 33, 2.5, NaN, "16"].map((
      fanout,
    ): [object, new () => Error, string] => [
      { detector: { type: "tree", fanout } },
      typeof fanout === "number" ? RangeError : TypeError,
      `detector.fanout must be an integer from 2 to 32: received ${
        show(fanout)
      }`,
    ]),
    [{ callbacks: { mode: "later" } }, RangeError, "callbacks.mode must be"],
    [{ callbacks: null }, TypeError, "callbacks must be an object with a mode"],
    [
      { callbacks: "immediate" },
      TypeError,
      'callbacks must be an object with a mode: received "immediate"',
    ],
    [
      { callbacks: { mode: "immediate", maxBatch: 1 } },
      TypeError,
      'options must be among mode: received "maxBatch"',
    ],
    [{ debug: 1 }, TypeError, "debug must be a boolean: received 1"],
    [{ name: 7 }, TypeError, "name must be a string: received 7"],
    [{ name: Symbol("x") }, TypeError, "name must be a string: received Symb"],
    [
      { capacity: 2 ** 21, maxReaders: 4_096 },
      RangeError,
      "4096 readers must leave half of the capacity free: received 2097152",
    ],
  ];
  for (const [options, type, why] of others) {
    assertThrows(() => Rcu.create(options as RcuOptions), type, why);
  }
});

const NAMES = [
  "",
  "a",
  "höldér",
  "日本語",
  "👩‍👩‍👧",
  "\ud800",
  "\0",
  "x".repeat(50_000),
];

Deno.test("statistics name every thread as it named itself", () =>
  withDomain({ name: "créator", maxReaders: 16 }, (rcu) => {
    const others = NAMES.map((name) => Rcu.attach(rcu.handle, { name }));
    const expected = ["créator", ...NAMES];
    for (const member of [rcu, ...others]) {
      const { readers } = member.stats();
      assertEquals(readers.map(({ name }) => name), expected);
      assertEquals(readers.map(({ id }) => id), [...expected.keys()]);
    }
    for (const other of others) other.close();
  }));

Deno.test("statistics say who is online and how far it has come", () =>
  withDomain({}, (rcu) => {
    using a = Rcu.attach(rcu.handle);
    rcu.synchronizeSync();
    rcu.synchronizeSync();
    a.read(() => {});
    const states = () =>
      rcu.stats().readers.map(({ online, observed }) => [online, observed]);
    assertEquals(states()[1], [true, 2]);
    const cookie = rcu.startPoll();
    assertEquals(states()[1], [true, 2]);
    a.quiescentState();
    assertEquals(states()[1], [true, 3]);
    a.threadOffline();
    assertEquals(states()[1], [false, 0]);
    assert(rcu.poll(cookie));
  }));

Deno.test("after close() every use is an error that says so, but for what changes nothing", async () => {
  const rcu = Rcu.create({ capacity: 2 ** 21 });
  const block = rcu.memory.allocate(1);
  const cookie = rcu.startPoll();
  rcu.close();
  const uses: Record<string, () => unknown> = {
    read: () => rcu.read(() => {}),
    readLock: () => rcu.readLock(),
    quiescentState: () => rcu.quiescentState(),
    threadOffline: () => rcu.threadOffline(),
    threadOnline: () => rcu.threadOnline(),
    synchronizeSync: () => rcu.synchronizeSync(),
    startPoll: () => rcu.startPoll(),
    poll: () => rcu.poll(cookie),
    callRcu: () => rcu.callRcu(() => {}),
    deferFree: () => rcu.deferFree(block),
    barrierSync: () => rcu.barrierSync(),
    stats: () => rcu.stats(),
    allocate: () => rcu.memory.allocate(1),
    free: () => rcu.memory.free(block),
    audit: () => rcu.memory.audit(),
    membershipOf: () => membershipOf(rcu, "open"),
  };
  for (const [name, use] of Object.entries(uses)) {
    assertThrows(use, Error, "as the Rcu must be open: it is closed", name);
  }
  for (const use of [() => rcu.synchronize(), () => rcu.barrier()]) {
    await assertRejects(use, Error, "as the Rcu must be open: it is closed");
  }
  rcu.close();
  rcu[Symbol.dispose]();
  assertEquals([rcu.readerId, rcu.handle.kind], [0, "rcu"]);
});

Deno.test("what is no Rcu is a TypeError where one is wanted", () => {
  for (const other of [undefined, null, {}, Rcu, 5]) {
    assertThrows(
      () => membershipOf(other as Rcu, "open a map"),
      TypeError,
      "Cannot open a map as its first argument must be an Rcu: received",
    );
  }
});

Deno.test("a domain outlives its creator and every thread, in its buffer", () => {
  const creator = Rcu.create({ capacity: 2 ** 21, name: "creator" });
  const { handle } = creator;
  const second = Rcu.attach(handle, { name: "second" });
  const block = creator.memory.allocate(4);
  creator.memory.words[block] = 42;
  creator.synchronizeSync();
  creator.close();
  assertEquals(second.stats().readers.map(({ name }) => name), ["second"]);
  second.close();
  using third = Rcu.attach(handle);
  assertEquals(third.readerId, 0);
  assertEquals(third.memory.words[block], 42);
  third.memory.free(block);
  assertEquals(third.memory.audit().live, 0);
  assertEquals(third.stats().gracePeriods.completed >= 1, true);
});

Deno.test("addEventListener() knows the type of an error event, and takes what EventTarget takes", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const seen: unknown[] = [];
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    seen.push(event.error);
  };
  const object = {
    handleEvent(event: ErrorEvent) {
      seen.push(event.message);
    },
  };
  const any = (event: Event) => seen.push(event.type);
  rcu.addEventListener("error", onError);
  rcu.addEventListener("error", object, { once: true });
  rcu.addEventListener("error", any, true);
  rcu.addEventListener("other", any);
  rcu.addEventListener("other", null);
  const error = new Error("in a callback");
  const fail = () => {
    throw error;
  };
  rcu.callRcu(fail);
  await rcu.barrier();
  assertEquals(seen.splice(0), [error, "in a callback", "error"]);
  rcu.removeEventListener("error", any, true);
  rcu.removeEventListener("other", any);
  rcu.dispatchEvent(new Event("other"));
  rcu.callRcu(fail);
  await rcu.barrier();
  assertEquals(seen, [error]);
});
