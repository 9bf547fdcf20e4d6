import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { stub } from "@std/testing/mock";
import { Rcu, RcuStallError, Srcu, type StallReport } from "../mod.ts";
import { ReaderTable, readerTableWords } from "../src/readers/_slots.ts";
import { SrcuPeriods, srcuWords } from "../src/srcu/_periods.ts";
import { withDomain } from "./_audit.ts";
import { atEveryStep } from "./_steps.ts";
import { until, withWorkers } from "./_workers.ts";

const WORKER = "./_srcu_worker.ts";

/** Opens domains of sections, which stay, before a test. */
function opens(...names: string[]): (rcu: Rcu) => void {
  return (rcu) => names.forEach((name) => Srcu.open(rcu, name));
}

/** Whether something has come to pass. */
function watch(promise: Promise<unknown>): { done: boolean } {
  const seen = { done: false };
  promise.then(() => seen.done = true);
  return seen;
}

/** Lets the event loop turn for as long as a wait's pauses are at most, and more. */
async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

Deno.test("synchronize waits for a section that awaits, and for no other thing", async () => {
  await withDomain({}, async (rcu) => {
    const srcu = Srcu.open(rcu, "a");
    await srcu.synchronize();
    const section = await srcu.read();
    const waiting = srcu.synchronize();
    const seen = watch(waiting);
    await turns();
    assertEquals(seen.done, false);
    assert(section.open);
    await section[Symbol.asyncDispose]();
    assert(!section.open);
    await waiting;
  }, opens("a"));
});

Deno.test("synchronize waits for sections of other threads, many of one thread among them", async () => {
  await withDomain({}, async (rcu) => {
    await withWorkers(WORKER, 2, async (one, two) => {
      for (const worker of [one, two]) {
        await worker.call("attach", rcu.handle);
        await worker.call("begin", { name: "a", count: 3 });
      }
      const srcu = Srcu.open(rcu, "a");
      const waiting = srcu.synchronize();
      const seen = watch(waiting);
      await one.call("end", 3);
      await two.call("end", 2);
      // Later ones are not waited for.
      await one.call("begin", { name: "a", count: 5 });
      await turns();
      assertEquals(seen.done, false);
      await two.call("end", 1);
      await waiting;
      await one.call("end", 5);
      for (const worker of [one, two]) await worker.call("close");
    });
  }, opens("a"));
});

Deno.test("domains of sections do not wait for each other, nor does Rcu for them", async () => {
  await withDomain({}, async (rcu) => {
    const held = Srcu.open(rcu, "held").read();
    await Srcu.open(rcu, "free").synchronize();
    await rcu.synchronize();
    held[Symbol.dispose]();
  }, opens("held", "free"));
});

Deno.test("a wait ends although sections overlap all the time, several waits at once too", async () => {
  await withDomain({}, async (rcu) => {
    const srcu = Srcu.open(rcu, "a");
    let over = false;
    let begun = 0;
    const reader = async (offset: number) => {
      await new Promise((resolve) => setTimeout(resolve, offset));
      while (!over) {
        begun++;
        await using _section = srcu.read();
        await new Promise((resolve) => setTimeout(resolve, 3));
      }
    };
    const readers = [0, 1, 2].map(reader);
    await until("sections overlap", () => begun >= readers.length);
    for (let i = 0; i < 5; i++) {
      await Promise.all([srcu.synchronize(), srcu.synchronize()]);
    }
    over = true;
    await Promise.all(readers);
    assertGreater(begun, readers.length);
  }, opens("a"));
});

Deno.test("no section of any thread finds a block freed that it found before an await", async () => {
  await withDomain({ debug: true }, async (rcu) => {
    await withWorkers(WORKER, 2, async (one, two) => {
      const { memory } = rcu;
      const { words } = memory;
      const make = () => {
        const block = memory.allocate(4);
        Atomics.store(words, block, 1);
        return block;
      };
      const srcu = Srcu.open(rcu, "blocks");
      const pointer = memory.allocate(4);
      words[pointer] = 0;
      rcu.assignPointer(pointer, make());
      let reading = 2;
      const looked = [one, two].map(async (worker) => {
        await worker.call("attach", rcu.handle);
        try {
          return await worker.call<{ wrong: number; looks: number }>(
            "look",
            { pointer, rounds: 60 },
          );
        } finally {
          reading--;
        }
      });
      let updates = 0;
      for (; reading > 0; updates++) {
        const old = words[pointer];
        rcu.assignPointer(pointer, make());
        await srcu.synchronize();
        await turns(1);
        // Whoever still looks sees it.
        Atomics.store(words, old, 0);
        memory.free(old);
      }
      for (const { wrong, looks } of await Promise.all(looked)) {
        assertEquals(wrong, 0);
        assertGreater(looks, 0);
      }
      assertGreater(updates, 0);
      for (const worker of [one, two]) await worker.call("close");
      const last = words[pointer];
      rcu.assignPointer(pointer, 0);
      await srcu.synchronize();
      memory.free(last);
      memory.free(pointer);
    });
  }, opens("blocks"));
});

