// Building a whole table aside and putting it in the place of another one.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { forEachKid, nodeWords, writeNode } from "./_fib_node.ts";
import { FEWEST_BUCKETS, RECORD_WORDS, RecordTable } from "./_fib_records.ts";
import {
  appendRule,
  COUNT,
  COVER,
  expandRules,
  initializeRules,
  KIDS,
  ruleKey,
  rulesWords,
} from "./_fib_rules.ts";
import {
  GENERATION,
  LOCK,
  NODE_CELLS,
  NODE_RULES,
  NODE_STRIDE,
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
 * A table under construction: a root, nodes, rules and records that nobody
 * else can reach. It is built without the lock, so that allocating may wait
 * and other threads may update; only {@linkcode publish} takes it.
 */
export class FibLoad {
  readonly #m: Membership;
  readonly #words: Int32Array;
  readonly #fib: Address;
  readonly #records: RecordTable;
  readonly #cells = [new Int32Array(NODE_CELLS), new Int32Array(NODE_CELLS)];
  /** Every block but the records and their buckets, so that an error on the way leaves nothing behind. */
  #blocks: Address[] = [];
  #root: Address = 0;
  #rules: Address = 0;
  /** The prefixes in order, and the records of their routes. */
  #prefixes: PrefixKey[] = [];
  #routes: Address[] = [];

  constructor(m: Membership, fib: Address) {
    this.#m = m;
    this.#words = m.words;
    this.#fib = fib;
    this.#records = new RecordTable(m.words, fib);
    this.#growBuckets(FEWEST_BUCKETS);
  }

  /**
   * Lays the table out.
   *
   * @param entries Its prefixes and their routes; of two with the same prefix, the later one counts.
   */
  build(entries: Iterable<readonly [string | Prefix, Route]>): void {
    this.#read(entries);
    for (const record of this.#routes) this.#records.acquire(record);
    for (const record of this.#records.takeUnused()) {
      this.#m.heap.free(record);
    }
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
      const old = new RecordTable(words, fib);
      old.open();
      const root = words[fib + ROOT];
      const rules = words[fib + ROOT_RULES];
      words[fib + ROOT_RULES] = this.#rules;
      this.#records.save();
      Atomics.store(words, fib + SIZE, this.#prefixes.length);
      // Publish: the whole table is complete. Pairs with: the loads of `FibLookup.lookupRoute`.
      Atomics.store(words, fib + ROOT, this.#root);
      // After the store and before anything is retired. Pairs with: `FibLookup.generation`.
      Atomics.add(words, fib + GENERATION, 1);
      this.#blocks = [];
      this.#records.buckets = 0;
      // A Fib that is being made has nothing yet.
      if (root === 0) return;
      old.recycleAll();
      old.forEach((record) => m.retire(record));
      retireNodes(m, root);
      // What only writers look at needs no grace period.
      m.heap.free(old.buckets);
      m.heap.free(rules);
    } finally {
      m.unlock(fib + LOCK);
    }
  }

  /** Frees what has not been published. */
  dispose(): void {
    const heap = this.#m.heap;
    this.#records.forEach((record) => heap.free(record));
    if (this.#records.buckets !== 0) heap.free(this.#records.buckets);
    this.#records.buckets = 0;
    for (const block of this.#blocks) heap.free(block);
    this.#blocks = [];
  }

  #allocate(size: number): Address {
    const block = this.#m.allocate(size);
    this.#blocks.push(block);
    return block;
  }

  #growBuckets(size: number): void {
    const outgrown = this.#records.buckets;
    this.#records.rehash(this.#m.allocate(size), size);
    if (outgrown !== 0) this.#m.heap.free(outgrown);
  }

  #read(entries: Iterable<readonly [string | Prefix, Route]>): void {
    const fields = { flags: 0, gateway: 0, interface: 0, metric: 0, mtu: 0 };
    const prefixes: PrefixKey[] = [];
    const routes: Address[] = [];
    let last = -1;
    let sorted = true;
    for (const [prefix, route] of entries) {
      const key = parsePrefix(prefix);
      encodeRoute(route, fields);
      if (key <= last) sorted = false;
      last = key;
      prefixes.push(key);
      let record = this.#records.find(fields);
      if (record === 0) {
        const wanted = this.#records.wanted;
        if (wanted > 0) this.#growBuckets(wanted);
        record = this.#m.allocate(RECORD_WORDS);
        this.#records.fill(record, fields);
        this.#records.link(record);
      }
      routes.push(record);
    }
    this.#prefixes = prefixes;
    this.#routes = routes;
    if (!sorted) this.#sort();
  }

  /** Sorts the prefixes; of several that are the same, the last stays. */
  #sort(): void {
    const prefixes = this.#prefixes;
    const routes = this.#routes;
    const order = prefixes.map((_, i) => i);
    order.sort((a, b) => prefixes[a] - prefixes[b] || a - b);
    const kept = order.filter((i, place) =>
      prefixes[i] !== prefixes[order[place + 1]]
    );
    this.#prefixes = kept.map((i) => prefixes[i]);
    this.#routes = kept.map((i) => routes[i]);
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
}

/** Retires a root that nobody can reach any more, and every node below it; frees their rules. */
function retireNodes(m: Membership, root: Address): void {
  const words = m.words;
  for (let i = 0; i < ROOT_CELLS; i++) {
    if (words[root + i] >= 0) continue;
    const node = ~words[root + i];
    const rules = words[node + NODE_RULES];
    if (words[rules + KIDS] > 0) {
      forEachKid(words, node, (_, kid) => {
        m.heap.free(words[kid + NODE_RULES]);
        m.retire(kid);
      });
    }
    m.heap.free(rules);
    m.retire(node);
  }
  m.retire(root);
}
