// One thread's read side by itself: when it writes its slot, and when it looks at the sequence.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import {
  HELD_ACROSS_AWAIT,
  LEAF_READ,
  Reader,
  UNUSUAL,
} from "../src/readers/_reader.ts";
import { OpenSection } from "../src/readers/section.ts";

const SLOT = 16;
const SEQUENCE = 32;

function setUp() {
  const words = new Int32Array(new SharedArrayBuffer(256));
  words[SEQUENCE] = 1;
  const reader = new Reader(words, SLOT, SEQUENCE);
  const announced: number[] = [];
  const held: Error[] = [];
  reader.onAnnounced = (sequence) => announced.push(sequence);
  reader.onHeldAcrossAwait = (error) => held.push(error);
  return { words, reader, announced, held };
}

function section(reader: Reader): void {
  reader.enter();
  reader.exit();
}

const turnEnd = () => Promise.resolve();

Deno.test("the first section of a turn announces the thread, the others touch no shared word", async () => {
  const { reader, words } = setUp();
  using stores = spy(Atomics, "store");
  using loads = spy(Atomics, "load");
  section(reader);
  assertEquals([words[SLOT], stores.calls.length], [1, 1]);
  const before = loads.calls.length;
  for (let i = 0; i < 254; i++) section(reader);
  assertEquals([stores.calls.length, loads.calls.length], [1, before]);
  // Every 256th looks at the sequence, and finds that it has not moved.
  section(reader);
  assertEquals([stores.calls.length, loads.calls.length], [1, before + 1]);
  for (let i = 0; i < 255; i++) section(reader);
  assertEquals([stores.calls.length, loads.calls.length], [1, before + 1]);
  await turnEnd();
  assertEquals([words[SLOT], reader.online], [0, false]);
});

Deno.test("a leaf read costs nothing but a countdown, and announces the thread if it is offline", async () => {
  const { reader, words, announced } = setUp();
  const read = () => {
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
  };
  using stores = spy(Atomics, "store");
  using loads = spy(Atomics, "load");
  read();
  assertEquals([words[SLOT], reader.online, stores.calls.length], [1, true, 1]);
  const before = loads.calls.length;
  for (let i = 0; i < 256; i++) read();
  assertEquals([stores.calls.length, loads.calls.length], [1, before]);
  words[SEQUENCE] = 3;
  read();
  assertEquals([words[SLOT], announced], [3, [1, 3]]);
  assertEquals(stores.calls.length, 2);
  await turnEnd();
});

Deno.test("leaf reads inside a section count for nothing, however many there are", () => {
  const { reader, words } = setUp();
  reader.enter();
  words[SEQUENCE] = 3;
  assert((reader.budget & UNUSUAL) !== 0, "a section is seen in the budget");
  reader.budget = -1;
  reader.refill();
  assert(reader.budget > 1_000_000);
  assert((reader.budget & UNUSUAL) !== 0, "after a refill, too");
  assertEquals(words[SLOT], 1);
  reader.exit();
  reader.goOffline();
});

Deno.test("a turn has one microtask at its end, however often the thread goes offline in it", async () => {
  const { reader, words } = setUp();
  using microtasks = spy(globalThis, "queueMicrotask");
  for (let i = 0; i < 5; i++) {
    section(reader);
    reader.goOffline();
  }
  assertEquals(microtasks.calls.length, 1);
  await turnEnd();
  section(reader);
  assertEquals([microtasks.calls.length, words[SLOT]], [2, 1]);
  await turnEnd();
  assertEquals(words[SLOT], 0);
});

Deno.test("a sequence is reported once, when it is new to the thread and the slot says so", () => {
  const { reader, words, announced } = setUp();
  const slots: number[] = [];
  const report = reader.onAnnounced;
  reader.onAnnounced = (sequence) => {
    slots.push(words[SLOT]);
    report(sequence);
  };
  section(reader);
  reader.goOffline();
  section(reader);
  assertEquals(announced, [1]);
  words[SEQUENCE] = 3;
  reader.checkQuiescentState();
  reader.checkQuiescentState();
  assertEquals(announced, [1, 3]);
  reader.goOffline();
  section(reader);
  assertEquals(announced, [1, 3]);
  reader.goOffline();
  words[SEQUENCE] = 5;
  section(reader);
  assertEquals([announced, slots], [[1, 3, 5], [1, 3, 5]]);
  reader.goOffline();
});

