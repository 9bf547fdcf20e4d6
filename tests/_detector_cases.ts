// What every detector must do, whatever it is: each case throws if one does not.

import { assert, assertEquals, assertFalse } from "@std/assert";
import fc from "fast-check";
import type { GracePeriodCookie } from "../src/grace_periods/cookie.ts";
import { HALF, type Thread, type Variant, World } from "./_detector_world.ts";
import { atEveryStep, interleave } from "./_steps.ts";

/** A case; to be played for every detector. */
export type Case = (variant: Variant) => void;

/** Periods that have begun when a history starts: none, or as many as make the word turn. */
const STARTS = [0, HALF - 3, 2 * HALF - 3];

/** Numbers below others, the same for the same seed. */
function randomBelow(seed: number): (limit: number) => number {
  let state = seed | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

function shuffled<T>(list: T[], seed: number): T[] {
  const below = randomBelow(seed);
  const result = [...list];
  for (let i = result.length; i > 1; i--) {
    const j = below(i);
    [result[i - 1], result[j]] = [result[j], result[i - 1]];
  }
  return result;
}

/** Waits for all of some readers, in a given order, and for none sooner. */
function passInOrder(poller: Thread, order: Thread[]): void {
  for (const thread of order) thread.online();
  const cookie = poller.start();
  const left = new Set(order.map(({ index }) => index));
  const inOrder = () => [...left].sort((a, b) => a - b);
  for (const [i, thread] of order.entries()) {
    assertFalse(poller.poll(cookie), `reader ${thread.index} has not passed`);
    assertEquals(poller.blocking(), inOrder());
    if (i % 3 === 0) thread.offline();
    else thread.pass();
    left.delete(thread.index);
  }
  assert(poller.poll(cookie), "all have passed");
  for (const thread of order) thread.offline();
}

/** What a history can do to a thread. */
const ACTS = [
  "join",
  "leave",
  "online",
  "offline",
  "pass",
  "enter",
  "exit",
  "start",
  "poll",
] as const;
type Act = typeof ACTS[number];

/** Plays a history in one piece, and a model of it beside: they must agree after every act. */
function playBesideModel(
  variant: Variant,
  started: number,
  crowd: number,
  history: { act: Act; who: number }[],
): void {
  const most = crowd + 10;
  const world = new World(variant, most, started);
  const threads = world.joinAll(crowd);
  const all = new Map<number, Thread>(threads.map((t) => [t.index, t]));
  let completed = started;
  let cookie = started as GracePeriodCookie;
  let waitsFor: Set<Thread> | undefined;

  const begin = () => {
    started++;
    waitsFor = new Set([...all.values()].filter((t) => t.reader.online));
  };
  /** What `poll` must return, and what it leaves behind. */
  const expectPoll = (thread: Thread): boolean => {
    while (completed < cookie) {
      if (waitsFor === undefined) begin();
      if (thread.reader.depth === 0) waitsFor!.delete(thread);
      if (waitsFor!.size > 0) return false;
      waitsFor = undefined;
      completed++;
    }
    return true;
  };

  for (const { act, who } of history) {
    const members = [...all.values()];
    const thread = members[who % members.length];
    const inside = thread.reader.depth > 0;
    switch (act) {
      case "join":
        if (all.size === most) break;
        {
          const joined = world.join();
          all.set(joined.index, joined);
        }
        break;
      case "leave":
        if (inside || all.size === 1) break;
        thread.leave();
        all.delete(thread.index);
        waitsFor?.delete(thread);
        break;
      case "online":
        thread.online();
        break;
      case "offline":
        if (inside) break;
        thread.offline();
        waitsFor?.delete(thread);
        break;
      case "pass":
        thread.pass();
        if (!inside) waitsFor?.delete(thread);
        break;
      case "enter":
        thread.reader.enter();
        break;
      case "exit":
        if (inside) thread.reader.exit();
        break;
      case "start":
        cookie = started + 1 as GracePeriodCookie;
        assertEquals(thread.start(), cookie);
        if (waitsFor === undefined) begin();
        break;
      case "poll": {
        const expected = expectPoll(thread);
        assertEquals(thread.poll(cookie), expected, "poll()");
      }
    }
    assertEquals(
      [world.sequence.started(), world.sequence.completed()],
      [started, completed],
    );
    if (waitsFor !== undefined) {
      const expected = [...waitsFor].map(({ index }) => index);
      const watcher = all.values().next().value!;
      assertEquals(watcher.blocking(), expected.sort((a, b) => a - b));
    }
  }
}

const MOST_RACERS = 12;

/** One member of a {@linkcode Race}. */
interface Racer {
  thread: Thread;
  /** Whether it is in the middle of an act. */
  busy: boolean;
  /** The version that its open section has found. */
  seen: number | undefined;
  /** The version that it has replaced, and the period that must end before that can be reused. */
  replaced: number;
  cookie: GracePeriodCookie | undefined;
}

/**
 * Threads that break into each other's acts at any atomic step, as deep as
 * wanted. Updaters replace a version and reuse the old one after a period;
 * readers look at the version in sections.
 */
class Race {
  readonly #world: World;
  readonly #version = new Int32Array(new SharedArrayBuffer(4));
  readonly #racers: Racer[] = [];
  readonly #below: (limit: number) => number;
  /** Versions below have been reused. */
  #reused = 0;

  constructor(variant: Variant, seed: number) {
    this.#below = randomBelow(seed);
    const started = STARTS[this.#below(STARTS.length)];
    this.#world = new World(variant, 2 * MOST_RACERS, started);
    for (let i = 2 + this.#below(8); i > 0; i--) this.#join();
  }

  #join(): void {
    this.#racers.push({
      thread: this.#world.join(),
      busy: false,
      seen: undefined,
      replaced: 0,
      cookie: undefined,
    });
  }

  run(acts: number): void {
    for (let i = 0; i < acts; i++) {
      atEveryStep(() => this.#act(), () => {
        if (this.#below(12) === 0) this.#act();
      }, 3);
    }
    this.#settle();
  }

  #act(): void {
    const idle = this.#racers.filter(({ busy }) => !busy);
    if (idle.length === 0) return;
    const racer = idle[this.#below(idle.length)];
    racer.busy = true;
    this.#actOf(racer);
    racer.busy = false;
    this.#check();
  }

  #actOf(racer: Racer): void {
    const { thread } = racer;
    const { reader } = thread;
    switch (this.#below(10)) {
      case 0:
        if (this.#racers.length < MOST_RACERS) this.#join();
        break;
      case 1:
        if (reader.depth > 0 || this.#racers.length < 3) break;
        this.#racers.splice(this.#racers.indexOf(racer), 1);
        thread.leave();
        break;
      case 2:
        if (reader.depth === 0) thread.offline();
        break;
      case 3:
      case 4:
        thread.pass();
        break;
      case 5:
      case 6:
        if (reader.depth > 0) {
          racer.seen = undefined;
          reader.exit();
        } else {
          reader.enter();
          racer.seen = Atomics.load(this.#version, 0);
        }
        break;
      default:
        this.#update(racer);
    }
  }

  #update(racer: Racer): void {
    if (racer.cookie === undefined) {
      racer.replaced = Atomics.add(this.#version, 0, 1);
      racer.cookie = racer.thread.start();
    }
    if (racer.thread.poll(racer.cookie)) {
      racer.cookie = undefined;
      this.#reused = Math.max(this.#reused, racer.replaced + 1);
    }
  }

  #check(): void {
    for (const { seen, thread } of this.#racers) {
      const endangered = seen !== undefined && seen < this.#reused;
      assertFalse(endangered, `reused under reader ${thread.index}`);
    }
  }

  /** When all have passed, every period ends. */
  #settle(): void {
    for (const racer of this.#racers) {
      if (racer.thread.reader.depth > 0) racer.thread.reader.exit();
      racer.thread.offline();
    }
    for (const { thread } of this.#racers) {
      assert(thread.poll(thread.start()), "nobody is in the way");
    }
  }
}