Deno.test("a wait that lasts says again and again which threads hold it up, and nothing while nobody does", async () => {
  await withDomain({ stallTimeout: 10 }, async (rcu) => {
    await withWorkers(WORKER, 1, async (worker) => {
      await worker.call("attach", rcu.handle);
      await worker.call("begin", { name: "a", count: 1 });
      const reports: StallReport[] = [];
      rcu.addEventListener("stall", (event) => {
        event.preventDefault();
        reports.push(event.report);
      });
      const waiting = Srcu.open(rcu, "a").synchronize();
      await Srcu.open(rcu, "b").synchronize();
      await until("two stalls", () => reports.length === 2);
      await worker.call("end", 1);
      await waiting;
      for (const { readers } of reports) {
        assertEquals(readers.map(({ name }) => name), ["holder"]);
      }
      assert(reports[0].age >= 10 && reports[1].age >= 30);
      await worker.call("close");
    });
  }, opens("a", "b"));
});

Deno.test("without a listener, a wait that lasts is printed with those who hold it up", async () => {
  await withDomain({ stallTimeout: 5, name: "main" }, async (rcu) => {
    const srcu = Srcu.open(rcu, "a");
    using warn = stub(console, "warn");
    const section = srcu.read();
    const waiting = srcu.synchronize();
    await until("a warning", () => warn.calls.length > 0);
    section[Symbol.dispose]();
    await waiting;
    assertMatch(
      warn.calls[0].args[0],
      /^A wait for sections that may await has not ended for \d+ ms: reader 0 \("main"\) has not left/,
    );
  }, opens("a"));
});

Deno.test("a wait ends when a thread with sections has died", async () => {
  await withDomain({}, async (rcu) => {
    const srcu = Srcu.open(rcu, "a");
    let waiting = Promise.resolve();
    // The worker ends without leaving.
    await withWorkers(WORKER, 1, async (worker) => {
      await worker.call("attach", rcu.handle);
      await worker.call("begin", { name: "a", count: 3 });
      waiting = srcu.synchronize();
      await turns();
    });
    await waiting;
    await until("a burial", () => rcu.stats().readers.length === 1);
  }, opens("a"));
});

Deno.test("a wait that is given up says which threads hold it up, and the next one ends", async () => {
  await withDomain({}, async (rcu) => {
    await withWorkers(WORKER, 1, async (worker) => {
      await worker.call("attach", rcu.handle);
      await worker.call("begin", { name: "a", count: 2 });
      const srcu = Srcu.open(rcu, "a");
      const abort = new AbortController();
      const waiting = srcu.synchronize({ signal: abort.signal });
      await turns();
      abort.abort("enough");
      const error = await assertRejects(() => waiting, RcuStallError);
      assertEquals(error.cause, "enough");
      const [reader, ...others] = error.report.readers;
      assertEquals(others, []);
      assertEquals([reader.id, reader.name, reader.behind], [1, "holder", 1]);
      assert(
        error.message.endsWith(
          'reader 1 ("holder") has not left a section that began before',
        ),
        error.message,
      );
      const late = srcu.synchronize({ signal: AbortSignal.abort("late") });
      assertEquals(
        (await assertRejects(() => late, RcuStallError)).cause,
        "late",
      );
      await worker.call("end", 2);
      await srcu.synchronize();
      await worker.call("close");
    });
  }, opens("a"));
});

Deno.test("the end of a membership ends its sections, and its successor's are waited for", async () => {
  await withDomain({}, async (rcu) => {
    const other = Rcu.attach(rcu.handle);
    const section = Srcu.open(other, "a").read();
    const srcu = Srcu.open(rcu, "a");
    const waiting = srcu.synchronize();
    other.close();
    await waiting;
    assert(!section.open);
    using next = Rcu.attach(rcu.handle);
    assertEquals(next.readerId, other.readerId);
    const held = Srcu.open(next, "a").read();
    // Not the new one's to end.
    section[Symbol.dispose]();
    const again = srcu.synchronize();
    const seen = watch(again);
    await turns();
    assertEquals(seen.done, false);
    held[Symbol.dispose]();
    held[Symbol.dispose]();
    await again;
  }, opens("a"));
});

Deno.test("a closed membership can neither read nor wait, and ends waits", async () => {
  await withDomain({}, async (rcu) => {
    using other = Rcu.attach(rcu.handle);
    await using _section = Srcu.open(rcu, "a").read();
    const srcu = Srcu.open(other, "a");
    const waiting = srcu.synchronize();
    const rejected = assertRejects(() => waiting, Error, "closed");
    other.close();
    await rejected;
    assertThrows(() => srcu.read(), Error, "closed");
    await assertRejects(() => srcu.synchronize(), Error, "closed");
  }, opens("a"));
});

