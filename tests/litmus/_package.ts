// The package's own patterns: sections against grace periods, and dependent loads.

import type { Rcu } from "../../mod.ts";
import { ScanDetector } from "../../src/grace_periods/_scan.ts";
import { Sequence, SEQUENCE_WORDS } from "../../src/grace_periods/_sequence.ts";
import type { Address } from "../../src/memory/arena.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable, readerTableWords } from "../../src/readers/_slots.ts";
import { INSTANCES, type Part, type Pattern } from "./_pattern.ts";

// An instance: a pointer, an old and a new block, a sequence, a table of one reader.
const POINTER = 0;
const OLD = 16;
const NEW = 32;
const SEQUENCE = 48;
const READERS = SEQUENCE + SEQUENCE_WORDS;
const WORDS = READERS + readerTableWords(1);

// What the blocks hold. FREED is what whoever gets the old block next writes into it.
const IS_OLD = 1;
const IS_NEW = 2;
const FREED = 3;
const SEES = ["-", "old", "new", "freed"];

const WAITS = 0;
const ENDS = 1;
const PERIOD = ["waits", "ends"];

function setUp(words: Int32Array, instance: Address): void {
  new Sequence(words, instance + SEQUENCE).initialize();
  new ReaderTable(words, instance + READERS, 1).register();
  restore(words, instance);
}

function restore(words: Int32Array, instance: Address): void {
  Atomics.store(words, instance + OLD, IS_OLD);
  Atomics.store(words, instance + NEW, IS_NEW);
  Atomics.store(words, instance + POINTER, instance + OLD);
}

/** One thing for each instance. */
function forEach<T>(base: Address, make: (instance: Address) => T): T[] {
  return Array.from({ length: INSTANCES }, (_, i) => make(base + i * WORDS));
}

/** What a section finds, by a dependent load. */
function follow(rcu: Rcu, instance: Address): number {
  return rcu.memory.words[rcu.dereference(instance + POINTER)];
}

/** An updater's tools for an instance, and what it does with them. */
class Updater {
  readonly #rcu: Rcu;
  readonly #words: Int32Array;
  readonly #instance: Address;
  readonly #sequence: Sequence;
  readonly #detector: ScanDetector;

  constructor(rcu: Rcu, instance: Address) {
    const { words } = rcu.memory;
    this.#rcu = rcu;
    this.#words = words;
    this.#instance = instance;
    this.#sequence = new Sequence(words, instance + SEQUENCE);
    const readers = new ReaderTable(words, instance + READERS, 1);
    this.#detector = new ScanDetector(words, readers);
  }

  /** Ends the period of the round before, whatever readers do. */
  restore(): void {
    this.#sequence.end(this.#sequence.current());
    restore(this.#words, this.#instance);
  }

  /** Replaces the old block and begins a period. */
  swap(): void {
    this.#rcu.assignPointer(
      this.#instance + POINTER,
      this.#instance + NEW,
    );
    this.#sequence.begin();
  }

