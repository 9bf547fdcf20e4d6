import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { type GracePeriodCookie, Rcu } from "../mod.ts";
import { HEADER_MAX_READERS, layout } from "../src/_layout.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { withDomain } from "./_audit.ts";
import { show } from "../src/memory/_codec.ts";
import { withWorkers } from "./_workers.ts";

const HALF = 2 ** 30;

/** A domain with two further threads, which the scenario may leave online but not in a section. */
function threads(
  use: (rcu: Rcu, a: Rcu, b: Rcu) => void,
): Promise<void> {
  return withDomain({}, (rcu) => {
    using a = Rcu.attach(rcu.handle, { name: "a" });
    using b = Rcu.attach(rcu.handle, { name: "b" });
    use(rcu, a, b);
  });
}

/** Sets a domain of which every thread is offline to the state after so many periods. */
function fastForward(rcu: Rcu, started: number): void {
  const { words } = rcu.memory;
  const { sequence } = layout(words.length, words[HEADER_MAX_READERS]);
  const value = (started % (2 * HALF) * 2 + 1) | 0;
  Atomics.store(words, sequence, value);
  Atomics.store(words, sequence + 1, Math.floor(started / HALF));
  Atomics.store(words, sequence + LINE, value);
}

Deno.test("a cookie names the next period when none is in progress, else the one after", () =>
  threads((rcu, a) => {
    a.threadOnline();
    const cookies = [1, 2, 3].map(() => rcu.startPoll());
    assertEquals<number[]>(cookies, [1, 2, 2]);
    a.quiescentState();
    assertFalse(rcu.poll(cookies[1]));
    assertEquals<number>(rcu.startPoll(), 3);
    a.threadOffline();
    assert(rcu.poll(cookies[1]));
    assertEquals<number>(rcu.startPoll(), 3);
  }));

Deno.test("a period never ends before the sections that were open when it began", () =>
  threads((rcu, a, b) => {
    const sections = [a.readLock(), b.readLock(), b.readLock()];
    const cookie = rcu.startPoll();
    for (const section of sections) {
      for (let i = 0; i < 10; i++) assertFalse(rcu.poll(cookie));
      section[Symbol.dispose]();
      a.quiescentState();
    }
    assertFalse(rcu.poll(cookie), "b is still online");
    b.threadOffline();
    assert(rcu.poll(cookie));
  }));

Deno.test("a period ends although sections that began later go on", () =>
  threads((rcu, a, b) => {
    const old = a.readLock();
    const cookie = rcu.startPoll();
    using _young = b.readLock();
    assertFalse(rcu.poll(cookie));
    old[Symbol.dispose]();
    a.quiescentState();
    using _younger = a.readLock();
    assert(rcu.poll(cookie));
    assertFalse(rcu.poll(rcu.startPoll()));
  }));

Deno.test("a period in progress does not do for what is unlinked during it", () =>
  threads((rcu, a, b) => {
    const old = a.readLock();
    const before = rcu.startPoll();
    using _during = b.readLock();
    const during = rcu.startPoll();
    old[Symbol.dispose]();
    a.threadOffline();
    assert(rcu.poll(before));
    assertFalse(rcu.poll(during), "b may have seen it before it was unlinked");
  }));

Deno.test("a cookie that has been true stays true for ever after", () =>
  threads((rcu, a) => {
    const cookies: GracePeriodCookie[] = [];
    for (let i = 0; i < 300; i++) {
      const cookie = rcu.startPoll();
      cookies.push(cookie);
      assert(rcu.poll(cookie));
      if (i % 50 === 0) assert(cookies.every((cookie) => rcu.poll(cookie)));
    }
    using _section = a.readLock();
    rcu.startPoll();
    assert(cookies.every((cookie) => a.poll(cookie)));
    fastForward(rcu, 5 * HALF - 1);
    assert(cookies.every((cookie) => rcu.poll(cookie)));
  }));

