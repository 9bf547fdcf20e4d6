// The route cache's inside: chains that readers walk without a lock, and what becomes of entries.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import type { FibLookup } from "./_fib_lookup.ts";
import type { NeighborStore } from "./_neighbor_store.ts";
import { type Clock, ticksOf } from "./_route_clock.ts";
import { RouteCollector } from "./_route_collector.ts";
import { RouteCounters } from "./_route_counters.ts";
import { type ChainDiscipline, RcuDiscipline } from "./_route_discipline.ts";
import { drawSecret, hashWords } from "./_route_hash.ts";
import {
  BUCKETS,
  CHAINS,
  COUNTERS,
  ENTRIES,
  FLUSHES,
  LAST_SECRET,
  NEIGHBOR,
  REFERENCES,
  REVALIDATIONS,
  ROUTE,
  SECRET,
  UNLINKED,
} from "./_route_layout.ts";
import { hasRoute } from "./_route_words.ts";
import * as layout from "./_route_layout.ts";
import { RouteWriter } from "./_route_writer.ts";
import * as reading from "../readers/_reader.ts";

// Copies for the hot path, as in RcuMap: constants of the same module are folded.
const { DESTINATION, GENERATION, INTERFACE, LAST_USE, NEXT, SOURCE, TOS } =
  layout;
const { LEAF_READ } = reading;

/** Lookups of a thread between two looks at the clock. */
const LOOKUPS_PER_LOOK = 128;

/**
 * One thread's view of a route cache.
 *
 * 1. Under the lock of its chain alone, an entry is linked or unlinked. An entry
 *    is linked at the head, complete. Its key, route and neighbour never change.
 * 2. An unlinked entry keeps its own NEXT until a grace period later. A reader
 *    that stands on it walks on into the chain, past nothing that was there when
 *    it came.
 * 3. An entry is never moved: unlinked and linked again at the head, it would
 *    take a reader that stands on it back to the head, and hide from one that
 *    is past the head what lies behind. A copy is linked first, and then the
 *    entry unlinked, so that every reader finds one of the two.
 * 4. All entries that readers find in a chain are there under the secret that
 *    was current when they were linked: it is compared again under the lock, and
 *    a renewal stores the new secret before it empties the chains. So nothing
 *    stays behind where the new secret does not lead.
 * 5. An entry has a copy of its route: no record of the Fib is looked at but in
 *    the section in which it was found. The copy is right as long as the Fib's
 *    generation is GENERATION, which was loaded *before* the lookup that it
 *    vouches for, and was even: the Fib moves its generation before it publishes a
 *    change, to an odd number, which vouches for nothing, and again after it. So a
 *    thread that has seen a change, in whatever way, does not get an older answer
 *    from the cache. (As far as plain loads stay in order: on x86-64 always; an
 *    ARM64 processor may load a generation early, past a lookup in the Fib
 *    just before, but not past an `Atomics` access, a miss, or a turn.)
 * 6. A linked entry counts as one reference to its neighbour, which is therefore
 *    not collected. The reference is given back when the entry is disposed of.
 * 7. An entry is disposed of once: by whoever unlinks it if nothing holds it,
 *    else by the last hold. REFERENCES says which, in one word.
 * 8. Hits write no shared memory but for LAST_USE, which is stored only when it
 *    lies before this thread's idea of the present: once a tick at most in each
 *    thread, however hot the entry is. That idea comes from a look at the clock
 *    every 128 lookups and whenever the thread goes online.
 * 9. Whoever holds the lock of a chain needs no section to walk it: what is
 *    linked there stays linked, by (1). All other walks, and all looks into the
 *    Fib, are leaf reads of `Reader`, which have no end that could be missed.
 */
export class RouteTable {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare readonly membership: Membership;
  declare readonly words: Int32Array;
  declare readonly header: Address;
  declare readonly chains: Address;
  declare readonly fib: FibLookup;
  declare readonly neighbors: NeighborStore;
  declare readonly clock: Clock;
  declare readonly discipline: ChainDiscipline;
  declare readonly collector: RouteCollector;
  declare readonly writer: RouteWriter;
  declare readonly counters: RouteCounters;

  declare private readonly _mask: number;
  declare private readonly _secret: Address;
  declare private readonly _generation: Address;
  /** The present, in ticks, as this thread knows it (8). */
  #tick: number;
  /** Lookups until the next look at the clock. */
  #left = LOOKUPS_PER_LOOK;
  /** Those among the latest lookups that asked the Fib whether the route was right. */
  #revalidations = 0;

