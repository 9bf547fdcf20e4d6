import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { Rcu, type RcuOptions, RcuStallError } from "../mod.ts";
import { HEADER_DETECTOR, HEADER_MAX_READERS, layout } from "../src/_layout.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { withDomain } from "./_audit.ts";
import { SortedList } from "./_list.ts";
import {
  PATIENCE,
  sharedWords,
  tell,
  until,
  waitFor,
  withWorkers,
} from "./_workers.ts";

const HALF = 2 ** 30;
const MOST = 64;
/** Periods that a thread asks for: each is a few switches between threads where cores are scarce. */
const PERIODS = 200;

const DETECTORS: NonNullable<RcuOptions["detector"]>[] = [
  "scan",
  "classic",
  "tree",
  { type: "tree", fanout: 2 },
];

function nameOf(detector: RcuOptions["detector"]): string {
  return typeof detector === "object"
    ? `a tree of fanout ${detector.fanout}`
    : `"${detector}"`;
}

function placesOf({ words }: Rcu["memory"]): ReturnType<typeof layout> {
  return layout(
    words.length,
    words[HEADER_MAX_READERS],
    words[HEADER_DETECTOR],
  );
}

/** Sets a domain of which every thread is offline to the state after so many periods. */
function fastForward(rcu: Rcu, started: number): void {
  const { words } = rcu.memory;
  const { sequence } = placesOf(rcu.memory);
  const value = (started % (2 * HALF) * 2 + 1) | 0;
  Atomics.store(words, sequence, value);
  Atomics.store(words, sequence + 1, Math.floor(started / HALF));
  Atomics.store(words, sequence + LINE, value);
}

