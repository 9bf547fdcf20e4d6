// All patterns.

import { CLASSICS } from "./_classic.ts";
import { FAULTY, PACKAGE } from "./_package.ts";
import type { Pattern } from "./_pattern.ts";

export { FAULTY };

/** All that have no fault, those by plain accesses last. */
export const PATTERNS: Pattern[] = [...CLASSICS, ...PACKAGE].toSorted(
  (a, b) => a.weak === b.weak ? 0 : a.weak === "never" ? -1 : 1,
);
