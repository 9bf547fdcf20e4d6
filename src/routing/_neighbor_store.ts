// The neighbour table's inside: chains that readers walk without a lock, entries that are referred to.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { NeighborCollector } from "./_neighbor_collector.ts";
import {
  ADDRESS,
  BUCKET_MASK,
  CHAINS,
  decodeNeighbor,
  encodeLink,
  ENTRIES,
  HIGH,
  INTERFACE,
  LINK,
  LINK_WORDS,
  LOCK_MASK,
  LOCKS,
  LOW,
  type Neighbor,
  type NeighborState,
  NEXT,
  NODE_WORDS,
  OVERFLOWS,
  REFERENCES,
  SECRET,
  UNREFERENCED,
  UPDATED,
  VERSION,
  VERSIONS,
} from "./_neighbor_layout.ts";
import { type Clock, ticksOf } from "./_route_clock.ts";
import { hashWords } from "./_route_hash.ts";
import { LEAF_READ } from "../readers/_reader.ts";

/**
 * One thread's view of a neighbour table.
 *
 * 1. Under the lock of its chain alone, an entry is linked or unlinked, and its
 *    LINK word changes. Entries are linked at the head.
 * 2. An entry is complete when it is published, and so is every link. An entry
 *    keeps its own NEXT until a grace period after it was unlinked.
 * 3. An entry is unlinked only when its REFERENCES went from 0 to DEAD. Whoever
 *    has counted a reference may therefore use the entry without a section.
 * 4. ENTRIES counts newcomers before they are linked: it is never too small.
 * 5. Whoever holds the lock of a chain needs no section: what is linked there
 *    stays linked, by (1). All other walks are leaf reads of `Reader`, which
 *    have no end that could be missed.
 */
export class NeighborStore {
  readonly membership: Membership;
  readonly header: Address;
  readonly collector: NeighborCollector;

  readonly #words: Int32Array;
  readonly #chains: Address;
  readonly #mask: number;
  readonly #secret: number;
  readonly clock: Clock;
  readonly #decoded = new Map<
    Address,
    { version: number; neighbor: Neighbor }
  >();

  constructor(membership: Membership, header: Address, clock: Clock) {
    const { words } = membership;
    this.membership = membership;
    this.header = header;
    this.collector = new NeighborCollector(membership, header);
    this.#words = words;
    this.#chains = words[header + CHAINS];
    this.#mask = words[header + BUCKET_MASK];
    this.#secret = words[header + SECRET];
    this.clock = clock;
  }

  #bucket(address: number, link: number): number {
    return hashWords(address, link, 0, this.#secret) & this.#mask;
  }

  /**
   * Finds an entry. The caller is in a section or leaf read, or holds the chain's lock (5).
   *
   * @param address Its IPv4 address.
   * @param link Its interface.
   * @returns The entry, or 0.
   */
  find(address: number, link: number): Address {
    const words = this.#words;
    // The dependent loads. Pairs with: the publishing store in `#link`.
    let node = words[this.#chains + this.#bucket(address, link)];
    while (
      node !== 0 &&
      (words[node + ADDRESS] !== address || words[node + INTERFACE] !== link)
    ) node = words[node + NEXT];
    return node;
  }

  /**
   * Finds or makes an entry and counts a reference to it. No lock is held.
   *
   * @param address Its IPv4 address.
   * @param link Its interface.
   * @param now The time, in ticks.
   * @returns The entry, or 0 if the table is full and nothing could be collected.
   */
  hold(address: number, link: number, now: number): Address {
    const { reader } = this.membership;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    const found = this.find(address, link);
    if (found !== 0 && this.#tryHold(found)) return found;
    return this.#make(address, link, now);
  }

  #tryHold(node: Address): boolean {
    const words = this.#words;
    let seen = Atomics.load(words, node + REFERENCES);
    while (seen >= 0) {
      // Pairs with: `take`. If it comes first we see DEAD; if we do, it sees a reference.
      const was = Atomics.compareExchange(
        words,
        node + REFERENCES,
        seen,
        seen + 1,
      );
      if (was === seen) {
        if (was === 0) Atomics.sub(words, this.header + UNREFERENCED, 1);
        return true;
      }
      seen = was;
    }
    return false;
  }

  /**
   * Gives a reference back.
   *
   * @param node An entry that the caller holds.
   */
  release(node: Address): void {
    const words = this.#words;
    // Counted first, or the collector could take an entry that is not counted yet.
    Atomics.add(words, this.header + UNREFERENCED, 1);
    if (Atomics.sub(words, node + REFERENCES, 1) !== 1) {
      Atomics.sub(words, this.header + UNREFERENCED, 1);
    }
  }

  /** Makes an entry, or finds that another thread has made it. */
  #make(address: number, link: number, now: number): Address {
    const { heap } = this.membership;
    const words = this.#words;
    const before = Atomics.add(words, this.header + ENTRIES, 1);
    let node: Address = 0;
    let known: Address = 0;
    let entry: Address = 0;
    try {
      if (!this.collector.makeRoom(before, now)) {
        Atomics.add(words, this.header + OVERFLOWS, 1);
        return 0;
      }
      node = this.membership.allocate(NODE_WORDS);
      known = this.membership.allocate(LINK_WORDS);
      words[node + ADDRESS] = address;
      words[node + INTERFACE] = link;
      words[node + REFERENCES] = 1;
      words[node + LINK] = known;
      this.#writeLink(known, 0, 0, now);
      entry = this.#link(node);
      return entry;
    } finally {
      if (entry === 0 || entry !== node) {
        Atomics.sub(words, this.header + ENTRIES, 1);
        if (known !== 0) heap.free(known);
        if (node !== 0) heap.free(node);
      }
    }
  }

