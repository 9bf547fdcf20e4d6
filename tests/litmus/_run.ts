// Running patterns on real threads.

import { withDomain } from "../_audit.ts";
import { GATE_WORDS } from "../_gate.ts";
import { sharedWords, type TestWorker, withWorkers } from "../_workers.ts";
import { type Counts, INSTANCES, type Pattern } from "./_pattern.ts";
import type { Task } from "./_worker.ts";

/**
 * Runs a pattern; no more threads are there than it needs.
 *
 * @param pattern The pattern.
 * @param rounds How many rounds, of {@linkcode INSTANCES} instances each.
 * @param workers The threads.
 * @returns What was seen.
 */
async function runPattern(
  pattern: Pattern,
  rounds: number,
  workers: TestWorker[],
): Promise<Counts> {
  let outcomes: number[] = [];
  await withDomain({ capacity: 2 ** 23 }, async (rcu) => {
    const { words } = rcu.memory;
    const base = rcu.memory.allocate(INSTANCES * pattern.words);
    words.fill(0, base, base + INSTANCES * pattern.words);
    for (let i = 0; i < INSTANCES; i++) {
      pattern.setUp?.(words, base + i * pattern.words);
    }
    const control = sharedWords(GATE_WORDS + workers.length * 16);
    const seen = workers.map(() =>
      new Uint8Array(new SharedArrayBuffer(INSTANCES))
    );
    const { handle } = rcu;
    const { name } = pattern;
    [outcomes] = await Promise.all(workers.map((worker, me) => {
      const task: Task = { handle, name, base, control, seen, me, rounds };
      return worker.call<number[]>("run", task);
    }));
    rcu.memory.free(base);
  });
  return { pattern, instances: rounds * INSTANCES, outcomes };
}

/**
 * Runs patterns, those of as many threads one after the other.
 *
 * @param patterns The patterns.
 * @param rounds How many rounds of each.
 * @param told Called with each one's result.
 * @returns The results.
 */
export async function runPatterns(
  patterns: readonly Pattern[],
  rounds: number,
  told: (counts: Counts) => void = () => {},
): Promise<Counts[]> {
  const results: Counts[] = [];
  const groups = Map.groupBy(patterns, ({ sees }) => sees.length);
  for (const [threads, group] of groups) {
    await withWorkers("litmus/_worker.ts", threads, async (...workers) => {
      for (const pattern of group) {
        const counts = await runPattern(pattern, rounds, workers);
        results.push(counts);
        told(counts);
      }
    });
  }
  return results;
}
