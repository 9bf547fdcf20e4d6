// One shared value.

import {
  checkBoolean,
  checkFunction,
  checkSignal,
  type OptionNames,
  refuseNumber,
  takeOptions as takeWaitOptions,
  uncloneable,
} from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { show, WordCodec } from "../memory/_codec.ts";
import type { Reader } from "../readers/_reader.ts";
import * as reading from "../readers/_reader.ts";
import type { Codec } from "../memory/codec.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { hideFields } from "./_hide.ts";
import { openRoot, takeOptions } from "./_open.ts";
import { noteWrite, OwnWrites } from "./_own_writes.ts";
import { Values } from "./_values.ts";
import { Watch } from "./_watch.ts";

// A copy for the hot path, as in RcuMap.
const { LEAF_READ } = reading;

/** The word that stands for the value. */
const VALUE = 0;
/** Moves after every change; waiters sleep on it. */
const VERSION = 1;
/** Pending `waitForChange` calls: 0 spares writers the call that wakes. */
const WAITERS = 2;
const LOCK = 3;
const CELL_WORDS = 4;

/**
 * How a cell is opened.
 *
 * @typeParam T What it holds.
 *
 * @example A cell of strings
 * ```ts
 * import { Rcu, RcuCell, type RcuCellOptions, string } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const options: RcuCellOptions<string> = { value: string, initial: "none" };
 * using rcu = Rcu.create();
 * const leader = RcuCell.open(rcu, "leader", options);
 * assertEquals(leader.get(), "none");
 * ```
 */
export interface RcuCellOptions<T> {
  /** How the value lies in memory. */
  value: Codec<T, unknown>;
  /** The first value, for whoever creates the cell; others ignore it. */
  initial?: T;
}

/**
 * How to wait for a change.
 *
 * @example What has changed already
 * ```ts
 * import { Rcu, RcuCell, u32, type WaitForChangeOptions } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
 * const options: WaitForChangeOptions = {
 *   since: cell.version,
 *   signal: AbortSignal.timeout(10_000),
 * };
 * cell.set(2);
 * assertEquals(await cell.waitForChange(options), 2);
 * ```
 */
export interface WaitForChangeOptions {
  /**
   * The version that the caller has seen.
   *
   * @default {the current one}
   */
  since?: number;
  /** Ends the wait early. */
  signal?: AbortSignal;
  /**
   * Whether the process stays alive for as long as the wait lasts.
   *
   * @default {false}
   */
  keepAlive?: boolean;
}

const UNCLONEABLE = uncloneable(
  "an RcuCell, which other threads open by its name",
);

const OPEN_OPTIONS: OptionNames<RcuCellOptions<unknown>> = {
  value: true,
  initial: true,
};
const WAIT_OPTIONS: OptionNames<WaitForChangeOptions> = {
  since: true,
  signal: true,
  keepAlive: true,
};

/**
 * One value that all threads of a domain share: configuration, a snapshot, a
 * counter that is mostly read. Reading takes no lock; writers take turns.
 *
 * @typeParam T What it holds.
 *
 * @example Configuration
 * ```ts
 * import { json, Rcu, RcuCell } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const config = RcuCell.open(rcu, "config", {
 *   value: json<{ limit: number }>(),
 *   initial: { limit: 10 },
 * });
 * config.update((old) => ({ limit: old.limit * 2 }));
 * assertEquals(config.get().limit, 20);
 * ```
 */
export class RcuCell<T> {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _uncloneable: symbol;
  declare private readonly _membership: Membership;
  declare private readonly _reader: Reader;
  declare private readonly _words: Int32Array;
  declare private readonly _cell: Address;
  declare private readonly _values: Values<T>;
  declare private readonly _wordValue: WordCodec<T> | undefined;
  declare private readonly _watch: Watch;

  static {
    hideFields(this, () => "RcuCell");
  }

