// Walking over a map that changes meanwhile.

import type { Address } from "../memory/arena.ts";
import { probeStack } from "../sync/_stack.ts";
import {
  FORWARDED,
  HEADS,
  MASK,
  NEXT,
  SUCCESSOR,
  type Table,
} from "./_table.ts";

/**
 * Visits every key at most once, and every key that is there all the time.
 *
 * The walk goes by the residues of hashes modulo the number of buckets at its
 * start. A key has one residue, whatever happens to the table, so it can show
 * up in one step only. In a larger table a residue covers several buckets, in a
 * smaller one part of a bucket. Within a step a key can be met twice, where a
 * chain was split and joined again while the step was in it: once in the node
 * that was copied, once in the copy. The first one counts.
 *
 * A step is a section. What it found is handed out afterwards, so the caller
 * may do as it likes between two steps.
 *
 * @param table The map's table.
 * @param read Decodes a node, inside the section.
 * @returns The iterator.
 */
export function* collect<K, T>(
  table: Table<K>,
  read: (node: Address) => T,
): Generator<T, undefined> {
  const { reader } = table.membership;
  const found: T[] = [];
  const nodes: Address[] = [];
  let residues = 1;
  for (let residue = 0; residue < residues; residue++) {
    probeStack();
    reader.enter();
    try {
      const root = table.root();
      if (residue === 0) residues = table.words[root + MASK] + 1;
      nodes.length = 0;
      visit(table, root, residue, residues, (node) => nodes.push(node));
      dropRepeated(table, nodes);
      for (const node of nodes) found.push(read(node));
    } finally {
      reader.exit();
    }
    if (found.length > 0) yield* found.splice(0);
  }
}

function visit<K>(
  view: Table<K>,
  table: Address,
  residue: number,
  modulus: number,
  found: (node: Address) => void,
): void {
  const { words } = view;
  const mask = words[table + MASK];
  const buckets = mask + 1;
  for (let b = residue & mask; b < buckets; b += modulus) {
    const head = words[table + HEADS + b];
    if (head === FORWARDED) {
      const successor = words[table + SUCCESSOR];
      // What the smaller of the two moduli does not tell apart, the bucket or the residue does.
      if (buckets > modulus) visit(view, successor, b, buckets, found);
      else visit(view, successor, residue, modulus, found);
      continue;
    }
    for (let node = head; node !== 0; node = words[node + NEXT]) {
      const hash = view.hashOf(node);
      // A chain may run on into another one that was merged with it.
      if ((hash & mask) === b && (hash & (modulus - 1)) === residue) {
        found(node);
      }
    }
  }
}

function dropRepeated<K>(view: Table<K>, nodes: Address[]): void {
  if (nodes.length < 2) return;
  const byHash = new Map<number, Address[]>();
  let kept = 0;
  for (const node of nodes) {
    const hash = view.hashOf(node);
    const same = byHash.get(hash);
    if (same === undefined) byHash.set(hash, [node]);
    else if (same.some((other) => view.sameKey(node, other))) continue;
    else same.push(node);
    nodes[kept++] = node;
  }
  nodes.length = kept;
}
