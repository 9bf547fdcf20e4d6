// A user's own structure on the public names alone: a sorted linked list.

import type { Address, Rcu } from "../mod.ts";

// A node. The key and its check never change once the node is published.
const NEXT = 0;
const KEY = 1;
const CHECK = 2;
const NODE_WORDS = 3;

/** A sorted set of numbers; one writer at a time, readers at any time. */
export class SortedList {
  readonly #rcu: Rcu;
  readonly #head: Address;

  constructor(rcu: Rcu, head: Address) {
    this.#rcu = rcu;
    this.#head = head;
  }

  /** Makes an empty list; returns the address of its head. */
  static create(rcu: Rcu): Address {
    const head = rcu.memory.allocate(1);
    rcu.assignPointer(head, 0);
    return head;
  }

  #words(): Int32Array {
    return this.#rcu.memory.words;
  }

  /** The pointer to the first node whose key is not below. */
  #find(key: number): Address {
    const words = this.#words();
    let pointer = this.#head;
    while (true) {
      const node = this.#rcu.dereference(pointer);
      if (node === 0 || words[node + KEY] >= key) return pointer;
      pointer = node + NEXT;
    }
  }

  add(key: number): boolean {
    const rcu = this.#rcu;
    const words = this.#words();
    const node = rcu.memory.allocate(NODE_WORDS);
    const added = rcu.read(() => {
      const pointer = this.#find(key);
      const next = rcu.dereference(pointer);
      if (next !== 0 && words[next + KEY] === key) return false;
      words[node + NEXT] = next;
      words[node + KEY] = key;
      words[node + CHECK] = ~key;
      rcu.assignPointer(pointer, node);
      return true;
    });
    if (!added) rcu.memory.free(node);
    return added;
  }

  delete(key: number, dispose = (node: Address) => this.#rcu.deferFree(node)) {
    const rcu = this.#rcu;
    const node = rcu.read(() => {
      const pointer = this.#find(key);
      const found = rcu.dereference(pointer);
      if (found === 0 || this.#words()[found + KEY] !== key) return 0;
      rcu.assignPointer(pointer, rcu.dereference(found + NEXT));
      return found;
    });
    if (node !== 0) dispose(node);
    return node !== 0;
  }

  /** The keys in one section; `pause` is called at every node. Throws on a node that is none. */
  keys(pause: () => void = () => {}): number[] {
    const rcu = this.#rcu;
    const words = this.#words();
    return rcu.read(() => {
      const keys: number[] = [];
      let node = rcu.dereference(this.#head);
      while (node !== 0) {
        const key = words[node + KEY];
        pause();
        if (words[node + CHECK] !== ~key) {
          throw new Error(`Node ${node} was freed under a reader`);
        }
        keys.push(key);
        node = rcu.dereference(node + NEXT);
      }
      return keys;
    });
  }
}
