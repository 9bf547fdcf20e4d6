// Plans that fast-check draws, played by real threads, and what is found about them.

import fc from "fast-check";
import type { Rcu } from "../../mod.ts";
import { withDomain } from "../_audit.ts";
import { GATE_WORDS } from "../_gate.ts";
import { sharedWords, type TestWorker, withWorkers } from "../_workers.ts";
import {
  cellModel,
  contentsModel,
  type Input,
  keyModel,
  withVersions,
} from "./_models.ts";
import {
  ABSENT,
  type Action,
  entriesOf,
  ENTRY,
  initialValue,
  isPresent,
  KEYS,
  MOST_STEPS,
  type Plan,
  type Step,
  updated,
  valueOf,
} from "./_plan.ts";
import { linearize, type Operation, showHistory } from "./_search.ts";
import { open, Recorder, type Subject } from "./_subjects.ts";
import type { Batch, Join } from "./_worker.ts";

/** Most threads of a plan. */
export const THREADS = 3;
/** Rounds in which the threads play a plan: one that fails seldom is to fail in some. */
const ROUNDS = 100;
const LOG_WORDS = 2 ** 14;

/** What histories are about. */
export interface Scenario {
  name: string;
  subject: Subject;
  /** What threads do, and how often in comparison. */
  actions: Partial<Record<Action, number>>;
  /** Whether operations are about all keys at once. */
  whole?: boolean;
}

const KEYED: Scenario["actions"] = {
  get: 4,
  has: 1,
  set: 3,
  delete: 3,
  getOrInsert: 2,
  update: 2,
};

/** All of them. */
export const SCENARIOS: Scenario[] = [
  ...(["u32", "f64", "string", "json"] as const).map((value): Scenario => ({
    name: `RcuCell of ${value}`,
    subject: { structure: "cell", key: "u32", value },
    actions: { get: 3, set: 2, update: 2, version: 3 },
  })),
  ...(["map", "sortedMap"] as const).flatMap((structure) =>
    (["u32", "string"] as const).flatMap((key) =>
      (["u32", "f64", "string", "json"] as const).map((value): Scenario => ({
        name: `${nameOf(structure)} of ${key} → ${value}`,
        subject: { structure, key, value },
        actions: { ...KEYED, stir: 1 },
      }))
    )
  ),
  ...(["map", "sortedMap"] as const).flatMap((structure) =>
    ([["u32", "u32"], ["string", "string"]] as const).map((
      [key, value],
    ): Scenario => ({
      name: `${nameOf(structure)} of ${key} → ${value}, replaced as a whole`,
      subject: { structure, key, value },
      actions: { ...KEYED, section: 8, replaceAll: 3, clear: 1, stir: 1 },
      whole: true,
    }))
  ),
];

function nameOf(structure: "map" | "sortedMap"): string {
  return structure === "map" ? "RcuMap" : "RcuSortedMap";
}

/** Plans of a scenario: they shrink to few threads, few steps and few keys. */
function anyPlan(
  { actions, subject }: Scenario,
  threads: number,
): fc.Arbitrary<Plan> {
  const keys = subject.structure === "cell" ? 1 : KEYS;
  const anyKey = fc.nat(keys - 1);
  const step = fc.record({
    action: fc.oneof(
      ...Object.entries(actions).map(([action, weight]) => ({
        arbitrary: fc.constant(action as Action),
        weight,
      })),
    ),
    key: anyKey,
    some: fc.nat(2 ** keys - 1),
    keys: fc.array(anyKey, { minLength: 2, maxLength: 3 }),
    pause: fc.nat(20),
  }).map(({ some, ...step }): Step =>
    step.action === "replaceAll" ? { ...step, key: some } : step
  );
  const steps = fc.array(step, { minLength: 1, maxLength: MOST_STEPS });
  return fc.record({
    present: fc.nat(2 ** keys - 1),
    threads: fc.oneof(
      { arbitrary: fc.tuple(steps, steps), weight: 3 },
      { arbitrary: fc.tuple(steps, steps, steps), weight: threads - 2 },
    ),
  });
}

/** Reads what threads wrote down about one round after the other. */
class Logs {
  readonly #logs: Int32Array[];
  readonly #at: number[];

  constructor(logs: Int32Array[]) {
    this.#logs = logs;
    this.#at = logs.map(() => 0);
  }

  next(thread: number, input: Input): Operation<Input> {
    const at = this.#at[thread];
    this.#at[thread] += ENTRY;
    const [called, returned, output] = this.#logs[thread].subarray(at);
    return { thread, called, returned, output, input };
  }
}