for (const detector of DETECTORS) {
  const name = nameOf(detector);

  Deno.test(`with detector ${name}, all waits wait for 40 memberships of a thread, and say for whom`, () =>
    withDomain(
      { detector, maxReaders: 48, debug: true, stallTimeout: 20 },
      async (rcu) => {
        const others = Array.from(
          { length: 40 },
          (_, i) => Rcu.attach(rcu.handle, { name: `member ${i + 1}` }),
        );
        for (const other of others) other.threadOnline();
        const sections = [3, 17, 40].map((i) => others[i - 1].readLock());
        for (const other of others) {
          if (![3, 17, 40].includes(other.readerId)) other.quiescentState();
        }
        let freed = 0;
        others[5].callRcu(() => freed++);
        rcu.deferFree(rcu.memory.allocate(4));
        const cookie = rcu.startPoll();
        const waits = [
          () => rcu.synchronizeSync({ timeout: 5 }),
          () => rcu.synchronizeSync({ timeout: 5, expedited: true }),
          () => rcu.barrierSync(),
        ];
        for (const expected of [[3, 17, 40], [17, 40], [40]]) {
          assertFalse(rcu.poll(cookie));
          // Those that announce nothing of their own accord are in the way of later periods.
          for (const other of others) {
            if (!expected.includes(other.readerId)) other.threadOffline();
          }
          for (const wait of waits) {
            const { report } = assertThrows(wait, RcuStallError);
            assertEquals(
              report.readers.map(({ id, name }) => [id, name]),
              expected.map((id) => [id, `member ${id}`]),
            );
          }
          sections.shift()![Symbol.dispose]();
        }
        others[39].quiescentState();
        assert(rcu.poll(cookie));
        for (const other of others) other.threadOffline();
        rcu.synchronizeSync({ timeout: 0 });
        rcu.synchronizeSync({ timeout: 0, expedited: true });
        await rcu.synchronize();
        await rcu.synchronize({ expedited: true });
        await others[5].barrier();
        rcu.barrierSync();
        assertEquals(freed, 1);
        assertEquals(rcu.memory.audit().deferred, 0);
        for (const other of others) other.close();
      },
    ));

  Deno.test(`with detector ${name}, workers read while others write, join and leave`, () =>
    withDomain(
      { detector, debug: true, maxReaders: 16, capacity: 2 ** 21 },
      (rcu) =>
        withWorkers(
          "_list_worker.ts",
          3,
          (writer, ...readers) =>
            withWorkers("_membership_worker.ts", 1, async (guest) => {
              const head = SortedList.create(rcu);
              const list = new SortedList(rcu, head);
              for (let key = 0; key < MOST; key += 2) list.add(key);
              const join = { handle: rcu.handle, head };
              const words = sharedWords(2);
              await writer.call("join", { ...join, name: "writer" });
              for (const reader of readers) {
                await reader.call("join", { ...join, name: "reader" });
              }
              const walks = Promise.all(
                readers.map((reader) =>
                  reader.call<number>("walk", { words, most: MOST })
                ),
              );
              await until("both walk", () => Atomics.load(words, 0) === 2);
              const owners = sharedWords(16);
              const visits = guest.call<number>("joinAndLeave", {
                handle: rcu.handle,
                rounds: 100,
                owners,
              });
              const writing = writer.call("write", {
                rounds: 60_000,
                most: MOST,
              });
              for (let i = 0; i < 20; i++) {
                rcu.read(() => {});
                await rcu.synchronize({ expedited: i % 2 === 0 });
              }
              await writing;
              assertEquals(await visits, 0);
              tell(words, 1);
              assert((await walks).every((walks) => walks > 0));
              for (const worker of [writer, ...readers]) {
                await worker.call("leave");
              }
              assertEquals(list.keys().length, MOST / 2);
              for (const key of list.keys()) list.delete(key);
              await rcu.barrier();
              rcu.memory.free(head);
            }),
        ),
    ));

  Deno.test(`with detector ${name}, threads that start periods at once share them, where the sequence turns too`, () =>
    withDomain(
      { detector },
      (rcu) =>
        withWorkers("_reader_worker.ts", 3, async (reader, ...drivers) => {
          const start = 2 * HALF - 100;
          fastForward(rcu, start);
          for (const worker of [reader, ...drivers]) {
            await worker.call("join", { handle: rcu.handle });
          }
          const words = sharedWords(2);
          const looping = reader.call<number>("sections", words);
          waitFor(words, 0);
          const running = drivers.map((driver) =>
            driver.call<number[]>("periods", PERIODS)
          );
          const cookies = await Promise.all(running);
          tell(words, 1);
          assert(await looping > 0);
          const { started, completed } = rcu.stats().gracePeriods;
          assert(started - completed <= 1);
          const elapsed = started - start;
          assert(elapsed >= PERIODS && elapsed <= 4 * PERIODS, `${elapsed}`);
          for (const list of cookies) {
            list.forEach((cookie, i) => {
              assert(cookie > (i === 0 ? start : list[i - 1]));
              assert(cookie <= started);
            });
          }
          for (const worker of [reader, ...drivers]) await worker.call("leave");
        }),
    ));

  Deno.test(`with detector ${name}, a worker in a section is waited for and named`, () =>
    withDomain(
      { detector },
      (rcu) =>
        withWorkers("_reader_worker.ts", 1, async (worker) => {
          const handle = rcu.handle;
          const id = await worker.call<number>("join", { handle, name: "w" });
          const words = sharedWords(2);
          const held = worker.call("hold", words);
          waitFor(words, 0);
          const { report } = assertThrows(
            () => rcu.synchronizeSync({ timeout: 5 }),
            RcuStallError,
          );
          assertEquals(report.readers.map(({ id, name }) => [id, name]), [
            [id, "w"],
          ]);
          tell(words, 1);
          rcu.synchronizeSync({ timeout: PATIENCE });
          await held;
          await worker.call("leave");
        }),
    ));
}

Deno.test("whoever attaches has the domain's detector", () => {
  for (const detector of DETECTORS) {
    using rcu = Rcu.create({ capacity: 2 ** 21, detector });
    using other = Rcu.attach(rcu.handle);
    other.threadOnline();
    const cookie = rcu.startPoll();
    assertFalse(rcu.poll(cookie));
    const { words } = rcu.memory;
    const { detector: at, pageTable, sequence } = placesOf(rcu.memory);
    const passed = () => Atomics.load(words, at) === words[sequence];
    if (detector === "scan") assertEquals(at, pageTable, "it needs no words");
    else assertFalse(passed());
    other.quiescentState();
    if (detector !== "scan") assert(passed(), "the attached thread reported");
    assert(rcu.poll(cookie));
  }
});

Deno.test("a detector's masks count among what must leave half of the capacity free", () => {
  const fits = (capacity: number, detector: RcuOptions["detector"]) => {
    try {
      Rcu.create({ capacity, maxReaders: 4_096, detector: detector! }).close();
      return true;
    } catch (error) {
      assert(error instanceof RangeError);
      assert(error.message.includes("must leave half of the capacity free"));
      return false;
    }
  };
  let capacity = 2 ** 21;
  while (!fits(capacity, "scan")) capacity += 2 ** 14;
  assertFalse(fits(capacity, { type: "tree", fanout: 2 }));
  assert(fits(capacity + 2 ** 20, { type: "tree", fanout: 2 }));
});
