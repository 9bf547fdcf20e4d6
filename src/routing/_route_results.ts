// What lookups return, made once for each cached route in a thread.

import type { Address } from "../memory/arena.ts";
import * as pages from "../memory/_size_classes.ts";
import type { Neighbor } from "./_neighbor_layout.ts";
import type { NeighborStore } from "./_neighbor_store.ts";
import { formatAddress } from "./_prefix.ts";
import { DESTINATION, ROUTE } from "./_route_layout.ts";
import { hasRoute, readRoute } from "./_route_words.ts";
import * as layout from "./_route_layout.ts";
import type { RouteTable } from "./_route_table.ts";
import { type FreshRoute, hopOf } from "./_route_writer.ts";
import { decodeRoute, type Route } from "./route.ts";

// Copies for the hot path, as in RcuMap: constants of the same module are folded.
const { SERIAL } = layout;
const { PAGE_MASK, PAGE_SHIFT } = pages;

/**
 * Where a packet goes. Frozen; the same object as long as the cached route lives.
 *
 * `nextHop` and `neighbor` are computed when they are looked at. So
 * `structuredClone`, `postMessage` and `{ ...result }` carry `route` alone;
 * `JSON.stringify` shows all three.
 *
 * @example What another thread can be told
 * ```ts
 * import {
 *   Fib,
 *   NeighborTable,
 *   Rcu,
 *   RouteCache,
 *   type RouteResult,
 * } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const neighbors = NeighborTable.open(rcu, "neighbors");
 * const cache = RouteCache.open(rcu, "routes", { fib, neighbors });
 * fib.insert("10.0.0.0/8", { gateway: "10.0.0.1", interface: 1 });
 *
 * const result: RouteResult = cache.lookup({ destination: "10.1.2.3" })!;
 * assertEquals(result.neighbor?.state, "incomplete");
 * assertEquals(Object.keys(structuredClone(result)), ["route"]);
 * const { route, nextHop } = result;
 * assertEquals(structuredClone({ route, nextHop }).nextHop, "10.0.0.1");
 * assertEquals(JSON.parse(JSON.stringify(result)).nextHop, "10.0.0.1");
 * ```
 */
export interface RouteResult {
  /** The Fib's route. */
  readonly route: Route;
  /** The address to resolve on the link: the route's gateway, or the destination; dotted. */
  readonly nextHop: string;
  /**
   * What the neighbour table knows of the next hop, looked up when this is
   * read, so that it is never out of date; `undefined` if it is not there.
   */
  readonly neighbor: Neighbor | undefined;
}

class Result implements RouteResult {
  readonly route: Route;
  readonly #neighbors: NeighborStore;
  readonly #serial: number;
  readonly #hop: number;

  /**
   * Whether a result is that of an entry.
   *
   * @param result The result.
   * @param serial The entry's serial.
   * @returns `true` if it is.
   */
  static matches(result: Result, serial: number): boolean {
    return result.#serial === serial;
  }

  constructor(
    neighbors: NeighborStore,
    route: Route,
    hop: number,
    serial: number,
  ) {
    this.route = route;
    this.#neighbors = neighbors;
    this.#serial = serial;
    this.#hop = hop;
    Object.freeze(this);
  }

  get nextHop(): string {
    return this.route.gateway ?? formatAddress(this.#hop);
  }

  get neighbor(): Neighbor | undefined {
    return this.#neighbors.peek(this.#hop, this.route.interface | 0);
  }

  /** The getters, too. */
  toJSON(): RouteResult {
    const { route, nextHop, neighbor } = this;
    return { route, nextHop, neighbor };
  }
}

/** Entries are lines, and begin at multiples of one. */
const LINE_SHIFT = 4;
const ROW_LENGTH = (PAGE_MASK + 1) >>> LINE_SHIFT;

/**
 * A thread's results by the address of their entry: an array a page. What
 * stands there may be that of an earlier entry at the address, or of an entry
 * that is gone: serials tell.
 */
export class RouteResults {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _table: RouteTable;
  declare private readonly _words: Int32Array;
  declare private readonly _rows: Result[][];
  /** Stands where there is nothing, so that arrays hold objects of one kind. */
  readonly #none: Result;
  readonly #noRow: Result[];

  constructor(table: RouteTable) {
    this._table = table;
    this._rows = [];
    this._words = table.words;
    const nowhere = { gateway: null, interface: 0 };
    this.#none = new Result(table.neighbors, nowhere, 0, 0);
    this.#noRow = new Array(ROW_LENGTH).fill(this.#none);
  }

  /**
   * The result of an entry. The thread announces no quiescent state before.
   *
   * @param entry A valid entry.
   * @returns Its result; the same object if this thread has asked before.
   */
  at(entry: Address): RouteResult {
    const page = entry >>> PAGE_SHIFT;
    if (page < this._rows.length) {
      const result = this._rows[page][(entry & PAGE_MASK) >>> LINE_SHIFT];
      if (Result.matches(result, this._words[entry + SERIAL])) return result;
    }
    return this.#make(entry);
  }

  #make(entry: Address): RouteResult {
    const words = this._words;
    const { fib, neighbors } = this._table;
    const destination = words[entry + DESTINATION];
    const fields = readRoute(words, entry + ROUTE);
    // The Fib's own object where possible: there are fewer of them.
    const number = fib.lookupRoute(destination);
    const same = number !== 0 &&
      hasRoute(words, entry + ROUTE, fib.fieldsOf(number));
    const route = same ? fib.routeAt(number)! : decodeRoute(fields);
    const hop = hopOf(route, fields, destination);
    const result = new Result(neighbors, route, hop, words[entry + SERIAL]);
    this.#put(entry, result);
    return result;
  }

  /**
   * The result of a route that the Fib has just given.
   *
   * @param fresh The route.
   * @param entry The entry that it got, or 0. It may be gone already.
   * @param serial The entry's serial.
   * @returns The result.
   */
  of(fresh: FreshRoute, entry: Address, serial: number): RouteResult {
    const { route, hop } = fresh;
    const result = new Result(this._table.neighbors, route, hop, serial);
    if (entry !== 0) this.#put(entry, result);
    return result;
  }

  #put(entry: Address, result: Result): void {
    const page = entry >>> PAGE_SHIFT;
    while (this._rows.length <= page) this._rows.push(this.#noRow);
    let row = this._rows[page];
    if (row === this.#noRow) {
      row = new Array(ROW_LENGTH).fill(this.#none);
      this._rows[page] = row;
    }
    row[(entry & PAGE_MASK) >>> LINE_SHIFT] = result;
  }
}