  /** Links an entry, or holds the one that is there already. */
  #link(node: Address): Address {
    const { membership } = this;
    const words = this.#words;
    const address = words[node + ADDRESS];
    const link = words[node + INTERFACE];
    const bucket = this.#bucket(address, link);
    const lock = this.header + LOCKS + (bucket & LOCK_MASK);
    membership.lock(lock);
    try {
      const entry = this.find(address, link);
      if (entry !== 0) {
        this.#tryHold(entry); // linked, and we have the lock: not dead (3)
        return entry;
      }
      words[node + NEXT] = words[this.#chains + bucket];
      const { journal } = membership;
      journal.join(node);
      journal.join(words[node + LINK]);
      // Publish (2). Pairs with: the load of the head in `find`.
      journal.store(this.#chains + bucket, node);
      journal.finish();
      return node;
    } finally {
      membership.unlock(lock);
    }
  }

  #writeLink(link: Address, high: number, low: number, now: number): void {
    const words = this.#words;
    words[link + HIGH] = high;
    words[link + LOW] = low;
    words[link + UPDATED] = now;
    words[link + VERSION] = Atomics.add(words, this.header + VERSIONS, 1) + 1;
  }

  /**
   * Replaces what is known of an entry.
   *
   * @param node An entry that the caller holds.
   * @param linkAddress As {@linkcode encodeLink}.
   * @param state As {@linkcode encodeLink}.
   * @param act What the caller was about to do, for the error.
   */
  update(
    node: Address,
    linkAddress: string | null | undefined,
    state: NeighborState | undefined,
    act: string,
  ): void {
    const { membership } = this;
    const words = this.#words;
    const bucket = this.#bucket(words[node + ADDRESS], words[node + INTERFACE]);
    const lock = this.header + LOCKS + (bucket & LOCK_MASK);
    const now = ticksOf(this.clock);
    const link = membership.allocate(LINK_WORDS);
    let done = false;
    try {
      membership.lock(lock);
      try {
        const old = words[node + LINK];
        const { high, low } = encodeLink(
          { high: words[old + HIGH], low: words[old + LOW] },
          linkAddress,
          state,
          act,
        );
        this.#writeLink(link, high, low, now);
        const { journal } = membership;
        journal.join(link);
        journal.leave(old);
        // Publish. Pairs with: the dependent load in `read`.
        journal.store(node + LINK, link);
        journal.finish();
        done = true;
      } finally {
        membership.unlock(lock);
      }
    } finally {
      if (!done) membership.heap.free(link);
    }
  }

  /**
   * Takes an entry out; if something refers to it, marks it failed instead, so
   * that it goes when nothing does any more.
   *
   * @param address Its IPv4 address.
   * @param link Its interface.
   * @returns Whether there was one.
   */
  remove(address: number, link: number): boolean {
    const { membership } = this;
    const words = this.#words;
    const bucket = this.#bucket(address, link);
    const lock = this.header + LOCKS + (bucket & LOCK_MASK);
    const now = ticksOf(this.clock);
    const failed = membership.allocate(LINK_WORDS);
    let used = false;
    try {
      membership.lock(lock);
      try {
        const node = this.find(address, link);
        if (node === 0) return false;
        let at = this.#chains + bucket;
        while (words[at] !== node) at = words[at] + NEXT;
        if (this.collector.take(at, node)) return true;
        const old = words[node + LINK];
        const { high, low } = encodeLink(
          { high: 0, low: 0 },
          null,
          "failed",
          "",
        );
        this.#writeLink(failed, high, low, now);
        const { journal } = membership;
        journal.join(failed);
        journal.leave(old);
        // Publish. Pairs with: the dependent load in `read`.
        journal.store(node + LINK, failed);
        journal.finish();
        used = true;
        return true;
      } finally {
        membership.unlock(lock);
      }
    } finally {
      if (!used) membership.heap.free(failed);
    }
  }

  /**
   * Reads an entry. The caller is in a section or leaf read.
   *
   * @param node The entry.
   * @returns What is known of it; the same object while that does not change.
   */
  read(node: Address): Neighbor {
    const words = this.#words;
    // The dependent load. Pairs with: the publishing stores of LINK.
    const link = words[node + LINK];
    const version = words[link + VERSION];
    const cached = this.#decoded.get(node);
    if (cached !== undefined && cached.version === version) {
      return cached.neighbor;
    }
    const neighbor = decodeNeighbor(words, node, link);
    this.#decoded.set(node, { version, neighbor });
    return neighbor;
  }

  /**
   * Finds and reads an entry.
   *
   * @param address Its IPv4 address.
   * @param link Its interface.
   * @returns What is known of it, or `undefined`.
   */
  peek(address: number, link: number): Neighbor | undefined {
    const { reader } = this.membership;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    const node = this.find(address, link);
    return node === 0 ? undefined : this.read(node);
  }

  /**
   * Reads an entry that the caller holds.
   *
   * @param node The entry.
   * @returns What is known of it.
   */
  readHeld(node: Address): Neighbor {
    const { reader } = this.membership;
    // The entry stays, but what is known of it may be replaced.
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return this.read(node);
  }

  /**
   * Reads every entry, chain by chain. No lock is held.
   *
   * @returns What is known of each.
   */
  readAll(): Neighbor[] {
    const { reader } = this.membership;
    const words = this.#words;
    const all: Neighbor[] = [];
    for (let bucket = 0; bucket <= this.#mask; bucket++) {
      if ((reader.budget -= LEAF_READ) < 0) reader.refill();
      let node = words[this.#chains + bucket];
      for (; node !== 0; node = words[node + NEXT]) all.push(this.read(node));
    }
    return all;
  }
}
