// A thread that does its part of a pattern in many instances, round after round.

import { Rcu, type RcuHandle } from "../../mod.ts";
import type { Address } from "../../src/memory/arena.ts";
import { Gate, GATE_WORDS } from "../_gate.ts";
import { serve } from "../_workers.ts";
import {
  indexOf,
  INSTANCES,
  outcomesOf,
  type Part,
  type Pattern,
} from "./_pattern.ts";
import { FAULTY, PATTERNS } from "./_patterns.ts";

/** What a thread must know to take part. */
export interface Task {
  handle: RcuHandle;
  /** The pattern's name. */
  name: string;
  /** Where the instances lie. */
  base: Address;
  /** A gate, and behind it a line for each thread that says how far it is. */
  control: Int32Array;
  /** For each thread what it saw. */
  seen: Uint8Array[];
  me: number;
  rounds: number;
}

/** A line of the words in which threads say how far they are. */
const LINE = 16;

/** Instances from one meeting of the threads to the next: in turns, a round each. */
const MEETINGS = [1, 8, 1, INSTANCES];
/**
 * Some ms: a thread that sleeps wakes up where the one is that woke it, and then walks when that
 * one has come to the end.
 */
const LOOKS = 1_000_000;
/** The same where there are more threads than processors: others wait for this one's. */
const LOOKS_IN_A_CROWD = 2_000;
/** How many looks a thread waits for another one, at the first meeting of a round and at others. */
const FIRST_PATIENCE = 100_000;
const PATIENCE = 100;

/** Steps from one instance to the next: in turns, all odd. */
const STRIDES = [1, 7, 129, INSTANCES - 1, 1];

serve({
  /**
   * Runs a pattern.
   *
   * @returns How often each outcome was seen, for thread 0.
   */
  run(task: Task): number[] {
    const { handle, name, base, control, me, rounds, seen } = task;
    const pattern = [...PATTERNS, ...FAULTY].find((pattern) =>
      pattern.name === name
    )!;
    const gate = new Gate(
      control,
      pattern.sees.length,
      isCrowded(pattern) ? LOOKS_IN_A_CROWD : LOOKS,
    );
    const outcomes = new Array<number>(outcomesOf(pattern)).fill(0);
    using rcu = Rcu.attach(handle);
    const part = pattern.part(rcu, base, me);
    const walk = new Walk(task, pattern, part);
    try {
      for (let round = 0; round < rounds; round++) {
        for (const prepare of part.prepare) {
          gate.pass();
          for (let i = 0; i < INSTANCES; i++) prepare(i, round);
        }
        gate.pass();
        walk.go(round);
        gate.pass();
        if (me === 0) count(outcomes, seen);
      }
    } catch (error) {
      gate.break();
      throw error;
    }
    return outcomes;
  },
});

/** Whether there are too few processors for the threads to walk side by side. */
function isCrowded({ sees }: Pattern): boolean {
  return sees.length > navigator.hardwareConcurrency;
}

/** Adds what all threads saw; nobody goes on before it is done, for they meet at a gate. */
function count(outcomes: number[], seen: Uint8Array[]): void {
  const outcome = new Uint8Array(seen.length);
  for (let i = 0; i < INSTANCES; i++) {
    for (let thread = 0; thread < seen.length; thread++) {
      outcome[thread] = seen[thread][i];
    }
    outcomes[indexOf(outcome)]++;
  }
}

/** A thread's walk through the instances, in loose step with the others. */
class Walk {
  readonly #part: Part;
  readonly #seen: Uint8Array;
  readonly #control: Int32Array;
  readonly #threads: number;
  readonly #me: number;
  readonly #crowded: boolean;
  #random: number;

  constructor({ seen, control, me }: Task, pattern: Pattern, part: Part) {
    this.#part = part;
    this.#seen = seen[me];
    this.#control = control;
    this.#threads = pattern.sees.length;
    this.#me = me;
    this.#crowded = isCrowded(pattern);
    this.#random = me + 1;
  }

  go(round: number): void {
    const part = this.#part;
    const seen = this.#seen;
    const meeting = this.#crowded
      ? INSTANCES
      : MEETINGS[round % MEETINGS.length];
    const stride = STRIDES[round % STRIDES.length];
    for (let k = 0; k < INSTANCES; k++) {
      const instance = (k * stride) & (INSTANCES - 1);
      if (k % meeting === 0) {
        const patience = k === 0 && !this.#crowded ? FIRST_PATIENCE : PATIENCE;
        this.#meet(round * INSTANCES + k + 1, patience);
      }
      this.#dawdle();
      seen[instance] = part.act(instance);
    }
  }

  /** Waits a moment for those that are not here yet. */
  #meet(progress: number, patience: number): void {
    const control = this.#control;
    Atomics.store(control, GATE_WORDS + this.#me * LINE, progress);
    for (let thread = 0; thread < this.#threads; thread++) {
      const at = GATE_WORDS + thread * LINE;
      for (let looks = 0; looks < patience; looks++) {
        if (Atomics.load(control, at) >= progress) break;
      }
    }
  }

  /** Lets now one thread be first and now another. */
  #dawdle(): void {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) | 0;
    for (let left = this.#random >>> 27; left > 0; left--);
  }
}