  constructor(
    membership: Membership,
    header: Address,
    fib: FibLookup,
    neighbors: NeighborStore,
    options: { clock: Clock; threads: number; discipline?: ChainDiscipline },
  ) {
    const { words } = membership;
    this.membership = membership;
    this.words = words;
    this.header = header;
    this.chains = words[header + CHAINS];
    this.fib = fib;
    this.neighbors = neighbors;
    this.clock = options.clock;
    this.discipline = options.discipline ??
      new RcuDiscipline(membership, header);
    const counters = words[header + COUNTERS];
    this.counters = new RouteCounters(membership, counters, options.threads);
    this.collector = new RouteCollector(this);
    this.writer = new RouteWriter(this);
    this._mask = words[header + BUCKETS] - 1;
    this._secret = header + SECRET;
    this._generation = fib.generationAddress;
    this.#tick = ticksOf(this.clock);
  }

  /** Entries in the chains. */
  get entries(): number {
    return Atomics.load(this.words, this.header + ENTRIES);
  }

  // Lookup

  /**
   * The bucket of a key.
   *
   * @param destination An address.
   * @param source An address.
   * @param tos The type of service.
   * @param link The interface.
   * @returns The bucket's number.
   */
  bucketOf(
    destination: number,
    source: number,
    tos: number,
    link: number,
  ): number {
    // Plain: one word, and whoever has the old secret misses, and inserts under the new one (4).
    const secret = this.words[this._secret];
    return this.bucketUnder(secret, destination, source, tos, link);
  }

  /**
   * The bucket of a key under a secret.
   *
   * @param secret The secret.
   * @param destination An address.
   * @param source An address.
   * @param tos The type of service.
   * @param link The interface.
   * @returns The bucket's number.
   */
  bucketUnder(
    secret: number,
    destination: number,
    source: number,
    tos: number,
    link: number,
  ): number {
    // Different ones may share the third word: keys are compared.
    const third = ((link << 8) | (link >>> 24)) ^ tos;
    return hashWords(destination, source, third, secret) & this._mask;
  }

