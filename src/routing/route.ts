// What a forwarding table says, and how it gets into words.

import { show } from "../memory/_codec.ts";
import { formatAddress, scanAddress } from "./_prefix.ts";

/**
 * Where to send a packet.
 *
 * @example Through a gateway, and on the link
 * ```ts
 * import { Fib, Rcu, type Route } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const link: Route = { gateway: null, interface: 2 };
 * const away: Route = { gateway: "192.0.2.1", interface: 2, mtu: 1400 };
 * fib.load([["192.0.2.0/24", link], ["0.0.0.0/0", away]]);
 * assertEquals(fib.lookup("198.51.100.1"), away);
 * ```
 */
export interface Route {
  /** The next hop, a dotted IPv4 address, or `null` for a destination on the link. */
  gateway: string | null;
  /** The index of the interface to send through, from 0 to 4,294,967,295. */
  interface: number;
  /** The cost of the route, from 0 to 4,294,967,295. */
  metric?: number;
  /** The largest packet that fits, in bytes, from 68 to 4,294,967,295. */
  mtu?: number;
}

/**
 * A block of IPv4 addresses, as numbers.
 *
 * @example 10.0.0.0/8
 * ```ts
 * import { Fib, type Prefix, Rcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const fib = Fib.open(rcu, "main");
 * const prefix: Prefix = { address: 0x0a000000, length: 8 };
 * fib.insert(prefix, { gateway: null, interface: 1 });
 * assertEquals(fib.get("10.0.0.0/8"), fib.get(prefix));
 * ```
 */
export interface Prefix {
  /** The first address, as an unsigned 32-bit integer. */
  address: number;
  /** How many leading bits the block's addresses share, from 0 to 32. */
  length: number;
}

/** A route taken apart into words, signed as the arena has them. */
export interface RouteFields {
  /** Which of the optional fields there are. */
  flags: number;
  /** The next hop, or 0. */
  gateway: number;
  /** The interface. */
  interface: number;
  /** The metric, or 0. */
  metric: number;
  /** The MTU, or 0. */
  mtu: number;
}

const HAS_GATEWAY = 1;
const HAS_METRIC = 2;
const HAS_MTU = 4;

/** The smallest packet that every IPv4 link must carry (RFC 791). */
const LEAST_MTU = 68;
const LARGEST_U32 = 0xffff_ffff;

/**
 * Checks a route and takes it apart.
 *
 * @param route What the caller says is a route.
 * @param into Where its fields go.
 * @throws {TypeError} If a field is of the wrong type.
 * @throws {RangeError} If a field is out of range.
 */
export function encodeRoute(route: Route, into: RouteFields): void {
  if (typeof route !== "object" || route === null) {
    throw new TypeError(
      `Cannot use a route as it must be an object: received ${show(route)}`,
    );
  }
  const { gateway, interface: link, metric, mtu } = route;
  into.flags = 0;
  into.gateway = 0;
  into.metric = 0;
  into.mtu = 0;
  if (gateway !== null) {
    into.gateway = encodeGateway(gateway) | 0;
    into.flags = HAS_GATEWAY;
  }
  into.interface = encodeU32("interface", link, 0);
  if (metric !== undefined) {
    into.metric = encodeU32("metric", metric, 0);
    into.flags |= HAS_METRIC;
  }
  if (mtu !== undefined) {
    into.mtu = encodeU32("mtu", mtu, LEAST_MTU);
    into.flags |= HAS_MTU;
  }
}

/**
 * The route that fields describe.
 *
 * @param fields A route taken apart.
 * @returns The route, frozen.
 */
export function decodeRoute(fields: RouteFields): Route {
  const { flags } = fields;
  const route: Route = {
    gateway: (flags & HAS_GATEWAY) === 0
      ? null
      : formatAddress(fields.gateway >>> 0),
    interface: fields.interface >>> 0,
  };
  if ((flags & HAS_METRIC) !== 0) route.metric = fields.metric >>> 0;
  if ((flags & HAS_MTU) !== 0) route.mtu = fields.mtu >>> 0;
  return Object.freeze(route);
}

function encodeGateway(gateway: unknown): number {
  if (typeof gateway !== "string") {
    throw new TypeError(
      `Cannot use a route as its gateway must be a dotted IPv4 address or null: received ${
        show(gateway)
      }`,
    );
  }
  const address = scanAddress(gateway, 0, gateway.length);
  if (address < 0) {
    throw new RangeError(
      `Cannot use a route as its gateway must be a dotted IPv4 address or null: received ${
        show(gateway)
      }`,
    );
  }
  return address;
}

function encodeU32(name: string, value: unknown, least: number): number {
  if (typeof value !== "number") {
    throw new TypeError(
      `Cannot use a route as its ${name} must be a number: received ${
        show(value)
      }`,
    );
  }
  if (value >>> 0 !== value || value < least) {
    throw new RangeError(
      `Cannot use a route as its ${name} must be an integer from ${least} to ${LARGEST_U32}: received ${
        show(value)
      }`,
    );
  }
  return value | 0;
}
