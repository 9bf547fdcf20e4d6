// What writers do to a table under a stripe's lock.

import type { Address } from "../memory/arena.ts";
import { Resizer } from "./_resizer.ts";
import {
  HEADS,
  keyOf,
  MASK,
  NEXT,
  type Probe,
  STRIPE_COUNT,
  STRIPE_LOCK,
  type Table,
  VALUE,
} from "./_table.ts";
import type { Values } from "./_values.ts";

/** What a conditional write expects to find. */
export interface Expected {
  /** Whether there was an entry. */
  present: boolean;
  /** Its value word. */
  word: number;
  /** That value's version. */
  version: number;
}

/** The writing side of a map, in one thread. */
export class Writer<K, V> {
  readonly #table: Table<K>;
  readonly #values: Values<V>;
  readonly #words: Int32Array;
  readonly #resizer: Resizer;

  constructor(table: Table<K>, values: Values<V>) {
    this.#table = table;
    this.#values = values;
    this.#words = table.words;
    this.#resizer = new Resizer(table as Table<unknown>);
  }

  /**
   * Puts a stored value under a key. Takes the value over: it is published,
   * or discarded if that was not to be.
   *
   * @param probe The key.
   * @param value The value's word.
   * @param expected What must still be there, or `undefined` for anything.
   * @returns Whether it was.
   */
  put(probe: Probe, value: number, expected: Expected | undefined): boolean {
    const table = this.#table;
    const { heap } = table.membership;
    const stripe = table.stripe(probe.hash);
    let node: Address = 0; // allocated ahead of the lock
    let result: PutResult;
    table.beginWrite();
    try {
      while (
        (result = this.#tryPut(probe, stripe, value, expected, node)) ===
          NO_MEMORY
      ) node = table.membership.allocate(table.nodeWords(probe.key));
    } catch (error) {
      if (node !== 0) heap.discard(node);
      this.#values.discard(value);
      throw error;
    }
    if (result !== INSERTED && node !== 0) heap.free(node);
    if (result === UNEXPECTED) this.#values.discard(value);
    else table.noteWrite(keyOf(probe));
    // The last thing: a callback may close the membership, and the update has been made.
    if (result === INSERTED) this.#resizer.check(stripe);
    table.membership.afterUpdate();
    return result !== UNEXPECTED;
  }

  #tryPut(
    probe: Probe,
    stripe: Address,
    value: number,
    expected: Expected | undefined,
    spare: Address,
  ): PutResult {
    const { membership } = this.#table;
    membership.lock(stripe + STRIPE_LOCK);
    // A section: the table itself may be replaced and retired by a thread that has moved on to
    // another stripe.
    try {
      membership.reader.enter();
      try {
        return this.#putLocked(probe, stripe, value, expected, spare);
      } finally {
        membership.reader.exit();
      }
    } finally {
      membership.unlock(stripe + STRIPE_LOCK);
    }
  }

  #putLocked(
    probe: Probe,
    stripe: Address,
    value: number,
    expected: Expected | undefined,
    spare: Address,
  ): PutResult {
    const table = this.#table;
    const words = this.#words;
    const current = table.tableOf(probe.hash);
    const bucket = probe.hash & words[current + MASK];
    const head = current + HEADS + bucket;
    const found = table.findIn(words[head], probe);
    if (expected !== undefined && !this.#isAsExpected(found, expected)) {
      return UNEXPECTED;
    }
    if (found !== 0) {
      this.#replace(probe.hash, found, value);
      return REPLACED;
    }
    const node = spare !== 0
      ? spare
      : table.membership.heap.tryAllocate(table.nodeWords(probe.key));
    if (node === 0) return NO_MEMORY;
    this.#seal(value);
    table.writeNode(node, probe, value);
    words[node + NEXT] = words[head];
    const { journal } = table.membership;
    this.#values.join(value);
    journal.join(node);
    // Publish (2). Pairs with: the load of the head in `find`.
    journal.store(head, node);
    const count = words[stripe + STRIPE_COUNT];
    journal.store(stripe + STRIPE_COUNT, count + 1);
    journal.finish();
    return INSERTED;
  }

  #isAsExpected(found: Address, expected: Expected): boolean {
    if (found === 0 || !expected.present) {
      return (found !== 0) === expected.present;
    }
    const word = this.#words[found + VALUE];
    return word === expected.word &&
      this.#values.versionOf(word) === expected.version;
  }

  #replace(hash: number, node: Address, value: number): void {
    const words = this.#words;
    if (!this.#values.inBlocks) {
      // The word is the value. Readers that cached the node read it afresh.
      Atomics.store(words, node + VALUE, value);
      return;
    }
    this.#seal(value);
    const { journal } = this.#table.membership;
    this.#table.beginChange(hash);
    this.#values.join(value);
    this.#values.leave(words[node + VALUE]);
    // Publish. Pairs with: the load of the value word in `get`.
    journal.store(node + VALUE, value);
    journal.commit();
    this.#table.endChange(hash);
    journal.end();
  }

  #seal(value: number): void {
    if (!this.#values.inBlocks) return;
    this.#values.seal(value, this.#table.nextStamp());
  }

  /**
   * Takes a key out.
   *
   * @param probe The key.
   * @returns Whether it was there.
   */
  delete(probe: Probe): boolean {
    const table = this.#table;
    const { membership } = table;
    const stripe = table.stripe(probe.hash);
    table.beginWrite();
    membership.lock(stripe + STRIPE_LOCK);
    let deleted = false;
    try {
      membership.reader.enter();
      try {
        deleted = this.#deleteLocked(probe, stripe);
      } finally {
        membership.reader.exit();
      }
    } finally {
      membership.unlock(stripe + STRIPE_LOCK);
    }
    if (deleted) {
      table.noteWrite(keyOf(probe));
      // In this order, as in `put`.
      this.#resizer.check(stripe);
      membership.afterUpdate();
    }
    return deleted;
  }

  #deleteLocked(probe: Probe, stripe: Address): boolean {
    const table = this.#table;
    const words = this.#words;
    const current = table.tableOf(probe.hash);
    const bucket = probe.hash & words[current + MASK];
    let link = current + HEADS + bucket;
    const node = table.findIn(words[link], probe);
    if (node === 0) return false;
    while (words[link] !== node) link = words[link] + NEXT;
    const { journal } = table.membership;
    table.beginChange(probe.hash);
    this.#values.leave(words[node + VALUE]);
    journal.leave(node);
    // Unlink (3). The node keeps its own NEXT.
    journal.store(link, words[node + NEXT]);
    const count = words[stripe + STRIPE_COUNT];
    journal.store(stripe + STRIPE_COUNT, count - 1);
    journal.commit();
    table.endChange(probe.hash);
    journal.end();
    return true;
  }
}

const UNEXPECTED = 0;
const REPLACED = 1;
const INSERTED = 2;
const NO_MEMORY = 3;
type PutResult =
  | typeof UNEXPECTED
  | typeof REPLACED
  | typeof INSERTED
  | typeof NO_MEMORY;