Deno.test("a cookie is good in every thread of its domain", () =>
  threads((rcu, a, b) => {
    const section = b.readLock();
    const cookie = rcu.startPoll();
    assertFalse(a.poll(cookie));
    section[Symbol.dispose]();
    b.quiescentState();
    assert(a.poll(cookie));
    assert(b.poll(cookie));
  }));

Deno.test("a thread's own sections do not hold up what it polls between them", () =>
  threads((rcu) => {
    rcu.read(() => {});
    const cookie = rcu.startPoll();
    rcu.read(() => assertFalse(rcu.poll(cookie)));
    assert(rcu.poll(cookie));
  }));

Deno.test("a cookie that startPoll() cannot have returned is a RangeError that names it", () =>
  threads((rcu) => {
    rcu.synchronizeSync();
    const far = rcu.stats().gracePeriods.started + 2;
    const wrong = [-1, 1.5, NaN, Infinity, far, 2 ** 60, "1", null, undefined];
    for (const cookie of wrong) {
      assertThrows(
        () => rcu.poll(cookie as GracePeriodCookie),
        RangeError,
        `must come from startPoll() of the same domain: received ${
          show(cookie)
        }`,
      );
    }
    using foreign = Rcu.create({ capacity: 2 ** 21 });
    for (let i = 0; i < 10; i++) foreign.synchronizeSync();
    assertThrows(() => rcu.poll(foreign.startPoll()), RangeError);
  }));

for (const half of [1, 2, 3, 4]) {
  Deno.test(`sections, cookies and deferred blocks work across half turn ${half} of the sequence`, () =>
    threads((rcu, a, b) => {
      const first = half * HALF - 6;
      fastForward(rcu, first);
      assertEquals(rcu.stats().gracePeriods.started, first);
      let kept: GracePeriodCookie | undefined;
      for (let i = 0; i < 12; i++) {
        const [reader, other] = i % 2 === 0 ? [a, b] : [b, a];
        const section = reader.readLock();
        const block = rcu.memory.allocate(4);
        rcu.deferFree(block);
        const cookie = rcu.startPoll();
        assertEquals(cookie, first + i + 1 as GracePeriodCookie);
        assertFalse(rcu.poll(cookie));
        const observed = rcu.stats().readers[reader.readerId].observed;
        assertEquals(observed, first + i);
        section[Symbol.dispose]();
        using _later = other.readLock();
        reader.threadOffline();
        assert(rcu.poll(cookie));
        _later[Symbol.dispose]();
        other.threadOffline();
        assert(rcu.poll(kept ?? cookie));
        kept ??= cookie;
      }
      const { started, completed } = rcu.stats().gracePeriods;
      assertEquals([started, completed], [first + 12, first + 12]);
      rcu.barrierSync();
      assertEquals(rcu.memory.audit().deferred, 0);
    }));
}

for (const start of [0, HALF - 1_000, 2 * HALF - 1_000]) {
  Deno.test(`threads that start periods at once share them, from ${start} on`, () =>
    withDomain(
      {},
      (rcu) =>
        withWorkers("_reader_worker.ts", 2, async (...workers) => {
          fastForward(rcu, start);
          for (const worker of workers) {
            await worker.call("join", { handle: rcu.handle });
          }
          const running = workers.map((worker) =>
            worker.call<number[]>("periods", 5_000)
          );
          const cookies = await Promise.all(running);
          const { started, completed } = rcu.stats().gracePeriods;
          // The last one may have been begun by a thread that turned out not to need it.
          assert(started - completed <= 1);
          // Each wait needed a period of its own, or one that the other thread had begun; and a
          // thread that looks while the other one ends a period may begin one too many.
          assert(started - start >= 5_000 && started - start <= 20_000);
          for (const list of cookies) {
            list.forEach((cookie, i) => {
              assert(cookie > (i === 0 ? start : list[i - 1]));
              assert(cookie <= started);
            });
          }
          for (const worker of workers) await worker.call("leave");
        }),
    ));
}
