// The package's own patterns: sections against grace periods, and dependent loads.

import type { Rcu } from "../../mod.ts";
import type { Address } from "../../src/memory/arena.ts";
import type { Reader } from "../../src/readers/_reader.ts";
import type { Part, Pattern } from "./_pattern.ts";
import {
  beginning,
  ending,
  ENDS,
  forEach,
  FREED,
  freeing,
  type GoOnline,
  IS_OLD,
  NEW,
  OLD,
  PERIOD,
  POINTER,
  quiescent,
  replacing,
  SEES,
  setUp,
  Updater,
  WORDS,
} from "./_sections.ts";

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
