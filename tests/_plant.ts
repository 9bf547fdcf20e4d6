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

/** Replaces a method, and takes that back in the end; as {@linkcode replaceMethod}. */
export function patch<T extends object, K extends keyof T>(
  heals: DisposableStack,
  target: T,
  name: K,
  instead: Instead<T, K>,
): void {
  heals.defer(replaceMethod(target, name, instead));
}

/** Replaces a getter. */
export function patchGetter<T extends object, K extends keyof T>(
  heals: DisposableStack,
  target: T,
  name: K,
  instead: (value: T[K]) => T[K],
): void {
  const property = Object.getOwnPropertyDescriptor(target, name)!;
  heals.defer(() => Object.defineProperty(target, name, property));
  Object.defineProperty(target, name, {
    ...property,
    get(this: T) {
      return instead(property.get!.call(this));
    },
  });
}

export type Call = (
  words: Int32Array,
  address: number,
  ...of: number[]
) => number;

/** Replaces a function of `Atomics`, for all words. */
export function patchAtomic(
  heals: DisposableStack,
  name: "add" | "compareExchange" | "exchange" | "load" | "store",
  instead: (original: Call, ...of: Parameters<Call>) => number,
): void {
  patch(
    heals,
    Atomics as unknown as Record<string, Call>,
    name,
    (_, original, ...args) => instead(original, ...args),
  );
}

/** Does something as if no section were open. */
export function asIfOutside<R>(reader: Reader, act: () => R): R {
  const { depth } = reader;
  reader.depth = 0;
  const result = act();
  reader.depth = depth;
  return result;
}
