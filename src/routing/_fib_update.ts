// Inserting and deleting one prefix: what is copied, and the one store that publishes it.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { Reserve, reserveUnderLock } from "../structures/_reserve.ts";
import { forEachKid, nodeWords, writeNode } from "./_fib_node.ts";
import type { RouteNumber } from "./_fib_record.ts";
import { RouteRecords } from "./_fib_records.ts";
import {
  applyEdit,
  CAPACITY,
  copyRules,
  COUNT,
  COVER,
  coverOf,
  type Edit,
  expandRule,
  expandRules,
  findEdit,
  findPlace,
  initializeRules,
  KIDS,
  ruleCell,
  ruleKey,
  ruleLength,
  rulesWords,
} from "./_fib_rules.ts";
import {
  LOCK,
  NODE_CELLS,
  NODE_RULES,
  NODE_STRIDE,
  publishChange,
  ROOT,
  ROOT_CELLS,
  ROOT_RULES,
  ROOT_STRIDE,
  runOf,
  SIZE,
} from "./_fib_trie.ts";
import { addressOf, lengthOf, type PrefixKey } from "./_prefix.ts";
import type { RouteFields } from "./route.ts";

/** Rules for which a node has room at first. */
const FEWEST_RULES = 2;

/** The store that publishes an update; `pointer` is 0 where no cell changes. */
interface Publication {
  pointer: Address;
  value: number;
}

/** A reference to a route for the rule that is to come; 0 for none, or once it has been used up. */
interface Reference {
  number: RouteNumber;
}

/**
 * The updates of a Fib, one at a time under its lock. Each has two halves:
 *
 * 1. The first allocates, expands and writes nodes that nobody can reach. It
 *    may end in a {@linkcode Shortage}, and begin again.
 * 2. The second cannot fail: it edits the rules, which nobody else looks at,
 *    publishes with one store, and retires what has been replaced, in this order.
 */
