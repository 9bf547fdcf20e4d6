import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { Rcu, type RcuOptions } from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { errorsOf } from "./_events.ts";

/** A thread under test and another one that watches it. */
function watched(
  use: (rcu: Rcu, isOnline: () => boolean, watcher: Rcu) => unknown,
  options: RcuOptions = {},
): Promise<void> {
  return withDomain(options, async (watcher) => {
    const rcu = Rcu.attach(watcher.handle, { name: "watched" });
    const isOnline = () =>
      watcher.stats().readers.find(({ id }) => id === rcu.readerId)!.online;
    try {
      await use(rcu, isOnline, watcher);
    } finally {
      rcu.close();
    }
  });
}

/** Whether a period that begins now ends without anything else happening. */
function periodEnds(rcu: Rcu): boolean {
  return rcu.poll(rcu.startPoll());
}

Deno.test("read() returns what the section returned", () =>
  watched((rcu) => {
    const value = {};
    assert(rcu.read(() => value) === value);
    assertEquals(rcu.read(() => undefined), undefined);
  }));

Deno.test("sections nest: the outermost one alone ends the protection", () =>
  watched((rcu, _, watcher) => {
    rcu.read(() => {
      rcu.read(() => rcu.read(() => {}));
      using _inner = rcu.readLock();
      assertFalse(periodEnds(watcher));
      assertThrows(() => rcu.quiescentState(), Error, "inside a read section");
    });
    rcu.threadOffline();
    assert(periodEnds(watcher));
  }));

Deno.test("a section that throws ends, and passes its error on", () =>
  watched((rcu, _, watcher) => {
    const error = new RangeError("mine");
    for (let i = 0; i < 1_000; i++) {
      const act = () => {
        throw error;
      };
      const thrown = assertThrows(() => rcu.read(() => rcu.read(act)));
      assert(thrown === error);
    }
    rcu.threadOffline();
    assert(periodEnds(watcher));
  }));

Deno.test("a section that returns a promise is a TypeError, and ends", () =>
  watched((rcu, _, watcher) => {
    const sections = [
      () => Promise.resolve(1),
      async () => await undefined,
      () => ({ then: () => {} }),
    ];
    for (const section of sections) {
      assertThrows(
        () => rcu.read<unknown>(section),
        TypeError,
        "Cannot read across an await as a section must be synchronous",
      );
    }
    rcu.threadOffline();
    assert(periodEnds(watcher));
  }));

Deno.test("a read lock ends once, however often it is disposed of", () =>
  watched((rcu, _, watcher) => {
    const [outer, inner] = [rcu.readLock(), rcu.readLock()];
    assert(outer.open && inner.open);
    for (let i = 0; i < 3; i++) inner[Symbol.dispose]();
    assertEquals([outer.open, inner.open], [true, false]);
    assertThrows(() => rcu.quiescentState(), Error, "inside a read section");
    assertFalse(periodEnds(watcher));
    outer[Symbol.dispose]();
    assertFalse(outer.open);
    rcu.threadOffline();
    assert(periodEnds(watcher));
  }));

Deno.test("the end of a turn takes the thread offline, the first section online", () =>
  watched(async (rcu, isOnline) => {
    assertFalse(isOnline(), "before the first section");
    for (let turn = 0; turn < 3; turn++) {
      rcu.read(() => assert(isOnline()));
      rcu.read(() => {});
      assert(isOnline(), "between two sections of a turn");
      await undefined;
      assertFalse(isOnline(), "in the next microtask");
    }
    rcu.threadOnline();
    assert(isOnline());
    await undefined;
    assertFalse(isOnline());
  }));

Deno.test("an idle thread holds up no grace period", () =>
  watched(async (rcu, _, watcher) => {
    rcu.read(() => {});
    await undefined;
    assert(periodEnds(watcher));
  }));

Deno.test("threadOffline() and threadOnline() do what they say, however often", () =>
  watched((rcu, isOnline, watcher) => {
    for (let i = 0; i < 3; i++) {
      rcu.threadOnline();
      rcu.threadOnline();
      assert(isOnline());
      assertFalse(periodEnds(watcher));
      rcu.threadOffline();
      rcu.threadOffline();
      assertFalse(isOnline());
      assert(periodEnds(watcher));
    }
  }));

