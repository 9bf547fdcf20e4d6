// The "stall" event, in domains of real threads.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  Rcu,
  type RcuOptions,
  RcuStallError,
  runReclaimer,
  type StallReport,
} from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { stallsOf, warnings } from "./_stalls.ts";
import {
  PATIENCE,
  sharedWords,
  tell,
  type TestWorker,
  until,
  waitFor,
  withWorkers,
} from "./_workers.ts";

/** What counts as a stall here, in ms. */
const T = 10;

/** Runs a scenario with readers, each of which is in a section until it is released. */
async function withHolders(
  names: string[],
  options: RcuOptions,
  use: (rcu: Rcu, release: () => Promise<void>) => Promise<void>,
): Promise<void> {
  using _warned = warnings();
  await withDomain(
    { stallTimeout: T, ...options },
    (rcu) =>
      withWorkers("_stall_worker.ts", names.length, async (...workers) => {
        const held: (() => Promise<void>)[] = [];
        for (const [i, worker] of workers.entries()) {
          await worker.call("join", { handle: rcu.handle, name: names[i] });
          held.push(holdWith(worker));
        }
        const release = async () => {
          for (const end of held.splice(0)) await end();
        };
        await use(rcu, release);
        await release();
        for (const worker of workers) await worker.call("leave");
      }),
  );
}

function holdWith(worker: TestWorker): () => Promise<void> {
  const words = sharedWords(2);
  const over = worker.call("hold", words);
  waitFor(words, 0);
  return async () => {
    tell(words, 1);
    await over;
  };
}

/** Asserts that stalls of one period were reported at T, 3 T, 7 T and so on. */
function assertDoubling(reports: StallReport[]): void {
  let due = T;
  for (const { age } of reports) {
    assert(age >= due, `${age} ms, due at ${due}`);
    while (due <= age) due = 2 * due + T;
  }
}

/** Lets the event loop turn for much longer than a stall takes to be noticed. */
async function linger(): Promise<void> {
  const end = performance.now() + 8 * T;
  await until("a while", () => performance.now() > end);
}

Deno.test("a stall is reported after stallTimeout and at doubling intervals, naming every reader, its age and how far behind", () =>
  withHolders(["one", ""], {}, async (rcu, release) => {
    using stalls = stallsOf(rcu);
    rcu.callRcu(() => {});
    const waiting = rcu.synchronize();
    await stalls.come(3);
    await release();
    await waiting;
    await rcu.barrier();
    const { reports, printed } = stalls;
    assertDoubling(reports);
    for (const { age, readers, pending } of reports) {
      assertEquals([readers, pending], [[
        { id: 1, name: "one", age, behind: 1 },
        { id: 2, name: "", age, behind: 1 },
      ], 1]);
    }
    assertEquals(printed, []);
  }));

Deno.test("a stall is over when the period ends, and the next one is counted from its own beginning", () =>
  withHolders(
    ["first"],
    {},
    (rcu, release) =>
      withWorkers("_stall_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "second" });
        using stalls = stallsOf(rcu);
        let waiting = rcu.synchronize();
        await stalls.come(2);
        await release();
        await waiting;
        const { length } = stalls.reports;
        await linger();
        assertEquals(stalls.reports.length, length);
        const end = holdWith(worker);
        waiting = rcu.synchronize();
        await stalls.come(length + 2);
        await end();
        await waiting;
        const next = stalls.reports.slice(length);
        assertDoubling(next);
        assertEquals(next.map(({ readers }) => readers.map((r) => r.name)), [
          ...next.map(() => ["second"]),
        ]);
        await worker.call("leave");
      }),
  ));

Deno.test("a reader in a long section is no stall while nobody waits for a grace period", () =>
  withHolders(["long"], {}, async (rcu, release) => {
    using stalls = stallsOf(rcu);
    rcu.read(() => {});
    await linger();
    // Who has nothing to do with a period that stalls is not told of it either.
    using updater = Rcu.attach(rcu.handle);
    using heard = stallsOf(updater);
    updater.deferFree(updater.memory.allocate(4));
    await heard.come(2);
    await release();
    await updater.barrier();
    assertEquals(stalls.reports, []);
  }));

