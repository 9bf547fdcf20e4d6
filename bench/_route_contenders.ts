/** The contenders of the route-cache benchmark, as one thread sees them. */
import type { Rcu } from "../mod.ts";
import { HEADER_MAX_READERS } from "../src/_layout.ts";
import { membershipOf } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import { RouteCache, type RouteResult } from "../src/routing/route_cache.ts";
import {
  MISSES,
  REFERENCES,
  UNREACHABLE,
} from "../src/routing/_route_layout.ts";
import type { ChainDiscipline } from "../src/routing/_route_discipline.ts";
import { openRouteTable } from "../src/routing/_route_open.ts";
import { RouteResults } from "../src/routing/_route_results.ts";
import type { RouteTable } from "../src/routing/_route_table.ts";
import type { Route } from "../src/routing/route.ts";
import { lockOwner, release } from "../src/sync/_mutex.ts";
import {
  lockMutex,
  MutexDiscipline,
  PAIR,
  PairDiscipline,
  PairView,
  readLock,
  readUnlock,
} from "./_route_locks.ts";
import {
  BARE_LOCK,
  MUTEX,
  openTables,
  PRIVATE,
  RCU,
  RW_LOCK,
  SETTINGS,
  type World,
} from "./_route_world.ts";
import { LEAF_READ } from "../src/readers/_reader.ts";

// All flows are those of one host, as in 2002: their packets differ by destination alone.
const SOURCE = 0x0a00_0001;
const TOS = 0;
const LINK = 0;

/** Routes by destination. */
export interface Routes {
  /** Before some lookups. */
  begin: () => void;
  /** After them. */
  end: () => void;
  /** What `lookup` does up to a miss. Whether there is a route, which nobody looks into, as in 2002. */
  search: (destination: number) => boolean;
  /**
   * The whole of it: a miss asks the Fib and inserts. Returns the interface to
   * send through, from 1; 0 if there is no route.
   */
  lookup: (destination: number) => number;
}

/**
 * Opens a contender. Each is made of closures, once in a thread: the engine
 * then takes what they refer to for constant, as it does in a program that has
 * its cache in a `const` of a module.
 */
export function openRoutes(
  rcu: Rcu,
  world: World,
  contender: number,
): Routes {
  const { setting } = world;
  if (contender === PRIVATE) {
    return privateRoutes(Fib.open(rcu, "fib"), SETTINGS[setting].cache.buckets);
  }
  const membership = membershipOf(rcu, "measure");
  const locked = contender === RW_LOCK || contender === BARE_LOCK;
  const tables = locked ? RW_LOCK : contender;
  const { name, options } = openTables(rcu, setting, tables);
  const open = (discipline?: (header: number) => ChainDiscipline) =>
    openRouteTable(membership, name, options, discipline);
  if (contender === RCU) {
    return rcuRoutes(RouteCache.open(rcu, name, options), open());
  }
  if (locked) {
    const { chains } = open();
    const { pairs } = world;
    const table = open(() => new PairDiscipline(membership, chains, pairs));
    return contender === RW_LOCK
      ? rwLockRoutes(table, pairs)
      : bareLockRoutes(table, pairs);
  }
  if (contender !== MUTEX) throw new RangeError(`No contender ${contender}`);
  const { mutex } = world;
  const owner = lockOwner(membership.index, 1);
  const table = open(() => new MutexDiscipline(membership, mutex, owner));
  return mutexRoutes(table, mutex, owner);
}

function rcuRoutes(cache: RouteCache, table: RouteTable): Routes {
  const { reader } = table.membership;
  const results = new RouteResults(table);
  return {
    begin() {},
    end() {},
    // Line by line what `RouteCache.lookupFields` is but for the call of `#miss`.
    search(destination) {
      table.countLookup();
      if ((reader.budget -= LEAF_READ) < 0) {
        table.lookAtClock();
        reader.refill();
      }
      const bucket = table.bucketOf(destination, SOURCE, TOS, LINK);
      const entry = table.find(bucket, destination, SOURCE, TOS, LINK);
      const found = entry !== 0 && results.at(entry) !== undefined;
      return found;
    },
    lookup(destination) {
      const result = cache.lookupFields(destination, SOURCE, TOS, LINK);
      return result === undefined ? 0 : result.route.interface;
    },
  };
}

