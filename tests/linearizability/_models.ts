// What operations on a key, on a cell and on whole contents mean.

import type { Model, Operation } from "./_search.ts";
import { ABSENT, type Action, KEYS } from "./_plan.ts";

/** What an operation was asked to do. */
export interface Input {
  action: Action;
  key: number;
  /** What it writes; with `update`, what it adds. */
  value?: number;
  /** With `update`: what stands for a missing value. */
  missing?: number;
  /** With `replaceAll`: the values of all keys. */
  contents?: number[];
  /** With `section`: which section the read is part of. */
  section?: string;
  /** With `section`: whether it is the section's last read. */
  ends?: boolean;
}

/** Whether an operation that is about one key answered as it should have, and the value then. */
function stepOfKey(
  value: number,
  { input, output }: Operation<Input>,
): number | undefined {
  const present = value !== ABSENT;
  switch (input.action) {
    case "get":
      return output === value ? value : undefined;
    case "has":
      return output === Number(present) ? value : undefined;
    case "set":
      return input.value!;
    case "delete":
      return output === Number(present) ? ABSENT : undefined;
    case "getOrInsert": {
      const found = present ? value : input.value!;
      return output === found ? found : undefined;
    }
    case "update": {
      const next = (present ? value : input.missing!) + input.value!;
      return output === next ? next : undefined;
    }
    default:
      throw new Error(`Not about one key: ${input.action}`);
  }
}

/**
 * One key of a map.
 *
 * @param initial Its value at first, or {@linkcode ABSENT}.
 * @returns The model.
 */
export function keyModel(initial: number): Model<number, Input> {
  return { initial, step: stepOfKey, keyOf: (value) => value };
}

/** A cell's value, how often its version has moved, and who is about to move it. */
interface CellState {
  value: number;
  version: number;
  /** Called when it was: tells the change that shows already, while its version does not. */
  changing: number;
}

/**
 * A cell. A change takes effect in two steps, for its contract lets the value
 * be newer than the version, and never older: first the value shows, then, as
 * the operation `version` with {@linkcode Operation.after}, the version moves.
 *
 * @param value Its value at first.
 * @param version Its version at first.
 * @returns The model.
 */
export function cellModel(
  value: number,
  version: number,
): Model<CellState, Input> {
  return {
    initial: { value, version, changing: ABSENT },
    step: (state, operation) => {
      const { input, output, called, after } = operation;
      if (after !== undefined) {
        if (state.changing !== called) return undefined;
        const version = (state.version + 1) >>> 0;
        return { value: state.value, version, changing: ABSENT };
      }
      if (input.action === "version") {
        return output >>> 0 === state.version ? state : undefined;
      }
      const changes = input.action !== "get";
      if (changes && state.changing !== ABSENT) return undefined;
      const value = stepOfKey(state.value, operation);
      if (value === undefined) return undefined;
      return changes
        ? { value, version: state.version, changing: called }
        : state;
    },
    keyOf: ({ value, version, changing }) => `${value} ${version} ${changing}`,
  };
}

/**
 * Adds to each change of a cell the step in which its version moves.
 *
 * @param history The operations.
 * @returns They, and those steps.
 */
export function withVersions(
  history: readonly Operation<Input>[],
): Operation<Input>[] {
  const all = [...history];
  history.forEach((operation, index) => {
    const { action } = operation.input;
    if (action === "set" || action === "update") {
      all.push({
        ...operation,
        input: { action: "version", key: 0 },
        after: index,
      });
    }
  });
  return all;
}

/** The values of all keys, and what sections see that are open. */
interface ContentsState {
  contents: readonly number[];
  /** For each open section that has read: what was replaced meanwhile, or `undefined`. */
  pinned: ReadonlyMap<string, readonly number[] | undefined>;
}

const EMPTY: readonly number[] = new Array(KEYS).fill(ABSENT);

/**
 * A map whose contents are replaced as a whole. A section's reads are
 * operations of their own; from its first one on it sees one generation, with
 * the changes that it gets while it is the current one.
 *
 * @param initial The values of all keys at first.
 * @returns The model.
 */
export function contentsModel(
  initial: readonly number[],
): Model<ContentsState, Input> {
  return {
    initial: { contents: initial, pinned: new Map() },
    step: ({ contents, pinned }, operation) => {
      const { input, output } = operation;
      const { action, key } = input;
      switch (action) {
        case "replaceAll":
        case "clear": {
          const kept = new Map(
            [...pinned].map(([section, old]) => [section, old ?? contents]),
          );
          const next = action === "clear" ? EMPTY : input.contents!;
          return { contents: next, pinned: kept };
        }
        case "section": {
          const seen = pinned.get(input.section!) ?? contents;
          if (seen[key] !== output) return undefined;
          const next = new Map(pinned);
          if (input.ends) next.delete(input.section!);
          else if (!next.has(input.section!)) {
            next.set(input.section!, undefined);
          }
          return { contents, pinned: next };
        }
        default: {
          const value = stepOfKey(contents[key], operation);
          if (value === undefined) return undefined;
          return { contents: contents.with(key, value), pinned };
        }
      }
    },
    keyOf: ({ contents, pinned }) =>
      [contents, ...[...pinned].toSorted(([a], [b]) => a < b ? -1 : 1)]
        .join(" | "),
  };
}