export class FibUpdate {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;
  readonly #records: RouteRecords;
  readonly #reserve: Reserve;
  /** The cells of a node being made, and those of one below it. */
  readonly #cells = [new Int32Array(NODE_CELLS), new Int32Array(NODE_CELLS)];
  /** The cells of the root, made when they are first needed. */
  #rootCells = new Int32Array(0);
  // For the second half.
  /** Blocks that readers may hold. */
  #retired: Address[] = [];
  /** Blocks that only writers look at. */
  #freed: Address[] = [];
  /** Words that only writers look at, and their new values in turn. */
  #writes: number[] = [];

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
    this.#records = new RouteRecords(m, fib);
    this.#reserve = new Reserve(m.heap);
  }

  /**
   * Inserts a prefix, or gives it another route.
   *
   * @param prefix The prefix.
   * @param fields Its route.
   */
  insert(prefix: PrefixKey, fields: RouteFields): void {
    const reference = { number: this.#records.hold(fields) };
    try {
      this.#run(prefix, reference);
    } catch (error) {
      if (reference.number !== 0) this.#records.abandon([reference.number]);
      throw error;
    }
    this.#m.afterUpdate();
  }

  /**
   * Deletes a prefix.
   *
   * @param prefix The prefix.
   * @returns Whether it was there.
   */
  delete(prefix: PrefixKey): boolean {
    const done = this.#run(prefix, { number: 0 });
    this.#m.afterUpdate();
    return done;
  }

  #run(prefix: PrefixKey, reference: Reference): boolean {
    return reserveUnderLock(
      this.#m,
      this.#fib + LOCK,
      this.#reserve,
      () => this.#attempt(prefix, reference),
    );
  }

  /** One attempt under the lock; returns whether a rule has got the reference, or gone. */
  #attempt(prefix: PrefixKey, reference: Reference): boolean {
    const { number } = reference;
    this.#retired = [];
    this.#freed = [];
    this.#writes = [];
    const edit = this.#findEdit(prefix, number);
    // Nothing to delete, or the route that it has already.
    if (edit.old === number) {
      reference.number = 0;
      if (number !== 0) this.#records.release(number);
      return false;
    }
    const length = lengthOf(prefix);
    const home = this.#makeRoom(edit);
    const { pointer, value } = length <= ROOT_STRIDE
      ? this.#planRoot(edit, home)
      : length <= ROOT_STRIDE + NODE_STRIDE
      ? this.#planMiddle(addressOf(prefix), edit, home)
      : this.#planLast(addressOf(prefix), edit, home);

    // The second half.
    this.#reserve.commit(this.#m.journal);
    this.#m.journal.finish();
    reference.number = 0;
    if (home !== 0) applyEdit(this.#words, home, edit);
    if (pointer !== 0) publishChange(this.#words, this.#fib, pointer, value);
    if (edit.old !== 0) this.#records.release(edit.old);
    const grown = (number !== 0 ? 1 : 0) - (edit.old !== 0 ? 1 : 0);
    if (grown !== 0) Atomics.add(this.#words, this.#fib + SIZE, grown);
    this.#cleanUp();
    if (edit.old !== 0) this.#records.tidy();
    return true;
  }

  #cleanUp(): void {
    const writes = this.#writes;
    for (let i = 0; i < writes.length; i += 2) {
      this.#words[writes[i]] = writes[i + 1];
    }
    for (const block of this.#retired) this.#m.retire(block);
    for (const block of this.#freed) this.#m.heap.free(block);
  }

  // The first half

  /** Finds the rule of a prefix. */
  #findEdit(prefix: PrefixKey, route: RouteNumber): Edit {
    const words = this.#words;
    const address = addressOf(prefix);
    const length = lengthOf(prefix);
    const block = address >>> 16;
    let rules = words[this.#fib + ROOT_RULES];
    if (length <= ROOT_STRIDE) {
      return findEdit(words, rules, ruleKey(block, length), route);
    }
    const cell = words[words[this.#fib + ROOT] + block];
    const at = (address >>> 8) & 0xff;
    if (length <= ROOT_STRIDE + NODE_STRIDE) {
      rules = this.#rulesOf(cell);
      const key = ruleKey(at, length - ROOT_STRIDE);
      return findEdit(words, rules, key, route);
    }
    rules = this.#rulesOf(cell < 0 ? words[runOf(words, ~cell, at)] : 0);
    const key = ruleKey(address & 0xff, length - ROOT_STRIDE - NODE_STRIDE);
    return findEdit(words, rules, key, route);
  }

  /** The rules of the node that a cell leads to, or 0. */
  #rulesOf(cell: number): Address {
    return cell < 0 ? this.#words[~cell + NODE_RULES] : 0;
  }

  /** Finds a block where an edit fits: the one where the rules are, or a larger one, or a first one. */
  #makeRoom(edit: Edit): Address {
    const words = this.#words;
    const { rules, route, old } = edit;
    if (route === 0 || old !== 0) return rules;
    const capacity = rules === 0 ? 0 : words[rules + CAPACITY];
    if (rules !== 0 && words[rules + COUNT] < capacity) return rules;
    const larger = Math.max(FEWEST_RULES, capacity + (capacity >> 1));
    const home = this.#reserve.take(rulesWords(larger));
    if (rules === 0) {
      initializeRules(words, home, larger, 0);
    } else {
      copyRules(words, rules, home, larger);
      this.#freed.push(rules);
    }
    return home;
  }

  /** A prefix of at most 16 bits. */
  #planRoot(edit: Edit, home: Address): Publication {
    const words = this.#words;
    const { rules, key, index, route, old } = edit;
    this.#writes.push(this.#fib + ROOT_RULES, home);
    if (this.#rootCells.length === 0) {
      this.#rootCells = new Int32Array(ROOT_CELLS);
    }
    const cells = this.#rootCells;
    const value = route !== 0 ? route : coverOf(words, rules, key, ROOT_STRIDE);
    expandRule(key, value, ROOT_STRIDE, cells);
    // Up to the end of what the rule covers, all behind it are longer.
    const begin = ruleCell(key);
    const end = begin + (1 << (ROOT_STRIDE - ruleLength(key)));
    const from = index + (old !== 0 ? 1 : 0);
    const to = findPlace(words, rules, ruleKey(end, 0));
    expandRules(words, rules, from, to, ROOT_STRIDE, cells);

    const root = words[this.#fib + ROOT];
    let changed = 0;
    let only = 0;
    for (let i = begin; i < end; i++) {
      if (this.#coverOfCell(words[root + i]) === cells[i]) continue;
      changed++;
      only = i;
    }
    if (changed === 0) return { pointer: 0, value: 0 };
    if (changed === 1) {
      const pointer = root + only;
      return {
        pointer,
        value: this.#covered(words[pointer], cells[only], 0),
      };
    }
    const copy = this.#reserve.take(ROOT_CELLS);
    words.copyWithin(copy, root, root + ROOT_CELLS);
    for (let i = begin; i < end; i++) {
      words[copy + i] = this.#covered(words[root + i], cells[i], 0);
    }
    this.#retired.push(root);
    return { pointer: this.#fib + ROOT, value: copy };
  }

  #coverOfCell(cell: number): RouteNumber {
    return cell < 0 ? this.#words[this.#rulesOf(cell) + COVER] : cell;
  }

  /** A prefix of 17 to 24 bits. */
  #planMiddle(address: number, edit: Edit, home: Address): Publication {
    const words = this.#words;
    const pointer = words[this.#fib + ROOT] + (address >>> 16);
    const cell = words[pointer];
    const node = cell < 0 ? ~cell : 0;
    const cover = this.#coverOfCell(cell);
    if (node === 0) words[home + COVER] = cover;
    else if (this.#ceases(edit)) {
      this.#abandon(node);
      return { pointer, value: cover };
    }
    const cells = this.#cells[0];
    this.#expand(cells, cover, edit);
    if (node !== 0) this.#keepKids(node, cells);
    return { pointer, value: ~this.#replace(node, home, cells) };
  }

  /** A prefix of 25 to 32 bits. */
  #planLast(address: number, edit: Edit, home: Address): Publication {
    const words = this.#words;
    const above = words[this.#fib + ROOT] + (address >>> 16);
    const top = words[above];
    const at = (address >>> 8) & 0xff;
    const middle = top < 0 ? ~top : 0;
    const cell = middle === 0 ? top : words[runOf(words, middle, at)];
    const node = cell < 0 ? ~cell : 0;
    const cover = this.#coverOfCell(cell);
    let value = cover;
    if (node !== 0 && this.#ceases(edit)) this.#abandon(node);
    else {
      if (node === 0) words[home + COVER] = cover;
      this.#expand(this.#cells[1], cover, edit);
      value = ~this.#replace(node, home, this.#cells[1]);
      // A node for another: its run in the node above changes in place.
      if (node !== 0) return { pointer: runOf(words, middle, at), value };
    }
    // A node that begins or ceases to be makes other runs above.
    const cells = this.#cells[0];
    if (middle === 0) {
      const rules = this.#reserve.take(rulesWords(FEWEST_RULES));
      initializeRules(words, rules, FEWEST_RULES, top);
      words[rules + KIDS] = 1;
      cells.fill(top);
      cells[at] = value;
      return { pointer: above, value: ~this.#replace(0, rules, cells) };
    }
    const rules = words[middle + NODE_RULES];
    const kids = words[rules + KIDS] + (value < 0 ? 1 : -1);
    if (kids === 0 && words[rules + COUNT] === 0) {
      this.#abandon(middle);
      return { pointer: above, value: words[rules + COVER] };
    }
    this.#writes.push(rules + KIDS, kids);
    for (let i = 0; i < NODE_CELLS; i++) {
      cells[i] = words[runOf(words, middle, i)];
    }
    cells[at] = value;
    return { pointer: above, value: ~this.#replace(middle, rules, cells) };
  }

  /** Whether an edit leaves a node without rules and without nodes below. */
  #ceases(edit: Edit): boolean {
    const { rules, route } = edit;
    return route === 0 && this.#words[rules + COUNT] === 1 &&
      this.#words[rules + KIDS] === 0;
  }

  #abandon(node: Address): void {
    this.#retired.push(node);
    this.#freed.push(this.#words[node + NODE_RULES]);
  }

  /** Works out a node's cells after an edit. */
  #expand(cells: Int32Array, cover: RouteNumber, edit: Edit): void {
    const words = this.#words;
    const { rules, key, index, old, route } = edit;
    cells.fill(cover);
    if (rules !== 0) expandRules(words, rules, 0, index, NODE_STRIDE, cells);
    if (route !== 0) expandRule(key, route, NODE_STRIDE, cells);
    if (rules === 0) return;
    const from = index + (old !== 0 ? 1 : 0);
    expandRules(words, rules, from, words[rules + COUNT], NODE_STRIDE, cells);
  }

  /** Puts the nodes below a node into its new cells. */
  #keepKids(node: Address, cells: Int32Array): void {
    if (this.#words[this.#words[node + NODE_RULES] + KIDS] === 0) return;
    forEachKid(this.#words, node, (cell, kid) => {
      cells[cell] = this.#covered(~kid, cells[cell], 1);
    });
  }

  /** What a cell becomes when `cover` becomes what it would hold without a node below. */
  #covered(cell: number, cover: RouteNumber, depth: number): number {
    if (cell >= 0) return cover;
    const words = this.#words;
    const node = ~cell;
    const rules = words[node + NODE_RULES];
    if (words[rules + COVER] === cover) return cell;
    this.#writes.push(rules + COVER, cover);
    const cells = this.#cells[depth];
    cells.fill(cover);
    expandRules(words, rules, 0, words[rules + COUNT], NODE_STRIDE, cells);
    this.#keepKids(node, cells);
    return ~this.#replace(node, rules, cells);
  }

  /** Makes a node of cells, in the place of `node` if that is not 0. */
  #replace(node: Address, rules: Address, cells: Int32Array): Address {
    const fresh = this.#reserve.take(nodeWords(cells));
    writeNode(this.#words, fresh, rules, cells);
    if (node !== 0) this.#retired.push(node);
    return fresh;
  }
}
