// Random histories of neighbour tables and route caches, against plain maps. Two members of the domain alternate.

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  Fib,
  type NeighborState,
  NeighborTable,
  type NeighborTableOptions,
  Rcu,
  RouteCache,
  type RouteCacheOptions,
  type RouteHold,
} from "../mod.ts";
import { keptBytes } from "./_fib_memory.ts";
import { dotted, Oracle, prefixOf, routeOf } from "./_fib_oracle.ts";
import { settle } from "./_settle.ts";

const STATES: readonly NeighborState[] = [
  "incomplete",
  "reachable",
  "stale",
  "failed",
  "permanent",
];
const LINKS = [null, "00:1b:21:3c:9d:f8", "ff:ff:ff:ff:ff:ff"] as const;

/** A step of the clock, in ms: no sum of some is an age at which anything is decided. */
const TICK = 1_700;
/** What a forced collection spares, in ms. */
const RECENT = 5_000;

interface Known {
  linkAddress: string | null;
  state: NeighborState;
  updated: number;
}

type Update = { linkAddress?: string | null; state?: NeighborState };

const anyUpdate: fc.Arbitrary<Update> = fc.record({
  linkAddress: fc.constantFrom(...LINKS),
  state: fc.constantFrom(...STATES),
}, { requiredKeys: [] });

type NeighborStep =
  | { act: "resolve"; address: number; link: number }
  | { act: "delete" | "look"; address: number; link: number }
  | { act: "set"; address: number; link: number; update: Update }
  | { act: "collect" }
  | { act: "wait"; ticks: number };

const address = fc.nat(7);
const link = fc.constantFrom(1, 2 ** 32 - 1);

const anyNeighborStep: fc.Arbitrary<NeighborStep> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant("resolve" as const),
      address,
      link,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant("set" as const),
      address,
      link,
      update: anyUpdate,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constantFrom("delete" as const, "look" as const),
      address,
      link,
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("collect" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("wait" as const),
      ticks: fc.nat(8),
    }),
  },
);

/** A neighbour table that can hardly be wrong. Which of those go that may go, the table says. */
class Neighbors {
  readonly entries = new Map<string, Known>();
  now = 0;

  /** What an update makes of an entry; `undefined` if it is refused. */
  updated(key: string, { linkAddress, state }: Update): Known | undefined {
    const known = linkAddress === undefined
      ? this.entries.get(key)?.linkAddress ?? null
      : linkAddress;
    const next = state ?? (known === null ? "incomplete" : "reachable");
    const needsLink = next !== "incomplete" && next !== "failed";
    if (known === null && needsLink) return undefined;
    return { linkAddress: known, state: next, updated: this.now };
  }

  mayGo({ state, updated }: Known, age: number): boolean {
    return state !== "permanent" &&
      (state === "failed" || this.now - updated > age);
  }

  candidates(age: number): string[] {
    return [...this.entries].filter(([, known]) => this.mayGo(known, age))
      .map(([key]) => key);
  }
}

function keyOf(address: number, link: number): string {
  return `${dotted(address)}/${link}`;
}

/** What a table shows, as the model keeps it. */
function shown(table: NeighborTable): Map<string, Omit<Known, "updated">> {
  return new Map([...table].map((
    { address, interface: link, linkAddress, state },
  ) => [`${address}/${link}`, { linkAddress, state }]));
}

const LIMITS: Record<string, NeighborTableOptions> = {
  "that never fills": {},
  "that is often full": {
    gcThreshold1: 2,
    gcThreshold2: 3,
    gcThreshold3: 5,
    gcStaleTime: 10_000,
  },
};

