// The rules of a node: the prefixes that end in it, sorted, in a block that writers alone look at.

import type { Address } from "../memory/arena.ts";
import type { RouteNumber } from "./_fib_record.ts";

// A block of rules.
/** The route that the node's cells hold where no rule of its own covers them, or 0. */
export const COVER = 0;
/** How many rules there are. */
export const COUNT = 1;
/** For how many rules there is room. */
export const CAPACITY = 2;
/** How many cells of the node lead to a node below. */
export const KIDS = 3;
const FIRST = 4;

// A rule is two words. Its key is the first cell that it covers and how many of the node's bits
// it fixes: in ascending order, a rule comes before those that it covers.
const ROUTE = 1;
const LENGTH_BITS = 5;
const LENGTH_MASK = (1 << LENGTH_BITS) - 1;

/** What becomes of a node's rules: the one at `index`, if it has that key, goes, and one comes. */
export interface Edit {
  /** The block of rules. */
  rules: Address;
  /** The key of the rule. */
  key: number;
  /** The place of the key. */
  index: number;
  /** The route of the rule that goes, or 0. */
  old: RouteNumber;
  /** The route of the rule that comes, or 0. */
  route: RouteNumber;
}

/**
 * How long a block of rules is.
 *
 * @param capacity For how many rules.
 * @returns Words.
 */
export function rulesWords(capacity: number): number {
  return FIRST + 2 * capacity;
}

/**
 * Makes a block one without rules.
 *
 * @param words The arena's words.
 * @param rules A block of {@linkcode rulesWords}.
 * @param capacity For how many rules.
 * @param cover What covers the node.
 */
export function initializeRules(
  words: Int32Array,
  rules: Address,
  capacity: number,
  cover: RouteNumber,
): void {
  words[rules + COVER] = cover;
  words[rules + COUNT] = 0;
  words[rules + CAPACITY] = capacity;
  words[rules + KIDS] = 0;
}

/**
 * The key of a rule.
 *
 * @param cell The first cell that it covers.
 * @param length How many of the node's bits it fixes.
 * @returns The key.
 */
export function ruleKey(cell: number, length: number): number {
  return (cell << LENGTH_BITS) | length;
}

/**
 * The first cell that a rule covers.
 *
 * @param key The rule's key.
 * @returns The cell.
 */
export function ruleCell(key: number): number {
  return key >>> LENGTH_BITS;
}

/**
 * How many of the node's bits a rule fixes.
 *
 * @param key The rule's key.
 * @returns The number.
 */
export function ruleLength(key: number): number {
  return key & LENGTH_MASK;
}

/**
 * The key of the rule at an index.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param index Less than their count.
 * @returns The key.
 */
export function keyAt(
  words: Int32Array,
  rules: Address,
  index: number,
): number {
  return words[rules + FIRST + 2 * index];
}

/**
 * The route of the rule at an index.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param index Less than their count.
 * @returns The route.
 */
export function ruleRoute(
  words: Int32Array,
  rules: Address,
  index: number,
): RouteNumber {
  return words[rules + FIRST + 2 * index + ROUTE];
}

/**
 * Finds the place of a key.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param key The key.
 * @returns The index of the first rule whose key is not less.
 */
