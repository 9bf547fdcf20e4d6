// The table of readers by itself: which words it writes, and what it says of them.

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { LINE } from "../src/memory/_size_classes.ts";
import { ReaderTable, readerTableWords } from "../src/readers/_slots.ts";

const BASE = 2 * LINE;
const MOST = 3;
/** What stands around the table; as a status it would say that there is a reader. */
const AROUND = 2;

function table() {
  const size = readerTableWords(MOST);
  const words = new Int32Array(
    new SharedArrayBuffer((BASE + size + 4 * LINE) * 4),
  ).fill(AROUND);
  words.fill(0, BASE, BASE + size);
  const readers = new ReaderTable(words, BASE, MOST);
  const assertAround = () => {
    const around = [...words.slice(0, BASE), ...words.slice(BASE + size)];
    assert(around.every((word) => word === AROUND), "it wrote beside itself");
  };
  return { words, readers, assertAround };
}

Deno.test("records are taken from the first on, each under another generation, and no more than there are", () => {
  const { readers, assertAround } = table();
  assertEquals(readers.count, 0);
  for (let index = 0; index < MOST; index++) {
    assertEquals(readers.isRegistered(index), false);
    assertEquals(readers.register(), { index, generation: 1 });
    assertEquals([readers.count, readers.isRegistered(index)], [
      index + 1,
      true,
    ]);
  }
  assertEquals(readers.register(), undefined);
  readers.unregister(1);
  assertEquals([readers.isRegistered(1), readers.count], [false, MOST]);
  assertEquals(readers.register(), { index: 1, generation: 2 });
  assertEquals(readers.register(), undefined);
  assertAround();
});

Deno.test("the line of a slot holds the slot alone, everything else of a record lies in the next one", () => {
  const { readers, words, assertAround } = table();
  for (let index = 0; index < MOST; index++) {
    readers.register();
    readers.setName(index, 77);
    const slot = readers.slot(index);
    assertEquals([slot % LINE, words[slot]], [0, 0]);
    assertEquals([...words.slice(slot, slot + LINE)], Array(LINE).fill(0));
    const nap = readers.nap(index);
    assert(nap > slot + LINE && nap < slot + 2 * LINE, "a nap beside its line");
    assertEquals(words[nap], 0);
    assert(index === 0 || slot >= readers.slot(index - 1) + 2 * LINE);
  }
  assert(readers.slot(0) >= BASE + LINE, "a slot in the line of the count");
  assertAround();
});

Deno.test("who is taken on is offline and has no name, whatever the record says", () => {
  const { readers, words } = table();
  readers.register();
  Atomics.store(words, readers.slot(0), 5);
  readers.setName(0, 77);
  assertEquals(readers.nameOf(0), 77);
  readers.unregister(0);
  assertEquals(readers.nameOf(0), 0);
  readers.setName(0, 77);
  readers.register();
  assertEquals([words[readers.slot(0)], readers.nameOf(0)], [0, 0]);
});

Deno.test("a record is not a reader's before it is complete, and the count covers it first", () => {
  const { readers } = table();
  const { store } = Atomics;
  const seen: [registered: boolean, count: number][] = [];
  using _stub = stub(
    Atomics,
    "store",
    ((...step: never) => {
      seen.push([readers.isRegistered(0), readers.count]);
      return (store as (...step: unknown[]) => number)(...step as unknown[]);
    }) as never,
  );
  readers.register();
  // The slot, the name, who buries, and then the status.
  assertEquals(seen, [[false, 0], [false, 0], [false, 0], [false, 1]]);
});

Deno.test("the count is never lowered by a thread that is slower than another one", () => {
  const { readers } = table();
  const { compareExchange } = Atomics;
  let raised = false;
  using _stub = stub(
    Atomics,
    "compareExchange",
    ((...step: never) => {
      const [, at] = step as unknown as number[];
      if (at === BASE && !raised) {
        raised = true;
        readers.register();
        readers.register();
      }
      return (compareExchange as (...step: unknown[]) => number)(
        ...step as unknown[],
      );
    }) as never,
  );
  assertEquals(readers.register()?.index, 0);
  assertEquals([raised, readers.count], [true, 3]);
});

Deno.test("others are those that hold records, but for oneself", () => {
  const { readers } = table();
  assertEquals([readers.hasOthers(-1), readers.hasOthers(0)], [false, false]);
  readers.register();
  assertEquals([readers.hasOthers(-1), readers.hasOthers(0)], [true, false]);
  readers.register();
  assertEquals([readers.hasOthers(0), readers.hasOthers(1)], [true, true]);
  readers.register();
  readers.unregister(0);
  readers.unregister(1);
  // The last one of the table, and what lies behind it says that it is one more.
  assertEquals([readers.hasOthers(2), readers.hasOthers(1)], [false, true]);
});

Deno.test("one thread at a time has the right to bury another one, as long as it lives, and while the record is the dead one's", () => {
  const { readers, words, assertAround } = table();
  const [dead, me, other] = [8 << 4, 9 << 4, 10 << 4];
  readers.register();
  readers.register(dead);
  assertEquals(readers.lifeOf(1), dead);
  const asked: number[] = [];
  const claim = (burier: number, lives: boolean, whom = dead) =>
    readers.claimBurial(1, whom, burier, (life) => {
      asked.push(life);
      return !lives;
    });
  assertEquals([readers.burierOf(1), claim(me, true)], [0, true]);
  assertEquals([readers.burierOf(1), asked], [me, []]);
  assertEquals([claim(other, true), readers.burierOf(1)], [false, me]);
  assertEquals([claim(other, false), readers.burierOf(1)], [true, other]);
  assertEquals(asked, [me, me]);
  readers.leaveBurial(1, me);
  assertEquals(readers.burierOf(1), other, "another one's right");
  readers.leaveBurial(1, other);
  assertEquals(readers.burierOf(1), 0);
  // Another thread has the record by now.
  assertEquals([claim(me, true, 7 << 4), readers.burierOf(1)], [false, 0]);
  {
    // Somebody is faster.
    const load = (array: Int32Array, at: number) => {
      const seen = array[at];
      array[at] ||= other;
      return seen;
    };
    using _faster = stub(Atomics, "load", load as never);
    assertEquals(claim(me, true), false);
  }
  assertEquals(readers.burierOf(1), other);
  readers.leaveBurial(1, other);
  assertEquals(words.length > 0 && readers.burierOf(0), 0);
  assertAround();
});

Deno.test("a record is held by a generation as long as it is registered", () => {
  const { readers } = table();
  const { index, generation } = readers.register()!;
  assertEquals(readers.isHeldBy(index, generation), true);
  assertEquals(readers.isHeldBy(index, generation + 1), false);
  assertEquals(readers.isHeldBy(index, generation + 2 ** 18), false);
  readers.unregister(index);
  assertEquals(readers.isHeldBy(index, generation), false);
  readers.register();
  assertEquals(readers.isHeldBy(index, generation), false);
  assertEquals(readers.isHeldBy(index, generation + 1), true);
});