  /** Looks whether the period may end, and reuses the old block as soon as it may. */
  scan(looks: number): number {
    const period = this.#sequence.current();
    for (let i = 0; i < looks; i++) {
      if (!this.#detector.passed(period)) continue;
      // Plainly: the next owner knows of nobody else.
      this.#words[this.#instance + OLD] = FREED;
      return ENDS;
    }
    return WAITS;
  }
}

/** How often an updater looks: long enough to meet readers that are slower than it. */
const LOOKS = 4;

function readersOf(rcu: Rcu, base: Address): Reader[] {
  const { words } = rcu.memory;
  return forEach(base, (instance) => {
    const slot = new ReaderTable(words, instance + READERS, 1).slot(0);
    return new Reader(words, slot, instance + SEQUENCE);
  });
}

/** Ends what a reader did in the round before. */
function leave(reader: Reader): void {
  if (reader.depth > 0) reader.exit();
  reader.goOffline();
}

/** A pattern of a reader and an updater. */
function readerAndUpdater(
  name: string,
  weak: Pattern["weak"],
  isWeak: (read: number, period: number) => boolean,
  phases: number,
  parts: [
    (rcu: Rcu, base: Address) => Part,
    (updaters: Updater[]) => Part,
  ],
): Pattern {
  return {
    name,
    weak,
    sees: [SEES, PERIOD],
    isWeak: ([read, period]) => isWeak(read, period),
    words: WORDS,
    phases,
    setUp,
    part: (rcu, base, thread) =>
      thread === 0
        ? parts[0](rcu, base)
        : parts[1](forEach(base, (instance) => new Updater(rcu, instance))),
  };
}

/** How a thread goes online, given its slot and the sequence. */
type GoOnline = (words: Int32Array, slot: Address, sequence: Address) => void;

/** A section that begins, with the reader's way to go online or another one. */
function beginning(goOnline?: GoOnline): (rcu: Rcu, base: Address) => Part {
  return (rcu, base) => {
    const { words } = rcu.memory;
    const at = (instance: number) => base + instance * WORDS;
    if (goOnline === undefined) {
      const readers = readersOf(rcu, base);
      return {
        prepare: [(instance) => leave(readers[instance])],
        act: (instance) => {
          readers[instance].enter();
          return follow(rcu, at(instance));
        },
      };
    }
    const slot = new ReaderTable(words, READERS, 1).slot(0);
    return {
      prepare: [(instance) => Atomics.store(words, at(instance) + slot, 0)],
      act: (instance) => {
        goOnline(words, at(instance) + slot, at(instance) + SEQUENCE);
        return follow(rcu, at(instance));
      },
    };
  };
}

/** A thread that is online, is quiescent between two sections, and stays in the second one. */
function quiescent(
  announce: (reader: Reader) => void,
): (rcu: Rcu, base: Address) => Part {
  return (rcu, base) => {
    const readers = readersOf(rcu, base);
    return {
      prepare: [
        (instance) => leave(readers[instance]),
        (instance) => readers[instance].goOnline(),
      ],
      act: (instance) => {
        const reader = readers[instance];
        const at = base + instance * WORDS;
        reader.enter();
        const before = follow(rcu, at);
        reader.exit();
        announce(reader);
        reader.enter();
        const after = follow(rcu, at);
        return before === FREED ? FREED : after;
      },
    };
  };
}

/** A section that ends, having begun before the updater replaced what it reads last. */
function ending(
  begin: (reader: Reader) => void,
): (rcu: Rcu, base: Address) => Part {
  return (rcu, base) => {
    const readers = readersOf(rcu, base);
    return {
      prepare: [
        (instance) => leave(readers[instance]),
        (instance) => begin(readers[instance]),
        () => {},
      ],
      act: (instance) => {
        const read = rcu.memory.words[base + instance * WORDS + OLD];
        leave(readers[instance]);
        return read;
      },
    };
  };
}

/** An updater that has replaced, and looks a few times whether the old block may be reused. */
function freeing(updaters: Updater[]): Part {
  return {
    prepare: [
      (instance) => updaters[instance].restore(),
      () => {},
      (instance) => updaters[instance].swap(),
    ],
    act: (instance) => updaters[instance].scan(LOOKS),
  };
}

/** An updater that replaces, and looks a few times whether the old block may be reused. */
function replacing(phases: number): (updaters: Updater[]) => Part {
  const rest = new Array(phases - 1).fill(() => {});
  return (updaters) => ({
    prepare: [(instance) => updaters[instance].restore(), ...rest],
    act: (instance) => {
      const updater = updaters[instance];
      updater.swap();
      return updater.scan(LOOKS);
    },
  });
}

/** The section is open, and has or will have found what is reused. */
function usedAfterFree(read: number, period: number): boolean {
  return read === FREED || (read === IS_OLD && period === ENDS);
}

/** Publishing a block that has just been filled, and following the pointer to it. */
function publication(
  name: string,
  weak: Pattern["weak"],
  publish: (rcu: Rcu, pointer: Address, block: Address) => void,
): Pattern {
  return {
    name,
    weak,
    sees: [["-"], ["nothing", "all of it", "not all of it"]],
    isWeak: ([, read]) => read === 2,
    words: WORDS,
    phases: 1,
    part: (rcu, base, thread) => {
      const { words } = rcu.memory;
      if (thread === 0) {
        return {
          prepare: [(instance) => {
            const at = base + instance * WORDS;
            Atomics.store(words, at + POINTER, 0);
            Atomics.store(words, at + OLD, 0);
            Atomics.store(words, at + NEW, 0);
          }],
          act: (instance) => {
            const at = base + instance * WORDS;
            // Plainly, as all words of a block that nobody can find: in two lines.
            words[at + OLD] = 1;
            words[at + NEW] = 1;
            publish(rcu, at + POINTER, at + OLD);
            return 0;
          },
        };
      }
      return {
        prepare: [() => {}],
        act: (instance) => {
          const block = rcu.dereference(base + instance * WORDS + POINTER);
          if (block === 0) return 0;
          return words[block] + words[block + NEW - OLD] === 2 ? 1 : 2;
        },
      };
    },
  };
}

const BEGINS = "a section begins";
const SWAP = "swap, scan";

/** A section that begins while an updater replaces what it reads. */
function begins(
  how: string,
  weak: Pattern["weak"],
  goOnline?: GoOnline,
): Pattern {
  return readerAndUpdater(
    `${BEGINS}${how} | ${SWAP}`,
    weak,
    usedAfterFree,
    1,
    [beginning(goOnline), replacing(1)],
  );
}

/** A thread that is quiescent while an updater replaces what it reads. */
function passes(how: string, announce: (reader: Reader) => void): Pattern {
  return readerAndUpdater(
    `a quiescent state${how}, ${BEGINS} | ${SWAP}`,
    "never",
    usedAfterFree,
    2,
    [quiescent(announce), replacing(2)],
  );
}

/** A section that ends while an updater waits for it. */
function ends(how: string, begin: (reader: Reader) => void): Pattern {
  return readerAndUpdater(
    `a section ends${how} | scan, free`,
    "never",
    (read) => read === FREED,
    3,
    [ending(begin), freeing],
  );
}

/** All of them. */
export const PACKAGE: Pattern[] = [
  begins("", "never"),
  passes("", (reader) => reader.checkQuiescentState()),
  ends("", (reader) => reader.enter()),
  publication(
    "fill, publish | dependent load",
    "never",
    (rcu, pointer, block) => rcu.assignPointer(pointer, block),
  ),
  begins(" plainly", "may", (words, slot, sequence) => {
    words[slot] = words[sequence];
  }),
  begins(" without the load (6)", "may", (words, slot, sequence) => {
    Atomics.store(words, slot, Atomics.load(words, sequence));
  }),
  publication(
    "fill, publish plainly | dependent load",
    "may",
    (rcu, pointer, block) => {
      rcu.memory.words[pointer] = block;
    },
  ),
];

/** Patterns with faults, which show what must never be on any machine. */
export const FAULTY: Pattern[] = [
  begins(" that nobody is told of", "never", () => {}),
  passes(" of a thread that is offline afterwards", (reader) => {
    reader.goOffline();
    reader.online = true;
  }),
  ends(" that had not begun", () => {}),
];