Deno.test("quiescentState() lets the periods go that began before it, not those after", () =>
  watched((rcu, isOnline, watcher) => {
    rcu.threadOnline();
    const before = watcher.startPoll();
    assertFalse(watcher.poll(before));
    rcu.quiescentState();
    assert(isOnline());
    assert(watcher.poll(before));
    assertFalse(periodEnds(watcher));
  }));

Deno.test("a loop of sections passes a quiescent state every 256, not more rarely", () =>
  watched((rcu, _, watcher) => {
    rcu.read(() => {});
    const cookie = watcher.startPoll();
    let sections = 0;
    while (!watcher.poll(cookie)) {
      rcu.read(() => sections++);
      assert(sections <= 256);
    }
  }));

Deno.test("sections with any number of leaf reads count as one each", () =>
  watched((rcu, _, watcher) => {
    const cookie = watcher.startPoll();
    rcu.read(() => {
      for (let i = 0; i < 1_000; i++) rcu.read(() => {});
      const during = watcher.startPoll();
      for (let i = 0; i < 1_000; i++) rcu.read(() => {});
      assertFalse(watcher.poll(during), "the outer section protects");
    });
    let sections = 0;
    while (!watcher.poll(cookie + 1 as typeof cookie)) {
      rcu.read(() => sections++);
      assert(sections <= 256);
    }
  }));

Deno.test("what a thread must not do in a section is an error that says so", () =>
  watched((rcu) => {
    using _section = rcu.readLock();
    const why = "nothing would protect what the section reads";
    assertThrows(
      () => rcu.quiescentState(),
      Error,
      `Cannot announce a quiescent state inside a read section: ${why}`,
    );
    assertThrows(
      () => rcu.threadOffline(),
      Error,
      `Cannot go offline inside a read section: ${why}`,
    );
    assertThrows(
      () => rcu.close(),
      Error,
      `Cannot close inside a read section: ${why}`,
    );
    rcu.threadOnline();
    assert(_section.open);
  }));

Deno.test("a section held across an await keeps its protection, and is reported once", () =>
  watched(async (rcu, isOnline, watcher) => {
    using errors = errorsOf(rcu);
    const section = rcu.readLock();
    const cookie = watcher.startPoll();
    assertEquals(errors.messages, []);
    await undefined;
    const held = "Cannot hold a read section across an await";
    assertEquals(errors.messages.map((m) => m.startsWith(held)), [true]);
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setTimeout(resolve));
      rcu.read(() => {});
      assert(isOnline());
      assertFalse(watcher.poll(cookie), "it protects what it found");
    }
    assertEquals(errors.messages.length, 1);
    assertThrows(() => section[Symbol.dispose](), Error, held);
    assertFalse(section.open);
    section[Symbol.dispose]();
    assertFalse(isOnline(), "its end takes the thread offline");
    assert(watcher.poll(cookie));
    // And the thread is as good as before.
    {
      using _next = rcu.readLock();
      assertFalse(periodEnds(watcher));
    }
    await undefined;
    assertFalse(isOnline());
    assertEquals(errors.messages.length, 1);
  }));

Deno.test("an error that no listener prevents is printed", () =>
  watched(async (rcu) => {
    using errors = errorsOf(rcu, { prevent: false });
    const section = rcu.readLock();
    await undefined;
    assertThrows(() => section[Symbol.dispose](), Error);
    assertEquals(errors.messages.length, 1);
    assertEquals(errors.printed, errors.messages);
  }));

Deno.test("with debug, dereference() outside a section is an error, inside it is not", () =>
  withDomain({ debug: true }, (rcu) => {
    const pointer = rcu.memory.allocate(1);
    rcu.assignPointer(pointer, pointer);
    assertThrows(
      () => rcu.dereference(pointer),
      Error,
      `Cannot dereference outside a read section: pointer ${pointer}`,
    );
    assertEquals(rcu.read(() => rcu.dereference(pointer)), pointer);
    rcu.memory.free(pointer);
  }));
