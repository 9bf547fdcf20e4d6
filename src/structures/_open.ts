// What opening has in common: checks of the arguments, the named root.

import {
  type OptionNames,
  takeOptions as takeAnyOptions,
} from "../_arguments.ts";
import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { show } from "../memory/_codec.ts";

/**
 * Finds or makes a named structure.
 *
 * @param membership The caller's membership.
 * @param name What the caller passed as the name.
 * @param schema What the structure holds.
 * @param make Lays it out; `undefined` if it must exist already.
 * @returns Its first block.
 */
export function openRoot(
  membership: Membership,
  name: string,
  schema: string,
  make: () => Address,
  discard: (data: Address) => void,
): Address {
  if (typeof name !== "string") {
    throw new TypeError(
      `Cannot open a structure as its name must be a string: received ${
        show(name)
      }`,
    );
  }
  return membership.roots.open(
    name,
    schema,
    membership.stallTimeout,
    (words) => membership.allocate(words),
    make,
    discard,
  );
}

/**
 * Takes the options of an `open`.
 *
 * @param options What the caller passed.
 * @param must What it must have.
 * @param names The options that there are.
 * @returns A copy, each of them read once.
 */
export function takeOptions<T extends object>(
  options: T,
  must: string,
  names: OptionNames<NoInfer<T>>,
): T {
  return takeAnyOptions(options, names, "open a structure", must);
}
