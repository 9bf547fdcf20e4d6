// Structures of all kinds of values that stand for numbers.

import { type Codec, f64, json, string, u32 } from "../../mod.ts";
import { ABSENT, GARBAGE } from "./_plan.ts";

/** Which structure, with which keys and values. */
export interface Subject {
  structure: "cell" | "map" | "sortedMap";
  key: "u32" | "string";
  value: "u32" | "f64" | "string" | "json";
}

/** The codecs of the kinds. */
// deno-lint-ignore no-explicit-any -- any of the kinds
export const CODECS: Record<Subject["value"], Codec<any, any>> = {
  u32,
  f64,
  string,
  json: json(),
};

/**
 * What stands for a number that operations write.
 *
 * @param kind The kind of value.
 * @param n The number.
 * @returns The value.
 */
export function encode(kind: Subject["value"], n: number): unknown {
  switch (kind) {
    case "u32":
      return n;
    case "f64":
      return n + 0.5;
    case "string":
      return `value ${n}`;
    case "json":
      return { n, again: [n] };
  }
}

/**
 * The number that a value stands for.
 *
 * @param kind The kind of value.
 * @param value What a thread found.
 * @returns The number, ABSENT or GARBAGE.
 */
export function decode(kind: Subject["value"], value: unknown): number {
  if (value === undefined) return ABSENT;
  const n = numberIn(kind, value);
  return Number.isInteger(n) && n >= 0 ? n : GARBAGE;
}

function numberIn(kind: Subject["value"], value: unknown): number {
  switch (kind) {
    case "u32":
      return value as number;
    case "f64":
      return (value as number) - 0.5;
    case "string":
      return Number(/^value (\d+)$/.exec(value as string)?.[1]);
    case "json": {
      const { n, again } = value as { n: number; again: number[] };
      return again[0] === n ? n : NaN;
    }
  }
}
