// Reading a Fib: what lookups share with structures that keep what they find.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { Reader } from "../readers/_reader.ts";
import * as reading from "../readers/_reader.ts";
import { RouteDecoder } from "./_fib_decoder.ts";
import { recordOf, type RouteNumber } from "./_fib_record.ts";
import { GENERATION, ROOT } from "./_fib_trie.ts";
import { readRoute } from "./_route_words.ts";
import type { Route, RouteFields } from "./route.ts";

// A copy for the hot path, as in RcuMap.
const { LEAF_READ } = reading;

/** Half of all generations away. */
const FAR = 0x8000_0000 | 0;

/**
 * What to keep with an answer instead of a generation that may be odd.
 *
 * @param generation A generation that was loaded before the answer was looked up.
 * @returns It if it is even; otherwise a number that generations are far from
 * for the next 2³⁰ changes, so that the answer is looked up again.
 */
export function vouchUnder(generation: number): number {
  return (generation & 1) === 0 ? generation : generation ^ FAR;
}

/**
 * A thread's read side of a Fib.
 *
 * To keep the number of a route beyond the section in which it was found:
 * load {@linkcode FibLookup.generation}, then call
 * {@linkcode FibLookup.lookupRoute}, and keep both. The number may be used in a
 * later section if the generation, loaded in that section, is still the one kept.
 */
export class FibLookup extends RouteDecoder {
  declare readonly membership: Membership;
  /** The word that {@linkcode generation} loads. */
  declare readonly generationAddress: Address;
  declare private readonly _root: Address;
  declare private readonly _reader: Reader;

  constructor(membership: Membership, fib: Address) {
    super(membership.words, fib);
    this.membership = membership;
    this._root = fib + ROOT;
    this.generationAddress = fib + GENERATION;
    this._reader = membership.reader;
  }

  /**
   * Counts changes, modulo 2³²: each once before the store that publishes it, and
   * once after it. In a read section.
   *
   * Why a number that was found under a generation may be used, in any section that
   * loads the same generation: what it was an answer of is a state no older than that
   * generation. The store that ends the last such state is followed by a count, and
   * the count by the recycling of the number. So a section that loads the
   * generation from before the count is one that the grace period waits for, by the argument
   * of `Reader` with the count in the place of the unlinking; a plain load does.
   * Pairs with: `publishChange`.
   *
   * Why an answer that was found under an even generation is not older than any
   * that its thread has seen, as long as the generation is that one: of a change
   * that is newer than the answer, the first count comes before the store, so whoever has seen
   * the change finds the generation moved. An answer that was found under an odd one
   * may be that of the table before or after the change, and goes for
   * the section in which it was found alone: {@linkcode vouchUnder}.
   *
   * @returns The count.
   */
  generation(): number {
    return this.words[this.generationAddress];
  }

  /**
   * Finds the number of the route of the longest prefix that holds an address.
   *
   * A multibit trie with strides of 16, 8 and 8 bits, after Srinivasan and
   * Varghese ("Fast address lookups using controlled prefix expansion", ACM TOCS
   * 17(1), 1999), with leaf pushing, and with the cells of a node compressed
   * as in the Lulea scheme (Degermark et al., "Small forwarding tables for
   * fast routing lookups", SIGCOMM 1997), but for the counting of bits. A prefix
   * ends in the node that decides on its last bit, and is a *rule* of that node.
   *
   * 1. A cell holds the route number of the longest prefix that holds all its addresses:
   *    of the node's own rules, or else of the nodes above (its *cover*), or 0
   *    if there is none. Where longer prefixes end in a node below, it holds
   *    `~node`, negative, and that node's cells say the rest. A cell with a
   *    node below is a run of its own.
   * 2. Two kinds of words change in place, with one store each: a cell of the
   *    root, and in a node a run that is `~node` and becomes that of another node.
   *    All else in a node is immutable once the node is reachable.
   * 3. Every insertion, deletion and load is published by *one* store: to such
   *    a word or to ROOT. Whatever else changes is copied first: the node in
   *    which a prefix ends; every node whose cover changes; the one above where a
   *    node begins or ceases to be; the root where several of its cells change.
   * 4. So the table passes through a sequence of states, one a store, and a lookup
   *    answers from one that was current between its begin and its end. Let t be
   *    its last load of ROOT or of a word of (2); what it loads after that is
   *    immutable. If the node with that word was reachable at t, the answer is
   *    that of the state at t. If not, it had ceased to be at some time u, after
   *    the walk came to it; since u its words have been constant; so the answer
   *    is that of the state right before u.
   * 5. The loads are plain, and kept in order by each one's dependency on the one before alone,
   *    as in `Rcu.dereference`. Pairs with: the `Atomics.store` of a pointer in `FibUpdate`
   *    and `FibLoad`.
   *
   * @param address An unsigned 32-bit integer. In a read section.
   * @returns The route's number, or 0; the number is shared by all prefixes with this route.
   */
  lookupRoute(address: number): RouteNumber {
    // Written out, with literals, in a method: V8 has to load and check what is imported, be it a
    // function or a number (33 is NODE_RUNS). Measured: 4.5 ns; with imports 9.2 ns.
    const words = this.words;
    const cell = words[words[this._root] + (address >>> 16)];
    if (cell >= 0) return cell;
    let node = ~cell;
    let at = (address >>> 8) & 0xff;
    let index = words[node + (at >>> 3)];
    const next = words[
      node + 33 + (index >>> 24) + ((index >>> (3 * (at & 7))) & 7)
    ];
    if (next >= 0) return next;
    node = ~next;
    at = address & 0xff;
    index = words[node + (at >>> 3)];
    return words[
      node + 33 + (index >>> 24) + ((index >>> (3 * (at & 7))) & 7)
    ];
  }

  /**
   * Reads a route's fields.
   *
   * @param number A number that was found in this section; not 0.
   * @returns Its fields.
   */
  fieldsOf(number: RouteNumber): RouteFields {
    return readRoute(this.words, recordOf(this.words, this.fib, number));
  }

  /**
   * Finds the route of the longest prefix that holds an address, in a read section of its own.
   *
   * @param address An unsigned 32-bit integer.
   * @returns The route, frozen, or `undefined`.
   */
  lookup(address: number): Route | undefined {
    const reader = this._reader;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    // `lookupRoute` and `routeAt`, written out: as calls, whether V8 puts them here depends on what
    // else was hot, and where it does not a lookup takes twice the time (measured: 11 to 25 ns).
    const words = this.words;
    let number = words[words[this._root] + (address >>> 16)];
    if (number < 0) {
      let node = ~number;
      let index = words[node + ((address >>> 11) & 31)];
      number = words[
        node + 33 + (index >>> 24) +
        ((index >>> (3 * ((address >>> 8) & 7))) & 7)
      ];
      if (number < 0) {
        node = ~number;
        index = words[node + ((address >>> 3) & 31)];
        number = words[
          node + 33 + (index >>> 24) + ((index >>> (3 * (address & 7))) & 7)
        ];
      }
    }
    const routes = this._routes;
    if (number < routes.length && words[this._recycled] === this._clean) {
      const route = routes[number];
      if (route !== null) return route;
    }
    return this.search(number);
  }
}
