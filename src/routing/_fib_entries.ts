// The prefixes of a Fib themselves, as its rules hold them.

import type { Address } from "../memory/arena.ts";
import type { FibLookup } from "./_fib_lookup.ts";
import type { RouteNumber } from "./_fib_record.ts";
import { forEachKid } from "./_fib_node.ts";
import {
  COUNT,
  findPlace,
  findRule,
  keyAt,
  KIDS,
  ruleCell,
  ruleKey,
  ruleLength,
  ruleRoute,
} from "./_fib_rules.ts";
import {
  LOCK,
  NODE_RULES,
  NODE_STRIDE,
  ROOT,
  ROOT_RULES,
  ROOT_STRIDE,
  runOf,
} from "./_fib_trie.ts";
import { addressOf, lengthOf, type PrefixKey, prefixKey } from "./_prefix.ts";
import type { Route } from "./route.ts";

/** Bits of an address that one list shares. */
const OCTET = 8;

/** Reads the rules, under the Fib's lock: updates change those of the root in place. */
export class FibEntries {
  readonly #lookup: FibLookup;
  readonly #words: Int32Array;
  readonly #fib: Address;

  constructor(lookup: FibLookup) {
    this.#lookup = lookup;
    this.#words = lookup.membership.words;
    this.#fib = lookup.fib;
  }

  /**
   * Finds a prefix.
   *
   * @param key The prefix.
   * @returns Its route, or `undefined` if it is not there.
   */
  get(key: PrefixKey): Route | undefined {
    const m = this.#lookup.membership;
    m.lock(this.#fib + LOCK);
    try {
      const number = this.#find(addressOf(key), lengthOf(key));
      return this.#lookup.routeAt(number);
    } finally {
      m.unlock(this.#fib + LOCK);
    }
  }

  #find(address: number, length: number): RouteNumber {
    const words = this.#words;
    const block = address >>> 16;
    if (length <= ROOT_STRIDE) {
      const rules = words[this.#fib + ROOT_RULES];
      return findRule(words, rules, ruleKey(block, length));
    }
    const cell = words[words[this.#fib + ROOT] + block];
    if (cell >= 0) return 0;
    const at = (address >>> 8) & 0xff;
    if (length <= ROOT_STRIDE + NODE_STRIDE) {
      const key = ruleKey(at, length - ROOT_STRIDE);
      return findRule(words, words[~cell + NODE_RULES], key);
    }
    const next = words[runOf(words, ~cell, at)];
    if (next >= 0) return 0;
    const key = ruleKey(address & 0xff, length - ROOT_STRIDE - NODE_STRIDE);
    return findRule(words, words[~next + NODE_RULES], key);
  }

  /**
   * Lists the prefixes that begin in a block of 2²⁴ addresses.
   *
   * @param octet The block's first octet.
   * @returns Prefixes in ascending order, with their routes.
   */
  list(octet: number): [PrefixKey, Route][] {
    const m = this.#lookup.membership;
    const words = this.#words;
    const fib = this.#fib;
    const entries: [PrefixKey, Route][] = [];
    const first = octet << (ROOT_STRIDE - OCTET);
    const end = (octet + 1) << (ROOT_STRIDE - OCTET);
    m.lock(fib + LOCK);
    try {
      const rules = words[fib + ROOT_RULES];
      const from = findPlace(words, rules, ruleKey(first, 0));
      const to = findPlace(words, rules, ruleKey(end, 0));
      this.#add(entries, rules, from, to, 0, 0, ROOT_STRIDE);
      const root = words[fib + ROOT];
      for (let i = first; i < end; i++) {
        if (words[root + i] < 0) {
          this.#addNode(entries, ~words[root + i], i * 2 ** 16, ROOT_STRIDE);
        }
      }
    } finally {
      m.unlock(fib + LOCK);
    }
    return entries.sort((a, b) => a[0] - b[0]);
  }

  #addNode(
    entries: [PrefixKey, Route][],
    node: Address,
    address: number,
    above: number,
  ): void {
    const words = this.#words;
    const rules = words[node + NODE_RULES];
    const count = words[rules + COUNT];
    this.#add(entries, rules, 0, count, address, above, NODE_STRIDE);
    if (words[rules + KIDS] === 0) return;
    forEachKid(words, node, (cell, kid) => {
      const length = above + NODE_STRIDE;
      this.#addNode(entries, kid, address + cell * 2 ** (32 - length), length);
    });
  }

  #add(
    entries: [PrefixKey, Route][],
    rules: Address,
    from: number,
    to: number,
    address: number,
    above: number,
    stride: number,
  ): void {
    const words = this.#words;
    const cellSize = 2 ** (32 - above - stride);
    for (let i = from; i < to; i++) {
      const key = keyAt(words, rules, i);
      const begin = address + ruleCell(key) * cellSize;
      const route = this.#lookup.routeAt(ruleRoute(words, rules, i));
      entries.push([prefixKey(begin, above + ruleLength(key)), route!]);
    }
  }
}