/**
 * What lookups under locks have in common. The Fib and the neighbour table are
 * under RCU for all contenders: the thread is online from `begin` to `end`, so
 * that a lookup pays nothing for it.
 */
function underLocks(
  table: RouteTable,
  results: RouteResults,
  find: (destination: number) => RouteResult | undefined,
): Routes {
  const { counters, membership, writer } = table;
  const { reader } = membership;
  const begin = () => {
    if (!reader.online) reader.goOnline();
  };
  // As `RouteCache` handles a miss.
  const miss = (destination: number) => {
    counters.count(MISSES);
    const fresh = writer.ask(destination);
    if (fresh === undefined) {
      counters.count(UNREACHABLE);
      return 0;
    }
    const entry = writer.insert(destination, SOURCE, TOS, LINK, fresh);
    const result = results.of(fresh, entry, writer.serial);
    membership.afterUpdate();
    // Waiting for a lock takes the thread offline.
    begin();
    return result.route.interface;
  };
  return {
    begin,
    end: () => reader.checkQuiescentState(),
    search: (destination) => find(destination) !== undefined,
    lookup(destination) {
      const result = find(destination);
      return result === undefined ? miss(destination) : result.route.interface;
    },
  };
}

/**
 * `ip_route_output_key` of 2.5.3. It counts a reference to what it has found
 * before it gives the lock back (`dst_hold`), because without the lock nothing
 * else keeps the entry; whoever asked gives it back when the packet is gone
 * (`dst_release`). Under RCU the section keeps it.
 */
function rwLockRoutes(table: RouteTable, pairs: number): Routes {
  const { words } = table;
  const view = new PairView(table, words[HEADER_MAX_READERS], pairs);
  const results = new RouteResults(table);
  return underLocks(table, results, (destination) => {
    view.countLookup();
    const pair = PAIR * view.bucketOf(destination, SOURCE, TOS, LINK);
    const lock = pairs + pair + 1;
    readLock(words, lock);
    const entry = view.find(pair, destination, SOURCE, TOS, LINK);
    if (entry !== 0) Atomics.add(words, entry + REFERENCES, 1);
    readUnlock(words, lock);
    if (entry === 0) return undefined;
    const result = results.at(entry);
    table.letGo(entry);
    return result;
  });
}

/**
 * The lock alone: the result, a copy in private memory, is taken out of the
 * entry under it. What was kept of the kernel's lookup here is too little to
 * give an entry out; it shows what the lock costs and what the reference.
 */
function bareLockRoutes(table: RouteTable, pairs: number): Routes {
  const { words } = table;
  const view = new PairView(table, words[HEADER_MAX_READERS], pairs);
  const results = new RouteResults(table);
  return underLocks(table, results, (destination) => {
    view.countLookup();
    const pair = PAIR * view.bucketOf(destination, SOURCE, TOS, LINK);
    const lock = pairs + pair + 1;
    readLock(words, lock);
    const entry = view.find(pair, destination, SOURCE, TOS, LINK);
    const result = entry === 0 ? undefined : results.at(entry);
    readUnlock(words, lock);
    return result;
  });
}

function mutexRoutes(table: RouteTable, mutex: number, owner: number): Routes {
  const { words } = table;
  const results = new RouteResults(table);
  return underLocks(table, results, (destination) => {
    table.countLookup();
    const bucket = table.bucketOf(destination, SOURCE, TOS, LINK);
    lockMutex(words, mutex, owner);
    const entry = table.find(bucket, destination, SOURCE, TOS, LINK);
    const result = entry === 0 ? undefined : results.at(entry);
    release(words, mutex);
    return result;
  });
}

/**
 * What one thread alone would do: it hears of no change of the Fib, has no
 * neighbours, and keeps everything until it is full. All keys being of one
 * source, the destination is enough of a key.
 */
function privateRoutes(fib: Fib, buckets: number): Routes {
  const most = 16 * buckets;
  const routes = new Map<number, Route>();
  return {
    begin() {},
    end() {},
    search: (destination) => routes.get(destination) !== undefined,
    lookup(destination) {
      const known = routes.get(destination);
      if (known !== undefined) return known.interface;
      const route = fib.lookup(destination >>> 0);
      if (route === undefined) return 0;
      if (routes.size >= most) routes.clear();
      routes.set(destination, route);
      return route.interface;
    },
  };
}
