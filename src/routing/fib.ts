// The forwarding table: longest-prefix match on IPv4 addresses.

import { checkIterable, uncloneable } from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import { show } from "../memory/_codec.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { hideFields } from "../structures/_hide.ts";
import { probeStack } from "../sync/_stack.ts";
import { FibEntries } from "./_fib_entries.ts";
import { FibLoad } from "./_fib_load.ts";
import { FibLookup } from "./_fib_lookup.ts";
import { openFib } from "./_fib_open.ts";
import { SIZE } from "./_fib_trie.ts";
import { FibUpdate } from "./_fib_update.ts";
import { formatPrefix, parseAddress, parsePrefix } from "./_prefix.ts";
import { encodeRoute, type Prefix, type Route } from "./route.ts";

const UNCLONEABLE = uncloneable("a Fib, which other threads open by its name");

/**
 * The read side of an open `Fib`, for structures that keep what they look up.
 *
 * @param fib What the caller got as a Fib.
 * @param act What the caller was about to do, for the error.
 * @returns Its read side.
 */
export let lookupOf: (fib: Fib, act: string) => FibLookup;

/**
 * A forwarding information base: IPv4 prefixes with routes, from which a
 * lookup picks the longest that holds an address.
 *
 * A lookup takes no lock, never waits, never retries, and goes through three
 * nodes at most. Every insertion, deletion and load is published with one
 * store: a lookup answers from the table before it or from the table after it.
 * Two lookups may see two tables, also in one read section.
 *
 * Updates take turns. One of a prefix longer than 16 bits makes one or two
 * nodes anew, 0.2 to 1.2 KiB each. One of a shorter prefix does so with
 * all nodes in which it shows between longer prefixes, and where it shows in
 * several /16 blocks it copies the root, 256 KiB: a new default route under the
 * whole Internet replaces 18,000 nodes. The old ones are reclaimed after a grace
 * period, and both are in memory until then.
 *
 * Memory: 256 KiB for an empty table; 36 to 68 bytes for each distinct route, kept for
 * later ones when it goes, until few are left (of half the memory, the younger half is
 * given back when all of its routes have gone); 8 for each prefix; and for each /16 block, and each /24 block, in which longer
 * prefixes end, 170 bytes and 4 for each run of equal routes. The 564,579
 * prefixes of the Internet with 84,159 routes take 13 MiB.
 *
 * @example A host's table
 * ```ts
 * import { Fib, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * fib.insert("0.0.0.0/0", { gateway: "192.0.2.1", interface: 2 });
 * fib.insert("192.0.2.0/24", { gateway: null, interface: 2 });
 *
 * assertEquals(fib.lookup("192.0.2.7"), { gateway: null, interface: 2 });
 * assertEquals(fib.lookup(0x08080808)?.gateway, "192.0.2.1");
 * ```
 */
export class Fib implements Iterable<[prefix: string, route: Route]> {
  // As in RcuMap: not `#` fields, so that they can be folded.
  declare private readonly _uncloneable: symbol;
  declare private readonly _membership: Membership;
  declare private readonly _lookup: FibLookup;
  declare private readonly _update: FibUpdate;

  static {
    lookupOf = (fib, act) => {
      if (!(fib instanceof Fib)) {
        throw new TypeError(
          `Cannot ${act} as fib must be a Fib: received ${show(fib)}`,
        );
      }
      return fib._lookup;
    };
    hideFields(this, (fib) => `Fib(${fib.size})`);
  }

  private constructor(membership: Membership, lookup: FibLookup) {
    this._uncloneable = UNCLONEABLE;
    this._membership = membership;
    this._lookup = lookup;
    this._update = new FibUpdate(membership, lookup.fib);
  }