export function findPlace(
  words: Int32Array,
  rules: Address,
  key: number,
): number {
  let low = 0;
  let high = words[rules + COUNT];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keyAt(words, rules, middle) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Finds what is to be done to rules.
 *
 * @param words The arena's words.
 * @param rules The block of rules, or 0 for none.
 * @param key The key of the rule to change.
 * @param route The route that it is to have, or 0 if it is to go.
 * @returns The edit; `old` is 0 if there is no such rule.
 */
export function findEdit(
  words: Int32Array,
  rules: Address,
  key: number,
  route: RouteNumber,
): Edit {
  if (rules === 0) return { rules, key, index: 0, old: 0, route };
  const index = findPlace(words, rules, key);
  const found = index < words[rules + COUNT] &&
    keyAt(words, rules, index) === key;
  const old = found ? ruleRoute(words, rules, index) : 0;
  return { rules, key, index, old, route };
}

/**
 * Finds the route of the rule with a key.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param key The key.
 * @returns The route, or 0 if there is no such rule.
 */
export function findRule(
  words: Int32Array,
  rules: Address,
  key: number,
): RouteNumber {
  return findEdit(words, rules, key, 0).old;
}

/**
 * Puts a rule behind the others.
 *
 * @param words The arena's words.
 * @param rules A block with room.
 * @param key A key greater than those that are there.
 * @param route The route.
 */
export function appendRule(
  words: Int32Array,
  rules: Address,
  key: number,
  route: RouteNumber,
): void {
  const rule = rules + FIRST + 2 * words[rules + COUNT]++;
  words[rule] = key;
  words[rule + ROUTE] = route;
}

/**
 * Copies rules into a block with more room.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param larger The larger block.
 * @param capacity Its capacity.
 */
export function copyRules(
  words: Int32Array,
  rules: Address,
  larger: Address,
  capacity: number,
): void {
  const length = rulesWords(words[rules + COUNT]);
  words.copyWithin(larger, rules, rules + length);
  words[larger + CAPACITY] = capacity;
}

/**
 * Carries an edit out, in a block that has room for it.
 *
 * @param words The arena's words.
 * @param rules The block that the edit was found for, or a copy of it.
 * @param edit The edit.
 */
export function applyEdit(
  words: Int32Array,
  rules: Address,
  edit: Edit,
): void {
  const { key, index, old, route } = edit;
  const count = words[rules + COUNT];
  const rule = rules + FIRST + 2 * index;
  const from = rule + (old !== 0 ? 2 : 0);
  const to = rule + (route !== 0 ? 2 : 0);
  if (from !== to) {
    words.copyWithin(to, from, rules + FIRST + 2 * count);
    words[rules + COUNT] = count + (to - from) / 2;
  }
  if (route !== 0) {
    words[rule] = key;
    words[rule + ROUTE] = route;
  }
}

/**
 * Expands rules over cells, those that are covered after those that cover them.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param from The index of the first to expand.
 * @param to One past the index of the last.
 * @param stride How many bits the node decides on.
 * @param cells The cells.
 */
export function expandRules(
  words: Int32Array,
  rules: Address,
  from: number,
  to: number,
  stride: number,
  cells: Int32Array,
): void {
  for (let i = from; i < to; i++) {
    expandRule(
      keyAt(words, rules, i),
      ruleRoute(words, rules, i),
      stride,
      cells,
    );
  }
}

/**
 * Expands one rule over cells.
 *
 * @param key Its key.
 * @param route Its route.
 * @param stride How many bits the node decides on.
 * @param cells The cells.
 */
export function expandRule(
  key: number,
  route: RouteNumber,
  stride: number,
  cells: Int32Array,
): void {
  const first = ruleCell(key);
  const end = first + (1 << (stride - ruleLength(key)));
  // A call of fill() costs more than a few stores.
  if (end - first > 32) cells.fill(route, first, end);
  else for (let cell = first; cell < end; cell++) cells[cell] = route;
}

/**
 * Finds what covers a rule in its own node.
 *
 * @param words The arena's words.
 * @param rules The block of rules.
 * @param key The key of the covered rule.
 * @param stride How many bits the node decides on.
 * @returns The route of the longest shorter rule that covers it, or 0.
 */
export function coverOf(
  words: Int32Array,
  rules: Address,
  key: number,
  stride: number,
): RouteNumber {
  for (let length = ruleLength(key) - 1; length >= 0; length--) {
    const cell = ruleCell(key) & -(1 << (stride - length));
    const route = findRule(words, rules, ruleKey(cell, length));
    if (route !== 0) return route;
  }
  return 0;
}
