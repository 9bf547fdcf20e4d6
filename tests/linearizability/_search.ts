// Whether a history of operations that overlapped could have been one after the other.

/** An operation that a thread has done. */
export interface Operation<I> {
  /** Which thread. */
  readonly thread: number;
  /** A number drawn before it began: smaller than all that were drawn later. */
  readonly called: number;
  /** A number drawn after it had ended. */
  readonly returned: number;
  /** What it was asked to do. */
  readonly input: I;
  /** What it answered. */
  readonly output: number;
  /**
   * The operation of the same history that must take effect before this one, by
   * its index: for operations that take effect in two steps.
   */
  readonly after?: number;
}

/** What operations mean when they are done one after the other. */
export interface Model<S, I> {
  /** The state before the first one. */
  readonly initial: S;
  /**
   * Takes one step.
   *
   * @param state The state before.
   * @param operation The operation.
   * @returns The state after it, or `undefined` if it would have answered something else.
   */
  step(state: S, operation: Operation<I>): S | undefined;
  /**
   * Tells states apart.
   *
   * @param state A state.
   * @returns The same for equal states, and for no others.
   */
  keyOf(state: S): string | number;
}

/** Longest history: a set of its operations is a double. */
const LONGEST = 52;

/**
 * Looks for an order in which the operations of a history could have been done
 * one after the other, with the answers that they gave, each between its call
 * and its return: a linearization (Herlihy and Wing, "Linearizability: a
 * correctness condition for concurrent objects", 1990).
 *
 * The search is that of Wing and Gong ("Testing and verifying concurrent
 * objects", 1993): the next operation is one that was called before any other
 * of the rest returned. With the memory of Lowe ("Testing for linearizability",
 * 2017): which operations are done and what the state is then decides whether
 * the rest can be done, so no such pair is looked at twice.
 *
 * @param model What the operations mean.
 * @param history The operations, at most 52, in any order.
 * @returns Their indices in an order that explains them, or `undefined` if there is none.
 * @throws {RangeError} If there are more.
 */
export function linearize<S, I>(
  model: Model<S, I>,
  history: readonly Operation<I>[],
): number[] | undefined {
  const { length } = history;
  if (length > LONGEST) {
    throw new RangeError(
      `Cannot check a history as it must have at most ${LONGEST} operations: received ${length}`,
    );
  }
  const done = new Uint8Array(length);
  const order: number[] = [];
  const failed = new Set<string>();

  /** Whether the rest can be done from here on. */
  function explain(state: S, set: number): boolean {
    if (order.length === length) return true;
    const here = `${set} ${model.keyOf(state)}`;
    if (failed.has(here)) return false;
    let firstReturn = Infinity;
    for (let i = 0; i < length; i++) {
      if (done[i] === 0 && history[i].returned < firstReturn) {
        firstReturn = history[i].returned;
      }
    }
    for (let i = 0; i < length; i++) {
      const operation = history[i];
      const { called, after } = operation;
      if (done[i] !== 0 || called > firstReturn) continue;
      if (after !== undefined && done[after] === 0) continue;
      const next = model.step(state, operation);
      if (next === undefined) continue;
      done[i] = 1;
      order.push(i);
      if (explain(next, set + 2 ** i)) return true;
      order.pop();
      done[i] = 0;
    }
    failed.add(here);
    return false;
  }

  return explain(model.initial, 0) ? order : undefined;
}

/**
 * Shows a history, a line for each operation, in the order of their calls.
 *
 * @param history The operations.
 * @param show Describes what one was asked to do.
 * @returns The lines.
 */
export function showHistory<I>(
  history: readonly Operation<I>[],
  show: (input: I) => string,
): string {
  const seen = history.filter(({ after }) => after === undefined);
  return seen.toSorted((a, b) => a.called - b.called)
    .map(({ thread, called, returned, input, output }) =>
      `  ${called}..${returned} thread ${thread}: ${show(input)} → ${output}`
    ).join("\n");
}
