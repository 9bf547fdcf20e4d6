// A forwarding table that can hardly be wrong: every prefix is compared.

import type { Route } from "../src/routing/route.ts";

/** A prefix in numbers, and its text. */
export interface OraclePrefix {
  address: number;
  length: number;
  text: string;
}

/**
 * Makes a prefix of an address, its host bits cleared.
 *
 * @param address Any address in the prefix.
 * @param length The prefix's length.
 * @returns The prefix.
 */
export function prefixOf(address: number, length: number): OraclePrefix {
  const size = 2 ** (32 - length);
  const first = Math.floor(address / size) * size;
  return { address: first, length, text: `${dotted(first)}/${length}` };
}

/**
 * An address in dotted form.
 *
 * @param address An unsigned 32-bit integer.
 * @returns The text.
 */
export function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

/** The table. */
export class Oracle {
  readonly #entries = new Map<string, OraclePrefix & { route: Route }>();

  get size(): number {
    return this.#entries.size;
  }

  insert(prefix: OraclePrefix, route: Route): void {
    this.#entries.set(prefix.text, { ...prefix, route });
  }

  delete(prefix: OraclePrefix): boolean {
    return this.#entries.delete(prefix.text);
  }

  load(entries: [OraclePrefix, Route][]): void {
    this.#entries.clear();
    for (const [prefix, route] of entries) this.insert(prefix, route);
  }

  get(prefix: OraclePrefix): Route | undefined {
    return this.#entries.get(prefix.text)?.route;
  }

  lookup(address: number): Route | undefined {
    let best: (OraclePrefix & { route: Route }) | undefined;
    for (const entry of this.#entries.values()) {
      const size = 2 ** (32 - entry.length);
      if (address < entry.address || address >= entry.address + size) continue;
      if (best === undefined || entry.length > best.length) best = entry;
    }
    return best?.route;
  }

  entries(): [string, Route][] {
    return [...this.#entries.values()]
      .sort((a, b) => a.address - b.address || a.length - b.length)
      .map(({ text, route }) => [text, route]);
  }
}

/**
 * A route that says which of many it is, in all its fields.
 *
 * @param metric Which one.
 * @returns The route.
 */
export function routeOf(metric: number): Route {
  return {
    gateway: dotted(metric),
    interface: metric % 1000,
    metric,
    mtu: 1500,
  };
}