/** A pointer, an updater that replaces what it leads to, and a reader that follows it. */
function replacement(updater: Thread) {
  const version = new Int32Array(new SharedArrayBuffer(4));
  let mayReuse = false;
  let sawOld = false;
  return {
    update: () => {
      Atomics.store(version, 0, 1);
      mayReuse = updater.poll(updater.start());
    },
    read: (thread: Thread) => {
      thread.reader.enter();
      sawOld = Atomics.load(version, 0) === 0;
      // It goes on reading: a step that others can break into.
      Atomics.load(version, 0);
    },
    check: (when: string) =>
      assertFalse(sawOld && mayReuse, `reused under a reader: ${when}`),
  };
}

/** Asserts that a period waits for a thread that is in a section, and ends when it has left. */
function assertWaitsFor(poller: Thread, thread: Thread, why: string): void {
  const cookie = poller.start();
  for (let i = 0; i < 3; i++) assertFalse(poller.poll(cookie), why);
  assert(poller.blocking().includes(thread.index), why);
  while (thread.reader.depth > 0) thread.reader.exit();
  thread.offline();
  assert(poller.poll(cookie), why);
}

/** The cases, by what they say. */
export const CASES: Record<string, Case> = {
  "waits for a reader that was online when the period began, and for no other":
    (variant) => {
      const world = new World(variant, 8);
      const [poller, old, young, idle] = world.joinAll(4);
      idle.online();
      idle.offline();
      old.reader.enter();
      const cookie = poller.start();
      young.reader.enter();
      for (let i = 0; i < 5; i++) assertFalse(poller.poll(cookie));
      assertEquals(poller.blocking(), [old.index]);
      old.pass();
      assertFalse(poller.poll(cookie), "it is in a section");
      old.reader.exit();
      old.pass();
      old.reader.enter();
      assert(poller.poll(cookie));
      assertFalse(poller.poll(poller.start()));
      assertEquals(poller.blocking(), [old.index, young.index]);
    },

  "waits for each of 40 readers, in whatever order they pass": (variant) => {
    const world = new World(variant, 48);
    const [poller, ...readers] = world.joinAll(41);
    passInOrder(poller, readers);
    passInOrder(poller, [...readers].reverse());
    for (let seed = 1; seed < 20; seed++) {
      passInOrder(poller, shuffled(readers, seed).slice(0, 1 + seed * 2));
    }
  },

  "waits for a few readers among 4,096 records": (variant) => {
    const world = new World(variant, 4_096);
    const threads = world.joinAll(4_096);
    const stay = [0, 1, 2, 15, 16, 31, 32, 33, 255, 256, 2_047, 2_048, 4_095];
    for (const thread of threads) {
      if (!stay.includes(thread.index)) thread.leave();
    }
    const [poller, ...readers] = stay.map((index) => threads[index]);
    passInOrder(poller, readers);
    passInOrder(poller, [...readers].reverse());
    for (let seed = 1; seed < 10; seed++) {
      passInOrder(poller, shuffled(readers, seed));
    }
    // A record in the middle of all that are free.
    const joined = world.join();
    passInOrder(poller, [readers[5], joined, readers[1]]);
  },

  "waits for threads that join during a period only from the next one on": (
    variant,
  ) => {
    const world = new World(variant, 40);
    const poller = world.join();
    const threads: Thread[] = [];
    while (threads.length < 38) {
      const cookie = poller.start();
      const joined = world.join();
      joined.reader.enter();
      // Whoever was there before has not passed.
      const before = threads.at(-1);
      if (before !== undefined) {
        assertFalse(poller.poll(cookie));
        assertEquals(poller.blocking(), [before.index]);
        before.reader.exit();
        before.pass();
        before.offline();
      }
      assert(poller.poll(cookie), `${threads.length} threads`);
      threads.push(joined);
    }
  },

  "does not wait for threads that leave, and does for who takes their record": (
    variant,
  ) => {
    const world = new World(variant, 8);
    const [poller, a, b] = world.joinAll(3);
    a.online();
    b.online();
    const cookie = poller.start();
    assertFalse(poller.poll(cookie));
    a.leave();
    assertFalse(poller.poll(cookie));
    const c = world.join();
    assertEquals(c.index, a.index);
    c.reader.enter();
    assertFalse(poller.poll(cookie), "b is left");
    assertEquals(poller.blocking(), [b.index]);
    b.leave();
    assert(poller.poll(cookie), "c came after the period began");
    assertWaitsFor(poller, c, "c was there");
  },

  "lets a thread that goes online and offline and online again go": (
    variant,
  ) => {
    const world = new World(variant, 8);
    const [poller, a, b] = world.joinAll(3);
    for (let i = 0; i < 5; i++) {
      a.online();
      b.online();
      const cookie = poller.start();
      assertFalse(poller.poll(cookie));
      a.offline();
      a.online();
      assertFalse(poller.poll(cookie));
      b.offline();
      assert(poller.poll(cookie), "neither was online all the time");
      b.online();
      assertFalse(poller.poll(poller.start()));
      for (const thread of [a, b]) thread.offline();
      assert(poller.poll(poller.start()));
    }
  },

  "gives all threads that poll a period the same answer": (variant) => {
    const world = new World(variant, 40);
    const [p, q, r, ...readers] = world.joinAll(36);
    for (let round = 0; round < 5; round++) {
      for (const reader of readers) reader.online();
      const cookies = [p, q, r].map((thread) => thread.start());
      const cookie = Math.min(...cookies) as GracePeriodCookie;
      for (const [i, reader] of shuffled(readers, round + 1).entries()) {
        const polls = [p, q, r].slice(i % 3);
        assert(polls.every((thread) => !thread.poll(cookie)));
        reader.pass();
      }
      assertEquals([p, q, r].map((t) => t.poll(cookie)), [true, true, true]);
      for (const reader of readers) reader.offline();
    }
  },

  "stays right however many periods a reader or a poller sleeps": (variant) => {
    const world = new World(variant, 8);
    const [p, q, a, b] = world.joinAll(4);
    b.online();
    const cookie = q.start();
    assertFalse(q.poll(cookie));
    // q sleeps while others go through periods.
    for (let i = 0; i < 20; i++) {
      const next = p.start();
      a.online();
      b.pass();
      p.poll(next);
      b.pass();
      a.offline();
      assert(p.poll(next));
    }
    assert(q.poll(cookie));
    a.reader.enter();
    b.offline();
    assertWaitsFor(q, a, "a was in a section");
  },

  "agrees with a model in any history, where the sequence turns too": (
    variant,
  ) => {
    const acts = fc.record({ act: fc.constantFrom(...ACTS), who: fc.nat(40) });
    fc.assert(
      fc.property(
        fc.constantFrom(...STARTS),
        fc.constantFrom(1, 2, 3, 5, 17, 33),
        fc.array(acts, { maxLength: 150, size: "max" }),
        (started, crowd, history) =>
          playBesideModel(variant, started, crowd, history),
      ),
      { numRuns: 100 },
    );
  },

  "protects readers where threads break into each other's steps at random": (
    variant,
  ) => {
    for (let seed = 1; seed <= 60; seed++) {
      new Race(variant, seed * 0x9e3779b9 | 0).run(80);
    }
  },

  "protects a section that begins between any two steps of an updater": (
    variant,
  ) => {
    interleave(() => {
      const [updater, reader, other] = new World(variant, 8).joinAll(3);
      other.online();
      other.offline();
      const { update, read, check } = replacement(updater);
      return {
        act: update,
        other: () => read(reader),
        check: (step) => check(`step ${step}`),
      };
    });
  },

  "protects a section in whose beginning an updater breaks": (variant) => {
    for (const begins of [false, true]) {
      interleave(() => {
        const [updater, reader] = new World(variant, 8).joinAll(2);
        reader.online();
        if (begins) updater.start();
        const { update, read, check } = replacement(updater);
        return {
          act: () => {
            reader.pass();
            read(reader);
          },
          other: update,
          check: (step) => check(`begins ${begins}, step ${step}`),
        };
      });
    }
  },

  "protects what the next period waits for, where a report meets its beginning":
    (variant) => {
      for (const last of [true, false]) {
        interleave(() => {
          const [poller, a, b] = new World(variant, 8).joinAll(3);
          a.online();
          b.online();
          const first = poller.start();
          poller.poll(first);
          if (last) b.pass();
          const second = first + 1 as GracePeriodCookie;
          return {
            act: () => a.pass(),
            other: () => {
              if (!last) b.pass();
              poller.poll(second);
            },
            check: (step) => {
              const why = `last: ${last}, step ${step}`;
              assertFalse(poller.poll(second), why);
              a.pass();
              assertFalse(poller.poll(second), `${why}: b`);
              b.pass();
              assert(poller.poll(second), why);
            },
          };
        });
      }
    },

  "ends a period whose last two readers report at once": (variant) => {
    for (const [i, j] of [[1, 2], [2, 1], [3, 34], [33, 34]]) {
      interleave(() => {
        const threads = new World(variant, 40).joinAll(35);
        for (const thread of threads) thread.online();
        const [poller] = threads;
        const cookie = poller.start();
        poller.offline();
        for (const thread of threads) {
          if (![i, j].includes(thread.index)) thread.pass();
        }
        assertFalse(poller.poll(cookie));
        return {
          act: () => threads[i].pass(),
          other: () => threads[j].pass(),
          check: (step) => {
            assert(poller.poll(cookie), `step ${step}`);
            for (const thread of threads) thread.online();
            assertFalse(poller.poll(poller.start()), `step ${step}`);
          },
        };
      });
    }
  },

  "ends a period whose last reader reports while others poll": (variant) => {
    for (const polls of [0, 1]) {
      interleave(() => {
        const [p, q, a, b] = new World(variant, 8).joinAll(4);
        a.online();
        b.online();
        const cookie = p.start();
        for (let i = 0; i < polls; i++) assertFalse(p.poll(cookie));
        b.offline();
        return {
          act: () => p.poll(cookie),
          other: () => {
            a.pass();
            b.online();
            q.poll(cookie + 1 as GracePeriodCookie);
          },
          check: (step) => {
            assert(p.poll(cookie) && q.poll(cookie), `step ${step}`);
            b.reader.enter();
            a.offline();
            assertWaitsFor(p, b, `step ${step}`);
          },
        };
      });
    }
  },

  "protects a thread that joins between any two steps of a poll or a report": (
    variant,
  ) => {
    for (const before of [0, 1, 2, 14, 15, 16]) {
      for (const reports of [false, true]) {
        interleave(() => {
          const world = new World(variant, 24);
          const [poller, reader, ...others] = world.joinAll(2 + before);
          for (const thread of [reader, ...others]) thread.online();
          const cookie = poller.start();
          for (const thread of others) thread.pass();
          if (!reports) reader.pass();
          const { update, read, check } = replacement(poller);
          let joined: Thread | undefined;
          return {
            act: () => reports ? reader.pass() : update(),
            other: () => {
              joined = world.join();
              read(joined);
            },
            check: (step) => {
              const why = `${before}, reports: ${reports}, step ${step}`;
              check(why);
              if (joined === undefined) return;
              for (const thread of [reader, ...others]) thread.offline();
              assert(reports || poller.poll(cookie), why);
              assertWaitsFor(poller, joined, why);
            },
          };
        });
      }
    }
  },

  "protects who takes the record of a thread that leaves during a poll": (
    variant,
  ) => {
    interleave(() => {
      const world = new World(variant, 8);
      const [poller, a, b] = world.joinAll(3);
      a.online();
      b.online();
      const { update, read, check } = replacement(poller);
      let joined: Thread | undefined;
      return {
        act: () => {
          update();
          poller.poll(poller.start());
        },
        other: () => {
          a.leave();
          b.pass();
          joined = world.join();
          read(joined);
        },
        check: (step) => {
          check(`step ${step}`);
          // After its last step there is nothing to break into.
          if (joined === undefined) return;
          b.offline();
          assertWaitsFor(poller, joined, `step ${step}`);
        },
      };
    });
  },
};
