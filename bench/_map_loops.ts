/**
 * The loops of the map benchmarks. Each kind of map has its own, as one that
 * is shared would be compiled for all of them at once, and so would do for
 * none; each returns something that depends on every result.
 */
import type { RcuMap } from "../mod.ts";

/** A value that programs keep. */
export interface Route {
  prefix: string;
  asn: number;
}

export function readNumbers(
  map: Map<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum = (sum + map.get(keys[i])!) | 0;
  return sum;
}

export function readRcuNumbers(
  map: RcuMap<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum = (sum + map.get(keys[i])!) | 0;
  return sum;
}

/** Reads some of the keys of a list, and returns a sum. */
export type ObjectReader = (keys: string[], from: number, to: number) => number;

// Closures over the map, as in a program that has its map in a `const` of a module: the engine
// takes it for a constant. The bodies are written twice, so that each learns of one kind of map.

export function objectReader(map: Map<string, Route>): ObjectReader {
  return (keys, from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum = (sum + map.get(keys[i])!.asn) | 0;
    return sum;
  };
}

export function rcuObjectReader(map: RcuMap<string, Route>): ObjectReader {
  return (keys, from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum = (sum + map.get(keys[i])!.asn) | 0;
    return sum;
  };
}

export function setNumbers(
  map: Map<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], i);
  return map.size;
}

export function setRcuNumbers(
  map: RcuMap<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], i);
  return 0;
}

export function setDoubles(
  map: Map<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], i + 0.5);
  return map.size;
}

export function setRcuDoubles(
  map: RcuMap<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], i + 0.5);
  return 0;
}

export function setStrings(
  map: Map<number, string>,
  keys: Uint32Array,
  values: string[],
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], values[i]);
  return map.size;
}

export function setRcuStrings(
  map: RcuMap<number, string>,
  keys: Uint32Array,
  values: string[],
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], values[i]);
  return 0;
}

export function setObjects(
  map: Map<string, Route>,
  keys: string[],
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], route(keys[i], i));
  return map.size;
}

export function setRcuObjects(
  map: RcuMap<string, Route>,
  keys: string[],
  from: number,
  to: number,
): number {
  for (let i = from; i < to; i++) map.set(keys[i], route(keys[i], i));
  return 0;
}

export function deleteNumbers(
  map: Map<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  let deleted = 0;
  for (let i = from; i < to; i++) if (map.delete(keys[i])) deleted++;
  return deleted;
}

export function deleteRcuNumbers(
  map: RcuMap<number, number>,
  keys: Uint32Array,
  from: number,
  to: number,
): number {
  let deleted = 0;
  for (let i = from; i < to; i++) if (map.delete(keys[i])) deleted++;
  return deleted;
}

export function deleteObjects(
  map: Map<string, Route>,
  keys: string[],
  from: number,
  to: number,
): number {
  let deleted = 0;
  for (let i = from; i < to; i++) if (map.delete(keys[i])) deleted++;
  return deleted;
}

export function deleteRcuObjects(
  map: RcuMap<string, Route>,
  keys: string[],
  from: number,
  to: number,
): number {
  let deleted = 0;
  for (let i = from; i < to; i++) if (map.delete(keys[i])) deleted++;
  return deleted;
}

/** A value for a key. */
export function route(prefix: string, asn: number): Route {
  return { prefix, asn };
}
