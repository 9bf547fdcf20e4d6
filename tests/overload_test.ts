import { assert, assertEquals, assertThrows } from "@std/assert";
import { Rcu, RcuMemoryError, type RcuOptions } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertLists, claimOf, withDomain } from "./_audit.ts";
import { OFFLOADED, POLICIES } from "./_policies.ts";
import type { Flood } from "./_policy_worker.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";

const ALL: Record<string, RcuOptions> = { ...POLICIES, ...OFFLOADED };

const HIGH_WATER = 1_000;
/**
 * A flood of 200 times highWater may reach this many times it. The reader announces a
 * quiescent state every few microseconds while it has a core, and the waits grow; the rest is for
 * the time in which it has none.
 */
const FACTOR = 20;

for (const [name, options] of Object.entries(ALL)) {
  Deno.test(`${name}: what waits stays bounded in a flood within one turn, beside a reader in a loop`, () =>
    withDomain(
      { ...options, highWater: HIGH_WATER, capacity: 2 ** 24 },
      (rcu) =>
        withWorkers("_policy_worker.ts", 2, async (flooder, reader) => {
          for (const worker of [flooder, reader]) {
            await worker.call("join", rcu.handle);
          }
          if (name in OFFLOADED) {
            await until("a reclaimer", () => claimOf(rcu.memory.words) >= 0);
          }
          const words = sharedWords(2);
          const reading = reader.call<number>("read", words);
          const { peak } = await flooder.call<Flood>("flood", {
            words,
            blocks: 200 * HIGH_WATER,
          });
          tell(words, 1);
          assert(await reading > 0);
          assert(peak <= FACTOR * HIGH_WATER, `${peak} waited`);
          for (const worker of [flooder, reader]) await worker.call("leave");
        }),
    ));

  Deno.test(`${name}: an update waits for memory that can be reclaimed, in one turn`, () =>
    withDomain({ ...options, capacity: 2 ** 21 }, (rcu) => {
      const { largest } = membershipOf(rcu, "test").heap;
      const size = Math.floor(largest / 8);
      for (let i = 0; i < 400; i++) rcu.deferFree(rcu.memory.allocate(size));
      for (let i = 0; i < 30_000; i++) rcu.deferFree(rcu.memory.allocate(64));
      const { invoked } = rcu.stats().callbacks;
      assert(invoked > 20_000, `${invoked} freed`);
    }));

  Deno.test(`${name}: memory full of live blocks is an error that says so, and is usable again afterwards`, () =>
    withDomain({ ...options, capacity: 2 ** 21 }, async (rcu) => {
      for (let round = 0; round < 3; round++) {
        const blocks: number[] = [];
        assertThrows(
          () => {
            while (true) blocks.push(rcu.memory.allocate(512));
          },
          RcuMemoryError,
          "raise capacity or store less",
        );
        for (const block of blocks) rcu.deferFree(block);
        if (round === 1) await rcu.barrier();
      }
    }));

  Deno.test(`${name}: memory that waits for a stalled reader is an error that names it`, () =>
    withDomain(
      { ...options, capacity: 2 ** 21, stallTimeout: 50 },
      async (rcu) => {
        const reader = Rcu.attach(rcu.handle, { name: "sleepy" });
        const section = reader.readLock();
        const before = rcu.memory.audit().live;
        const { message, deferred } = assertThrows(
          () => {
            while (true) rcu.deferFree(rcu.memory.allocate(2_048));
          },
          RcuMemoryError,
        );
        assert(
          message.includes('("sleepy") holds the grace period up'),
          message,
        );
        assert(deferred > 2 ** 20, `${deferred}`);
        section[Symbol.dispose]();
        reader.close();
        rcu.memory.free(rcu.memory.allocate(2_048));
        await rcu.barrier();
        assertEquals(rcu.memory.audit().live <= before, true);
      },
    ));
}

/** A domain with a reader in the way of every period. */
function blocked(
  options: RcuOptions,
  use: (rcu: Rcu, forced: () => number) => void,
): Promise<void> {
  return withDomain({ highWater: 640, ...options }, (rcu) => {
    const reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    use(rcu, () => rcu.stats().gracePeriods.forced);
    section[Symbol.dispose]();
    reader.close();
  });
}

function defer(rcu: Rcu, blocks: number): void {
  for (let i = 0; i < blocks; i++) rcu.deferFree(rcu.memory.allocate(4));
}

for (const [name, options] of Object.entries(POLICIES)) {
  Deno.test(`${name}: the period is forced once per highWater callbacks, not on every one`, () =>
    blocked(options, (rcu, forced) => {
      const counts: number[] = [];
      for (let i = 0; i < 5; i++) {
        defer(rcu, 640);
        counts.push(forced());
      }
      assertEquals(counts, [1, 2, 3, 4, 5]);
    }));
}

Deno.test("a thread leaves the forcing to another one that has just done it, every other time", () =>
  blocked({}, (rcu, forced) => {
    using other = Rcu.attach(rcu.handle);
    const counts: number[] = [];
    for (let i = 0; i < 4; i++) {
      defer(rcu, 640);
      counts.push(forced());
      defer(other, 640);
      counts.push(forced());
    }
    // The other sees that I have just done it, then does it itself, which I see, and so on.
    assertEquals(counts, [1, 1, 2, 3, 3, 4, 5, 5]);
  }));

Deno.test("that an earlier period was forced does not do for the one in progress", () =>
  withDomain({ highWater: 640 }, (rcu) => {
    const other = Rcu.attach(rcu.handle);
    const forced = () => rcu.stats().gracePeriods.forced;
    let section = other.readLock();
    defer(rcu, 640);
    assertEquals(forced(), 1);
    section[Symbol.dispose]();
    other.threadOffline();
    rcu.barrierSync();
    // A later period, and the second thread has not looked since.
    const third = Rcu.attach(rcu.handle);
    section = other.readLock();
    rcu.poll(rcu.startPoll());
    defer(third, 640);
    assertEquals(forced(), 2);
    section[Symbol.dispose]();
    third.close();
    other.close();
  }));

Deno.test("in overload a thread takes over what threads that left had deferred", () =>
  blocked({}, (rcu) => {
    const leaving = Rcu.attach(rcu.handle);
    defer(leaving, 100);
    leaving.close();
    const { orphans } = membershipOf(rcu, "test");
    assertEquals(orphans.count, 100);
    defer(rcu, 600);
    assertEquals(orphans.count, 100);
    defer(rcu, 100);
    assertEquals(orphans.count, 0);
    assertLists(rcu.memory.words);
  }));

Deno.test("in overload a thread takes back what a reclaimer that cannot keep up has not taken", () =>
  withDomain({
    callbacks: { mode: "offloaded" },
    reclaimer: "none",
    highWater: 640,
  }, async (rcu) => {
    const slow = Rcu.attach(rcu.handle);
    const { owner } = membershipOf(slow, "test");
    const { callbacks, handover } = membershipOf(rcu, "test");
    assert(handover!.claim(owner));
    defer(rcu, 512);
    assertEquals([handover!.count, callbacks.invoked], [512, 0]);
    let most = 0;
    for (let i = 0; i < 10_000; i++) {
      defer(rcu, 1);
      most = Math.max(most, rcu.stats().callbacks.pending);
    }
    assert(callbacks.invoked > 5_000, `${callbacks.invoked} freed`);
    assert(most <= 2 * 640, `${most} waited`);
    handover!.resign(owner);
    slow.close();
    await rcu.barrier();
    assertLists(rcu.memory.words);
  }));