  /**
   * Finds a valid entry. The thread is online, and announces no quiescent
   * state before it is done with the entry. Keys are signed words.
   *
   * @param bucket The key's bucket.
   * @param destination An address.
   * @param source An address.
   * @param tos The type of service.
   * @param link The interface.
   * @returns The entry, or 0.
   */
  find(
    bucket: number,
    destination: number,
    source: number,
    tos: number,
    link: number,
  ): Address {
    const words = this.words;
    // The dependent loads. Pairs with: the publishing store in `RouteWriter`.
    let entry = words[this.chains + bucket];
    while (entry !== 0) {
      if (
        words[entry + DESTINATION] === destination &&
        words[entry + SOURCE] === source &&
        words[entry + INTERFACE] === link &&
        words[entry + TOS] === tos
      ) {
        // Plain: whoever sees an old generation reads the Fib as it was then, at a time within
        // this section (5). Pairs with: the counts in `publishChange`.
        if (
          words[entry + GENERATION] !== words[this._generation] &&
          !this.#revalidate(entry)
        ) return 0;
        if (((this.#tick - words[entry + LAST_USE]) | 0) > 0) {
          Atomics.store(words, entry + LAST_USE, this.#tick); // (8)
        }
        return entry;
      }
      entry = words[entry + NEXT];
    }
    return 0;
  }

  /**
   * Counts a lookup. Before the thread goes online: the clock may be the user's,
   * and do what it likes.
   */
  countLookup(): void {
    if (--this.#left <= 0) this.lookAtClock();
  }

  /**
   * Looks at the clock for the hits to come, and writes those down that were.
   *
   * @returns The time, in ticks.
   */
  lookAtClock(): number {
    // A closed thread comes here with each lookup, as its budget is 0: none of them counts.
    this.membership.assertOpen("look up a route");
    this.reportLookups();
    return this.#tick = ticksOf(this.clock);
  }

  /** Writes this thread's latest lookups down. */
  reportLookups(): void {
    const lookups = LOOKUPS_PER_LOOK - this.#left;
    const revalidations = this.#revalidations;
    this.#left = LOOKUPS_PER_LOOK;
    this.#revalidations = 0;
    if (lookups > 0) this.counters.countLookups(lookups);
    if (revalidations > 0) this.counters.count(REVALIDATIONS, revalidations);
  }

  /** Whether an entry's route is still the Fib's; if so, says so in the entry. */
  #revalidate(entry: Address): boolean {
    const words = this.words;
    // Acquire: before the loads of the lookup (5), which are plain.
    const generation = Atomics.load(words, this._generation);
    if (this.#isMoved(entry)) return false;
    // Late or not, this is a generation for which the route was right; but while a change is being
    // published it could be right for the table before it alone.
    if ((generation & 1) === 0) {
      Atomics.store(words, entry + GENERATION, generation);
    }
    this.#revalidations++;
    return true;
  }

  #isMoved(entry: Address): boolean {
    const words = this.words;
    // Signed: the Fib takes the address apart bit by bit, and a small integer costs no allocation.
    const number = this.fib.lookupRoute(words[entry + DESTINATION]);
    return number === 0 ||
      !hasRoute(words, entry + ROUTE, this.fib.fieldsOf(number));
  }

  /**
   * Whether the Fib has another route for an entry's destination by now.
   *
   * @param entry The entry. Its chain's lock is held.
   * @returns `true` if it has, or none.
   */
  isOutdated(entry: Address): boolean {
    const { membership: { reader }, words } = this;
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    return Atomics.load(words, entry + GENERATION) !==
        Atomics.load(words, this._generation) && this.#isMoved(entry);
  }

  // Unlinking

  /**
   * Takes an entry out of its chain, whose lock is held.
   *
   * @param at The word that leads to it.
   * @param entry The entry.
   */
  unlink(at: Address, entry: Address): void {
    const words = this.words;
    Atomics.store(words, at, words[entry + NEXT]);
    Atomics.sub(words, this.header + ENTRIES, 1);
    this.#discard(entry);
  }

  // Pairs with: `tryHold` and `letGo`. The last one to touch REFERENCES disposes of the entry (7).
  #discard(entry: Address): void {
    const held = Atomics.or(this.words, entry + REFERENCES, UNLINKED);
    if (held === 0) this.#dispose(entry);
  }

  #dispose(entry: Address): void {
    // Readers that still find the entry may follow it to the neighbour: that is retired later
    // than now, so its grace period covers them.
    this.neighbors.release(this.words[entry + NEIGHBOR]);
    this.discipline.reclaim(entry);
  }

  // Holding

  /**
   * Holds an entry, so that neither eviction nor collection takes it.
   *
   * @param entry An entry that was found in the section that is open.
   * @returns Whether it is held; otherwise it has just been unlinked.
   */
  tryHold(entry: Address): boolean {
    const words = this.words;
    let seen = Atomics.load(words, entry + REFERENCES);
    while (seen >= 0) {
      const at = entry + REFERENCES;
      const was = Atomics.compareExchange(words, at, seen, seen + 1);
      if (was === seen) return true;
      seen = was;
    }
    return false;
  }

  /**
   * Lets a held entry go. No lock is held.
   *
   * @param entry The entry.
   */
  letGo(entry: Address): void {
    const before = Atomics.sub(this.words, entry + REFERENCES, 1);
    if (before === (UNLINKED | 1)) this.#dispose(entry);
  }

  // Emptying

  /** Takes every entry out, held or not. No lock is held. */
  flush(): void {
    const words = this.words;
    const { membership, discipline } = this;
    this.counters.count(FLUSHES);
    for (let bucket = 0; bucket <= this._mask; bucket++) {
      const head = this.chains + bucket;
      if (Atomics.load(words, head) === 0) continue;
      discipline.lock(bucket);
      try {
        let entry = words[head];
        while (entry !== 0) {
          const next = words[entry + NEXT];
          this.unlink(head, entry);
          entry = next;
        }
      } finally {
        discipline.unlock(bucket);
      }
      membership.afterUpdate();
    }
  }

  /**
   * Draws a new secret and empties the cache. No lock is held.
   *
   * @param now The time, in ticks.
   */
  renewSecret(now: number = ticksOf(this.clock)): void {
    // Pairs with: the second load in `RouteWriter`. Before the chains are emptied (4).
    Atomics.store(this.words, this._secret, drawSecret());
    Atomics.store(this.words, this.header + LAST_SECRET, now);
    this.flush();
  }
}
