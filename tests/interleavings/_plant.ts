// What the faults that explorations must find have in common.

/** A fault, and the scenarios in which each exploration must find it. */
export interface Planted {
  scenarios: readonly string[];
  /** Whether it takes seconds to find. */
  rare?: boolean;
  /** @param heals Takes back what was done. */
  plant(heals: DisposableStack): void;
}