  /**
   * Opens the table of that name, or makes an empty one.
   *
   * @param rcu The calling thread's membership of the domain.
   * @param name The table's name in the domain.
   * @returns The table, as this thread sees it.
   * @throws {TypeError} If the name is that of another kind of structure.
   * @throws {RcuMemoryError} If an empty table does not fit.
   * @throws {Error} If the membership is closed.
   *
   * @example Two threads, one table
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using main = Rcu.create();
   * using worker = Rcu.attach(main.handle);
   * const route = { gateway: null, interface: 1 };
   * Fib.open(main, "main").insert("10.0.0.0/8", route);
   * assertEquals(Fib.open(worker, "main").lookup("10.1.2.3"), route);
   * ```
   */
  static open(rcu: Rcu, name: string): Fib {
    const membership = membershipOf(rcu, "open a Fib");
    if (typeof name !== "string") {
      throw new TypeError(
        `Cannot open a Fib as its name must be a string: received ${
          show(name)
        }`,
      );
    }
    probeStack();
    return new Fib(
      membership,
      new FibLookup(membership, openFib(membership, name)),
    );
  }

  /** How many prefixes there are. */
  get size(): number {
    const { fib, membership } = this._lookup;
    return Atomics.load(membership.words, fib + SIZE);
  }

  /**
   * Inserts a prefix, or gives it another route.
   *
   * @param prefix Such as `"10.0.0.0/8"`, or its numbers.
   * @param route Where its packets go. It is copied.
   * @throws {RangeError} If the prefix is malformed or has host bits set, or a field of the route is out of range.
   * @throws {TypeError} If either is of the wrong type.
   * @throws {RcuMemoryError} If it does not fit; the table is as it was.
   * @throws {Error} If the membership is closed.
   *
   * @example Replacing a route
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * fib.insert("10.0.0.0/8", { gateway: "192.0.2.1", interface: 1 });
   * fib.insert("10.0.0.0/8", { gateway: "192.0.2.2", interface: 1, mtu: 1400 });
   * assertEquals(fib.lookup("10.0.0.1")?.mtu, 1400);
   * assertEquals(fib.size, 1);
   * ```
   */
  insert(prefix: string | Prefix, route: Route): void {
    const key = parsePrefix(prefix);
    const fields = { flags: 0, gateway: 0, interface: 0, metric: 0, mtu: 0 };
    encodeRoute(route, fields);
    this._membership.assertOpen("insert a prefix");
    probeStack();
    this._update.insert(key, fields);
  }

  /**
   * Deletes a prefix. Addresses that it held fall back to the next shorter one.
   *
   * @param prefix Such as `"10.0.0.0/8"`, or its numbers.
   * @returns Whether it was there.
   * @throws {RangeError} If the prefix is malformed or has host bits set.
   * @throws {TypeError} If it is of the wrong type.
   * @throws {RcuMemoryError} If copies of what it shares nodes with do not fit; the table is as it was.
   * @throws {Error} If the membership is closed.
   *
   * @example Falling back
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   * fib.insert("10.1.0.0/16", { gateway: null, interface: 2 });
   * assertEquals(fib.delete("10.1.0.0/16"), true);
   * assertEquals(fib.delete("10.1.0.0/16"), false);
   * assertEquals(fib.lookup("10.1.0.1")?.interface, 1);
   * ```
   */
  delete(prefix: string | Prefix): boolean {
    const key = parsePrefix(prefix);
    this._membership.assertOpen("delete a prefix");
    probeStack();
    return this._update.delete(key);
  }

  /**
   * Finds the route of the longest prefix that holds an address.
   *
   * @param address A dotted address or an unsigned 32-bit integer; the latter is the fast one.
   * @returns The route, frozen, the same object every time as long as it stays the same; `undefined` if no prefix holds the address.
   * @throws {RangeError} If the address is malformed or out of range.
   * @throws {TypeError} If it is neither a string nor a number.
   * @throws {Error} If the membership is closed.
   *
   * @example The longest prefix wins
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * fib.load([
   *   ["10.0.0.0/8", { gateway: "192.0.2.1", interface: 1 }],
   *   ["10.1.0.0/16", { gateway: "192.0.2.2", interface: 1 }],
   * ]);
   * assertEquals(fib.lookup("10.1.2.3")?.gateway, "192.0.2.2");
   * assertEquals(fib.lookup("10.2.0.0")?.gateway, "192.0.2.1");
   * assertEquals(fib.lookup("11.0.0.0"), undefined);
   * ```
   */
  lookup(address: string | number): Route | undefined {
    // An integer on both ways, so that V8 has no need of an object for it.
    let number = 0;
    if (typeof address === "number") number = address >>> 0;
    if (number !== address) number = parseAddress(address) >>> 0;
    return this._lookup.lookup(number);
  }

