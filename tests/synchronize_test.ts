import {
  assert,
  assertEquals,
  assertFalse,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { Rcu, RcuStallError } from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { warnings } from "./_stalls.ts";
import { show } from "../src/memory/_codec.ts";
import {
  PATIENCE,
  sharedWords,
  tell,
  waitFor,
  withWorkers,
} from "./_workers.ts";

Deno.test("a wait with nobody in the way returns, and its period has ended", () =>
  withDomain({}, async (rcu) => {
    const ended = () => rcu.stats().gracePeriods.completed;
    rcu.synchronizeSync();
    assertEquals(ended(), 1);
    rcu.synchronizeSync({ timeout: 0 });
    assertEquals(ended(), 2);
    await rcu.synchronize();
    assertEquals(ended(), 3);
    rcu.read(() => {});
    rcu.synchronizeSync({ timeout: 0 });
    rcu.read(() => {});
    await rcu.synchronize({ expedited: true });
    assertEquals(ended(), 5);
  }));

Deno.test("waits that ask for an expedited period are counted", () =>
  withDomain({}, async (rcu) => {
    rcu.synchronizeSync();
    rcu.synchronizeSync({ expedited: true });
    await rcu.synchronize({ expedited: true });
    await rcu.synchronize({ expedited: false });
    assertEquals(rcu.stats().gracePeriods.expedited, 2);
  }));

Deno.test("to wait inside a section is an error", () =>
  withDomain({}, async (rcu) => {
    const section = rcu.readLock();
    const why = "Cannot wait for a grace period inside a read section";
    assertThrows(() => rcu.synchronizeSync(), Error, why);
    const waiting = assertRejects(() => rcu.synchronize(), Error, why);
    section[Symbol.dispose]();
    await waiting;
    assertEquals(rcu.stats().gracePeriods.started, 0);
  }));

Deno.test("a timeout that is no number from 0 is an error that names it", () =>
  withDomain({}, (rcu) => {
    for (const timeout of [-1, NaN, "5" as unknown as number]) {
      assertThrows(
        () => rcu.synchronizeSync({ timeout }),
        typeof timeout === "number" ? RangeError : TypeError,
        `timeout must be a number of ms from 0: received ${show(timeout)}`,
      );
    }
    rcu.synchronizeSync({ timeout: Infinity });
  }));

for (const expedited of [false, true]) {
  Deno.test(`a blocking wait that runs into its limit reports who is in the way, expedited: ${expedited}`, () =>
    withDomain({ stallTimeout: 15 }, (rcu) => {
      using _warned = warnings();
      using slow = Rcu.attach(rcu.handle, { name: "slow" });
      using nameless = Rcu.attach(rcu.handle);
      using idle = Rcu.attach(rcu.handle, { name: "idle" });
      const sections = [slow.readLock(), nameless.readLock()];
      idle.read(() => {});
      idle.threadOffline();
      rcu.callRcu(() => {});
      for (const [options, ms] of [[{ timeout: 10 }, 10], [{}, 15]] as const) {
        const error = assertThrows(
          () => rcu.synchronizeSync({ ...options, expedited }),
          RcuStallError,
          `Cannot wait for a grace period within ${ms} ms: ` +
            'reader 1 ("slow"), reader 2 did not pass a quiescent state; ' +
            "1 callback waits",
        );
        assertEquals(error.name, "RcuStallError");
        const { age } = error.report;
        assert(age >= ms, `${age} ms after ${ms}`);
        assertEquals(error.report, {
          age,
          readers: [
            { id: 1, name: "slow", age, behind: 1 },
            { id: 2, name: "", age, behind: 1 },
          ],
          pending: 1,
        });
      }
      sections[0][Symbol.dispose]();
      slow.threadOffline();
      const { report } = assertThrows(
        () => rcu.synchronizeSync({ timeout: 0 }),
        RcuStallError,
      );
      assertEquals(report.readers.map(({ id }) => id), [2]);
      sections[1][Symbol.dispose]();
      nameless.threadOffline();
      rcu.synchronizeSync({ timeout: 0 });
    }));
}

Deno.test("a blocking wait ends when a worker's section does", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        for (const expedited of [false, true]) {
          const words = sharedWords(2);
          const held = worker.call("hold", words);
          waitFor(words, 0);
          assertThrows(
            () => rcu.synchronizeSync({ timeout: 5, expedited }),
            RcuStallError,
          );
          tell(words, 1);
          rcu.synchronizeSync({ timeout: PATIENCE, expedited });
          await held;
        }
        await worker.call("leave");
      }),
  ));

for (const expedited of [false, true]) {
  Deno.test(`an asynchronous wait lets the event loop turn until a worker's section ends, expedited: ${expedited}`, () =>
    withDomain(
      {},
      (rcu) =>
        withWorkers("_reader_worker.ts", 1, async (worker) => {
          await worker.call("join", { handle: rcu.handle });
          const words = sharedWords(2);
          const held = worker.call("hold", words);
          waitFor(words, 0);
          let ended = false;
          const waits = [1, 2, 3].map(async () => {
            await rcu.synchronize({ expedited });
            ended = true;
          });
          for (let turn = 0; turn < 30; turn++) {
            await new Promise((resolve) => setTimeout(resolve));
            rcu.read(() => {});
            assertFalse(ended);
          }
          tell(words, 1);
          await Promise.all([held, ...waits]);
          await worker.call("leave");
        }),
    ));
}

Deno.test("a signal ends an asynchronous wait with the report and its reason", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle, name: "holder" });
        const words = sharedWords(2);
        const held = worker.call("hold", words);
        waitFor(words, 0);
        for (const act of ["synchronize", "barrier"] as const) {
          rcu.callRcu(() => {});
          const patience = new AbortController();
          const reason = new TypeError("mine");
          const { signal } = patience;
          const waiting = assertRejects(
            () => rcu[act]({ signal }),
            RcuStallError,
            'as the signal was aborted: reader 1 ("holder") did not pass',
          );
          setTimeout(() => patience.abort(reason), 1);
          const { cause, report } = await waiting;
          assert(cause === reason);
          assertEquals(report.readers.map(({ id, name }) => [id, name]), [
            [1, "holder"],
          ]);
          assert(report.age >= 0 && report.readers[0].behind >= 1);
        }
        tell(words, 1);
        await held;
        await worker.call("leave");
      }),
  ));

Deno.test("a signal that is aborted already ends a wait before it begins", () =>
  withDomain({}, async (rcu) => {
    const reason = new TypeError("mine");
    const signal = AbortSignal.abort(reason);
    for (const act of ["synchronize", "barrier"] as const) {
      const error = await assertRejects(() => rcu[act]({ signal }), Error);
      assert(error === reason || (error as Error).cause === reason);
    }
    assertEquals(rcu.stats().gracePeriods.started, 0);
  }));

Deno.test("a signal that is aborted later changes nothing", () =>
  withDomain({}, async (rcu) => {
    const patience = new AbortController();
    const { signal } = patience;
    await rcu.synchronize({ signal });
    await rcu.barrier({ signal });
    patience.abort();
  }));

Deno.test("a wait that is under way ends with the membership", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const words = sharedWords(2);
        const held = worker.call("hold", words);
        waitFor(words, 0);
        const other = Rcu.attach(rcu.handle);
        const waiting = other.synchronize();
        other.close();
        await assertRejects(() => waiting, Error, "it is closed");
        tell(words, 1);
        await held;
        await worker.call("leave");
      }),
  ));
