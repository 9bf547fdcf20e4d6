// Laying a route cache out, and checking what it is opened with.

import type { OptionNames } from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import { HEADER_MAX_READERS } from "../_layout.ts";
import { show } from "../memory/_codec.ts";
import type { Address } from "../memory/arena.ts";
import { openRoot, takeOptions } from "../structures/_open.ts";
import { probeStack } from "../sync/_stack.ts";
import { lookupOf } from "./fib.ts";
import { toUnsigned } from "./_ipv4.ts";
import { neighborsOf } from "./neighbor_table.ts";
import {
  checkAgreed,
  type SharedOption,
  writeOptions,
} from "./_route_agree.ts";
import { type Clock, TICK, ticksOf, toClock, toTicks } from "./_route_clock.ts";
import { drawSecret } from "./_route_hash.ts";
import {
  BUCKETS,
  CHAINS,
  COUNTER_WORDS,
  COUNTERS,
  ELASTICITY,
  EQUILIBRIUM,
  EXPIRY,
  FIB,
  GC_INTERVAL,
  GC_MIN_INTERVAL,
  GC_THRESHOLD,
  GC_TIMEOUT,
  HEADER_WORDS,
  LAST_COLLECTION,
  LAST_EXPIRATION,
  LAST_SECRET,
  MAX_SIZE,
  NEIGHBORS,
  SECRET,
  SECRET_INTERVAL,
} from "./_route_layout.ts";
import type { ChainDiscipline } from "./_route_discipline.ts";
import { RouteTable } from "./_route_table.ts";
import type { RouteCacheOptions } from "./route_cache.ts";

const ACT = "open a route cache";
const OPTIONS: OptionNames<RouteCacheOptions> = {
  fib: true,
  neighbors: true,
  buckets: true,
  gcThreshold: true,
  maxSize: true,
  elasticity: true,
  gcMinInterval: true,
  gcInterval: true,
  gcTimeout: true,
  secretInterval: true,
  now: true,
};
const MOST_BUCKETS = 2 ** 24;
const MOST = 2 ** 30;

/**
 * Finds the route cache of a name, or makes it.
 *
 * @param membership The caller's membership.
 * @param name What the caller passed as the name.
 * @param passed What the caller passed as options.
 * @param disciplineOf Makes the writers' discipline; `undefined` for RCU's.
 * @returns The caller's view of it.
 */
export function openRouteTable(
  membership: Membership,
  name: string,
  passed: RouteCacheOptions,
  disciplineOf?: (header: Address) => ChainDiscipline,
): RouteTable {
  const must = "name a Fib and a neighbor table";
  const options = takeOptions(passed, must, OPTIONS);
  const fib = lookupOf(options.fib, ACT);
  const neighbors = neighborsOf(options.neighbors, ACT);
  checkMember(membership, fib.membership, "fib");
  checkMember(membership, neighbors.membership, "neighbors");
  const clock = toClock(options.now, ACT);
  const shared = sharedOptions(options);
  probeStack();
  const { words, heap } = membership;
  const header = openRoot(
    membership,
    name,
    "routes",
    () => {
      const made = makeCache(membership, shared, clock);
      words[made + FIB] = fib.fib;
      words[made + NEIGHBORS] = neighbors.header;
      return made;
    },
    (made) => {
      for (const part of [CHAINS, COUNTERS]) heap.free(words[made + part]);
      heap.free(made);
    },
  );
  checkAgreed(words, header, shared, name);
  checkSame(name, "Fib", words[header + FIB] === fib.fib);
  const same = words[header + NEIGHBORS] === neighbors.header;
  checkSame(name, "neighbor table", same);
  const discipline = disciplineOf?.(header);
  const threads = words[HEADER_MAX_READERS];
  return new RouteTable(membership, header, fib, neighbors, {
    clock,
    threads,
    ...(discipline === undefined ? {} : { discipline }),
  });
}

function checkMember(own: Membership, other: Membership, what: string): void {
  if (own !== other) {
    throw new TypeError(
      `Cannot ${ACT} as ${what} must be opened with the same Rcu: received one of another Rcu`,
    );
  }
}

function checkSame(name: string, what: string, same: boolean): void {
  if (!same) {
    throw new TypeError(
      `Cannot open ${show(name)} with this ${what} as it must be the one ` +
        "that it was opened with first: received another one",
    );
  }
}

function sharedOptions(options: RouteCacheOptions): SharedOption[] {
  type Name = keyof RouteCacheOptions;
  const given = (name: Name) => options[name] !== undefined;
  const buckets = options.buckets ?? 4096;
  if (
    !Number.isInteger(buckets) || buckets < 1 || buckets > MOST_BUCKETS ||
    (buckets & (buckets - 1)) !== 0
  ) {
    const message =
      `Cannot ${ACT} as its buckets must be a power of two from 1 to ${MOST_BUCKETS}: received ${
        show(buckets)
      }`;
    throw typeof buckets === "number"
      ? new RangeError(message)
      : new TypeError(message);
  }
  const count = (name: Name, at: number, least: number, usual: number) => {
    const value = (options[name] ?? usual) as number;
    const word = toUnsigned(value, least, MOST, ACT, name);
    return { name, at, word, given: given(name), unit: 1 };
  };
  const time = (name: Name, at: number, usual: number) => {
    const word = toTicks((options[name] ?? usual) as number, ACT, name);
    return { name, at, word, given: given(name), unit: TICK };
  };
  return [
    {
      name: "buckets",
      at: BUCKETS,
      word: buckets,
      given: given("buckets"),
      unit: 1,
    },
    count("gcThreshold", GC_THRESHOLD, 0, buckets),
    count("maxSize", MAX_SIZE, 1, 16 * buckets),
    count("elasticity", ELASTICITY, 1, 8),
    time("gcMinInterval", GC_MIN_INTERVAL, 500),
    time("gcInterval", GC_INTERVAL, 60_000),
    time("gcTimeout", GC_TIMEOUT, 300_000),
    time("secretInterval", SECRET_INTERVAL, 600_000),
  ];
}

function makeCache(
  membership: Membership,
  options: SharedOption[],
  clock: Clock,
): Address {
  const { words, heap } = membership;
  const made: Address[] = [];
  const allocate = (size: number): Address => {
    const block = membership.allocate(size);
    made.push(block);
    words.fill(0, block, block + size);
    return block;
  };
  try {
    const header = allocate(HEADER_WORDS);
    writeOptions(words, header, options);
    words[header + CHAINS] = allocate(words[header + BUCKETS]);
    words[header + COUNTERS] = allocate(
      words[HEADER_MAX_READERS] * COUNTER_WORDS,
    );
    const now = ticksOf(clock);
    words[header + SECRET] = drawSecret();
    words[header + EXPIRY] = words[header + GC_TIMEOUT];
    words[header + EQUILIBRIUM] = 0;
    words[header + LAST_SECRET] = now;
    words[header + LAST_EXPIRATION] = now;
    // Long enough ago: the first collection need not wait.
    words[header + LAST_COLLECTION] = (now - words[header + GC_MIN_INTERVAL]) |
      0;
    return header;
  } catch (error) {
    for (const block of made) heap.free(block);
    throw error;
  }
}
