// Values that show when they are mixed up, and what readers look for in them.

import {
  type Codec,
  json,
  type KeyCodec,
  type Rcu,
  RcuMap,
  string,
  struct,
  u32,
} from "../mod.ts";

/** Kinds of values that a test can ask a worker for by name. */
export type Kind = "u32" | "string" | "json" | "struct";

const ROW = struct({ key: u32, text: string, version: u32, check: u32 });

/** The codecs of the kinds. */
// deno-lint-ignore no-explicit-any -- any of the kinds
export const CODECS: Record<Kind, Codec<any, any>> = {
  u32,
  string,
  json: json(),
  struct: ROW,
};

/**
 * Opens a map by the names of its codecs.
 *
 * @param rcu The domain.
 * @param name The map's name.
 * @param key The codec of its keys.
 * @param kind The kind of its values.
 * @returns The map.
 */
export function openMap<K extends number | string>(
  rcu: Rcu,
  name: string,
  key: "u32" | "string",
  kind: Kind,
): RcuMap<K, unknown> {
  const codec = (key === "u32" ? u32 : string) as unknown as KeyCodec<K>;
  return RcuMap.open<K, unknown>(rcu, name, {
    key: codec,
    value: CODECS[kind],
  });
}

/**
 * The n-th key.
 *
 * @param key The codec of the keys.
 * @param n The number.
 * @returns The key.
 */
export function keyAt(key: "u32" | "string", n: number): number | string {
  return key === "u32" ? n : `key ${n}`;
}

function checkOf(key: number, version: number): number {
  return (Math.imul(key + 1, 0x9e3779b1) ^ version) >>> 0;
}

/**
 * A value that says whose it is, in every part of it.
 *
 * @param kind The kind of value.
 * @param key The key's number, below 65,536.
 * @param version Which version it is, below 65,536.
 * @returns The value.
 */
export function valueOf(kind: Kind, key: number, version: number): unknown {
  const text = `${key}:${version}|`.repeat(1 + version % 7);
  switch (kind) {
    case "u32":
      return ((key << 16) | version) >>> 0;
    case "string":
      return text;
    case "json":
      return { key, version, text, check: checkOf(key, version) };
    case "struct":
      return { key, version, text, check: checkOf(key, version) };
  }
}

/**
 * Which version of a key a value is.
 *
 * @param kind The kind of value.
 * @param key The key's number.
 * @param value What a reader found.
 * @returns The version, or -1 if the value is not one of this key, or a mixture.
 */
export function versionIn(kind: Kind, key: number, value: unknown): number {
  if (kind === "u32") {
    return typeof value === "number" && value >>> 16 === key
      ? value & 0xffff
      : -1;
  }
  let text = value;
  let version: number;
  if (kind === "string") {
    version = Number.parseInt(String(value).split(":")[1]);
  } else {
    const row = value as Record<string, unknown> | null;
    if (typeof row !== "object" || row === null || row.key !== key) return -1;
    version = row.version as number;
    if (row.check !== checkOf(key, version)) return -1;
    text = row.text;
  }
  if (!Number.isInteger(version) || version < 0) return -1;
  return text === valueOf("string", key, version) ? version : -1;
}

/** What readers found that must not be. */
export interface Found {
  reads: number;
  /** Keys that are always there and were not. */
  missing: number;
  /** Values that are mixtures, another key's, or freed. */
  wrong: number;
  /** Values older than one that the same reader had seen. */
  older: number;
}

/** Looks at keys again and again. */
export class Watcher {
  readonly found: Found = { reads: 0, missing: 0, wrong: 0, older: 0 };
  readonly #map: RcuMap<number | string, unknown>;
  readonly #key: "u32" | "string";
  readonly #kind: Kind;
  readonly #newest = new Map<number, number>();

  constructor(
    map: RcuMap<number | string, unknown>,
    key: "u32" | "string",
    kind: Kind,
  ) {
    this.#map = map;
    this.#key = key;
    this.#kind = kind;
  }

  /**
   * Looks at one key.
   *
   * @param n The key's number.
   * @param always Whether it is always there, with ever newer versions.
   */
  look(n: number, always: boolean): void {
    const { found } = this;
    const value = this.#map.get(keyAt(this.#key, n));
    found.reads++;
    if (value === undefined) {
      if (always) found.missing++;
      return;
    }
    const version = versionIn(this.#kind, n, value);
    if (version < 0) found.wrong++;
    else if (always) {
      if (version < (this.#newest.get(n) ?? 0)) found.older++;
      this.#newest.set(n, version);
    }
  }
}