  private constructor(
    membership: Membership,
    cell: Address,
    values: Values<T>,
    codec: Codec<T, unknown>,
  ) {
    this._uncloneable = UNCLONEABLE;
    this._membership = membership;
    this._words = membership.words;
    this._cell = cell;
    this._values = values;
    this._reader = membership.reader;
    this._watch = new Watch(membership, cell + WAITERS, cell + VERSION);
    this._wordValue = codec instanceof WordCodec ? codec : undefined;
  }

  /**
   * Finds the cell of a name, or creates it.
   *
   * @typeParam T What it holds.
   * @param rcu The calling thread's membership.
   * @param name The cell's name, any string.
   * @param options Its codec and first value.
   * @returns The calling thread's view of the cell.
   * @throws {TypeError} If the name is taken with another schema, if there is
   * no such cell and no first value, or if an argument is of the wrong type.
   * @throws {RangeError} If the first value is out of the codec's range.
   * @throws {RcuMemoryError} If the cell does not fit.
   *
   * @example Two views
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const a = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
   * const b = RcuCell.open(rcu, "n", { value: u32 });
   * a.set(2);
   * assertEquals(b.get(), 2);
   * ```
   */
  static open<T>(
    rcu: Rcu,
    name: string,
    options: RcuCellOptions<T>,
  ): RcuCell<T> {
    const membership = membershipOf(rcu, "open a cell");
    const { value: codec, initial } = takeOptions(
      options,
      "name a value codec",
      OPEN_OPTIONS,
    );
    const values = new Values<T>(membership, codec);
    const words = membership.words;
    const cell = openRoot(
      membership,
      name,
      `cell<${codec.schema}>`,
      () => {
        if (initial === undefined) {
          throw new TypeError(
            `Cannot open the cell ${
              show(name)
            } as it must exist or get an initial value: received undefined`,
          );
        }
        const value = values.store(initial);
        let made: Address;
        try {
          made = membership.allocate(CELL_WORDS);
        } catch (error) {
          values.discard(value);
          throw error;
        }
        values.seal(value, 0);
        words.fill(0, made, made + CELL_WORDS);
        words[made + VALUE] = value;
        return made;
      },
      (made) => {
        values.discard(words[made + VALUE]);
        membership.heap.free(made);
      },
    );
    return new RcuCell(membership, cell, values, codec);
  }

  /**
   * Reads the value.
   *
   * @returns A copy, or something immutable.
   * @throws {Error} If the membership is closed.
   *
   * @example Reading
   * ```ts
   * import { Rcu, RcuCell, string } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "s", { value: string, initial: "a" });
   * assertEquals(cell.get(), "a");
   * ```
   */
  get(): T {
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    // The dependent load. Pairs with: the publishing store in `#publish`.
    const word = this._words[this._cell + VALUE];
    const value = this._wordValue !== undefined
      ? this._wordValue.fromWord(word)
      : this._values.load(word);
    return value;
  }

  /**
   * How often the value has been set, modulo 2³². A `get` that follows sees at
   * least that version.
   *
   * @example Counting changes
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
   * cell.set(5);
   * assertEquals(cell.version, 1);
   * ```
   */
  get version(): number {
    return Atomics.load(this._words, this._cell + VERSION) >>> 0;
  }

  /**
   * Replaces the value.
   *
   * @param value The new one.
   * @throws {TypeError} If it is of the wrong type.
   * @throws {RangeError} If it is out of the codec's range.
   * @throws {RcuMemoryError} If it does not fit.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Writing
   * ```ts
   * import { f64, Rcu, RcuCell } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "x", { value: f64, initial: 0 });
   * cell.set(0.25);
   * assertEquals(cell.get(), 0.25);
   * ```
   */
  set(value: T): void {
    this._membership.assertOpen("set a cell");
    this.#publish(this._values.store(value), undefined);
  }

