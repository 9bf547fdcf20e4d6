// Planting faults, and taking them back.

import { Reader } from "../../src/readers/_reader.ts";

/** A fault, and the scenarios in which each exploration must find it. */
export interface Planted {
  scenarios: readonly string[];
  /** Whether it takes seconds to find. */
  rare?: boolean;
  /** @param heals Takes back what was done. */
  plant(heals: DisposableStack): void;
}

// deno-lint-ignore no-explicit-any
export type Method = (...args: any) => any;

/** Replaces a method; the new one gets its object, the old one, and the arguments. */
export function patch<T extends object, K extends keyof T>(
  heals: DisposableStack,
  target: T,
  name: K,
  instead: T[K] extends Method ? (
      self: T,
      original: T[K],
      ...args: Parameters<T[K]>
    ) => ReturnType<T[K]>
    : never,
): void {
  const original = target[name] as Method;
  heals.defer(() => target[name] = original as T[K]);
  target[name] = function (this: T, ...args: unknown[]) {
    return (instead as Method)(this, original.bind(this), ...args);
  } as T[K];
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
export function asIfOutside(reader: Reader, act: () => void): void {
  const { depth } = reader;
  reader.depth = 0;
  act();
  reader.depth = depth;
}