Deno.test("readers go on beside a stall", () =>
  withHolders(
    ["holder"],
    {},
    (rcu) =>
      withWorkers("_stall_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "reader" });
        using stalls = stallsOf(rcu);
        rcu.callRcu(() => {});
        const words = sharedWords(2);
        const reading = worker.call("read", words);
        await stalls.come(1);
        const before = Atomics.load(words, 0);
        await until("more sections", () => Atomics.load(words, 0) > before + 9);
        await stalls.come(2);
        tell(words, 1);
        await reading;
        for (const { readers } of stalls.reports) {
          assertEquals(readers.map(({ name }) => name), ["holder"]);
        }
        await worker.call("leave");
      }),
  ));

Deno.test("the event, a timeout and an aborted signal carry the same report", () =>
  withHolders(["holder"], {}, async (rcu) => {
    using stalls = stallsOf(rcu);
    rcu.deferFree(rcu.memory.allocate(4));
    await stalls.come(1);
    const known = ({ readers, pending }: StallReport) => ({
      pending,
      readers: readers.map(({ id, name, behind }) => ({ id, name, behind })),
    });
    const expected = known(stalls.reports[0]);
    assertEquals(expected, {
      pending: 1,
      readers: [{ id: 1, name: "holder", behind: 1 }],
    });
    let { age } = stalls.reports[0];
    const check = (report: StallReport) => {
      assertEquals(known(report), expected);
      assertEquals(report.readers[0].age, report.age);
      // However long this wait has been: it is about the same period.
      assert(report.age >= age, `${report.age} ms after ${age}`);
      age = report.age;
    };
    const { report } = assertThrows(
      () => rcu.synchronizeSync({ timeout: 0 }),
      RcuStallError,
    );
    check(report);
    for (const act of ["synchronize", "barrier"] as const) {
      const error = await assertRejects(
        () => rcu[act]({ signal: AbortSignal.timeout(1) }),
        RcuStallError,
      );
      check(error.report);
    }
  }));

for (
  const callbacks of [
    { mode: "immediate" },
    { mode: "throttled", maxBatch: 1 },
  ] as const
) {
  Deno.test(`${callbacks.mode} callbacks that wait make a thread hear of a stall`, () =>
    withHolders(["holder"], { callbacks }, async (rcu) => {
      using stalls = stallsOf(rcu);
      let ran = 0;
      for (let i = 0; i < 3; i++) rcu.callRcu(() => void ran++);
      await stalls.come(2);
      assertDoubling(stalls.reports);
      assertEquals(stalls.reports[0].pending, 3);
      assertEquals(ran, 0);
    }));
}

Deno.test("synchronizeSync() reports a stall while it lasts, and a listener may end it", () =>
  withHolders(["holder"], {}, async (rcu, release) => {
    using other = Rcu.attach(rcu.handle);
    let ending: Promise<void> | undefined;
    using stalls = stallsOf(other, { then: () => ending = release() });
    other.synchronizeSync({ timeout: PATIENCE });
    assertEquals(stalls.reports.length, 1);
    await ending;
  }));

Deno.test("barrierSync() reports a stall while it lasts, and a listener may end it", () =>
  // It gives up after as much again: that must suffice for the holder to get out of the way.
  withHolders(
    ["holder"],
    { stallTimeout: 1_000 },
    (rcu, release) =>
      withWorkers("_stall_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "witness" });
        // The period has been in the way for stallTimeout when the wait begins.
        await worker.call("wait", 1);
        let ending: Promise<void> | undefined;
        using stalls = stallsOf(rcu, { then: () => ending = release() });
        let ran = false;
        rcu.callRcu(() => ran = true);
        rcu.barrierSync();
        assertEquals([stalls.reports.length, ran], [1, true]);
        const [{ readers }] = stalls.reports;
        assertEquals(readers.map(({ name }) => name), ["holder"]);
        await ending;
        await worker.call("leave");
      }),
  ));

Deno.test("a listener may wait, read, update and close the Rcu in the middle of a wait", () =>
  withHolders(["holder"], {}, async (rcu, release) => {
    const other = Rcu.attach(rcu.handle);
    const acts: string[] = [];
    using stalls = stallsOf(other, {
      then: () => {
        if (acts.length > 0) return;
        acts.push("in");
        assertThrows(
          () => other.synchronizeSync({ timeout: 3 * T }),
          RcuStallError,
        );
        other.deferFree(other.memory.allocate(4));
        acts.push(other.stats().readers[0].name);
        other.close();
      },
    });
    const waiting = assertRejects(() => other.synchronize(), Error, "closed");
    await waiting;
    assertEquals(acts, ["in", ""]);
    // The inner wait was one of the same period.
    assertDoubling(stalls.reports);
    const { length } = stalls.reports;
    await release();
    await rcu.barrier();
    assertEquals(stalls.reports.length, length);
  }));