  /**
   * Replaces the value by one that depends on it. Atomic among writers: if
   * another one was faster, the function is called again with what that one
   * wrote, so it should do nothing else than compute. No lock is held meanwhile.
   *
   * @param fn Computes the new value from the current one.
   * @returns The new value.
   * @throws {Error} If the function writes the cell itself, again and again.
   * @throws {TypeError} If the result is of the wrong type.
   * @throws {RangeError} If the result is out of the codec's range.
   * @throws {RcuMemoryError} If it does not fit.
   * @throws {RcuStallError} If another writer does not give way.
   *
   * @example Counting
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
   * assertEquals(cell.update((n) => n + 1), 2);
   * ```
   */
  update(fn: (old: T) => T): T {
    this._membership.assertOpen("update a cell");
    checkFunction(fn, "callback", "update a cell");
    let own: OwnWrites | undefined;
    while (true) {
      let version: number;
      let next: T;
      let value: number;
      try {
        // The version first: if the value is newer than it, `#publish` finds the version moved.
        version = this.version;
        next = fn(this.get());
        value = this._values.store(next);
      } finally {
        own?.end();
      }
      if (this.#publish(value, version)) return next;
      // From the second attempt on only, as it costs as much as the rest of an update.
      own ??= new OwnWrites(this._membership, this._cell, undefined);
      own.beginAgain("update a cell");
    }
  }

  /**
   * Waits until the version differs from one that the caller has seen. Does
   * not keep the process alive by itself, unless `keepAlive` says so.
   *
   * In a loop, take the version *before* reading the value, as below: whatever
   * changes in between is then a change that the next wait returns for.
   *
   * @param options The version seen, a signal to give up, and whether to keep the process alive.
   * @returns The value then.
   * @throws {Error} The signal's reason if it is aborted first, or an error if
   * the membership ends first.
   *
   * @example Never missing the last change
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
   * const alive = setInterval(() => cell.update((n) => n + 1), 1);
   *
   * let since = cell.version;
   * let value = cell.get();
   * while (value < 3) {
   *   await cell.waitForChange({ since });
   *   since = cell.version;
   *   value = cell.get();
   * }
   * clearInterval(alive);
   * assertEquals(value >= 3, true);
   * ```
   *
   * @example Reacting
   * ```ts
   * import { Rcu, RcuCell, u32 } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
   * const changed = cell.waitForChange();
   * cell.set(7);
   * assertEquals(await changed, 7);
   * ```
   */
  async waitForChange(options: WaitForChangeOptions = {}): Promise<T> {
    const act = "wait for a change";
    const { since = this.version, signal, keepAlive = false } = takeWaitOptions(
      options,
      WAIT_OPTIONS,
      act,
    );
    this._membership.assertOpen(act);
    checkBoolean("keepAlive", keepAlive, act);
    checkSignal(signal, act);
    if (!Number.isInteger(since)) {
      refuseNumber(`Cannot ${act} as since must be a version`, since);
    }
    signal?.throwIfAborted();
    this._watch.begin();
    try {
      while (this.version === since >>> 0) {
        await this._watch.change(since, signal, keepAlive);
      }
    } finally {
      this._watch.end();
    }
    return this.get();
  }

  /**
   * Publishes a stored value.
   *
   * @param value Its word.
   * @param expected The version that must still be current, if any.
   * @returns Whether it was; otherwise nothing has changed.
   */
  #publish(value: number, expected: number | undefined): boolean {
    const words = this._words;
    const cell = this._cell;
    const membership = this._membership;
    try {
      membership.lock(cell + LOCK);
    } catch (error) {
      this._values.discard(value);
      throw error;
    }
    try {
      const version = Atomics.load(words, cell + VERSION);
      if (expected !== undefined && version !== (expected | 0)) {
        this._values.discard(value);
        return false;
      }
      const next = (version + 1) | 0;
      this._values.seal(value, next);
      const { journal } = membership;
      this._values.join(value);
      this._values.leave(words[cell + VALUE]);
      // Publish: everything in the value's block is in place. Pairs with: the load in `get`.
      journal.store(cell + VALUE, value);
      // After the value: whoever sees the version sees the value. Pairs with: `waitForChange`.
      journal.store(cell + VERSION, next);
      journal.commit();
      if (Atomics.load(words, cell + WAITERS) !== 0) {
        Atomics.notify(words, cell + VERSION);
      }
      journal.end();
    } finally {
      membership.unlock(cell + LOCK);
    }
    noteWrite(membership, cell, undefined);
    membership.afterUpdate();
    return true;
  }
}