/** What a step was asked to do, for each thing that it wrote down. */
function inputsOf(
  step: Step,
  round: number,
  thread: number,
  number: number,
): Input[] {
  const { action, key, keys } = step;
  if (entriesOf(step) === 0) return [];
  switch (action) {
    case "section":
      return keys.map((key, read) => ({
        action,
        key,
        section: `${thread}.${number}`,
        ends: read === keys.length - 1,
      }));
    case "replaceAll": {
      const contents = Array.from(
        { length: KEYS },
        (_, n) =>
          isPresent(key, n) ? valueOf(round, thread, number, n) : ABSENT,
      );
      return [{ action, key, contents }];
    }
    case "update": {
      const value = updated(0, round, thread, number, key);
      const missing = updated(ABSENT, round, thread, number, key) - value;
      return [{ action, key, value, missing }];
    }
    default:
      return [{ action, key, value: valueOf(round, thread, number, key) }];
  }
}

function historyOf(
  plan: Plan,
  round: number,
  logs: Logs,
  isCell: boolean,
): Operation<Input>[] {
  const looks: Input[] = isCell
    ? [{ action: "get", key: 0 }, { action: "version", key: 0 }]
    : Array.from({ length: KEYS }, (_, key) => ({ action: "get", key }));
  return plan.threads.flatMap((steps, thread) =>
    [
      ...steps.flatMap((step, number) => inputsOf(step, round, thread, number)),
      ...looks,
    ].map((input) => logs.next(thread, input))
  );
}

/**
 * Looks for an explanation of what happened in a round.
 *
 * @returns Whether there was something to explain: a change while another thread was at the same key.
 */
function check(
  { subject, whole }: Scenario,
  plan: Plan,
  round: number,
  logs: Logs,
): boolean {
  const isCell = subject.structure === "cell";
  const version = isCell
    ? logs.next(0, { action: "version", key: 0 }).output
    : 0;
  const history = historyOf(plan, round, logs, isCell);
  const initial = Array.from(
    { length: KEYS },
    (_, key) =>
      isCell || isPresent(plan.present, key)
        ? initialValue(round, key)
        : ABSENT,
  );
  if (isCell) {
    const model = cellModel(initial[0], version >>> 0);
    judge(linearize(model, withVersions(history)), history, initial);
  } else if (whole) {
    judge(linearize(contentsModel(initial), history), history, initial);
  } else {
    for (let key = 0; key < KEYS; key++) {
      const some = history.filter(({ input }) => input.key === key);
      judge(linearize(keyModel(initial[key]), some), some, initial);
    }
  }
  return overlap(history);
}

/** Whether threads changed a key while another one was at it. */
function overlap(history: Operation<Input>[]): boolean {
  return history.some(({ thread, called, returned, input }) =>
    !READS.has(input.action) &&
    history.some((other) =>
      other.thread !== thread && other.input.key === input.key &&
      other.called < returned && called < other.returned
    )
  );
}

const READS = new Set<Action>(["get", "has", "version", "section"]);

/** What a history is that nothing explains. */
export class NotLinearizable extends Error {}

function judge(
  order: number[] | undefined,
  history: Operation<Input>[],
  initial: number[],
): void {
  if (order !== undefined) return;
  const shown = showHistory(history, ({ action, key, value, contents }) => {
    const written = contents ?? (value === undefined ? "" : `, ${value}`);
    return `${action}(${key}${written})`;
  });
  throw new NotLinearizable(`No order explains, from ${initial}:\n${shown}`);
}

/** How much is explored. */
export interface Effort {
  /** Most plans. */
  plans: number;
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
  /** Rounds that were played and looked at. */
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
    { plans, time = Infinity, asIs = false }: Effort,
  ): Promise<fc.RunDetails<[Plan]>> {
    const end = performance.now() + time;
    const plan = anyPlan(this.#scenario, this.#workers.length);
    const property = fc.asyncProperty(plan, async (plan) => {
      if (this.rounds === 0 || performance.now() < end) await this.#play(plan);
    });
    return fc.check(property, { numRuns: plans, endOnFailure: asIs });
  }

  async #play(plan: Plan): Promise<void> {
    this.#control.fill(0);
    const batch: Batch = { plan, first: this.rounds, rounds: ROUNDS };
    await Promise.all(
      this.#workers.map((worker) => worker.call("play", batch)),
    );
    const logs = new Logs(this.#logs);
    for (let i = 0; i < ROUNDS; i++) {
      if (check(this.#scenario, plan, this.rounds++, logs)) this.overlaps++;
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
