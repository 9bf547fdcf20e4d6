// What a property test does to a Fib: random steps on prefixes that nest, collide and hide each other.

import fc from "fast-check";
import type { Route } from "../src/routing/route.ts";
import { type OraclePrefix, prefixOf, routeOf } from "./_fib_oracle.ts";

const u32s = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  // Few addresses, so that prefixes nest, collide and hide each other.
  fc.tuple(
    fc.constantFrom(0x0a000000, 0x0a010000, 0x0a020000),
    fc.constantFrom(0, 0x100, 0x200, 0xff00),
    fc.constantFrom(0, 1, 2, 127, 128, 255),
  ).map(([a, b, c]) => a + b + c),
);
const prefixes = fc.tuple(u32s, fc.integer({ min: 0, max: 32 }))
  .map(([address, length]) => prefixOf(address, length));
const routes = fc.integer({ min: 0, max: 5 }).map(routeOf);

/** One change of a table. */
export type Step =
  | { do: "insert"; prefix: OraclePrefix; route: Route }
  | { do: "delete"; prefix: OraclePrefix }
  | { do: "deleteSome"; nth: number }
  | { do: "load"; entries: [OraclePrefix, Route][] };

const insertion = fc.record({
  do: fc.constant("insert" as const),
  prefix: prefixes,
  route: routes,
});
/** A history of changes. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: insertion },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("delete" as const),
        prefix: prefixes,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("deleteSome" as const),
        nth: fc.nat(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("load" as const),
        entries: fc.array(fc.tuple(prefixes, routes), { maxLength: 20 }),
      }),
    },
  ),
  { maxLength: 60 },
);