  /**
   * The route of a prefix itself, whatever covers it or is inside it. Waits
   * for an update in progress.
   *
   * @param prefix Such as `"10.0.0.0/8"`, or its numbers.
   * @returns The route, frozen, or `undefined` if the prefix is not there.
   * @throws {RangeError} If the prefix is malformed or has host bits set.
   * @throws {TypeError} If it is of the wrong type.
   * @throws {Error} If the membership is closed.
   *
   * @example Exactly that prefix
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * fib.insert("10.0.0.0/8", { gateway: null, interface: 1 });
   * assertEquals(fib.get("10.0.0.0/8"), { gateway: null, interface: 1 });
   * assertEquals(fib.get("10.0.0.0/16"), undefined);
   * ```
   */
  get(prefix: string | Prefix): Route | undefined {
    const key = parsePrefix(prefix);
    this._membership.assertOpen("get a prefix");
    probeStack();
    return new FibEntries(this._lookup).get(key);
  }

  /**
   * Replaces the whole table. The new one is built aside, while lookups and
   * updates go on in the old one, and then takes its place with one store.
   * Until then both are in memory.
   *
   * @param entries Prefixes and their routes; of several entries with the same prefix, the last counts. Fastest in ascending order of address, then length.
   * @throws {RangeError} If a prefix is malformed or has host bits set, or a field of a route is out of range.
   * @throws {TypeError} If one of them is of the wrong type.
   * @throws {RcuMemoryError} If it does not fit beside the old one; the table is as it was.
   * @throws {Error} If the membership is closed.
   *
   * @example All at once
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const route = { gateway: "192.0.2.1", interface: 1 };
   * fib.load([
   *   ["198.51.100.0/24", route],
   *   [{ address: 0xcb007100, length: 24 }, route],
   * ]);
   * assertEquals(fib.size, 2);
   * assertEquals(fib.get("203.0.113.0/24"), route);
   * ```
   */
  load(
    entries: Iterable<readonly [prefix: string | Prefix, route: Route]>,
  ): void {
    this._membership.assertOpen("load a table");
    checkIterable(entries, "load a table");
    probeStack();
    const table = new FibLoad(this._membership, this._lookup.fib);
    try {
      table.build(entries);
      // The entries may have come from a generator that closed it.
      this._membership.assertOpen("load a table");
      table.publish();
    } finally {
      table.dispose();
    }
    this._membership.afterUpdate();
  }

  /**
   * The prefixes and their routes, in ascending order of address, then
   * length. Weakly consistent: all prefixes with the same first octet are of
   * one moment, each octet of a later one.
   *
   * @yields A prefix in dotted form and its route, frozen.
   * @throws {Error} If the membership is closed.
   *
   * @example A copy
   * ```ts
   * import { Fib, Rcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const fib = Fib.open(rcu, "main");
   * const route = { gateway: null, interface: 1 };
   * fib.load([["10.1.0.0/16", route], ["10.0.0.0/8", route]]);
   * assertEquals([...fib], [["10.0.0.0/8", route], ["10.1.0.0/16", route]]);
   * ```
   */
  *[Symbol.iterator](): IterableIterator<[prefix: string, route: Route]> {
    const entries = new FibEntries(this._lookup);
    for (let octet = 0; octet < 256; octet++) {
      this._membership.assertOpen("list prefixes");
      probeStack();
      for (const [key, route] of entries.list(octet)) {
        yield [formatPrefix(key), route];
      }
    }
  }
}
