// The ring of deaths by itself: which words it writes, and what it says of whom.

import { assert, assertEquals } from "@std/assert";
import { spy } from "@std/testing/mock";
import { measureText } from "../src/memory/_text.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { Obituaries, obituaryWords } from "../src/readers/_obituaries.ts";
import { holderOf, lockOwner } from "../src/sync/_mutex.ts";

const BASE = 2 * LINE;
const OWNER = lockOwner(3, 1);
const AROUND = 77;

function ring(maxReaders = 4) {
  const size = obituaryWords(maxReaders);
  const words = new Int32Array(
    new SharedArrayBuffer((BASE + size + 2 * LINE) * 4),
  ).fill(AROUND);
  words.fill(0, BASE, BASE + size);
  const obituaries = new Obituaries(words, BASE, maxReaders);
  return {
    words,
    obituaries,
    add(life: number, more: { name?: string } = {}): void {
      const id = life % maxReaders;
      const obituary = { life, id, name: `${life}`, lostCallbacks: 2 * life };
      obituaries.add({ ...obituary, ...more }, OWNER);
    },
    assertAround(): void {
      const around = [...words.slice(0, BASE), ...words.slice(BASE + size)];
      assert(around.every((word) => word === AROUND), "it wrote beside itself");
      assertEquals(holderOf(words, BASE), -1, "its lock is held");
    },
  };
}

Deno.test("a ring has 64 places, or as many as twice the readers, rounded up to a power of two", () => {
  const places = (maxReaders: number) => {
    const { obituaries, add } = ring(maxReaders);
    for (let life = 1; life <= 600; life++) add(life);
    return obituaries.since(0).news.length;
  };
  assertEquals([1, 32, 33, 64, 100].map(places), [64, 64, 128, 128, 256]);
});

Deno.test("each death is told once, with all that is known, in the order of the deaths", () => {
  const { obituaries, add, assertAround } = ring();
  assertEquals(obituaries.since(0), { news: [], count: 0 });
  for (const life of [5, 6, 7]) add(life);
  // Who buries again, after another burier's death.
  for (const life of [7, 5]) add(life, { name: "again" });
  assertEquals([obituaries.count, obituaries.since(2).count], [3, 3]);
  assertEquals(obituaries.since(0).news, [
    { life: 5, id: 1, name: "5", lostCallbacks: 10 },
    { life: 6, id: 2, name: "6", lostCallbacks: 12 },
    { life: 7, id: 3, name: "7", lostCallbacks: 14 },
  ]);
  assertEquals(obituaries.since(2).news.map(({ life }) => life), [7]);
  assertEquals(obituaries.since(3).news, []);
  assertAround();
});

Deno.test("a full ring has the latest deaths, and knows the oldest of them again", () => {
  const { obituaries, add, assertAround } = ring();
  for (let life = 1; life <= 100; life++) add(life);
  const lives = () => obituaries.since(0).news.map(({ life }) => life);
  const latest = Array.from({ length: 64 }, (_, i) => 37 + i);
  assertEquals([lives(), obituaries.count], [latest, 100]);
  assertEquals(
    [99, 36, 35].map((seen) => obituaries.since(seen).news.length),
    [1, 64, 64],
  );
  add(37);
  assertEquals([lives(), obituaries.count], [latest, 100]);
  add(36);
  assertEquals(lives(), [...latest.slice(1), 36]);
  assertAround();
});

Deno.test("numbers of deaths go round", () => {
  const { words, obituaries, add } = ring();
  const before = 2 ** 31 - 3;
  words[BASE + 1] = before;
  for (let life = 1; life <= 6; life++) add(life);
  const { news, count } = obituaries.since(before);
  assertEquals(news.map(({ life }) => life), [1, 2, 3, 4, 5, 6]);
  assertEquals(count, (before + 6) | 0);
});

Deno.test("what is being written, or has been written over, is not told", () => {
  const { words, obituaries, add } = ring();
  for (const life of [1, 2, 3]) add(life);
  const second = BASE + LINE + 2 * LINE;
  assertEquals(words[second], 1);
  words[second] = 65;
  assertEquals(obituaries.since(0).news.map(({ life }) => life), [1, 3]);
  // Written over in the middle of a look.
  words[second] = 1;
  const { load } = Atomics;
  let looks = 0;
  Atomics.load = ((array: Int32Array, at: number) => {
    if (at === second && ++looks === 2) return 65;
    return load(array, at);
  }) as typeof load;
  try {
    assertEquals(obituaries.since(0).news.map(({ life }) => life), [1, 3]);
  } finally {
    Atomics.load = load;
  }
});

Deno.test("while an entry changes it bears another number than its own", () => {
  const { words, obituaries, add } = ring();
  const { store } = Atomics;
  const told: number[] = [];
  Atomics.store = ((array: Int32Array, at: number, value: number) => {
    if (array === words) told.push(obituaries.since(0).news.length);
    return store(array, at, value);
  }) as typeof store;
  try {
    // Its number is that of the zeros which were there.
    add(1);
    add(2);
  } finally {
    Atomics.store = store;
  }
  const writes = told.length / 2;
  assertEquals(told.slice(0, writes), Array(writes).fill(0));
  assertEquals(told.slice(writes), Array(writes).fill(1));
});

Deno.test("a name that does not fit is cut short, one that fits is not", () => {
  for (const length of [0, 1, 40, 54, 55, 60, 200, 5_000]) {
    for (const letter of ["a", "\u00e9", "\u6f22"]) {
      const { obituaries, add, assertAround } = ring();
      const name = letter.repeat(length);
      add(1, { name });
      const [{ name: told }] = obituaries.since(0).news;
      assert(name.startsWith(told));
      assert(told.length >= Math.min(length, 54), `${told.length}`);
      // Two lines for each death, less the four words before the name.
      assert(measureText(told) <= 2 * LINE - 4, `${told.length}`);
      if (length > 200) assertEquals(told.length, 54);
      assertAround();
    }
  }
});

Deno.test("who adds a death has the lock, takes it if it has not, and gives it up if it does not come", () => {
  const { words, obituaries, add, assertAround } = ring();
  words[BASE] = OWNER;
  add(1);
  assertAround();
  assertEquals(obituaries.count, 1);
  words[BASE] = lockOwner(2, 1);
  const { now } = performance;
  let time = 0;
  performance.now = () => time += 5_000;
  try {
    add(2);
  } finally {
    performance.now = now;
  }
  assertEquals([obituaries.count, words[BASE] & 0x7fff_ffff], [
    1,
    lockOwner(2, 1),
  ]);
});

Deno.test("who waits for news hears of them, or that the time is up", async () => {
  const { obituaries, add, words } = ring();
  add(1);
  // A wait does not keep the event loop alive.
  const alive = setInterval(() => {}, 1_000);
  await obituaries.next(0, 60_000);
  await obituaries.next(1, 1);
  using notified = spy(Atomics, "notify");
  const news = obituaries.next(1, 60_000);
  add(2);
  await news;
  clearInterval(alive);
  assertEquals(notified.calls.map(({ args }) => args[1]), [BASE + 1]);
  assertEquals(notified.calls[0].args[0] as unknown, words);
  assertEquals(obituaries.since(1).news.length, 1);
});
