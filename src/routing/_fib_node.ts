// Nodes below the root: compressing their cells into runs.

import type { Address } from "../memory/arena.ts";
import { NODE_CELLS, NODE_RULES, NODE_RUNS, runOf } from "./_fib_trie.ts";

/**
 * How long the node of some cells is.
 *
 * @param cells The cells.
 * @returns Words.
 */
export function nodeWords(cells: Int32Array): number {
  let runs = 1;
  for (let i = 1; i < NODE_CELLS; i++) if (beginsRun(cells, i)) runs++;
  return NODE_RUNS + runs;
}

/**
 * Writes a node that nobody can reach yet.
 *
 * @param words The arena's words.
 * @param node A block of {@linkcode nodeWords}.
 * @param rules The block with its rules.
 * @param cells Its cells.
 */
export function writeNode(
  words: Int32Array,
  node: Address,
  rules: Address,
  cells: Int32Array,
): void {
  words[node + NODE_RULES] = rules;
  words[node + NODE_RUNS] = cells[0];
  let run = 0;
  for (let i = 0; i < NODE_CELLS; i += 8) {
    if (i > 0 && beginsRun(cells, i)) {
      words[node + NODE_RUNS + ++run] = cells[i];
    }
    const first = run;
    let index = first << 24;
    for (let j = 1; j < 8; j++) {
      if (beginsRun(cells, i + j)) {
        words[node + NODE_RUNS + ++run] = cells[i + j];
      }
      index |= (run - first) << (3 * j);
    }
    words[node + (i >>> 3)] = index;
  }
}

/** A node below is a run of its own by itself: no two cells have the same. */
function beginsRun(cells: Int32Array, i: number): boolean {
  return cells[i] !== cells[i - 1];
}

/**
 * Visits the cells of a node that lead to a node below.
 *
 * @param words The arena's words.
 * @param node The node.
 * @param visit Gets each such cell, and the node below.
 */
export function forEachKid(
  words: Int32Array,
  node: Address,
  visit: (cell: number, kid: Address) => void,
): void {
  for (let i = 0; i < NODE_CELLS; i++) {
    const value = words[runOf(words, node, i)];
    if (value < 0) visit(i, ~value);
  }
}
