// Named roots: how threads find a structure again. A list that only grows.

import { acquire, release } from "../sync/_mutex.ts";
import { probeStack } from "../sync/_stack.ts";
import type { Address } from "./arena.ts";
import { show } from "./_codec.ts";
import type { Heap } from "./_heap.ts";
import type { Journal } from "./_journal.ts";
import { LINE } from "./_size_classes.ts";
import { measureText, readText, writeText } from "./_text.ts";

const LOCK = 0;
const HEAD = 1;
/** Words of the list's head. */
export const ROOT_WORDS: number = LINE;

// A root, immutable once published; the name stands behind it, then the schema.
const NEXT = 0;
const DATA = 1;
const NAME_WORDS = 2;
const TEXTS = 3;

/** A structure that some thread opened. */
interface Root {
  name: string;
  schema: string;
  data: Address;
}

/** The named structures of a domain. */
export class Roots {
  readonly #words: Int32Array;
  readonly #base: Address;
  readonly #heap: Heap;
  readonly #owner: number;
  readonly #journal: Journal;
  readonly #onSlow: (() => void) | undefined;

  constructor(
    words: Int32Array,
    base: Address,
    heap: Heap,
    owner: number,
    journal: Journal,
    onSlow?: () => void,
  ) {
    this.#words = words;
    this.#base = base;
    this.#heap = heap;
    this.#owner = owner;
    this.#journal = journal;
    this.#onSlow = onSlow;
  }

  /** The list's lock. */
  get lock(): Address {
    return this.#base + LOCK;
  }

  /**
   * Finds a structure, or makes it. Of several threads that open a name at
   * once, one makes it and the others find it.
   *
   * @param name The structure's name.
   * @param schema What it holds.
   * @param timeout Longest wait for another thread that is making one, in ms.
   * @param allocate Allocates a block, or throws.
   * @param make Lays the structure out and returns its first block.
   * @param discard Frees what `make` made, where another thread was faster.
   * @returns The structure's first block.
   */
  open(
    name: string,
    schema: string,
    timeout: number,
    allocate: (words: number) => Address,
    make: () => Address,
    discard: (data: Address) => void,
  ): Address {
    const found = this.#find(name, schema);
    if (found !== undefined) return found;
    // Everything is made first: allocating may have to wait, and nobody waits under a lock.
    const nameWords = measureText(name);
    const record = allocate(TEXTS + nameWords + measureText(schema));
    let data: Address = 0;
    let published = false;
    // What `make` allocates, in however many blocks, becomes public with the root.
    const outer = this.#heap.recording;
    const made: Address[] = [record];
    this.#heap.recording = made;
    try {
      data = make();
      this.#heap.recording = outer;
      const words = this.#words;
      words[record + DATA] = data;
      words[record + NAME_WORDS] = nameWords;
      writeText(words, record + TEXTS, name);
      writeText(words, record + TEXTS + nameWords, schema);
      const lock = this.#base + LOCK;
      const journal = this.#journal;
      probeStack();
      if (!acquire(words, lock, this.#owner, timeout, this.#onSlow)) {
        throw new Error(
          `Cannot open ${
            show(name)
          } within ${timeout} ms: another thread holds the list of names`,
        );
      }
      try {
        const meanwhile = this.#find(name, schema);
        if (meanwhile !== undefined) return meanwhile;
        words[record + NEXT] = Atomics.load(words, this.#base + HEAD);
        for (const block of made) journal.join(block);
        // Publish: everything above is in place. Pairs with: the load in `#find`.
        journal.store(this.#base + HEAD, record);
        journal.finish();
        published = true;
        return data;
      } finally {
        if (journal.open) journal.settle();
        published = Atomics.load(words, this.#base + HEAD) === record;
        release(words, lock);
      }
    } finally {
      this.#heap.recording = outer;
      if (!published) {
        if (data !== 0) discard(data);
        this.#heap.discard(record);
      }
    }
  }

  #find(name: string, schema: string): Address | undefined {
    const words = this.#words;
    let record = Atomics.load(words, this.#base + HEAD);
    for (; record !== 0; record = words[record + NEXT]) {
      const root = this.#read(record);
      if (root.name !== name) continue;
      if (root.schema === schema) return root.data;
      throw new TypeError(
        `Cannot open ${
          show(name)
        } as ${schema}: it was opened as ${root.schema}`,
      );
    }
    return undefined;
  }

  #read(record: Address): Root {
    const words = this.#words;
    const texts = record + TEXTS;
    return {
      data: words[record + DATA],
      name: readText(words, texts),
      schema: readText(words, texts + words[record + NAME_WORDS]),
    };
  }
}
