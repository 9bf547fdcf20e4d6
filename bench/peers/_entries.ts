/** Entries for the comparison of shared maps. */

/**
 * Keys and values as a program may have them: some 20 characters each, every
 * string new.
 */
export function entriesOf(count: number): [string, string][] {
  return Array.from(
    { length: count },
    (
      _,
      i,
    ) => [
      `tenant-${i}.example.org`,
      `10.${i >> 16}.${i >> 8 & 255}.${i & 255}`,
    ],
  );
}
