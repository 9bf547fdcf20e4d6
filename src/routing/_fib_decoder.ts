// Route numbers as objects: each decoded once in a thread.

import type { Address } from "../memory/arena.ts";
import {
  FIRST_NUMBER,
  isInUse,
  recordOf,
  type RouteNumber,
} from "./_fib_record.ts";
import { FRESH, LOG_LENGTH, RECYCLED, RECYCLED_LOG } from "./_fib_trie.ts";
import { readRoute } from "./_route_words.ts";
import { decodeRoute, type Route } from "./route.ts";

/**
 * A thread's routes by their number.
 *
 * Numbers are used again. A number's route must leave the array before:
 *
 * 1. An update first counts a record's references down to 0, then counts its
 *    number in RECYCLED; the number is used again after a grace period that
 *    begins later. It is thus found with another route only in
 *    sections that the grace period did not wait for, and these find RECYCLED
 *    counted up, by the argument of `Reader` with the count in the place of the unlinking.
 * 2. Every use of the array goes with a comparison of RECYCLED with the count up to
 *    which the array is clean. It is a plain load, of a line that a lookup reads
 *    anyway.
 * 3. A route enters the array only if its record had references *after* the count
 *    up to which the array is clean was loaded: so the number is counted later, and
 *    will be thrown out. (A section may hold a number that was counted already.)
 * 4. The count up to which the array is clean moves after the array has been
 *    cleaned: if the stack overflows in between, the next use cleans it again.
 */
export class RouteDecoder {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare protected readonly words: Int32Array;
  declare readonly fib: Address;
  declare protected readonly _recycled: Address;
  /**
   * Number → route; `null` where it is not known, and `undefined` for 0: whether an address has a
   * route is then no branch, and nothing for the processor to guess wrong (measured: 14 against
   * 34 ns where every fifth has none).
   */
  protected _routes: (Route | undefined | null)[] = unknown(2 * FIRST_NUMBER);
  /** Up to which count of RECYCLED the array is clean. */
  protected _clean: number;

  constructor(words: Int32Array, fib: Address) {
    this.words = words;
    this.fib = fib;
    this._recycled = fib + RECYCLED;
    this._clean = Atomics.load(words, fib + RECYCLED);
  }

  /**
   * The route of a number.
   *
   * @param number A number that was found in this section, or under the lock, or 0.
   * @returns The route, frozen; the same object as long as it is in use. `undefined` for 0.
   */
  routeAt(number: RouteNumber): Route | undefined {
    const routes = this._routes;
    if (
      number < routes.length && this.words[this._recycled] === this._clean
    ) {
      const route = routes[number];
      if (route !== null) return route;
    }
    return this.search(number);
  }

  /**
   * As `routeAt`, for a number that is new to this thread, or after others were recycled.
   *
   * All of it in one method, and that a long one, for V8's sake: of what was hot
   * while the array was being filled, it would put everything shorter than 460
   * bytes of bytecode into `routeAt`, and then has no budget left to put
   * `Fib.lookup` into its caller's loop; and a call with an address above 2³¹
   * allocates an object for the number.
   */
  search(number: RouteNumber): Route | undefined {
    const words = this.words;
    const recycled = Atomics.load(words, this._recycled);
    const first = this._clean;
    if (recycled !== first) {
      const log = this.fib + RECYCLED_LOG;
      if (((recycled - first) >>> 0) < LOG_LENGTH) {
        for (let i = first; i !== recycled; i = (i + 1) | 0) {
          this.#forget(Atomics.load(words, log + (i & (LOG_LENGTH - 1))));
        }
      }
      // Pairs with: the stores in `RouteRecords.#recycle`. If the count has not moved by the length of
      // the log, no place had been written for the second time when we looked.
      const now = Atomics.load(words, this._recycled);
      if (((now - first) >>> 0) >= LOG_LENGTH) {
        this._routes = unknown(this._routes.length);
      }
      // Last (4).
      this._clean = recycled;
    }
    if (number < this._routes.length) {
      const route = this._routes[number];
      if (route !== null) return route;
    }
    const record = recordOf(words, this.fib, number);
    const route = decodeRoute(readRoute(words, record));
    if (!isInUse(words, record)) return route;
    if (number >= this._routes.length) {
      // Room for all numbers that are in use now, and for those of the next while. Pairs with: the
      // store in `RouteNumbers.use`; any recent value will do.
      const fresh = Math.max(number, Atomics.load(words, this.fib + FRESH));
      const routes = unknown(2 ** (32 - Math.clz32(fresh)));
      for (let i = 0; i < this._routes.length; i++) {
        routes[i] = this._routes[i];
      }
      this._routes = routes;
    }
    this._routes[number] = route;
    return route;
  }

  #forget(number: RouteNumber): void {
    if (number < this._routes.length) this._routes[number] = null;
  }
}

/** Pushed one by one: V8 makes a long `new Array(length)` a hash table, and an array with holes is slower. */
function unknown(length: number): (Route | undefined | null)[] {
  const routes: (Route | undefined | null)[] = [undefined];
  while (routes.length < length) routes.push(null);
  return routes;
}
