/** The rule of `assertObjectMatch` in `@std/assert`. */
import { equal } from "./equal.ts";

type Loose = Record<PropertyKey, unknown>;

function isStructure(value: unknown): value is Loose {
  return typeof value === "object" && value !== null &&
    !(value instanceof RegExp);
}

/**
 * Tells whether `actual` has everything that `expected` has, at every depth:
 * own properties, elements by their index, entries of maps, members of sets.
 */
export function matches(
  actual: unknown,
  expected: unknown,
  open: Map<unknown, unknown> = new Map(),
): boolean {
  if (
    !isStructure(actual) || !isStructure(expected) ||
    Array.isArray(actual) !== Array.isArray(expected)
  ) {
    return equal(actual, expected);
  }
  // A cycle that comes back to a pair under comparison holds so far.
  if (open.get(actual) === expected) return true;
  open.set(actual, expected);
  if (actual instanceof Set && expected instanceof Set) {
    return expected.isSubsetOf(actual);
  }
  if (actual instanceof Map && expected instanceof Map) {
    return expected.entries().every(([key, value]) =>
      actual.has(key) && matches(actual.get(key), value, open)
    );
  }
  return Reflect.ownKeys(expected).every((key) =>
    Object.hasOwn(actual, key) && matches(actual[key], expected[key], open)
  );
}