Deno.test("an Srcu refuses what it cannot use", async () => {
  await withDomain({}, async (rcu) => {
    assertThrows(() => Srcu.open({} as Rcu, "a"), TypeError, "an Rcu");
    assertThrows(() => Srcu.open(rcu, 5 as unknown as string), TypeError, "5");
    const srcu = Srcu.open(rcu, "a");
    const wait = (options: unknown) => () =>
      srcu.synchronize(options as object);
    await assertRejects(wait({ timeout: 5 }), TypeError, "timeout");
    await assertRejects(wait({ signal: 5 }), TypeError, "signal");
    assertThrows(() => structuredClone(srcu), Error, "Srcu");
    assertEquals(JSON.stringify(srcu), "{}");
  }, opens("a"));
});

// Every order of the steps

/** Two threads' views of one domain of sections, without the threads. */
function pair(state = 0) {
  const maxReaders = 3;
  const table = readerTableWords(maxReaders);
  const words = new Int32Array(
    new SharedArrayBuffer((64 + table + srcuWords(maxReaders)) * 4),
  );
  const readers = new ReaderTable(words, 64, maxReaders);
  const base = 64 + table;
  words[base] = state;
  const [reader, updater] = [0, 1].map(() => {
    const { index } = readers.register()!;
    return new SrcuPeriods(words, base, readers, index);
  });
  return { words, readers, reader, updater, base };
}

/** Has periods begin and end, as far as they do. */
function elapse(updater: SrcuPeriods, periods: number): boolean {
  for (let i = 0; i < periods; i++) {
    if (!updater.poll(updater.start())) return false;
  }
  return true;
}

/**
 * Has a section begin while periods go by at one of its steps, and says whether any wait that
 * began afterwards ended before it.
 */
function overtaken(state: number): { steps: number; early: string[] } {
  const early: string[] = [];
  let steps = 1;
  for (let at = 0; at < steps; at++) {
    for (let periods = 0; periods < 6; periods++) {
      for (let before = 0; before < 6; before++) {
        const { reader, updater } = pair(state);
        elapse(updater, before);
        let counter = 0;
        steps = atEveryStep(() => counter = reader.enter(), (step) => {
          if (step === at) elapse(updater, periods);
        });
        const target = updater.start();
        for (let tries = 0; tries < 9; tries++) {
          if (updater.poll(target)) early.push(`${at} ${periods} ${before}`);
        }
        reader.exit(counter);
        assert(updater.poll(target), "it never ends");
        assert(elapse(updater, 3));
      }
    }
  }
  return { steps, early };
}

Deno.test("a section is waited for, however many periods go by while it begins", () => {
  // The last ones are those before the number of the period begins anew.
  for (const state of [0, -4, -8, 2 ** 31 - 4]) {
    const { steps, early } = overtaken(state);
    assertGreater(steps, 3);
    assertEquals(early, []);
  }
});

Deno.test("a period that skipped the stragglers would miss sections", () => {
  const original = SrcuPeriods.prototype.poll;
  // What was planted: the first phase looks at nothing.
  SrcuPeriods.prototype.poll = function (this: SrcuPeriods, target: number) {
    const { compareExchange } = Atomics;
    const skip = (words: Int32Array, at: number, from: number, to: number) =>
      compareExchange(words, at, from, (to & 3) === 1 ? to + 1 : to);
    Atomics.compareExchange = skip as typeof compareExchange;
    try {
      return original.call(this, target);
    } finally {
      Atomics.compareExchange = compareExchange;
    }
  };
  try {
    assertGreater(overtaken(0).early.length, 0);
  } finally {
    SrcuPeriods.prototype.poll = original;
  }
});

Deno.test("a wait covers what had begun when it began, wherever other waits are", () => {
  // Another thread drives a period of its own between any two steps of all this.
  for (let at = 0, steps = 1; at < steps; at++) {
    const { reader, updater, words, readers, base } = pair();
    const record = readers.register()!;
    const third = new SrcuPeriods(words, base, readers, record.index);
    let other = third.start();
    let counter = 0;
    let target = 0;
    steps = atEveryStep(() => {
      counter = reader.enter();
      target = updater.start();
      for (let tries = 0; tries < 5; tries++) assert(!updater.poll(target));
    }, (step) => {
      if (step % (at + 1) === 0 && third.poll(other)) other = third.start();
    });
    reader.exit(counter);
    assert(updater.poll(target));
  }
});

Deno.test("sections of a record's former holder are not waited for", () => {
  const { reader, updater, readers } = pair();
  reader.enter();
  const target = updater.start();
  assert(!updater.poll(target));
  readers.unregister(0);
  assert(updater.poll(target));
  const { index } = readers.register()!;
  assertEquals(index, 0);
  assert(elapse(updater, 3));
});

Deno.test("sections of a former holder do not come back, however often the record has been taken since", () => {
  const { reader, updater, readers } = pair();
  reader.enter();
  // Names of the holders of locks begin anew by then.
  for (let taken = 0; taken < 2 ** 18; taken++) {
    readers.unregister(0);
    readers.register();
  }
  assert(elapse(updater, 3));
});
