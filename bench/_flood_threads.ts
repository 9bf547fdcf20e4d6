/** The threads of the flood: those who look destinations up at random, and one who watches. */
import {
  Fib,
  NeighborTable,
  Rcu,
  type RcuHandle,
  RcuMemoryError,
  RouteCache,
  type RouteCacheOptions,
  runReclaimer,
} from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { quickTurn } from "./_thread.ts";

/** Lookups between two looks at the clock and, where turns end, between two turns: a softirq's budget in 2004. */
export const LOOKUPS = 300;
/** Between two looks of the observer, in ms; and between two points of its curve. */
const LOOK = 0.2;
const POINT = 50;

type Limits = Omit<RouteCacheOptions, "fib" | "neighbors">;

// The kernel's defaults, but for what else runs by the clock.
const DEFAULTS = { gcMinInterval: 500, gcInterval: 0, secretInterval: 0 };

/** The limits of the caches that are flooded. */
export const LIMITS = {
  /** The kernel's: chains reach their elasticity, and evict, long before the cache is full. */
  roomy: { ...DEFAULTS, buckets: 4096, maxSize: 65_536 },
  /** Full within a tick of the cache's clock: nothing is old enough to be collected. */
  tight: { ...DEFAULTS, buckets: 512, maxSize: 1024 },
} satisfies Record<string, Limits>;

/** Which cache. */
export type Size = keyof typeof LIMITS;

/** The domain's tables, as a thread sees them. */
export function openCache(rcu: Rcu, size: Size): RouteCache {
  const fib = Fib.open(rcu, "fib");
  const neighbors = NeighborTable.open(rcu, "neighbors");
  return RouteCache.open(rcu, size, { fib, neighbors, ...LIMITS[size] });
}

/** Looks up so many destinations by Marsaglia's xorshift32; returns the last one. */
export function lookUp(
  cache: RouteCache,
  count: number,
  destination: number,
): number {
  for (let i = 0; i < count; i++) {
    destination ^= destination << 13;
    destination ^= destination >>> 17;
    destination ^= destination << 5;
    cache.lookupFields(destination, 0, 0, 0);
  }
  return destination;
}

/** What a flooding thread is told. */
export interface FloodOptions {
  size: Size;
  ms: number;
  /** Whether it returns to its event loop now and then. */
  endsTurns: boolean;
}

/** What a flooding thread has seen. */
export interface Flooded {
  /** How long it took, in ms. */
  ms: number;
  lookups: number;
  /** The longest {@linkcode LOOKUPS} of them, in ms: the thread had no core, or collected. */
  longest: number;
  /** Allocations that found no memory. */
  outOfMemory: number;
  /**
   * Fewest entries in the cache at most {@linkcode LOOKUPS} lookups after an
   * overflow was counted; Infinity without any.
   */
  fewestAtOverflow: number;
}

class Flooder {
  readonly rcu: Rcu;
  readonly #caches: Record<Size, RouteCache>;
  #destination: number;
  #outOfMemory = 0;

  constructor(handle: RcuHandle, seed: number) {
    this.rcu = Rcu.attach(handle, { name: "flooder" });
    this.#caches = {
      roomy: openCache(this.rcu, "roomy"),
      tight: openCache(this.rcu, "tight"),
    };
    this.#destination = seed;
    // Whoever allocates in this thread does it here.
    const membership = membershipOf(this.rcu, "flood");
    const allocate = membership.allocate.bind(membership);
    membership.allocate = (size) => {
      try {
        return allocate(size);
      } catch (error) {
        if (error instanceof RcuMemoryError) this.#outOfMemory++;
        throw error;
      }
    };
  }

  async flood({ size, ms, endsTurns }: FloodOptions): Promise<Flooded> {
    const cache = this.#caches[size];
    let { overflows } = cache.stats();
    let fewestAtOverflow = Infinity;
    let lookups = 0;
    let longest = 0;
    this.#outOfMemory = 0;
    const start = performance.now();
    for (let now = start; now - start < ms; now = performance.now()) {
      this.#destination = lookUp(cache, LOOKUPS, this.#destination);
      longest = Math.max(longest, performance.now() - now);
      lookups += LOOKUPS;
      const stats = cache.stats();
      if (stats.overflows !== overflows) {
        overflows = stats.overflows;
        fewestAtOverflow = Math.min(fewestAtOverflow, stats.entries);
      }
      if (endsTurns) await quickTurn();
    }
    return {
      ms: performance.now() - start,
      lookups,
      longest,
      outOfMemory: this.#outOfMemory,
      fewestAtOverflow,
    };
  }
}

let flooder: Flooder | undefined;

/** Joins the domain. */
export function openFlooder(
  { handle, seed }: { handle: RcuHandle; seed: number },
): void {
  flooder = new Flooder(handle, seed);
}

/** Floods for so many ms, in one turn of the event loop or in many. */
export function flood(options: FloodOptions): Promise<Flooded> {
  return flooder!.flood(options);
}

/** Leaves it. */
export function closeFlooder(): void {
  flooder!.rcu.close();
}

/** Frees what others have deferred, until the domain is at its end. */
export function reclaimer(handle: RcuHandle): Promise<void> {
  return runReclaimer(handle);
}

/** What an observer has seen. */
export interface Observed {
  /** The longest grace period for which callbacks waited, in ms, and the observer's own longest absence. */
  longest: number;
  absence: number;
  periods: number;
  pendingPeak: number;
  /** Callbacks that waited, over ms from the beginning: the most of 50 ms each. */
  pending: [ms: number, pending: number][];
  /** Most entries of the cache and callbacks that waited, together. */
  occupied: number;
}

let observer: Rcu | undefined;

/** Joins the domain. */
export function openObserver(handle: RcuHandle): void {
  observer = Rcu.attach(handle, { name: "observer" });
}

/**
 * Looks on until it is told to stop. Takes no lock: an account of the memory
 * would keep others waiting for pages.
 */
export function observe(
  { size, stop }: { size: Size; stop: Int32Array },
): Observed {
  const rcu = observer!;
  const cache = openCache(rcu, size);
  const membership = membershipOf(rcu, "observe");
  const { sequence } = membership;
  const seen: Observed = {
    longest: 0,
    absence: 0,
    periods: 0,
    pendingPeak: 0,
    pending: [],
    occupied: 0,
  };
  const first = sequence.completed();
  const begin = performance.now();
  let now = 0;
  let current = 0;
  let since = 0;
  let shown = -POINT;
  let peak = 0;
  while (Atomics.wait(stop, 0, 0, LOOK) === "timed-out") {
    const last = now;
    now = performance.now() - begin;
    seen.absence = Math.max(seen.absence, now - last);
    const pending = membership.pendingOfAll();
    // A period that no callback waits for may stay in progress for want of anybody who looks.
    const started = pending > 0 && sequence.inProgress()
      ? sequence.started()
      : 0;
    // The last one in progress has lasted until now at the most.
    if (current !== 0) seen.longest = Math.max(seen.longest, now - since);
    if (started !== current) {
      current = started;
      since = now;
    }
    peak = Math.max(peak, pending);
    seen.pendingPeak = Math.max(seen.pendingPeak, pending);
    const { entries } = cache.stats();
    seen.occupied = Math.max(seen.occupied, entries + pending);
    if (now - shown < POINT) continue;
    shown = now;
    seen.pending.push([now, peak]);
    peak = 0;
  }
  seen.periods = sequence.completed() - first;
  return seen;
}

/** Leaves it. */
export function closeObserver(): void {
  observer!.close();
}