Deno.test("a thread that is offline writes its slot no more, one in a section neither leaves nor announces", () => {
  const { reader, words, announced } = setUp();
  using stores = spy(Atomics, "store");
  reader.goOffline();
  words[SEQUENCE] = 3;
  reader.checkQuiescentState();
  assertEquals([stores.calls.length, announced], [0, []]);
  reader.enter();
  words[SEQUENCE] = 5;
  reader.goOffline();
  reader.checkQuiescentState();
  assertEquals([words[SLOT], reader.online, announced], [3, true, [3]]);
  reader.exit();
  reader.goOffline();
  reader.goOffline();
  assertEquals([words[SLOT], reader.online, reader.budget], [0, false, 0]);
  assertEquals(stores.calls.length, 2);
});

Deno.test("a section that outlives its turn is reported, keeps its protection, and takes the thread offline at its end", async () => {
  const { reader, words, held } = setUp();
  reader.enter();
  await turnEnd();
  assertEquals([held.length, reader.held, words[SLOT]], [1, true, 1]);
  assertEquals(held[0].message, HELD_ACROSS_AWAIT);
  words[SEQUENCE] = 3;
  reader.exit();
  assertEquals([words[SLOT], reader.online, reader.held], [0, false, false]);
  // The next one is like any other.
  section(reader);
  assertEquals([words[SLOT], reader.online], [3, true]);
  {
    using stores = spy(Atomics, "store");
    for (let i = 0; i < 600; i++) section(reader);
    assertEquals([reader.online, stores.calls.length], [true, 0]);
  }
  await turnEnd();
  assertEquals([held.length, words[SLOT]], [1, 0]);
});

Deno.test("a microtask that runs in the middle of a section is not the end of its turn", () => {
  const { reader, words, held } = setUp();
  let microtask = () => {};
  {
    using _stub = stub(globalThis, "queueMicrotask", (task) => {
      microtask = task;
    });
    reader.enter();
  }
  microtask();
  assertEquals([held.length, reader.held, words[SLOT]], [0, false, 1]);
  reader.exit();
  // There is no other microtask that would do it.
  assertEquals([words[SLOT], reader.online], [0, false]);
});

Deno.test("disposing of a section says that it was held across an await, and of the next one nothing", async () => {
  const { reader } = setUp();
  reader.enter();
  const first = new OpenSection(reader);
  await turnEnd();
  assertThrows(() => first[Symbol.dispose](), Error, "across an await");
  first[Symbol.dispose]();
  reader.enter();
  const second = new OpenSection(reader);
  assertEquals([first.open, second.open], [false, true]);
  second[Symbol.dispose]();
  assertEquals([second.open, reader.depth], [false, 0]);
  await turnEnd();
});

Deno.test("going online that is cut short is made up for at the end of the turn", async () => {
  const { reader, words } = setUp();
  const { load } = Atomics;
  let loads = 0;
  {
    using _stub = stub(
      Atomics,
      "load",
      ((...step: never) => {
        if (++loads === 2) throw new RangeError("no room");
        return (load as (...step: unknown[]) => number)(...step as unknown[]);
      }) as never,
    );
    assertThrows(() => reader.enter(), RangeError, "no room");
  }
  assertEquals([words[SLOT], reader.online, reader.depth], [1, false, 0]);
  await turnEnd();
  assertEquals([words[SLOT], reader.online], [0, false]);
});

Deno.test("a reader that is closed writes its slot no more, not even at the end of the turn", async () => {
  const { reader, words } = setUp();
  section(reader);
  reader.close();
  assertEquals(words[SLOT], 0);
  // Another thread's by now.
  words[SLOT] = 7;
  assertThrows(() => reader.enter(), Error, "it is closed");
  assertThrows(() => reader.refill(), Error, "it is closed");
  reader.checkQuiescentState();
  reader.goOffline();
  await turnEnd();
  assertEquals([words[SLOT], reader.depth], [7, 0]);
});

Deno.test("sections are numbered, the outermost alone", () => {
  const { reader } = setUp();
  reader.enter();
  const { section: first } = reader;
  reader.enter();
  assertEquals([reader.section, reader.depth], [first, 2]);
  reader.exit();
  reader.exit();
  section(reader);
  assertEquals([reader.section, reader.depth], [first + 1, 0]);
  reader.goOffline();
});
