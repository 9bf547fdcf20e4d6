// Scenarios: sections, registration and reports against grace periods, without a domain around them.

import type { DetectorParts } from "../../src/grace_periods/_detector.ts";
import {
  CLASSIC,
  detectorWords,
  openDetector,
  SCAN,
} from "../../src/grace_periods/_detectors.ts";
import { GracePeriods } from "../../src/grace_periods/_grace_periods.ts";
import { Sequence, SEQUENCE_WORDS } from "../../src/grace_periods/_sequence.ts";
import { POISON } from "../../src/memory/_heap.ts";
import { LINE } from "../../src/memory/_size_classes.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable, readerTableWords } from "../../src/readers/_slots.ts";
import { lockOwner } from "../../src/sync/_mutex.ts";
import { must, type Part, type Scenario, until } from "./_scenario.ts";

/** What lies where. */
const SEQUENCE = LINE;
/** A line for each pointer, one for each of the two things that it points to. */
const POINTERS = SEQUENCE + SEQUENCE_WORDS;
const POINTER_WORDS = 3 * LINE;
const READERS = POINTERS + 2 * POINTER_WORDS;

/** Where a detector's words are. */
function detectorBase(maxReaders: number): number {
  return READERS + readerTableWords(maxReaders);
}

function pointer(which: number): number {
  return POINTERS + which * POINTER_WORDS;
}

/** A registered thread. */
class Member {
  readonly #words: Int32Array;
  readonly #readers: ReaderTable;
  readonly #index: number;
  readonly #sequence: Sequence;
  readonly reader: Reader;
  readonly periods: GracePeriods;

  constructor(buffer: SharedArrayBuffer, kind: number, maxReaders: number) {
    const words = new Int32Array(buffer);
    const readers = new ReaderTable(words, READERS, maxReaders);
    const sequence = new Sequence(words, SEQUENCE);
    const { index, generation } = readers.register()!;
    const reader = new Reader(words, readers.slot(index), sequence.address);
    const parts: DetectorParts = {
      words,
      base: detectorBase(maxReaders),
      maxReaders,
      readers,
      sequence,
      reader: index,
      owner: lockOwner(index, generation),
    };
    const detector = openDetector(kind, parts);
    reader.onAnnounced = (sequence) => detector.report(sequence);
    const nap = readers.nap(index);
    this.#words = words;
    this.#readers = readers;
    this.#index = index;
    this.#sequence = sequence;
    this.reader = reader;
    this.periods = new GracePeriods(words, sequence, detector, reader, nap);
  }

  leave(): void {
    this.reader.close();
    this.#readers.unregister(this.#index);
  }

  /** Looks, in a section, at what a pointer points to, before and after something else. */
  look(which: number, meanwhile: () => void = () => {}): void {
    const words = this.#words;
    this.reader.enter();
    const it = words[pointer(which)];
    must(words[it] !== POISON, "A section must not find what is reused");
    meanwhile();
    must(words[it] !== POISON, "What a section found must not be reused");
    this.reader.exit();
  }

  /** Has a pointer point to something else, and reuses what it pointed to. */
  replace(which: number): void {
    const words = this.#words;
    const at = pointer(which);
    const old = words[at];
    const fresh = old === at + LINE ? at + 2 * LINE : at + LINE;
    words[fresh] = 1;
    Atomics.store(words, at, fresh);
    const cookie = this.periods.start();
    until(() => this.periods.poll(cookie));
    const completed = this.#sequence.completed();
    must(completed >= cookie, "A period that has ended must count as ended");
    must(completed <= this.#sequence.started(), "It must have begun before");
    words[old] = POISON;
  }
}

type Act = (member: () => Member) => void;

const look: Act = (member) => {
  member().look(0);
};

/** Two sections of one turn, and a quiescent state between them. */
const lookTwice: Act = (member) => {
  const it = member();
  it.look(0);
  it.reader.checkQuiescentState();
  it.look(0);
};

/** A section inside another one, and a look at the sequence. */
const lookInside: Act = (member) => {
  const it = member();
  it.look(0, () => {
    it.look(0);
    it.reader.checkQuiescentState();
  });
};

const replace = (which = 0): Act => (member) => member().replace(which);

/** A thread that joins, looks and leaves, so often. */
const comeAndGo = (times: number): Act => (member) => {
  for (let i = 0; i < times; i++) {
    const it = member();
    it.look(0);
    it.leave();
  }
};

interface Settings {
  /** The threads that join in the middle of the run. */
  late?: number[];
  maxReaders?: number;
  /** Periods that have begun and ended already. */
  started?: number;
}

/** Periods in half a turn of the sequence word. */
const HALF = 2 ** 30;

/** Makes a scenario of what threads do. */
function scenario(
  name: string,
  kind: number,
  acts: Act[],
  { late = [], maxReaders = 4, started = 0 }: Settings = {},
): Scenario {
  return {
    name,
    threads: acts.length,
    lay(buffer) {
      const words = new Int32Array(buffer);
      new Sequence(words, SEQUENCE).initialize();
      // As in src/grace_periods/_sequence.ts: the word, its half turns, what has ended.
      const value = (started % (2 * HALF) * 2 + 1) | 0;
      words[SEQUENCE] = value;
      words[SEQUENCE + 1] = Math.floor(started / HALF);
      words[SEQUENCE + LINE] = value;
      for (const which of [0, 1]) {
        words[pointer(which)] = pointer(which) + LINE;
        words[pointer(which) + LINE] = 1;
      }
      // Nothing behind the detector: its end shows where that is.
      words[detectorBase(maxReaders) + detectorWords(kind, maxReaders)] = -1;
      return {};
    },
    join(thread, buffer): Part {
      const join = () => new Member(buffer, kind, maxReaders);
      if (late.includes(thread)) return { act: () => acts[thread](join) };
      const member = join();
      return { act: () => acts[thread](() => member) };
    },
  };
}

const KINDS: [string, number][] = [
  ["scan", SCAN],
  ["classic", CLASSIC],
  ["tree", 2],
];

export const PERIODS: Scenario[] = [
  ...KINDS.flatMap(([name, kind]) => [
    scenario(`period/${name}/sections`, kind, [replace(), lookTwice]),
    scenario(`period/${name}/nested sections`, kind, [replace(), lookInside]),
    scenario(`period/${name}/two updaters`, kind, [
      replace(0),
      replace(1),
      (member) => {
        const it = member();
        it.look(0);
        it.reader.checkQuiescentState();
        it.look(1);
      },
    ]),
    scenario(`period/${name}/a thread comes and goes`, kind, [
      replace(),
      comeAndGo(2),
    ], { late: [1] }),
    scenario(`period/${name}/threads take a record in turn`, kind, [
      replace(),
      comeAndGo(1),
      comeAndGo(1),
    ], { late: [1, 2], maxReaders: 3 }),
  ]),
  ...[HALF, 2 * HALF].map((turn, i) =>
    scenario(
      `turn of the word/${i === 0 ? "half" : "whole"}`,
      SCAN,
      [replace(0), replace(1)],
      { started: turn - 2 },
    )
  ),
  scenario("tree/reports of two leaves", 2, [replace(), lookTwice, look]),
  scenario("tree/reports of one leaf", 2, [look, lookTwice, replace()]),
];
