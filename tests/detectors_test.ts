import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import type { GracePeriodCookie } from "../src/grace_periods/cookie.ts";
import { CLASSIC, SCAN } from "../src/grace_periods/_detectors.ts";
import { nodeWords } from "../src/grace_periods/_mask_nodes.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { lockOwner } from "../src/sync/_mutex.ts";
import { CASES } from "./_detector_cases.ts";
import { FAULTY } from "./_detector_faults.ts";
import { HALF, VARIANTS, World } from "./_detector_world.ts";
import { atEveryStep, interleave } from "./_steps.ts";

for (const variant of VARIANTS) {
  for (const [what, play] of Object.entries(CASES)) {
    Deno.test(`${variant.name} ${what}`, () => play(variant));
  }
}

/** Those that find by themselves what the others are about. */
const SEARCHES = [
  "agrees with a model in any history, where the sequence turns too",
  "protects readers where threads break into each other's steps at random",
];

for (const faulty of FAULTY) {
  Deno.test(`${faulty.name} is noticed`, () => {
    for (const what of SEARCHES) {
      assertThrows(() => CASES[what](faulty), Error, undefined, what);
    }
  });
}

const MASKED = VARIANTS.filter(({ kind }) => kind !== SCAN);

/** Atomic accesses of an act. */
function steps(act: () => void): number {
  return atEveryStep(act, () => {});
}

/** The nodes of a detector; the lock is their first word. */
function nodes(
  { words, detectorBase, maxReaders }: World,
  kind: number,
): number[] {
  const step = nodeWords(kind === CLASSIC ? maxReaders : kind);
  const list: number[] = [];
  for (let node = detectorBase + LINE; node < words.length; node += step) {
    list.push(node);
  }
  return list;
}

