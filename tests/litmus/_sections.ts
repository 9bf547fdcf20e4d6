// Readers and updaters of the package, each with an instance of all that they need.

import type { Rcu } from "../../mod.ts";
import { ScanDetector } from "../../src/grace_periods/_scan.ts";
import { Sequence, SEQUENCE_WORDS } from "../../src/grace_periods/_sequence.ts";
import type { Address } from "../../src/memory/arena.ts";
import { Reader } from "../../src/readers/_reader.ts";
import { ReaderTable, readerTableWords } from "../../src/readers/_slots.ts";
import { INSTANCES, type Part } from "./_pattern.ts";

// An instance: a pointer, an old and a new block, a sequence, a table of one reader.
export const POINTER = 0;
export const OLD = 16;
export const NEW = 32;
const SEQUENCE = 48;
const READERS = SEQUENCE + SEQUENCE_WORDS;
export const WORDS = READERS + readerTableWords(1);

// What the blocks hold. FREED is what whoever gets the old block next writes into it.
export const IS_OLD = 1;
const IS_NEW = 2;
export const FREED = 3;
export const SEES = ["-", "old", "new", "freed"];

const WAITS = 0;
export const ENDS = 1;
export const PERIOD = ["waits", "ends"];

/** Lays an instance out: nobody is online, and no period has begun. */
export function setUp(words: Int32Array, instance: Address): void {
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
export function forEach<T>(base: Address, make: (instance: Address) => T): T[] {
  return Array.from({ length: INSTANCES }, (_, i) => make(base + i * WORDS));
}

/** What a section finds, by a dependent load. */
function follow(rcu: Rcu, instance: Address): number {
  return rcu.memory.words[rcu.dereference(instance + POINTER)];
}

/** An updater's tools for an instance, and what it does with them. */
export class Updater {
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

/** How a thread goes online, given its slot and the sequence. */
export type GoOnline = (
  words: Int32Array,
  slot: Address,
  sequence: Address,
) => void;

/** A section that begins, with the reader's way to go online or another one. */
export function beginning(
  goOnline?: GoOnline,
): (rcu: Rcu, base: Address) => Part {
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
export function quiescent(
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
export function ending(
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
export function freeing(updaters: Updater[]): Part {
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
export function replacing(phases: number): (updaters: Updater[]) => Part {
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
