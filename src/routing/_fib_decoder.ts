// Route records as objects: each decoded once in a thread.

import type { Address } from "../memory/arena.ts";
import { isInUse, readRecord } from "./_fib_records.ts";
import { LOG_LENGTH, RECYCLED, RECYCLED_LOG } from "./_fib_trie.ts";
import { decodeRoute, type Route } from "./route.ts";

/** Slots of an empty table, and the base-2 logarithm of their number. */
const FEWEST_BITS = 6;
/** What stands in the place of a record in a slot that was never used. */
const EMPTY = -1;
/** What stands there once the record was recycled. */
const GONE = -2;

/**
 * A thread's routes by the address of their record: an open hash table with
 * linear probing. Neighbouring records get slots far apart, so that those of a
 * table that was loaded at once hardly ever collide.
 *
 * Addresses are used again. A record's route must leave the table before:
 *
 * 1. An update first counts a record's references down to 0, then counts it in
 *    RECYCLED, then retires it. A record at the same address is thus found only in
 *    sections that the grace period did not wait for, and these find RECYCLED
 *    counted up, by the argument of `Reader` with the count in the place of the unlinking.
 * 2. Every use of the table begins by comparing RECYCLED with the count up to
 *    which the table is clean. It is a plain load, of a line that a lookup reads
 *    anyway.
 * 3. A route enters the table only if its record had references *after* the count
 *    up to which the table is clean was loaded: so the record is counted later, and
 *    will be thrown out. (A section may hold the address of a record that
 *    was counted already.)
 */
export class RouteDecoder {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare protected readonly words: Int32Array;
  declare protected readonly _recycled: Address;
  declare private readonly _log: Address;
  /** Slot → record. Slot 0 has record 0, which is no route. */
  protected _keys = new Int32Array(0);
  /** Slot → route. */
  protected _routes: (Route | undefined)[] = [];
  /** Slot of a record: the high bits of a product. */
  protected _shift = 0;
  /** Slots that are not empty. */
  #used = 0;
  /** Routes in the table. */
  #count = 0;
  /** Up to which count of RECYCLED the table is clean. */
  protected _clean: number;

  constructor(words: Int32Array, fib: Address) {
    this.words = words;
    this._recycled = fib + RECYCLED;
    this._log = fib + RECYCLED_LOG;
    this._clean = Atomics.load(words, fib + RECYCLED);
    this.#reset(FEWEST_BITS);
  }

  /**
   * The route of a record.
   *
   * @param record A record that was found in this section, or under the lock, or 0.
   * @returns The route, frozen; the same object as long as the record lives. `undefined` for 0.
   */
  routeAt(record: Address): Route | undefined {
    const keys = this._keys;
    const slot = Math.imul(record >>> 2, 0x9e3779b1) >>> this._shift;
    return keys[slot] === record &&
        this.words[this._recycled] === this._clean
      ? this._routes[slot]
      : this.search(record);
  }

  /**
   * As `routeAt`, after a collision, for a record that is new to this thread, or
   * after others were recycled.
   *
   * All of it in one method, and that a long one, for V8's sake: of what was hot
   * while the table was being filled, it would put everything shorter than 460
   * bytes of bytecode into `routeAt`, and then has no budget left to put
   * `Fib.lookup` into its caller's loop; and a call with an address above 2³¹
   * allocates an object for the number.
   */
  search(record: Address): Route | undefined {
    const words = this.words;
    const recycled = Atomics.load(words, this._recycled);
    const first = this._clean;
    if (recycled !== first) {
      this._clean = recycled;
      if (((recycled - first) >>> 0) < LOG_LENGTH) {
        for (let i = first; i !== recycled; i = (i + 1) | 0) {
          const place = this._log + (i & (LOG_LENGTH - 1));
          this.#forget(Atomics.load(words, place));
        }
      }
      // Pairs with: the stores in `RecordTable.recycle`. If the count has not moved by the length of
      // the log, no place had been written for the second time when we looked.
      const now = Atomics.load(words, this._recycled);
      if (((now - first) >>> 0) >= LOG_LENGTH) this.#reset(FEWEST_BITS);
    }
    const keys = this._keys;
    let slot = Math.imul(record >>> 2, 0x9e3779b1) >>> this._shift;
    for (; keys[slot] !== EMPTY; slot = (slot + 1) & (keys.length - 1)) {
      if (keys[slot] === record) return this._routes[slot];
    }
    const route = decodeRoute(readRecord(words, record));
    if (!isInUse(words, record)) return route;
    if (2 * this.#used >= keys.length) {
      // Room for twice as many routes as there are.
      const routes = this._routes;
      this.#reset(Math.max(FEWEST_BITS, 33 - Math.clz32(this.#count)));
      for (let i = 1; i < keys.length; i++) {
        if (keys[i] > 0) this.#put(keys[i], routes[i]!);
      }
    }
    this.#put(record, route);
    return route;
  }

  #put(record: Address, route: Route): void {
    const keys = this._keys;
    let slot = Math.imul(record >>> 2, 0x9e3779b1) >>> this._shift;
    while (keys[slot] !== EMPTY) slot = (slot + 1) & (keys.length - 1);
    keys[slot] = record;
    this._routes[slot] = route;
    this.#used++;
    this.#count++;
  }

  #reset(bits: number): void {
    this._keys = new Int32Array(2 ** bits).fill(EMPTY);
    this._keys[0] = 0;
    this._routes = new Array(2 ** bits).fill(undefined);
    this._shift = 32 - bits;
    this.#used = 1;
    this.#count = 0;
  }

  #forget(record: Address): void {
    const keys = this._keys;
    let slot = Math.imul(record >>> 2, 0x9e3779b1) >>> this._shift;
    for (; keys[slot] !== EMPTY; slot = (slot + 1) & (keys.length - 1)) {
      if (keys[slot] !== record) continue;
      keys[slot] = GONE;
      this._routes[slot] = undefined;
      this.#count--;
      return;
    }
  }
}
