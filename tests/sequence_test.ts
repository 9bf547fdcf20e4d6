import {
  assertEquals,
  assertGreater,
  assertGreaterOrEqual,
  assertLessOrEqual,
} from "@std/assert";
import fc from "fast-check";
import { Sequence, SEQUENCE_WORDS } from "../src/grace_periods/_sequence.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { interleave } from "./_steps.ts";
import { sharedWords } from "./_workers.ts";

// As in src/grace_periods/_sequence.ts, whose own these are.
const WORD = 0;
const EPOCH = 1;
const COMPLETED = LINE;

/** Periods in half a turn and in a whole one. */
const HALF = 2 ** 30;
const TURN = 2 * HALF;

interface State {
  /** Periods begun. */
  started: number;
  /** Whether the last one has not ended. */
  inProgress: boolean;
  /** Whether whoever crossed the last half turn died before counting it. */
  uncounted?: boolean;
}

/** Sets the words to what they are after so many periods. */
function sequenceAt(
  { started, inProgress, uncounted = false }: State,
): { sequence: Sequence; words: Int32Array } {
  const words = sharedWords(SEQUENCE_WORDS);
  const value = (started: number) => (started % TURN * 2 + 1) | 0;
  words[WORD] = value(started);
  words[COMPLETED] = value(started - (inProgress ? 1 : 0));
  words[EPOCH] = Math.floor(started / HALF) - (uncounted ? 1 : 0);
  return { sequence: new Sequence(words, 0), words };
}

/** The starts of a few periods around each of the first four half turns. */
const STATES: State[] = [1, 2, 3, 4].flatMap((half) =>
  [-3, -2, -1, 0, 1].flatMap((by) =>
    [false, true].map((inProgress) => ({
      started: half * HALF + by,
      inProgress,
    }))
  )
);
for (const half of [1, 2, 3, 4]) {
  for (const inProgress of [false, true]) {
    STATES.push({ started: half * HALF, inProgress, uncounted: true });
  }
}

function name({ started, inProgress, uncounted }: State): string {
  return `${started} periods, in progress: ${inProgress}, dead: ${!!uncounted}`;
}

function assertState(sequence: Sequence, state: State, why: string): void {
  const { started, inProgress } = state;
  assertEquals(
    [sequence.started(), sequence.completed(), sequence.inProgress()],
    [started, started - (inProgress ? 1 : 0), inProgress],
    why,
  );
  // Idle: the next one; in flight: the one after. Either way it has not begun.
  assertEquals<number>(sequence.cookie(), started + 1, why);
}

Deno.test("a fresh sequence has begun and ended nothing", () => {
  const sequence = new Sequence(sharedWords(SEQUENCE_WORDS), 0);
  sequence.initialize();
  assertState(sequence, { started: 0, inProgress: false }, "fresh");
});

Deno.test("a period begins only when none is in progress, and ends once", () => {
  const { sequence } = sequenceAt({ started: 5, inProgress: false });
  const idle = sequence.current();
  sequence.end(idle);
  assertState(sequence, { started: 5, inProgress: false }, "nothing to end");
  sequence.begin();
  sequence.begin();
  const current = sequence.current();
  assertState(sequence, { started: 6, inProgress: true }, "begun twice");
  sequence.end(idle);
  assertState(sequence, { started: 6, inProgress: true }, "a stale end");
  sequence.end(current);
  sequence.end(current);
  assertState(sequence, { started: 6, inProgress: false }, "ended twice");
});

Deno.test("counts and cookies go on over every half turn of the word", () => {
  for (const half of [1, 2, 3, 4]) {
    const { sequence } = sequenceAt({
      started: half * HALF - 5,
      inProgress: false,
    });
    for (let started = half * HALF - 5; started < half * HALF + 5;) {
      assertState(sequence, { started, inProgress: false }, `${started}`);
      assertEquals(sequence.current() & 1, 1, "never the 0 of offline");
      sequence.begin();
      started++;
      assertState(sequence, { started, inProgress: true }, `${started}`);
      assertEquals(sequence.periodOf(sequence.current()), started);
      assertEquals(sequence.periodOf(sequence.current() - 8 | 0), started - 4);
      sequence.end(sequence.current());
    }
  }
});

Deno.test("a begin that comes too late changes nothing, at a half turn either", () => {
  for (const half of [1, 2, 3, 4]) {
    const state = { started: half * HALF - 1, inProgress: false };
    const { sequence } = sequenceAt(state);
    // Two threads saw that none is in progress; both begin one.
    sequence.begin();
    sequence.begin();
    const begun = { started: half * HALF, inProgress: true };
    assertState(sequence, begun, name(begun));
  }
});

