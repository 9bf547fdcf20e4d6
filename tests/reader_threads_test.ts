import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { Rcu, RcuStallError } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import type { LazyUse } from "./_reader_worker.ts";
import { assertLists, withDomain } from "./_audit.ts";
import { interleave } from "./_steps.ts";
import {
  PATIENCE,
  sharedWords,
  tell,
  waitFor,
  withWorkers,
} from "./_workers.ts";

for (const task of ["sections", "longSections"]) {
  Deno.test(`a worker in a tight loop of ${task} lets every grace period end`, () =>
    withDomain(
      {},
      (rcu) =>
        withWorkers("_reader_worker.ts", 1, async (worker) => {
          await worker.call("join", { handle: rcu.handle });
          const words = sharedWords(2);
          const looping = worker.call<number>(task, words);
          waitFor(words, 0);
          for (let i = 0; i < 20; i++) {
            rcu.synchronizeSync({ timeout: PATIENCE, expedited: i % 2 === 0 });
            await rcu.synchronize();
          }
          tell(words, 1);
          assert(await looping > 1);
          await worker.call("leave");
        }),
    ));
}

for (const announces of [true, false]) {
  const does = announces ? "announces quiescent states" : "never does";
  Deno.test(`a worker that reads once in an endless turn and ${does}`, () =>
    withDomain(
      {},
      (rcu) =>
        withWorkers("_reader_worker.ts", 1, async (worker) => {
          await worker.call("join", { handle: rcu.handle, name: "endless" });
          const words = sharedWords(2);
          const looping = worker.call("computation", { words, announces });
          waitFor(words, 0);
          if (announces) {
            rcu.synchronizeSync({ timeout: PATIENCE });
          } else {
            const { report } = assertThrows(
              () => rcu.synchronizeSync({ timeout: 20 }),
              RcuStallError,
            );
            assertEquals(report.readers.map(({ name }) => name), ["endless"]);
          }
          tell(words, 1);
          await looping;
          await rcu.synchronize();
          await worker.call("leave");
        }),
    ));
}

Deno.test("a global that Deno loads inside a section makes it no section held across an await", () =>
  withDomain(
    {},
    (rcu) =>
      withWorkers("_reader_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const { uses, errors } = await worker.call<
          { uses: LazyUse[]; errors: string[] }
        >("lazyGlobals");
        assertEquals(errors, []);
        assert(uses.some(({ ranMicrotasks }) => ranMicrotasks));
        for (const { name, ranMicrotasks, inside, after } of uses) {
          assertEquals([inside, after], [true, !ranMicrotasks], name);
        }
        await rcu.synchronize();
        await worker.call("leave");
      }),
  ));

/** A pointer to an old block, an updater that replaces it, and a reader. */
function replacement(rcu: Rcu, reader: Rcu) {
  const { memory } = rcu;
  const pointer = memory.allocate(1);
  const [old, young] = [memory.allocate(1), memory.allocate(1)];
  rcu.assignPointer(pointer, old);
  let mayReuse = false;
  let seen = 0;
  let section: Disposable | undefined;
  return {
    update: () => {
      rcu.assignPointer(pointer, young);
      mayReuse = rcu.poll(rcu.startPoll());
    },
    beginReading: () => {
      section = reader.readLock();
      seen = reader.dereference(pointer);
    },
    check: (when: string) => {
      const endangered = seen === old && mayReuse;
      section?.[Symbol.dispose]();
      reader.threadOffline();
      for (const block of [pointer, old, young]) memory.free(block);
      assertFalse(endangered, `freed under a reader: ${when}`);
      return { sawOld: seen === old, mayReuse };
    },
  };
}

Deno.test("a section that begins between any two steps of an updater is waited for, or sees the update", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    const outcomes = new Set<string>();
    interleave(() => {
      const { update, beginReading, check } = replacement(rcu, reader);
      return {
        act: update,
        other: beginReading,
        check: (step) => outcomes.add(JSON.stringify(check(`step ${step}`))),
      };
    });
    assertEquals(outcomes.size, 3, "all but the forbidden outcome");
  }));

Deno.test("an updater between any two steps of a section's begin waits for it, or is seen", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    for (const online of [false, true]) {
      interleave(() => {
        const { update, beginReading, check } = replacement(rcu, reader);
        if (online) reader.threadOnline();
        return {
          act: beginReading,
          other: update,
          check: (step) => void check(`online ${online}, step ${step}`),
        };
      });
    }
  }));

Deno.test("an updater between any two steps of a quiescent state waits for the next section, or is seen", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    for (const begun of [false, true]) {
      interleave(() => {
        const { update, beginReading, check } = replacement(rcu, reader);
        reader.threadOnline();
        if (begun) rcu.startPoll();
        return {
          act: () => {
            reader.quiescentState();
            beginReading();
          },
          other: update,
          check: (step) => void check(`begun ${begun}, step ${step}`),
        };
      });
    }
  }));

Deno.test("the check of the tests before notices a reader that does not announce itself", () =>
  withDomain({}, (rcu) => {
    using reader = Rcu.attach(rcu.handle);
    const { update, beginReading, check } = replacement(rcu, reader);
    beginReading();
    // The fault: the slot says offline while a section is open.
    const { readers, words, index } = membershipOf(reader, "test");
    Atomics.store(words, readers.slot(index), 0);
    update();
    assertThrows(() => check("forged"), Error, "freed under a reader");
    assertLists(words);
  }));
