// When a stall is reported, to the millisecond: the watch itself, under a clock that is turned by hand.

import { assert, assertEquals } from "@std/assert";
import { HEADER_MAX_READERS, layout } from "../src/_layout.ts";
import { Sequence } from "../src/grace_periods/_sequence.ts";
import { StallWatch } from "../src/grace_periods/_stall_watch.ts";
import { Rcu } from "../mod.ts";

/** What counts as a stall here, in ms. */
const T = 1000;

/** A sequence, watchers of it and a clock; `performance.now()` counts from `origin` for each. */
class Scene implements Disposable {
  readonly rcu: Rcu = Rcu.create({ capacity: 2 ** 22 });
  readonly words = this.rcu.memory.words;
  readonly sequence = new Sequence(
    this.words,
    layout(this.words.length, this.words[HEADER_MAX_READERS]).sequence,
  );
  now = 10 * T;
  readonly #clock = {
    now: performance.now,
    timeOrigin: Object.getOwnPropertyDescriptor(performance, "timeOrigin"),
  };

  constructor() {
    this.#as(0);
    this.sequence.begin();
  }

  /** Gives the calling thread another origin of time, as a worker has. */
  #as(origin: number): void {
    performance.now = () => this.now - origin;
    Object.defineProperty(performance, "timeOrigin", {
      value: 1e12 + origin,
      configurable: true,
    });
  }

  watcher(
    { origin = 0, hinders = () => true }: {
      origin?: number;
      hinders?: () => boolean;
    } = {},
  ) {
    const ages: number[] = [];
    const watch = new StallWatch(this.words, this.sequence, T, (age) => {
      if (!hinders()) return false;
      ages.push(age);
      return true;
    });
    const look = () => {
      this.#as(origin);
      watch.look(this.sequence.current());
    };
    const age = () => {
      this.#as(origin);
      return watch.age();
    };
    return { ages, look, age };
  }

  /** Ends the period, and begins the next one. */
  next(): void {
    this.sequence.end(this.sequence.current());
    this.sequence.begin();
  }

  [Symbol.dispose](): void {
    performance.now = this.#clock.now;
    const { timeOrigin } = this.#clock;
    delete (performance as { timeOrigin?: number }).timeOrigin;
    if (timeOrigin !== undefined) {
      Object.defineProperty(performance, "timeOrigin", timeOrigin);
    }
    this.rcu.close();
  }
}

Deno.test("a period is reported at the timeout and then after twice as long each time", () => {
  using scene = new Scene();
  const { ages, look } = scene.watcher();
  for (let ms = 0; ms < 32 * T; ms++, scene.now++) look();
  assertEquals(ages, [T, 3 * T, 7 * T, 15 * T, 31 * T]);
});

Deno.test("who looks rarely is told once for all that is due", () => {
  using scene = new Scene();
  const { ages, look } = scene.watcher();
  look();
  scene.now += 5 * T;
  look();
  look();
  assertEquals(ages, [5 * T]);
  scene.now += 2 * T;
  look();
  assertEquals(ages, [5 * T, 7 * T]);
});

Deno.test("the next period is counted anew", () => {
  using scene = new Scene();
  const { ages, look } = scene.watcher();
  for (let ms = 0; ms <= 4 * T; ms++, scene.now++) look();
  scene.next();
  for (let ms = 0; ms <= 4 * T; ms++, scene.now++) look();
  assertEquals(ages, [T, 3 * T, T, 3 * T]);
});

Deno.test("a stall with nobody in the way is reported when there is somebody", () => {
  using scene = new Scene();
  let hinders = false;
  const { ages, look } = scene.watcher({ hinders: () => hinders });
  for (let ms = 0; ms <= 2 * T; ms++, scene.now++) look();
  assertEquals(ages, []);
  hinders = true;
  look();
  assertEquals(ages, [2 * T + 1]);
});

Deno.test("a thread that joins late knows what another one has seen, whatever its clock counts from", () => {
  using scene = new Scene();
  const first = scene.watcher();
  for (let ms = 0; ms <= 5 * T; ms++, scene.now++) first.look();
  for (const origin of [3 * T, -7 * T]) {
    const begin = scene.now - 10 * T;
    const late = scene.watcher({ origin });
    // It compares notes after a quarter of the timeout.
    for (let ms = 0; ms < T / 4; ms++, scene.now++) late.look();
    assertEquals(late.ages, []);
    late.look();
    assertEquals(late.ages, [begin + T / 4]);
    assertEquals(late.age(), begin + T / 4);
  }
});

Deno.test("the thread that saw a period first tells one that has compared already", () => {
  using scene = new Scene();
  const [first, second, third] = [0, 1, 2].map(() => scene.watcher());
  first.look();
  scene.now += T / 10;
  second.look();
  scene.now += T / 4;
  second.look();
  first.look();
  assertEquals([second.age(), first.age()], [0.35 * T, 0.35 * T]);
  assertEquals(third.age(), 0.35 * T);
});

Deno.test("the note of an old period never makes a younger one older", () => {
  using scene = new Scene();
  const held = scene.watcher();
  held.look();
  const { compareExchange } = Atomics;
  // The younger period begins, and is noted, between the old watcher's two accesses.
  const young = scene.watcher();
  Atomics.compareExchange =
    ((...args: [BigInt64Array, number, bigint, bigint]) => {
      Atomics.compareExchange = compareExchange;
      scene.next();
      young.look();
      scene.now += T / 2;
      young.look();
      return compareExchange(...args);
    }) as typeof compareExchange;
  scene.now += T;
  held.look();
  Atomics.compareExchange = compareExchange;
  assertEquals(young.age(), T / 2);
  const other = scene.watcher();
  assert(other.age() <= T / 2, `${other.age()} ms`);
});

Deno.test("a period that has lasted for a month is no younger for it", () => {
  using scene = new Scene();
  const { age, ages, look } = scene.watcher();
  const month = 31 * 24 * 3600 * 1000;
  look();
  scene.now += month;
  look();
  assertEquals([ages, age()], [[month], month]);
  assert(scene.watcher().age() <= month);
});

Deno.test("while no period is in progress none has an age", () => {
  using scene = new Scene();
  const { age, look } = scene.watcher();
  look();
  scene.now += T;
  assertEquals(age(), T);
  scene.sequence.end(scene.sequence.current());
  assertEquals(age(), 0);
});
