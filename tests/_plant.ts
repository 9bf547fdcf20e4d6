// What planting a fault takes, in whichever harness.

import type { Reader } from "../src/readers/_reader.ts";

// deno-lint-ignore no-explicit-any
export type Method = (...args: any) => any;

/** What takes a method's place: it gets its object, the old one, and the arguments. */
export type Instead<T, K extends keyof T> = T[K] extends Method ? (
    self: T,
    original: T[K],
    ...args: Parameters<T[K]>
  ) => ReturnType<T[K]>
  : never;

/**
 * Replaces a method.
 *
 * @returns Takes that back.
 */
export function replaceMethod<T extends object, K extends keyof T>(
  target: T,
  name: K,
  instead: Instead<T, K>,
): () => void {
  const original = target[name] as Method;
  target[name] = function (this: T, ...args: unknown[]) {
    return (instead as Method)(this, original.bind(this), ...args);
  } as T[K];
  return () => {
    target[name] = original as T[K];
  };
}

/** Does something as if no section were open. */
export function asIfOutside<R>(reader: Reader, act: () => R): R {
  const { depth } = reader;
  reader.depth = 0;
  const result = act();
  reader.depth = depth;
  return result;
}
