// From what threads wrote down to a verdict.

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
  type Plan,
  type Step,
  updated,
  valueOf,
} from "./_plan.ts";
import type { Scenario } from "./_scenarios.ts";
import { linearize, type Operation, showHistory } from "./_search.ts";

/** Reads what threads wrote down about one round after the other. */
export class Logs {
  readonly #logs: Int32Array[];
  readonly #at: number[];

  /**
   * @param logs What each thread wrote down.
   */
  constructor(logs: Int32Array[]) {
    this.#logs = logs;
    this.#at = logs.map(() => 0);
  }

  /**
   * The next thing that a thread did.
   *
   * @param thread The thread.
   * @param input What it was asked to do.
   * @returns The operation.
   */
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
 * @param scenario What the round was about.
 * @param plan What threads did.
 * @param round Its number.
 * @param logs What they wrote down.
 * @throws {NotLinearizable} If there is none.
 * @returns Whether there was something to explain: a change while another thread was at the same key.
 */
export function check(
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