Deno.test("a thread that dies before it counts a half turn leaves every count right", () => {
  for (const half of [1, 2, 3, 4]) {
    for (const inProgress of [false, true]) {
      const state = { started: half * HALF, inProgress, uncounted: true };
      const { sequence } = sequenceAt(state);
      assertState(sequence, state, name(state));
      if (inProgress) sequence.end(sequence.current());
      for (let i = 1; i < 4; i++) {
        sequence.begin();
        const now = { started: half * HALF + i, inProgress: true };
        assertState(sequence, now, name(state));
        sequence.end(sequence.current());
      }
    }
  }
});

Deno.test("every half turn is counted when it is made, for the next one may find no more than one missing", () => {
  for (const half of [1, 2, 3, 4]) {
    const state = { started: half * HALF - 1, inProgress: false };
    const { sequence, words } = sequenceAt(state);
    assertEquals(words[EPOCH], half - 1);
    sequence.begin();
    assertEquals(words[EPOCH], half);
  }
});

type Act = "begin" | "end" | "begin, end" | "end, begin" | "begin, end, begin";

/** Does an act as a thread of its own would, and returns how many periods it began. */
function perform(sequence: Sequence, words: Int32Array, act: Act): number {
  let begun = 0;
  for (const verb of act.split(", ")) {
    const before = words[WORD];
    if (verb === "begin") sequence.begin();
    else sequence.end(words[WORD]);
    if (words[WORD] !== before) begun++;
  }
  return begun;
}

const ACTS: Act[] = [
  "begin",
  "end",
  "begin, end",
  "end, begin",
  "begin, end, begin",
];

Deno.test("whatever another thread does between two steps of a thread, the count of periods is right", () => {
  for (const state of STATES) {
    for (const mine of ACTS) {
      for (const theirs of ACTS) {
        interleave(() => {
          const { sequence, words } = sequenceAt(state);
          let at = words[WORD];
          let { started } = state;
          // The word itself says how many periods have begun since.
          const count = () => {
            started += ((words[WORD] - at) | 0) / 2;
            at = words[WORD];
          };
          return {
            act: () => perform(sequence, words, mine),
            other: () => perform(new Sequence(words, 0), words, theirs),
            check: (step) => {
              count();
              const inProgress = words[COMPLETED] !== words[WORD];
              const why = `${name(state)}: "${theirs}" in "${mine}" at ${step}`;
              assertState(sequence, { started, inProgress }, why);
            },
          };
        });
      }
    }
  }
});

Deno.test("whatever another thread does while a thread counts, the count was right at some time meanwhile", () => {
  for (const state of STATES) {
    for (const theirs of ACTS) {
      for (const what of ["started", "completed"] as const) {
        interleave(() => {
          const { sequence, words } = sequenceAt(state);
          const before = sequence[what]();
          let seen = 0;
          return {
            act: () => seen = sequence[what](),
            other: () => perform(new Sequence(words, 0), words, theirs),
            check: (step) => {
              const why = `${name(state)}: ${what}, "${theirs}" at ${step}`;
              assertGreaterOrEqual(seen, before, why);
              assertLessOrEqual(seen, sequence[what](), why);
            },
          };
        });
      }
    }
  }
});

Deno.test("whatever another thread does while a thread takes a cookie, its period is one that begins later, and the first", () => {
  for (const state of STATES) {
    for (const theirs of ACTS) {
      interleave(() => {
        const { sequence, words } = sequenceAt(state);
        let cookie = 0;
        return {
          act: () => cookie = sequence.cookie(),
          other: () => perform(new Sequence(words, 0), words, theirs),
          check: (step) => {
            const why = `${name(state)}: "${theirs}" at ${step}`;
            assertGreater(cookie, state.started, why);
            assertLessOrEqual(cookie, sequence.cookie(), why);
          },
        };
      });
    }
  }
});

Deno.test("histories of beginnings and ends agree with a model anywhere on the turn", () => {
  const near = fc.record({
    half: fc.nat(8),
    by: fc.integer({ min: -20, max: 20 }),
    acts: fc.array(fc.constantFrom(...ACTS), { maxLength: 40 }),
  });
  fc.assert(fc.property(near, ({ half, by, acts }) => {
    let started = Math.max(0, half * HALF + by);
    const { sequence, words } = sequenceAt({ started, inProgress: false });
    for (const act of acts) {
      const completed = sequence.completed();
      started += perform(sequence, words, act);
      const inProgress = sequence.inProgress();
      assertState(sequence, { started, inProgress }, act);
      assertGreaterOrEqual(sequence.completed(), completed);
    }
  }));
});
