// The mutex step by step, in one thread: what others do happens inside its own atomic operations.

import { assertEquals } from "@std/assert";
import { spy, stub } from "@std/testing/mock";
import { acquire, holderOf, lockOwner, release } from "../src/sync/_mutex.ts";

const ME = lockOwner(0, 1);
const OTHER = lockOwner(1, 1);
const WAITERS = 0x8000_0000 | 0;
const AT = 3;

function held(by: number): Int32Array {
  const words = new Int32Array(new SharedArrayBuffer(64));
  words[AT] = by;
  return words;
}

/** Has the thread's sleeps recorded, and something happen in the first of them. */
function stubWait(sleeps: unknown[][], first: () => void = () => {}) {
  return stub(Atomics, "wait", (...sleep: unknown[]) => {
    sleeps.push(sleep.slice(1));
    if (sleeps.length === 1) first();
    return "timed-out";
  });
}

Deno.test("a lock that comes free while its waiter spins is taken without a sleep, and nobody is expected to be parked", () => {
  const words = held(OTHER);
  const sleeps: unknown[][] = [];
  let pauses = 0;
  using _wait = stubWait(sleeps);
  using _pause = stub(Atomics, "pause", () => {
    if (++pauses === 10) release(words, AT);
  });
  using tries = spy(Atomics, "compareExchange");
  assertEquals(acquire(words, AT, ME, 1000), true);
  assertEquals([words[AT], sleeps, pauses], [ME, [], 10]);
  // A waiter that spins only looks: a try would take the line from the holder.
  assertEquals(tries.calls.length, 2);
});

Deno.test("a waiter that finds the lock taken again by somebody faster goes on spinning", () => {
  const words = held(OTHER);
  let pauses = 0;
  using _pause = stub(Atomics, "pause", () => {
    pauses++;
    if (pauses === 10 || pauses === 20) words[AT] = 0;
  });
  const { compareExchange } = Atomics;
  let tries = 0;
  using _faster = stub(
    Atomics,
    "compareExchange",
    ((...step: number[]) => {
      if (++tries === 2) words[AT] = OTHER;
      return compareExchange(
        ...step as never as [Int32Array, number, number, number],
      );
    }) as never,
  );
  assertEquals(acquire(words, AT, ME, 1000), true);
  assertEquals([words[AT], pauses, tries], [ME, 20, 3]);
});

Deno.test("a waiter parks after 64 looks on the value that says so, and takes the lock as one that may be waited for", () => {
  const words = held(OTHER);
  const sleeps: unknown[][] = [];
  using pause = stub(Atomics, "pause", () => {});
  using _wait = stubWait(sleeps, () => {
    assertEquals([words[AT], holderOf(words, AT)], [OTHER | WAITERS, 1]);
    release(words, AT);
  });
  using tries = spy(Atomics, "compareExchange");
  assertEquals(acquire(words, AT, ME, 1000), true);
  assertEquals(pause.calls.length, 64);
  assertEquals(words[AT], ME | WAITERS);
  // At most so long, or a wake-up that is lost for whatever reason would be lost for good.
  assertEquals(sleeps, [[AT, OTHER | WAITERS, 50]]);
  // Taken in vain, parked, taken.
  assertEquals(tries.calls.length, 3);
});

Deno.test("a waiter behind other ones does not write the lock before it sleeps", () => {
  const words = held(OTHER | WAITERS);
  const sleeps: unknown[][] = [];
  using _wait = stubWait(sleeps, () => release(words, AT));
  using tries = spy(Atomics, "compareExchange");
  assertEquals(acquire(words, AT, ME, 1000), true);
  assertEquals(sleeps.length, 1);
  assertEquals(tries.calls.length, 2);
});

Deno.test("a waiter sleeps no longer than it has time, and gives up when it is over", () => {
  const words = held(OTHER);
  const sleeps: unknown[][] = [];
  let now = 1000;
  using _now = stub(performance, "now", () => now);
  using _wait = stub(Atomics, "wait", (...sleep: unknown[]) => {
    sleeps.push(sleep.slice(1));
    now += 20;
    return "timed-out";
  });
  assertEquals(acquire(words, AT, ME, 30), false);
  // Not even for no time at all, once there is none left.
  assertEquals(sleeps.map(([, , ms]) => ms), [30, 10]);
  assertEquals(words[AT], OTHER | WAITERS);
  sleeps.length = 0;
  assertEquals(acquire(words, AT, ME, 0), false);
  assertEquals(sleeps, []);
});

Deno.test("giving a lock back wakes one waiter if there may be any, and nobody otherwise", () => {
  const words = held(ME);
  using notify = spy(Atomics, "notify");
  release(words, AT);
  assertEquals(notify.calls.length, 0);
  words[AT] = ME | WAITERS;
  release(words, AT);
  assertEquals(notify.calls.map(({ args }) => args.slice(1)), [[AT, 1]]);
  assertEquals(words[AT], 0);
});

Deno.test("a wait that has become a long one says so before each further sleep, a short one never", () => {
  for (
    const [timeout, slow] of [[200, []], [400, [250, 300, 350]]] as const
  ) {
    const begin = 5_000;
    let now = begin;
    using _now = stub(performance, "now", () => now);
    using _wait = stub(Atomics, "wait", (...sleep: unknown[]) => {
      now += sleep[3] as number;
      return "timed-out";
    });
    const told: number[] = [];
    const acquired = acquire(held(OTHER), AT, ME, timeout, () => {
      told.push(now - begin);
    });
    assertEquals(
      [acquired, told, now - begin],
      [false, [...slow], timeout],
    );
    // Nobody needs to be told.
    assertEquals(acquire(held(OTHER), AT, ME, timeout), false);
  }
});
