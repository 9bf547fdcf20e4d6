import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { spy } from "@std/testing/mock";
import { Rcu } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { withDomain } from "./_audit.ts";
import { errorsOf } from "./_events.ts";
import { show } from "../src/memory/_codec.ts";
import { until } from "./_workers.ts";

Deno.test("callbacks run from the event loop, in the order in which they were enqueued", () =>
  withDomain({}, async (rcu) => {
    const log: number[] = [];
    const expected: number[] = [];
    for (let i = 0; i < 1_000; i++) {
      rcu.callRcu(() => log.push(i));
      expected.push(i);
      // Between two turns too.
      if (i % 300 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    await until("all have run", () => log.length === 1_000);
    assertEquals(log, expected);
  }));

Deno.test("callbacks run during later updates of a turn that goes on", () =>
  withDomain({}, (rcu) => {
    let ran = 0;
    for (let i = 0; i < 1_000; i++) rcu.callRcu(() => ran++);
    assert(ran > 500, `${ran} ran`);
  }));

Deno.test("deferred blocks are freed during later updates, so that a loop of them needs little memory", () =>
  withDomain({ capacity: 2 ** 21 }, (rcu) => {
    for (let i = 0; i < 20_000; i++) rcu.deferFree(rcu.memory.allocate(64));
    assert(rcu.stats().callbacks.peak < 1_000);
  }));

Deno.test("callbacks run after their grace period, not before it", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    let early = 0;
    for (let i = 0; i < 1_000; i++) {
      rcu.callRcu(() => early++);
      rcu.deferFree(rcu.memory.allocate(4));
    }
    for (let i = 0; i < 10; i++) {
      rcu.poll(rcu.startPoll());
      membershipOf(rcu, "test").callbacks.processCallbacks();
    }
    assertEquals(early, 0);
    assertEquals(rcu.memory.audit().deferred, 1_000 * 16);
    assertEquals(rcu.stats().callbacks.pending, 2_000);
    section[Symbol.dispose]();
    reader.threadOffline();
    rcu.barrierSync();
    assertEquals(early, 1_000);
    assertEquals(rcu.memory.audit().deferred, 0);
  }));

Deno.test("a callback is no earlier than the sections that begin between it and its grace period's begin", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    let ran = false;
    rcu.callRcu(() => ran = true);
    const section = reader.readLock();
    const { callbacks } = membershipOf(rcu, "test");
    for (let i = 0; i < 5; i++) callbacks.processCallbacks();
    assertFalse(ran);
    section[Symbol.dispose]();
    reader.threadOffline();
    callbacks.processCallbacks();
    assert(ran);
  }));

Deno.test("callbacks enqueued inside a section do not run in it", () =>
  withDomain({}, (rcu) => {
    let ran = 0;
    rcu.read(() => {
      for (let i = 0; i < 500; i++) rcu.callRcu(() => ran++);
      assertEquals(ran, 0);
    });
  }));

Deno.test("what is no function is a TypeError that names it", () =>
  withDomain({}, (rcu) => {
    for (const callback of [undefined, null, 1, "f", {}]) {
      assertThrows(
        () => rcu.callRcu(callback as () => void),
        TypeError,
        `callback must be a function: received ${show(callback)}`,
      );
    }
    assertEquals(rcu.stats().callbacks.pending, 0);
  }));

Deno.test("a callback that throws is reported, and the others run", () =>
  withDomain({}, async (rcu) => {
    using errors = errorsOf(rcu);
    const log: string[] = [];
    rcu.callRcu(() => log.push("before"));
    rcu.callRcu(() => {
      throw new RangeError("mine");
    });
    rcu.callRcu(() => {
      // deno-lint-ignore no-throw-literal
      throw "text";
    });
    rcu.callRcu(() => log.push("after"));
    rcu.deferFree(rcu.memory.allocate(4));
    await rcu.barrier();
    assertEquals(log, ["before", "after"]);
    assertEquals(errors.messages, ["mine", "text"]);
    assertEquals(errors.printed, []);
  }));

Deno.test("a callback may do what any code may: enqueue, defer, allocate, wait", () =>
  withDomain({}, async (rcu) => {
    const log: string[] = [];
    rcu.callRcu(() => {
      log.push("outer");
      rcu.deferFree(rcu.memory.allocate(4));
      rcu.callRcu(() => log.push("inner"));
      rcu.synchronizeSync();
      rcu.read(() => log.push("read"));
      void rcu.barrier().then(() => log.push("barrier"));
    });
    await until("the barrier in the callback", () => log.length === 4);
    assertEquals(log, ["outer", "read", "inner", "barrier"]);
  }));

