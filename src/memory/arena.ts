/**
 * A place in the arena: the index of a word in {@linkcode Arena.words}. 0 is
 * the null address.
 *
 * @example A block and a word in it
 * ```ts
 * import { type Address, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const block: Address = rcu.memory.allocate(4);
 * const third: Address = block + 2;
 * rcu.memory.words[third] = 7;
 * assertEquals(rcu.memory.words.subarray(block, block + 4)[2], 7);
 * ```
 */
export type Address = number;

/**
 * Where every byte of an arena is, at one moment. `live`, `deferred`, `free`
 * and `overhead` add up to `capacity`.
 *
 * @example It adds up
 * ```ts
 * import { type MemoryAudit, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const audit: MemoryAudit = rcu.memory.audit();
 * const { capacity, live, deferred, free, overhead } = audit;
 * assertEquals(live + deferred + free + overhead, capacity);
 * ```
 */
export interface MemoryAudit {
  /** Bytes of the arena. */
  capacity: number;
  /** Bytes in blocks that are allocated, their rounding included. */
  live: number;
  /** Bytes in blocks that wait for a grace period. */
  deferred: number;
  /** Bytes that can be allocated. */
  free: number;
  /** Bytes that the library needs itself: reader slots, tags, page tails. */
  overhead: number;
}

/**
 * The memory that the threads of a domain share. Reached as `rcu.memory`.
 *
 * @example A block of one's own
 * ```ts
 * import { Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const before = rcu.memory.audit().live;
 * const block = rcu.memory.allocate(4);
 * rcu.memory.words[block] = 42;
 * assertEquals(rcu.memory.words[block], 42);
 * rcu.memory.free(block);
 * assertEquals(rcu.memory.audit().live, before);
 * ```
 *
 * @example A linked list of one's own
 *
 * Readers need nothing but a section. Writers must exclude each other: let one
 * thread do all the writing, or take a lock around each update, as here.
 *
 * ```ts
 * import { type Address, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * // A node. Its key never changes once the node is published.
 * const NEXT = 0;
 * const KEY = 1;
 * const NODE_WORDS = 2;
 * // The root: the pointer to the first node, and the writers' lock.
 * const FIRST = 0;
 * const LOCK = 1;
 * const ROOT_WORDS = 2;
 *
 * class List {
 *   constructor(readonly rcu: Rcu, readonly root: Address) {}
 *
 *   static create(rcu: Rcu): Address {
 *     const { memory } = rcu;
 *     const root = memory.allocate(ROOT_WORDS);
 *     // A block holds anything at first. Nobody else knows of it yet.
 *     memory.words.fill(0, root, root + ROOT_WORDS);
 *     return root;
 *   }
 *
 *   keys(): number[] {
 *     const { rcu, root } = this;
 *     return rcu.read(() => {
 *       const keys: number[] = [];
 *       let node = rcu.dereference(root + FIRST);
 *       while (node !== 0) {
 *         keys.push(rcu.memory.words[node + KEY]);
 *         node = rcu.dereference(node + NEXT);
 *       }
 *       return keys;
 *     });
 *   }
 *
 *   add(key: number): void {
 *     const { rcu, root } = this;
 *     const { memory } = rcu;
 *     const node = memory.allocate(NODE_WORDS); // before the lock: it may wait
 *     memory.words[node + KEY] = key;
 *     try {
 *       this.#update(() => {
 *         // Complete first, then published.
 *         memory.words[node + NEXT] = rcu.dereference(root + FIRST);
 *         rcu.assignPointer(root + FIRST, node);
 *       });
 *     } catch (error) {
 *       memory.free(node); // at once: nobody has seen it
 *       throw error;
 *     }
 *   }
 *
 *   delete(key: number): boolean {
 *     const { rcu, root } = this;
 *     const node = this.#update(() => {
 *       let pointer = root + FIRST;
 *       let node = rcu.dereference(pointer);
 *       while (node !== 0 && rcu.memory.words[node + KEY] !== key) {
 *         pointer = node + NEXT;
 *         node = rcu.dereference(pointer);
 *       }
 *       // Unlinked, but whole: a reader that stands on it finds its way on.
 *       if (node !== 0) rcu.assignPointer(pointer, rcu.dereference(node + NEXT));
 *       return node;
 *     });
 *     // Freed when every section that may have seen it is over.
 *     if (node !== 0) rcu.deferFree(node);
 *     return node !== 0;
 *   }
 *
 *   #update<T>(act: () => T): T {
 *     this.#lock();
 *     try {
 *       return this.rcu.read(act); // dereferencing needs a section here, too
 *     } finally {
 *       this.#unlock();
 *     }
 *   }
 *
 *   #lock(): void {
 *     const { words } = this.rcu.memory;
 *     const deadline = performance.now() + 10_000;
 *     while (Atomics.compareExchange(words, this.root + LOCK, 0, 1) !== 0) {
 *       const left = deadline - performance.now();
 *       if (left <= 0) throw new Error("Another writer does not give way");
 *       this.rcu.threadOffline(); // who sleeps holds up no grace period
 *       Atomics.wait(words, this.root + LOCK, 1, left);
 *     }
 *   }
 *
 *   #unlock(): void {
 *     const { words } = this.rcu.memory;
 *     Atomics.store(words, this.root + LOCK, 0);
 *     Atomics.notify(words, this.root + LOCK, 1);
 *   }
 * }
 *
 * using rcu = Rcu.create({ name: "main", debug: true });
 * const list = new List(rcu, List.create(rcu));
 * for (const key of [3, 2, 1]) list.add(key);
 *
 * // The root's address goes to a worker beside the handle:
 * const message = { handle: rcu.handle, root: list.root };
 * // worker.postMessage(message), and there, with what arrives:
 * using member = Rcu.attach(message.handle, { name: "worker" });
 * const same = new List(member, message.root);
 * assertEquals(same.keys(), [1, 2, 3]);
 * assertEquals([same.delete(2), same.delete(2)], [true, false]);
 * assertEquals(list.keys(), [1, 3]);
 * ```
 */
export interface Arena {
  /**
   * Every word of the arena. Words that another thread can touch at the same
   * time go through `Atomics`, or through `rcu.dereference` and
   * `rcu.assignPointer`.
   */
  readonly words: Int32Array;

  /**
   * Allocates a block. Its contents are unspecified. Where nothing is free,
   * waits for the pending grace period and tries again; inside a read section
   * it cannot wait.
   *
   * @param words Size in words of 4 bytes, from 1 to the arena's length.
   * @returns The address of the first word, a multiple of 4.
   * @throws {RangeError} If `words` is not an integer in that range.
   * @throws {RcuMemoryError} If the block does not fit.
   */
  allocate(words: number): Address;

  /**
   * Frees a block at once: for blocks that no reader can have seen. What has
   * been published goes through `rcu.deferFree`. In debug mode a block that was
   * never published counts as in use, with what its pointers lead to: free a node
   * before what it points to, or clear the pointer first by
   * `rcu.assignPointer(node, 0)` and let a grace period end.
   *
   * @param address What {@linkcode Arena.allocate} returned.
   * @throws {RangeError} If no block begins there.
   * @throws {Error} If the block is already free or deferred. In debug mode, if
   * `rcu.assignPointer` has published it, until a grace period has ended since it was unlinked;
   * hence also if a block that was never published still points to it.
   */
  free(address: Address): void;

  /**
   * Accounts for every byte, from the state of every block itself. Takes time
   * in proportion to the number of blocks.
   *
   * @returns The account.
   */
  audit(): MemoryAudit;
}