for (const variant of MASKED) {
  const { name, kind } = variant;

  Deno.test(`${name} is told by the last reader: a poll is one load then`, () => {
    const world = new World(variant, 48);
    const [poller, other, ...readers] = world.joinAll(43);
    const idle = readers.pop()!;
    for (let round = 0; round < 3; round++) {
      for (const reader of readers) reader.online();
      idle.online();
      const cookie = poller.start();
      const sequence = world.sequence.current();
      idle.offline();
      // The poller ticks those off that are offline, and the readers themselves.
      assertFalse(poller.detector.passed(sequence));
      for (const [i, reader] of readers.entries()) {
        assertFalse(other.detector.passed(sequence));
        reader.pass();
        // What comes too late, about a period that has ended, changes nothing.
        if (i === 20) reader.detector.report(sequence - 2);
      }
      for (const { detector } of [poller, other, idle]) {
        assertEquals(steps(() => assert(detector.passed(sequence))), 1);
      }
      assert(poller.poll(cookie));
    }
  });

  Deno.test(`${name} polls for the same reader again by three loads, however many there are`, () => {
    for (const count of [3, 40, 600]) {
      const [poller, ...readers] = new World(variant, 600).joinAll(count);
      for (const reader of readers) reader.online();
      const cookie = poller.start();
      assertFalse(poller.poll(cookie));
      const sequence = sequenceOf(cookie);
      const poll = () => assertFalse(poller.detector.passed(sequence));
      assertEquals(steps(poll), 3);
      // And where it no longer is in the way, goes to the next one that is, and no further.
      readers.at(-1)!.pass();
      const levels = kind === CLASSIC ? 1 : Math.log2(1_024);
      assert(steps(poll) <= 4 + 5 * levels);
      assertEquals(steps(poll), 3);
    }
  });

  Deno.test(`${name} does not wait again for a reader that announces late what was once so`, () => {
    interleave(() => {
      const [poller, other, late, reader] = new World(variant, 9).joinAll(4);
      reader.online();
      let cookie: GracePeriodCookie | undefined;
      return {
        // It loads the sequence, and announces that when a period has begun that found it offline.
        act: () => late.reader.enter(),
        other: () => {
          cookie = poller.start();
          assertFalse(poller.poll(cookie));
        },
        check: (step) => {
          const why = `step ${step}`;
          assertFalse(other.poll(cookie!), why);
          // Then it is online already, and is waited for.
          if (step > 1) return assertEquals(late.blocking().length, 2, why);
          assertEquals(other.blocking(), [reader.index], why);
          reader.pass();
          assert(poller.poll(cookie!) && other.poll(cookie!), why);
          assertFalse(poller.poll(poller.start()), why);
        },
      };
    });
  });

  Deno.test(`${name} takes no mask for one about another period, where a reporter stops at any step in the middle of a poll`, () => {
    const full = new RangeError("the stack is full");
    for (let at = 0, reached = true; reached; at++) {
      reached = false;
      for (let end = 0, stopped = true; stopped; end++) {
        const world = new World(variant, 3);
        const [poller, a, b] = world.joinAll(3);
        for (const thread of [a, b]) thread.online();
        const cookie = poller.start();
        for (const thread of [a, b]) thread.pass();
        assert(poller.poll(cookie));
        poller.start();
        const sequence = world.sequence.current();
        let [polled, reported, reporting] = [0, 0, false];
        stopped = false;
        const report = () => {
          reached = reporting = true;
          try {
            a.pass();
          } catch (error) {
            assert(error === full);
            stopped = true;
          }
          reporting = false;
        };
        const poll = () => assertFalse(poller.detector.passed(sequence));
        atEveryStep(poll, () => {
          if (reporting) {
            if (reported++ === end) throw full;
          } else if (polled++ === at) {
            report();
          }
        }, 2);
        b.pass();
        a.offline();
        assert(poller.detector.passed(sequence));
      }
    }
  });

  Deno.test(`${name} is right where the lock of any node is never given back`, () => {
    const world = new World(variant, 9);
    const { words } = world;
    const threads = world.joinAll(9);
    const [poller, other, ...readers] = threads;
    const dead = lockOwner(8, 1_000);
    for (const node of nodes(world, kind)) {
      // A mask that is full already, one that is half full, and one about an ended period.
      for (const moment of ["full", "half", "before"]) {
        for (const reader of readers) reader.online();
        const cookie = poller.start();
        if (moment === "before") words[node] = dead;
        assertFalse(poller.poll(cookie));
        for (const [i, reader] of readers.entries()) {
          if (moment === "half" && i === 3) words[node] = dead;
          assertFalse(poller.poll(cookie) || other.poll(cookie));
          assertEquals(
            poller.blocking(),
            readers.slice(i).map(({ index }) => index),
          );
          reader.pass();
        }
        assert(other.poll(cookie) && poller.poll(cookie));
        words[node] = dead;
        for (let i = 0; i < 3; i++) {
          const next = other.start();
          assertFalse(other.poll(next), `${moment}, node ${node}`);
          for (const reader of readers.slice(1)) reader.pass();
          assertFalse(other.poll(next), `${moment}, node ${node}`);
          assertEquals(other.blocking(), [readers[0].index]);
          readers[0].pass();
          assert(other.poll(next));
        }
        words[node] = 0;
        for (const reader of readers) reader.offline();
      }
    }
  });

  Deno.test(`${name} believes no mask that was full a whole turn ago, under a lock never given back`, () => {
    const world = new World(variant, 9, 2 * HALF);
    const { words } = world;
    const [poller, ...readers] = world.joinAll(9);
    for (const reader of readers) reader.online();
    const cookie = poller.start();
    poller.poll(cookie);
    for (const reader of readers) reader.pass();
    assert(poller.poll(cookie));
    for (const reader of readers) reader.offline();
    for (const node of nodes(world, kind)) words[node] = lockOwner(8, 1_000);
    // One period under the taken locks, and 2 ** 31 - 2 that are as good as it.
    assert(poller.poll(poller.start()));
    words[LINE] = words[LINE + LINE] = 1;
    for (const reader of readers) reader.online();
    const same = poller.start();
    assertEquals(world.sequence.current(), sequenceOf(cookie));
    assertFalse(poller.poll(same));
    assertEquals(poller.blocking().length, 8);
    for (const reader of readers) reader.pass();
    assert(poller.poll(same));
  });

  Deno.test(`${name} goes on where an exception stopped a thread at any step`, () => {
    const full = new RangeError("the stack is full");
    for (const polls of [false, true]) {
      for (let at = 0, ended = false; !ended; at++) {
        const world = new World(variant, 9);
        const [poller, a, b, c] = world.joinAll(4);
        for (const thread of [a, b, c]) thread.online();
        const cookie = poller.start();
        b.offline();
        if (polls) a.pass();
        try {
          atEveryStep(
            () => polls ? poller.poll(cookie) : a.pass(),
            (step) => {
              if (step === at) throw full;
            },
          );
          ended = true;
        } catch (error) {
          assert(error === full);
        }
        const why = `polls: ${polls}, step ${at}`;
        for (const thread of [poller, b]) {
          assertFalse(thread.poll(cookie), why);
        }
        c.pass();
        a.pass();
        assert(b.poll(cookie), why);
        // The thread itself, and periods that come after.
        for (let i = 1; i < 4; i++) {
          const next = cookie + i as GracePeriodCookie;
          for (const thread of [a, c]) thread.online();
          assertFalse(poller.poll(next) || b.poll(next), why);
          a.pass();
          assertFalse(b.poll(next) || poller.poll(next), why);
          c.pass();
          assert(poller.poll(next) && b.poll(next), why);
        }
        const left = nodes(world, kind).filter((node) => world.words[node]);
        assertEquals(left, [], `${why}: locks that are still taken`);
      }
    }
  });
}

for (const variant of MASKED.filter(({ kind }) => kind !== CLASSIC)) {
  Deno.test(`${variant.name} costs a reader that is the first of its leaf the same among 40 and 4,000`, () => {
    const [few, many] = [40, 4_000].map((count) => {
      const [poller, ...readers] = new World(variant, 4_096).joinAll(count);
      for (const reader of readers) reader.online();
      poller.poll(poller.start());
      // The first of the second leaf; reader 0 is the poller.
      return steps(() => readers[variant.kind - 1].pass());
    });
    assertEquals(few, many);
  });
}

/** The value of the word in a period, by its cookie. */
function sequenceOf(cookie: GracePeriodCookie): number {
  return (cookie % (2 * HALF) * 2 + 1) | 0;
}

Deno.test("a lock that is taken makes no reader wait", () => {
  for (const variant of MASKED) {
    const world = new World(variant, 9);
    const [poller, ...readers] = world.joinAll(9);
    for (const reader of readers) reader.online();
    poller.start();
    for (const node of nodes(world, variant.kind)) {
      world.words[node] = lockOwner(8, 1_000);
    }
    for (const reader of readers) {
      assert(steps(() => reader.pass()) < 10, variant.name);
    }
    assert(poller.detector.passed(world.sequence.current()));
  }
});