for (const [which, limits] of Object.entries(LIMITS)) {
  const { gcThreshold1 = 128, gcThreshold3 = 1024, gcStaleTime = 60_000 } =
    limits;

  Deno.test(`a neighbour table ${which} does in two members what a Map does`, async () => {
    const history = fc.array(anyNeighborStep, { minLength: 5, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(history, async (history) => {
        using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
        using member = Rcu.attach(rcu.handle);
        const model = new Neighbors();
        const options = { ...limits, now: () => 1e12 + model.now };
        const tables = [rcu, member].map((rcu) =>
          NeighborTable.open(rcu, "n", options)
        );
        const { live } = rcu.memory.audit();
        let collected = 0;
        let overflows = 0;

        /** Notes who has gone, and asserts that they had to, and that all others are there. */
        const compare = (table: NeighborTable, age: number): number => {
          const found = shown(table);
          let gone = 0;
          for (const [key, known] of [...model.entries]) {
            if (found.has(key)) continue;
            assert(model.mayGo(known, age), `${key} must stay`);
            model.entries.delete(key);
            gone++;
          }
          const expected = new Map(
            [...model.entries].map((
              [key, { linkAddress, state }],
            ) => [key, { linkAddress, state }]),
          );
          assertEquals(found, expected);
          collected += gone;
          return gone;
        };

        /** Enters or updates an entry. */
        const put = (
          key: string,
          next: Known,
          write: () => unknown,
          table: NeighborTable,
        ) => {
          const isNew = !model.entries.has(key);
          const isFull = model.entries.size >= gcThreshold3;
          const couldGo = model.candidates(RECENT);
          if (write() === undefined) {
            assert(isNew && isFull, "it was turned away");
            assertEquals(couldGo, []);
            overflows++;
          } else model.entries.set(key, next);
          const gone = compare(table, isNew ? RECENT : Infinity);
          if (isNew && isFull && couldGo.length > 0) assert(gone > 0);
          assert(table.size <= gcThreshold3);
        };

        for (const [i, step] of history.entries()) {
          const table = tables[i % 2];
          if (step.act === "wait") model.now += step.ticks * TICK;
          else if (step.act === "collect") {
            const all = model.entries.size < gcThreshold1
              ? []
              : model.candidates(gcStaleTime);
            assertEquals(table.collect(), all.length);
            assertEquals(compare(table, gcStaleTime), all.length);
          } else {
            const { address, link } = step;
            const key = keyOf(address, link);
            const known = model.entries.get(key);
            if (step.act === "look") {
              const found = table.lookup(dotted(address), link);
              assertEquals(found?.state, known?.state);
              assertEquals(found?.linkAddress, known?.linkAddress);
            } else if (step.act === "delete") {
              assertEquals(table.delete(address, link), known !== undefined);
              model.entries.delete(key);
              compare(table, Infinity);
            } else if (step.act === "set") {
              const next = model.updated(key, step.update);
              const write = () => table.set(address, link, step.update);
              if (next === undefined) {
                assertThrows(write, TypeError, "must have a link address");
                compare(table, Infinity);
              } else put(key, next, write, table);
            } else {
              const next = known ?? model.updated(key, {})!;
              put(key, next, () => table.resolve(address, link), table);
            }
          }
          const stats = tables[(i + 1) % 2].stats();
          assertEquals(
            [stats.entries, stats.referenced, stats.overflows, stats.collected],
            [model.entries.size, 0, overflows, collected],
          );
        }
        for (const { address, interface: link } of tables[0]) {
          tables[1].delete(address, link);
        }
        assertEquals(await settle(rcu), live);
      }),
      { numRuns: 60, interruptAfterTimeLimit: 10_000 },
    );
  });
}

type CacheStep =
  | { act: "insert"; at: number; length: number; route: number }
  | { act: "delete"; nth: number }
  | { act: "load"; entries: { at: number; length: number; route: number }[] }
  | { act: "look" | "fields" | "hold"; at: number; tos: number }
  | { act: "release" | "flush" | "collect" | "renew" }
  | { act: "wait"; ticks: number }
  | { act: "neighbor"; nth: number; deletes: boolean };

/** Addresses that lie close together and far apart. */
const at = fc.constantFrom(
  0,
  1,
  0x0a000000,
  0x0a000001,
  0x0a0000ff,
  0x0a010001,
  0x0aff0001,
  0xffffffff,
);
const length = fc.constantFrom(0, 1, 8, 9, 15, 16, 24, 25, 31, 32);
const route = fc.nat(3);
const entry = fc.record({ at, length, route });

const anyCacheStep: fc.Arbitrary<CacheStep> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant("insert" as const),
      at,
      length,
      route,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("delete" as const),
      nth: fc.nat(9),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("load" as const),
      entries: fc.array(entry, { maxLength: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      act: fc.constantFrom(
        "look" as const,
        "look" as const,
        "fields" as const,
        "hold" as const,
      ),
      at,
      tos: fc.nat(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom(
        "release" as const,
        "flush" as const,
        "collect" as const,
        "renew" as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("wait" as const),
      ticks: fc.nat(400),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("neighbor" as const),
      nth: fc.nat(9),
      deletes: fc.boolean(),
    }),
  },
);

const CACHES: Record<string, Omit<RouteCacheOptions, "fib" | "neighbors">> = {
  "that never fills": { buckets: 16 },
  "of one chain": { buckets: 1, elasticity: 2, gcInterval: 10_000 },
  "that is often full": {
    buckets: 2,
    gcThreshold: 2,
    maxSize: 4,
    gcMinInterval: 0,
    gcTimeout: 5_000,
    secretInterval: 20_000,
  },
};

for (const [which, limits] of Object.entries(CACHES)) {
  Deno.test(`a route cache ${which} says in two members what the table says`, async () => {
    const history = fc.array(anyCacheStep, { minLength: 5, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(history, async (history) => {
        using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
        using member = Rcu.attach(rcu.handle);
        let clock = 1e12;
        const now = () => clock;
        const views = [rcu, member].map((rcu) => {
          const fib = Fib.open(rcu, "fib");
          const neighbors = NeighborTable.open(rcu, "neighbors", {
            gcThreshold1: 0,
            gcStaleTime: 0,
            now,
          });
          const options = { fib, neighbors, ...limits, now };
          const cache = RouteCache.open(rcu, "cache", options);
          return { fib, neighbors, cache };
        });
        const empty = rcu.memory.audit().live - keptBytes(rcu, views[0].fib);
        const oracle = new Oracle();
        const holds: { hold: RouteHold; shown: unknown }[] = [];
        let lookups = 0;
        let holding = 0;
        for (const [i, step] of history.entries()) {
          const { fib, neighbors, cache } = views[i % 2];
          switch (step.act) {
            case "insert": {
              const prefix = prefixOf(step.at, step.length);
              fib.insert(prefix.text, routeOf(step.route));
              oracle.insert(prefix, routeOf(step.route));
              break;
            }
            case "delete": {
              const entries = oracle.entries();
              if (entries.length === 0) break;
              const [text] = entries[step.nth % entries.length];
              assert(fib.delete(text));
              oracle.delete({ address: 0, length: 0, text });
              break;
            }
            case "load": {
              const entries = step.entries.map((
                { at, length, route },
              ) => [prefixOf(at, length), routeOf(route)] as const);
              fib.load(entries.map(([{ text }, route]) => [text, route]));
              oracle.load(entries.map(([prefix, route]) => [prefix, route]));
              break;
            }
            case "look":
            case "fields":
            case "hold": {
              const { at, tos } = step;
              lookups++;
              const before = cache.stats().overflows;
              const hold = step.act === "hold"
                ? cache.hold({ destination: dotted(at), tos })
                : undefined;
              const result = step.act === "hold"
                ? hold?.result
                : step.act === "look"
                ? cache.lookup({ destination: at, tos })
                : cache.lookupFields(at, 0, tos, 0);
              const route = oracle.lookup(at);
              if (step.act === "hold") {
                holding++;
                const { overflows } = cache.stats();
                // What is not cached cannot be held.
                if (hold === undefined && overflows > before) break;
              }
              assertEquals(result?.route, route);
              if (route === undefined || result === undefined) break;
              const nextHop = route.gateway ?? dotted(at);
              assertEquals(result.nextHop, nextHop);
              assertEquals(
                result.neighbor,
                neighbors.lookup(nextHop, route.interface),
              );
              // What is not cached refers to none.
              if (cache.stats().overflows === before) {
                assert(result.neighbor !== undefined, "a next hop is missing");
              }
              if (hold !== undefined) {
                holds.push({ hold, shown: { route, nextHop } });
              }
              break;
            }
            case "release":
              holds.shift()?.hold[Symbol.dispose]();
              break;
            case "flush":
              cache.flush();
              assertEquals(cache.stats().entries, 0);
              break;
            case "collect":
              cache.collect();
              break;
            case "renew":
              cache.renewSecret();
              break;
            case "wait":
              clock += step.ticks * 100;
              break;
            case "neighbor": {
              const all = [...neighbors];
              if (all.length === 0) break;
              const { address, interface: link } = all[step.nth % all.length];
              if (step.deletes) neighbors.delete(address, link);
              else neighbors.set(address, link, { linkAddress: LINKS[1] });
            }
          }
          for (const { hold: { result: { route, nextHop } }, shown } of holds) {
            assertEquals({ route, nextHop }, shown);
          }
          const stats = views[(i + 1) % 2].cache.stats();
          assertEquals(stats.hits + stats.misses, stats.lookups);
          // To hold what is not cached takes two of them; the other thread's latest may be missing.
          const more = stats.lookups - lookups;
          assert(more >= -128 && more <= holding, `${more} lookups more`);
        }
        for (const { hold } of holds) hold[Symbol.dispose]();
        const [{ cache, fib, neighbors }] = views;
        cache.flush();
        await settle(rcu);
        assertEquals(neighbors.stats().referenced, 0);
        for (const { address, interface: link } of neighbors) {
          neighbors.delete(address, link);
        }
        fib.load([]);
        const live = await settle(rcu);
        assertEquals(live - keptBytes(rcu, fib), empty);
      }),
      { numRuns: 40, interruptAfterTimeLimit: 10_000 },
    );
  });
}
