// Building a whole table aside and putting it in the place of another one.

import { checkPair } from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { forEachKid, nodeWords, writeNode } from "./_fib_node.ts";
import type { RouteNumber } from "./_fib_record.ts";
import { RouteRecords } from "./_fib_records.ts";
import {
  appendRule,
  COUNT,
  COVER,
  expandRules,
  initializeRules,
  KIDS,
  ruleKey,
  ruleRoute,
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
  SIZE,
} from "./_fib_trie.ts";
import { addressOf, lengthOf, parsePrefix, type PrefixKey } from "./_prefix.ts";
import { encodeRoute, type Prefix, type Route } from "./route.ts";

/** Bits that the nodes above the last ones have decided on. */
const LAST = ROOT_STRIDE + NODE_STRIDE;

/** A node to be made. */
interface NodePlan {
  /** The cell above that is to lead to it. */
  cell: number;
  /** Its rules. */
  rules: Address;
  /** The nodes below it. */
  kids: NodePlan[];
}

/**
 * A table under construction: a root, nodes and rules that nobody else can
 * reach. They are built without the lock, so that allocating may wait and other
 * threads may update; it is taken for a moment to find each route's record,
 * which the tables share, and to {@linkcode publish}.
 */
export class FibLoad {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;
  readonly #records: RouteRecords;
  readonly #cells = [new Int32Array(NODE_CELLS), new Int32Array(NODE_CELLS)];
  /** Every block, so that an error on the way leaves nothing behind. */
  #blocks: Address[] = [];
  #root: Address = 0;
  #rules: Address = 0;
  /** The prefixes in order, and the numbers of their routes, a reference of each held. */
  #prefixes: PrefixKey[] = [];
  #routes: RouteNumber[] = [];

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
    this.#records = new RouteRecords(m, fib);
  }

  /**
   * Lays the table out.
   *
   * @param entries Its prefixes and their routes; of two with the same prefix, the later one counts.
   */
  build(entries: Iterable<readonly [string | Prefix, Route]>): void {
    this.#read(entries);
    const count = this.#prefixes.length;
    // All rules first, all nodes then: what readers look at lies close together.
    this.#buildRoot(count);
    const plans: NodePlan[] = [];
    for (let i = 0; i < count;) {
      const block = addressOf(this.#prefixes[i]) >>> 16;
      const first = i;
      while (i < count && addressOf(this.#prefixes[i]) >>> 16 === block) i++;
      const plan = this.#plan(first, i, ROOT_STRIDE);
      if (plan !== undefined) plans.push(plan);
    }
    for (const plan of plans) {
      this.#buildNode(plan, this.#words, this.#root, 0);
    }
  }

  /** Puts the table in the place of what the Fib holds. Call once, then {@linkcode dispose}. */
  publish(): void {
    const m = this.#m;
    const words = this.#words;
    const fib = this.#fib;
    m.lock(fib + LOCK);
    try {
      for (const block of this.#blocks) m.heap.makePublic(block);
      const root = words[fib + ROOT];
      const rules = words[fib + ROOT_RULES];
      words[fib + ROOT_RULES] = this.#rules;
      Atomics.store(words, fib + SIZE, this.#prefixes.length);
      publishChange(words, fib, fib + ROOT, this.#root);
      this.#blocks = [];
      this.#routes = [];
      // A Fib that is being made has nothing yet.
      if (root !== 0) this.#retireTable(root, rules);
    } finally {
      m.unlock(fib + LOCK);
    }
    this.#records.settle();
  }

  /** Frees what has not been published, also where the membership has ended meanwhile. */
  dispose(): void {
    const blocks = this.#blocks;
    const routes = this.#routes;
    this.#blocks = [];
    this.#routes = [];
    for (const block of blocks) this.#m.heap.free(block);
    if (routes.length > 0) this.#records.abandon(routes);
  }

  #allocate(size: number): Address {
    const block = this.#m.allocate(size);
    this.#blocks.push(block);
    return block;
  }

  #read(entries: Iterable<readonly [string | Prefix, Route]>): void {
    const fields = { flags: 0, gateway: 0, interface: 0, metric: 0, mtu: 0 };
    const prefixes = this.#prefixes;
    let last = -1;
    let sorted = true;
    for (const entry of entries) {
      checkPair(entry, "prefix and route", "load a table");
      const key = parsePrefix(entry[0]);
      encodeRoute(entry[1], fields);
      if (key <= last) sorted = false;
      last = key;
      this.#routes.push(this.#records.hold(fields));
      prefixes.push(key);
    }
    if (!sorted) this.#sort();
  }

  /** Sorts the prefixes; of several that are the same, the last stays. */
  #sort(): void {
    const prefixes = this.#prefixes;
    const routes = this.#routes;
    const order = prefixes.map((_, i) => i);
    order.sort((a, b) => prefixes[a] - prefixes[b] || a - b);
    const stays = (i: number, place: number): boolean =>
      prefixes[i] !== prefixes[order[place + 1]];
    const kept = order.filter(stays);
    const gone = order.filter((i, place) => !stays(i, place));
    this.#prefixes = kept.map((i) => prefixes[i]);
    this.#routes = kept.map((i) => routes[i]);
    if (gone.length > 0) this.#records.drop(gone.map((i) => routes[i]));
  }

  #buildRoot(count: number): void {
    const words = this.#words;
    this.#root = this.#allocate(ROOT_CELLS);
    this.#rules = this.#buildRules(0, count, 0, ROOT_STRIDE);
    const cells = words.subarray(this.#root, this.#root + ROOT_CELLS);
    cells.fill(0);
    const rules = words[this.#rules + COUNT];
    expandRules(words, this.#rules, 0, rules, ROOT_STRIDE, cells);
  }

  /** Makes a block of rules from those of some prefixes that end in a node. */
  #buildRules(
    from: number,
    to: number,
    above: number,
    stride: number,
  ): Address {
    const words = this.#words;
    const deepest = above + stride;
    // No prefix is shorter than all the root's.
    const shortest = above === 0 ? 0 : above + 1;
    let count = 0;
    for (let i = from; i < to; i++) {
      const length = lengthOf(this.#prefixes[i]);
      if (length >= shortest && length <= deepest) count++;
    }
    const rules = this.#allocate(rulesWords(count));
    initializeRules(words, rules, count, 0);
    for (let i = from; i < to; i++) {
      const length = lengthOf(this.#prefixes[i]);
      if (length < shortest || length > deepest) continue;
      const address = addressOf(this.#prefixes[i]);
      const cell = (address >>> (32 - deepest)) & ((1 << stride) - 1);
      appendRule(words, rules, ruleKey(cell, length - above), this.#routes[i]);
    }
    return rules;
  }

  /** Makes the rules of the node for those of some prefixes that are longer than `above`, and of those below it. */
  #plan(from: number, to: number, above: number): NodePlan | undefined {
    const prefixes = this.#prefixes;
    let longer = false;
    let i = from;
    for (; i < to && !longer; i++) longer = lengthOf(prefixes[i]) > above;
    if (!longer) return undefined;
    const rules = this.#buildRules(from, to, above, NODE_STRIDE);
    const address = addressOf(prefixes[from]);
    if (above === LAST) {
      return { cell: (address >>> 8) & 0xff, rules, kids: [] };
    }
    const kids: NodePlan[] = [];
    for (let i = from; i < to;) {
      const block = addressOf(prefixes[i]) >>> 8;
      const first = i;
      while (i < to && addressOf(prefixes[i]) >>> 8 === block) i++;
      const kid = this.#plan(first, i, LAST);
      if (kid !== undefined) kids.push(kid);
    }
    this.#words[rules + KIDS] = kids.length;
    return { cell: address >>> 16, rules, kids };
  }

  /** Makes a node, and those below it, and puts it into a cell. */
  #buildNode(
    plan: NodePlan,
    above: Int32Array,
    firstCell: number,
    depth: number,
  ): void {
    const { cell, rules, kids } = plan;
    const words = this.#words;
    const cells = this.#cells[depth];
    const cover = above[firstCell + cell];
    words[rules + COVER] = cover;
    cells.fill(cover);
    expandRules(words, rules, 0, words[rules + COUNT], NODE_STRIDE, cells);
    for (const kid of kids) this.#buildNode(kid, cells, 0, depth + 1);
    const node = this.#allocate(nodeWords(cells));
    writeNode(words, node, rules, cells);
    above[firstCell + cell] = ~node;
  }

  /** Retires a root that nobody can reach any more, and every node below it; frees their rules. */
  #retireTable(root: Address, rules: Address): void {
    const words = this.#words;
    for (let i = 0; i < ROOT_CELLS; i++) {
      if (words[root + i] < 0) this.#retireNode(~words[root + i]);
    }
    this.#freeRules(rules);
    this.#m.retire(root);
  }

  #retireNode(node: Address): void {
    const words = this.#words;
    const rules = words[node + NODE_RULES];
    if (words[rules + KIDS] > 0) {
      forEachKid(words, node, (_, kid) => this.#retireNode(kid));
    }
    this.#freeRules(rules);
    this.#m.retire(node);
  }

  /** Frees a block of rules: what only writers look at needs no grace period. */
  #freeRules(rules: Address): void {
    const count = this.#words[rules + COUNT];
    for (let i = 0; i < count; i++) {
      this.#records.release(ruleRoute(this.#words, rules, i));
    }
    this.#m.heap.free(rules);
  }
}
