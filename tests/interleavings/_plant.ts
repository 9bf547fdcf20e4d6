// Planting faults, and taking them back.

import { type Instead, replaceMethod } from "../_plant.ts";

/** A fault, and the scenarios in which each exploration must find it. */
export interface Planted {
  scenarios: readonly string[];
  /** Whether it takes seconds to find. */
  rare?: boolean;
  /** @param heals Takes back what was done. */
  plant(heals: DisposableStack): void;
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
