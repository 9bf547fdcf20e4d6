// Plans that fast-check draws, played by real threads, and what is found about them.

import fc from "fast-check";
import type { Rcu } from "../../mod.ts";
import { withDomain } from "../_audit.ts";
import { GATE_WORDS } from "../_gate.ts";
import { sharedWords, type TestWorker, withWorkers } from "../_workers.ts";
import { check, Logs } from "./_check.ts";
import type { Plan } from "./_plan.ts";
import { anyPlan, type Scenario } from "./_scenarios.ts";
import { Recorder } from "./_recorder.ts";
import { open } from "./_subjects.ts";
import type { Batch, Join } from "./_worker.ts";

/** Most threads of a plan. */
const THREADS = 3;
/** Most rounds of a plan, and words of the log that suffice for them, whatever the plan. */
const ROUNDS = 100;
const LOG_WORDS = 2 ** 14;

/** How much is explored. */
export interface Effort {
  /** Most plans. */
  plans: number;
  /**
   * Rounds in which the threads play each plan, at most 100, so that one that
   * fails seldom fails in some.
   *
   * @default {100}
   */
  rounds?: number;
  /** After how long no plan is played any more, in ms. The first one always is. */
  time?: number;
  /** Whether to show the first plan that fails, instead of looking for a smaller one. */
  asIs?: boolean;
}

/**
 * Lets threads open what a scenario is about, and asserts afterwards that
 * nothing is left of what they did.
 *
 * @param scenario The scenario.
 * @param workers The threads.
 * @param use What to do with them.
 */
export function withScenario(
  scenario: Scenario,
  workers: TestWorker[],
  use: (explorer: Explorer) => Promise<void>,
): Promise<void> {
  const { subject } = scenario;
  const control = sharedWords(GATE_WORDS + 16);
  const logs = workers.map(() => sharedWords(LOG_WORDS));
  const player = (rcu: Rcu) =>
    open(rcu, subject, new Recorder(control, 0, logs[0]), THREADS);
  return withDomain({ capacity: 2 ** 25 }, async (rcu) => {
    await Promise.all(workers.map((worker, me) => {
      const shared = { control, log: logs[me] };
      const join: Join = { handle: rcu.handle, subject, shared, me };
      return worker.call("join", join);
    }));
    await use(new Explorer(scenario, workers, control, logs));
    await Promise.all(workers.map((worker) => worker.call("leave")));
    player(rcu).empty();
  }, (rcu) => void player(rcu).empty());
}

/** Threads that have opened what a scenario is about. */
export class Explorer {
  readonly #scenario: Scenario;
  readonly #workers: TestWorker[];
  readonly #control: Int32Array;
  readonly #logs: Int32Array[];
  /** Rounds that were played. */
  rounds = 0;
  /** Those in which a key was changed while another thread was at it. */
  overlaps = 0;

  constructor(
    scenario: Scenario,
    workers: TestWorker[],
    control: Int32Array,
    logs: Int32Array[],
  ) {
    this.#scenario = scenario;
    this.#workers = workers;
    this.#control = control;
    this.#logs = logs;
  }

  /**
   * Lets fast-check draw plans, has each played for some rounds, and looks at
   * every round.
   *
   * @param effort How many plans.
   * @returns What fast-check has to say.
   */
  explore(
    { plans, rounds = ROUNDS, time = Infinity, asIs = false }: Effort,
  ): Promise<fc.RunDetails<[Plan]>> {
    let end = performance.now() + time;
    const plan = anyPlan(this.#scenario, this.#workers.length);
    const property = fc.asyncProperty(plan, async (plan) => {
      if (this.rounds > 0 && performance.now() > end) return;
      try {
        await this.#play(plan, rounds);
      } catch (error) {
        // Looking for a smaller plan takes as long as it takes.
        end = Infinity;
        throw error;
      }
    });
    return fc.check(property, { numRuns: plans, endOnFailure: asIs });
  }

  async #play(plan: Plan, rounds: number): Promise<void> {
    this.#control.fill(0);
    const first = this.rounds;
    const batch: Batch = { plan, first, rounds };
    this.rounds += rounds;
    await Promise.all(
      this.#workers.map((worker) => worker.call("play", batch)),
    );
    const logs = new Logs(this.#logs);
    for (let round = first; round < first + rounds; round++) {
      if (check(this.#scenario, plan, round, logs)) this.overlaps++;
    }
  }
}

/**
 * Runs something with threads that can take part in scenarios.
 *
 * @param use What.
 * @param threads How many.
 */
export function withThreads(
  use: (...workers: TestWorker[]) => Promise<void>,
  threads = THREADS,
): Promise<void> {
  return withWorkers("linearizability/_worker.ts", threads, use);
}