Deno.test("every thread that waits is told, and a late one how long it has been going on", () =>
  withHolders(
    ["holder"],
    {},
    (rcu) =>
      withWorkers("_stall_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "late" });
        using stalls = stallsOf(rcu);
        rcu.callRcu(() => {});
        await stalls.come(3);
        const [late] = await worker.call<StallReport[]>("wait", 1);
        const { age, readers } = stalls.reports[2];
        assert(late.age > age - 1, `${late.age} ms, and ${age} before`);
        assertEquals(
          late.readers.map(({ id, name }) => [id, name]),
          readers.map(({ id, name }) => [id, name]),
        );
        // Or leaving would be in the middle of a wait.
        await worker.call("leave");
      }),
  ));

Deno.test("a barrier hears of the stall for which another thread's callbacks wait", () =>
  withHolders(
    ["holder"],
    {},
    (rcu, release) =>
      withWorkers("_stall_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "updater" });
        await worker.call("defer");
        using stalls = stallsOf(rcu);
        const waiting = rcu.barrier();
        await stalls.come(2);
        await release();
        await waiting;
        assertDoubling(stalls.reports);
        assertEquals(stalls.reports[0].readers.map(({ name }) => name), [
          "holder",
        ]);
        await worker.call("leave");
      }),
  ));

Deno.test("a stall is printed unless a listener prevents it", () =>
  withHolders(["holder"], {}, async (rcu) => {
    using stalls = stallsOf(rcu, { prevent: false });
    rcu.deferFree(rcu.memory.allocate(4));
    await stalls.come(1);
    const [{ age }] = stalls.reports;
    assertEquals(
      stalls.printed[0],
      [
        `A grace period has not ended for ${Math.round(age)} ms: `,
        'reader 1 ("holder") did not pass a quiescent state; 1 callback waits; ',
        "if it is a worker that has ended without close(), it is in the way until that is proven",
      ].join(""),
    );
  }));

Deno.test("what a reclaimer waits for is reported by the Rcu that started it", () =>
  withHolders(
    ["holder"],
    { callbacks: { mode: "offloaded" } },
    async (rcu, release) => {
      using stalls = stallsOf(rcu);
      // It takes some for a thread to hand over.
      for (let i = 0; i < 200; i++) rcu.deferFree(rcu.memory.allocate(4));
      await stalls.come(2);
      await release();
      for (const { readers, pending } of stalls.reports) {
        assertEquals([readers.map((r) => r.name), pending], [["holder"], 200]);
      }
    },
  ));

Deno.test("a reclaimer of one's own prints that it waits", () =>
  withHolders(
    ["holder"],
    { callbacks: { mode: "offloaded" }, reclaimer: "none" },
    async (rcu, release) => {
      using stalls = stallsOf(rcu);
      using warned = warnings();
      const end = new AbortController();
      const done = runReclaimer(rcu.handle, { signal: end.signal });
      await until("a reclaimer", () => rcu.stats().readers.length === 3);
      for (let i = 0; i < 200; i++) rcu.deferFree(rcu.memory.allocate(4));
      await until("a warning", () => warned.printed.length > 0);
      await release();
      end.abort();
      await done;
      assert(warned.printed[0].includes('reader 1 ("holder") did not pass'));
      assertEquals(stalls.reports, []);
    },
  ));

Deno.test("addEventListener() knows the type of a stall event", () => {
  using _warned = warnings();
  using rcu = Rcu.create({ capacity: 2 ** 22, stallTimeout: 1 });
  using other = Rcu.attach(rcu.handle);
  const ages: number[] = [];
  let section: Disposable = other.readLock();
  const listener = {
    handleEvent(event: Event & { report: StallReport }) {
      event.preventDefault();
      if (ages.push(event.report.age) === 2) endSection();
    },
  };
  const endSection = () => {
    section[Symbol.dispose]();
    other.threadOffline();
  };
  rcu.addEventListener("stall", listener);
  rcu.synchronizeSync({ timeout: PATIENCE });
  assertEquals(ages.length, 2);
  section = other.readLock();
  rcu.removeEventListener("stall", listener);
  rcu.addEventListener("stall", endSection, { once: true });
  rcu.synchronizeSync({ timeout: PATIENCE });
  assertEquals(ages.length, 2);
});
