// Readers, a sequence and a detector without a domain around them.

import type {
  Detector,
  DetectorParts,
} from "../src/grace_periods/_detector.ts";
import {
  CLASSIC,
  detectorWords,
  openDetector,
  SCAN,
} from "../src/grace_periods/_detectors.ts";
import type { GracePeriodCookie } from "../src/grace_periods/cookie.ts";
import { GracePeriods } from "../src/grace_periods/_grace_periods.ts";
import { Sequence, SEQUENCE_WORDS } from "../src/grace_periods/_sequence.ts";
import { LINE } from "../src/memory/_size_classes.ts";
import { Reader } from "../src/readers/_reader.ts";
import { ReaderTable, readerTableWords } from "../src/readers/_slots.ts";
import { lockOwner } from "../src/sync/_mutex.ts";
import { sharedWords } from "./_workers.ts";

/** Periods in half a turn of the sequence word. */
export const HALF = 2 ** 30;

/** A detector to be tested. */
export interface Variant {
  readonly name: string;
  /** A kind of `_detectors.ts`, which says how many words it takes. */
  readonly kind: number;
  /** Makes a thread's; the real one of that kind if there is none. */
  readonly make?: (parts: DetectorParts) => Detector;
}

/** The detectors of the package. */
export const VARIANTS: Variant[] = [
  { name: "scan", kind: SCAN },
  { name: "classic", kind: CLASSIC },
  { name: "a tree of fanout 2", kind: 2 },
  { name: "a tree of fanout 3", kind: 3 },
  { name: "a tree of fanout 16", kind: 16 },
  { name: "a tree of fanout 32", kind: 32 },
];

/** A registered thread; all of them run in this one. */
export class Thread {
  readonly index: number;
  readonly reader: Reader;
  readonly detector: Detector;
  readonly periods: GracePeriods;
  readonly #world: World;

  constructor(world: World, variant: Variant) {
    const { words, readers, sequence, detectorBase: base, maxReaders } = world;
    const record = readers.register();
    if (record === undefined) throw new Error("No room for another thread");
    const { index, generation } = record;
    this.#world = world;
    this.index = index;
    this.reader = new Reader(words, readers.slot(index), sequence.address);
    const make = variant.make ??
      ((parts: DetectorParts) => openDetector(variant.kind, parts));
    const detector = make({
      words,
      base,
      maxReaders,
      readers,
      sequence,
      reader: index,
      owner: lockOwner(index, generation),
    });
    this.detector = detector;
    this.reader.onAnnounced = (sequence) => detector.report(sequence);
    const nap = readers.nap(index);
    this.periods = new GracePeriods(
      words,
      sequence,
      detector,
      this.reader,
      nap,
    );
  }

  online(): void {
    if (!this.reader.online) this.reader.goOnline();
  }

  offline(): void {
    this.reader.goOffline();
  }

  /** Passes a quiescent state, unless it is in a section. */
  pass(): void {
    this.reader.checkQuiescentState();
  }

  leave(): void {
    this.reader.close();
    this.#world.readers.unregister(this.index);
  }

  start(): GracePeriodCookie {
    return this.periods.start();
  }

  poll(cookie: GracePeriodCookie): boolean {
    return this.periods.poll(cookie);
  }

  /** The readers that the period in progress waits for. */
  blocking(): number[] {
    const readers: number[] = [];
    this.detector.blocking(
      this.#world.sequence.current(),
      (reader) => readers.push(reader),
    );
    return readers;
  }
}

/** What the threads share. */
export class World {
  readonly words: Int32Array;
  readonly maxReaders: number;
  readonly readersBase: number;
  readonly detectorBase: number;
  readonly readers: ReaderTable;
  readonly sequence: Sequence;
  readonly #variant: Variant;

  /**
   * @param variant The detector.
   * @param maxReaders Reader slots.
   * @param started Periods that have begun and ended already.
   */
  constructor(variant: Variant, maxReaders: number, started = 0) {
    this.#variant = variant;
    this.maxReaders = maxReaders;
    this.readersBase = LINE + SEQUENCE_WORDS;
    this.detectorBase = this.readersBase + readerTableWords(maxReaders);
    this.words = sharedWords(
      this.detectorBase + detectorWords(variant.kind, maxReaders),
    );
    this.readers = new ReaderTable(this.words, this.readersBase, maxReaders);
    this.sequence = new Sequence(this.words, LINE);
    this.sequence.initialize();
    const value = (started % (2 * HALF) * 2 + 1) | 0;
    this.words[LINE] = value;
    this.words[LINE + 1] = Math.floor(started / HALF);
    this.words[LINE + LINE] = value;
  }

  join(): Thread {
    return new Thread(this, this.#variant);
  }

  /**
   * Has threads join.
   *
   * @param count How many.
   * @returns They, by their index.
   */
  joinAll(count: number): Thread[] {
    return Array.from({ length: count }, () => this.join());
  }
}