Deno.test("a callback that enqueues itself again lets go of the thread every time", () =>
  withDomain({}, async (rcu) => {
    let rounds = 0;
    let stop = false;
    const again = (): void => {
      rounds++;
      if (!stop) rcu.callRcu(again);
    };
    again();
    let turns = 0;
    while (rounds < 50) {
      turns++;
      const before = rounds;
      await new Promise((resolve) => setTimeout(resolve));
      assert(rounds - before <= 4, "a few rounds a turn");
    }
    assert(turns > 10);
    const before = rounds;
    rcu.barrierSync();
    await rcu.barrier();
    assert(rounds - before <= 8, "a barrier does not wait for later ones");
    stop = true;
  }));

Deno.test("callbacks that wait for memory run those that have become ready after themselves", () =>
  withDomain({ capacity: 2 ** 21 }, async (rcu) => {
    const { largest } = membershipOf(rcu, "test").heap;
    const log: string[] = [];
    rcu.callRcu(() => {
      const all = rcu.memory.allocate(largest);
      rcu.callRcu(() => log.push("second"));
      rcu.deferFree(all);
      // Waits for the grace period of the block, and of the callback with it.
      rcu.memory.free(rcu.memory.allocate(largest));
      log.push("first");
    });
    await rcu.barrier();
    await until("both", () => log.length === 2);
    assertEquals(log, ["first", "second"]);
  }));

Deno.test("statistics count what waits, what has run, and the most that waited", () =>
  withDomain({ highWater: 1e6 }, async (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    for (let i = 0; i < 300; i++) rcu.callRcu(() => {});
    for (let i = 0; i < 200; i++) rcu.deferFree(rcu.memory.allocate(4));
    const { callbacks, readers } = rcu.stats();
    assertEquals(callbacks, { pending: 500, peak: 500, invoked: 0, lost: 0 });
    assertEquals(readers.map(({ pending }) => pending), [500, 0]);
    section[Symbol.dispose]();
    reader.threadOffline();
    await rcu.barrier();
    rcu.callRcu(() => {});
    assertEquals(rcu.stats().callbacks, {
      pending: 1,
      peak: 500,
      invoked: 500,
      lost: 0,
    });
  }));

Deno.test("the most that waited is kept when another thread has the record of the one that saw it", () =>
  withDomain({ highWater: 1e6 }, async (rcu) => {
    const peak = () => rcu.stats().callbacks.peak;
    const ids: number[] = [];
    for (const count of [300, 1]) {
      const section = rcu.readLock();
      const member = Rcu.attach(rcu.handle);
      ids.push(member.readerId);
      for (let i = 0; i < count; i++) member.callRcu(() => {});
      assertEquals(member.stats().callbacks.pending, count);
      assertEquals(peak(), 300);
      section[Symbol.dispose]();
      rcu.threadOffline();
      await member.barrier();
      member.close();
      assertEquals(peak(), 300);
    }
    assertEquals(ids[0], ids[1]);
  }));

Deno.test("beyond highWater the pending period is forced once per so many callbacks", () =>
  withDomain({ highWater: 640 }, (rcu) => {
    const forced = () => rcu.stats().gracePeriods.forced;
    for (let i = 0; i < 5_000; i++) rcu.deferFree(rcu.memory.allocate(4));
    assertEquals(forced(), 0, "nobody is in the way: no overload");
    rcu.barrierSync();
    using reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    const counts: number[] = [];
    for (let i = 1; i <= 3_200; i++) {
      rcu.deferFree(rcu.memory.allocate(4));
      if (i % 640 === 0) counts.push(forced());
    }
    assertEquals(counts, [1, 2, 3, 4, 5]);
    section[Symbol.dispose]();
    reader.threadOffline();
    rcu.barrierSync();
    for (let i = 0; i < 600; i++) rcu.deferFree(rcu.memory.allocate(4));
    assertEquals(forced(), 5, "the overload is over");
  }));

/** A timer as Deno makes them: the process lives until it fires while it has a reference. */
interface Held {
  hasRef(): boolean;
}

Deno.test("a closure that waits keeps the process alive, a deferred block does not", () =>
  withDomain({}, async (rcu) => {
    using timers = spy(globalThis, "setTimeout");
    const held = () =>
      timers.calls.some(({ returned }) =>
        (returned as unknown as Held).hasRef()
      );
    rcu.deferFree(rcu.memory.allocate(4));
    await undefined; // A microtask sets the timer.
    assertEquals([timers.calls.length, held()], [1, false]);
    rcu.callRcu(() => {});
    assert(held(), "the timer of the deferred block is held now");
    rcu.barrierSync();
    assertFalse(held(), "no closure waits any more");
    let ran = false;
    rcu.callRcu(() => ran = true);
    rcu.deferFree(rcu.memory.allocate(4));
    assert(held());
    await until("it has run", () => ran);
  }));
