// Walking over a tree that changes meanwhile.

import type { Address } from "../memory/arena.ts";
import { LEFT, type Probe, type Tree } from "./_tree.ts";
import { LEAF_READ } from "../readers/_reader.ts";

/**
 * Visits keys in ascending order: each at most once, and each that is there all
 * the time.
 *
 * A step is a section, and a search from the root for the first key behind the
 * last one. It finds one that is greater, and none that is greater than one that
 * is there all the time: see {@linkcode Tree}, 6. Nothing but the last key is
 * kept from one step to the next, so the caller may do as it likes in between.
 *
 * @param tree The map's tree.
 * @param from Where to begin; `undefined` for the first key.
 * @param to Where to end, itself not included; `undefined` for never.
 * @param read Decodes what was found, inside the section; runs no code of the user.
 * @returns The iterator.
 */
export function* ascend<K, T>(
  tree: Tree<K>,
  from: Probe | undefined,
  to: Probe | undefined,
  read: (probe: Probe, node: Address) => T,
): Generator<T, undefined> {
  const { reader } = tree.membership;
  let last = from;
  for (let behind = false;; behind = true) {
    if ((reader.budget -= LEAF_READ) < 0) reader.refill();
    const node = last === undefined ? tree.end(LEFT) : tree.from(last, behind);
    if (node === 0) return;
    if (to !== undefined && tree.compare(node, to) >= 0) return;
    last = tree.probeOf(node);
    yield read(last, node);
  }
}
