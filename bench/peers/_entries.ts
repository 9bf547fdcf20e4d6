/** Entries for the comparison of shared maps. */
import { routeTemplates } from "../_string_keys.ts";

/** A value: a small object, as configurations have. */
export interface Target {
  to: string;
  weight: number;
}

export type Entries = [string, Target][];

function target(i: number): Target {
  return { to: `10.${i >> 16}.${i >> 8 & 255}.${i & 255}`, weight: i };
}

/** 811 real route templates, each with an object. */
export async function routeEntries(): Promise<Entries> {
  return (await routeTemplates()).map((route, i) => [route, target(i)]);
}

/** As many as wanted: keys of some 20 characters, every string and object new. */
export function entriesOf(count: number): Entries {
  return Array.from(
    { length: count },
    (_, i) => [`tenant-${i}.example.org`, target(i)],
  );
}
