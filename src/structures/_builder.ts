// Building a map's whole contents aside and publishing them at once.

import type { Address } from "../memory/arena.ts";
import { RcuMemoryError } from "../memory/errors.ts";
import {
  bucketsFor,
  FORWARDED,
  HEADS,
  LEAST_MASK,
  MASK,
  NEXT,
  type Probe,
  RESIZE_LOCK,
  STRIPE_COUNT,
  STRIPE_LOCK,
  STRIPES,
  SUCCESSOR,
  TABLE,
  type Table,
  tableWords,
  VALUE,
} from "./_table.ts";
import type { Values } from "./_values.ts";

/** A table for what may come takes this part of the memory at most. */
const HINTED_PART = 16;

/**
 * A table that no reader can find yet. Plain stores suffice: what publishes it
 * publishes them.
 */
export class Builder<K, V> {
  readonly #table: Table<K>;
  readonly #values: Values<V>;
  readonly #words: Int32Array;
  readonly #counts: number[] = new Array(STRIPES).fill(0);
  /** One number for all values: no two that are published share a block. */
  readonly #stamp: number;
  #built: Address;

  /**
   * @param table The map's table.
   * @param values The map's values.
   * @param hint How many entries may come.
   */
  constructor(table: Table<K>, values: Values<V>, hint: number) {
    this.#table = table;
    this.#values = values;
    this.#words = table.words;
    this.#stamp = table.nextStamp();
    this.#built = this.#begin(hint);
  }

  /** What may come is no reason to run out of memory: it grows when it does come. */
  #begin(hint: number): Address {
    const least = bucketsOf(this.#table, 0);
    let buckets = bucketsOf(this.#table, hint);
    const most = this.#words.length / HINTED_PART;
    while (buckets > least && tableWords(buckets) > most) buckets /= 2;
    try {
      return this.#allocateTable(buckets);
    } catch (error) {
      if (buckets === least || !(error instanceof RcuMemoryError)) throw error;
      return this.#allocateTable(least);
    }
  }

  #allocateTable(buckets: number): Address {
    const made = this.#table.membership.allocate(tableWords(buckets));
    this.#table.clearTable(made, buckets);
    return made;
  }

  /**
   * Puts an entry in. A later entry of a key replaces an earlier one.
   *
   * @param key The key.
   * @param value The value.
   */
  add(key: K, value: V): void {
    const table = this.#table;
    const words = this.#words;
    const { membership } = table;
    const probe = this.#table.probe(key, true);
    const stripe = probe.hash & (STRIPES - 1);
    const word = this.#values.store(value);
    this.#values.seal(word, this.#stamp);
    const found = table.find(this.#built, probe);
    if (found !== 0) {
      this.#values.discard(words[found + VALUE]);
      words[found + VALUE] = word;
      return;
    }
    let node: Address;
    try {
      node = membership.allocate(table.nodeWords(probe.key));
    } catch (error) {
      this.#values.discard(word);
      throw error;
    }
    this.#insert(node, probe, word);
    const wanted = table.wantedBuckets(this.#built, ++this.#counts[stripe]);
    if (wanted > words[this.#built + MASK] + 1) this.#grow(wanted);
  }

  #insert(node: Address, probe: Probe, word: number): void {
    const head = this.#built + HEADS + (probe.hash & this.#words[this.#built]);
    this.#table.writeNode(node, probe, word);
    this.#words[node + NEXT] = this.#words[head];
    this.#words[head] = node;
  }

  /** Nobody reads the table: nodes are simply hung elsewhere. */
  #grow(buckets: number): void {
    const words = this.#words;
    const old = this.#built;
    const made = this.#allocateTable(buckets);
    for (let bucket = 0; bucket <= words[old + MASK]; bucket++) {
      for (let node = words[old + HEADS + bucket]; node !== 0;) {
        const next = words[node + NEXT];
        const head = made + HEADS +
          (this.#table.hashOf(node) & (buckets - 1));
        words[node + NEXT] = words[head];
        words[head] = node;
        node = next;
      }
    }
    this.#table.membership.heap.free(old);
    this.#built = made;
  }

  /** Replaces the map's contents with what was built, by one store. */
  publish(): void {
    const table = this.#table;
    const words = this.#words;
    const { header, membership } = table;
    const { journal } = membership;
    const held: Address[] = [];
    let published = false;
    table.beginWrite();
    try {
      // In the order in which everybody takes them: no deadlock.
      for (const lock of this.#locks()) {
        membership.lock(lock);
        held.push(lock);
      }
      // Under the locks: until then the old contents may change.
      this.#forEachBlock(this.#built, (block) => journal.join(block));
      const old = Atomics.load(words, header + TABLE);
      this.#forEachBlock(old, (block) => journal.leave(block));
      table.beginChange(0, 1);
      // Publish (5). Pairs with: `root` and `tableOf`.
      journal.store(header + TABLE, this.#built);
      for (let s = 0; s < STRIPES; s++) {
        const line = table.stripe(s);
        journal.store(line + STRIPE_COUNT, this.#counts[s]);
      }
      journal.commit();
      table.endChange(0, 1);
      published = true;
    } finally {
      for (const lock of held) membership.unlock(lock);
      if (!published) this.discard();
    }
    journal.end();
    table.unpin();
    table.noteWrite(undefined);
    membership.afterUpdate();
  }

  #locks(): Address[] {
    const { header } = this.#table;
    const locks = [header + RESIZE_LOCK];
    for (let s = 0; s < STRIPES; s++) {
      locks.push(this.#table.stripe(s) + STRIPE_LOCK);
    }
    return locks;
  }

  /** Frees what was built and not published. */
  discard(): void {
    const { heap } = this.#table.membership;
    this.#forEachBlock(this.#built, (block) => heap.discard(block));
  }

  /** Visits a table, its successor, all their nodes and values; each may be freed at once. */
  #forEachBlock(table: Address, visit: (block: Address) => void): void {
    const words = this.#words;
    const { inBlocks } = this.#values;
    while (table !== 0) {
      const successor = words[table + SUCCESSOR];
      for (let bucket = 0; bucket <= words[table + MASK]; bucket++) {
        let node = words[table + HEADS + bucket];
        if (node === FORWARDED) continue;
        while (node !== 0) {
          const following = words[node + NEXT];
          if (inBlocks) visit(words[node + VALUE]);
          visit(node);
          node = following;
        }
      }
      visit(table);
      table = successor;
    }
  }
}

/** How many buckets a number of entries needs, not fewer than the map's least. */
function bucketsOf<K>(table: Table<K>, entries: number): number {
  const least = Atomics.load(table.words, table.header + LEAST_MASK) + 1;
  return bucketsFor(entries, least);
}
