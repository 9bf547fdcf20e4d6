/**
 * `parseArgs` of `@std/cli/parse-args`, but for dotted names. Its ancestor on npm, `minimist`, cannot stand in for it, as it
 * collects all repeated flags, negates any, and reads other numbers.
 */

/** Options of {@linkcode parseArgs}. */
export interface ParseOptions<
  B extends string = string,
  S extends string = string,
  C extends string = string,
  D extends Record<string, unknown> = Record<string, unknown>,
> {
  /** Puts what follows `--` into the result's `--` instead of `_`. */
  "--"?: boolean;
  /** Other names of a flag. */
  alias?: Record<string, string | readonly string[]>;
  /** Flags without a value; `false` unless given. */
  boolean?: B | readonly B[];
  /** Values of flags that are not given. */
  default?: D;
  /** Puts all that follows the first non-flag into `_`. */
  stopEarly?: boolean;
  /** Flags whose value stays text. */
  string?: S | readonly S[];
  /** Flags whose values are gathered; of others the last one wins. */
  collect?: C | readonly C[];
  /** Flags that `--no-…` sets to `false`. */
  negatable?: string | readonly string[];
  /** Told what is declared nowhere; left out of the result if it returns `false`. */
  unknown?: (arg: string, key?: string, value?: unknown) => unknown;
}

type Declared<B extends string, S extends string, C extends string> =
  & { [K in Exclude<B, C>]: boolean }
  & { [K in Exclude<S, C>]?: string }
  & { [K in B & C]: boolean[] }
  & { [K in S & C]: string[] }
  & { [K in Exclude<C, B | S>]: unknown[] };

type Defaulted<T, D> =
  & Omit<T, keyof D>
  & {
    [K in keyof D]: K extends keyof T ? D[K] | NonNullable<T[K]> : unknown;
  };

/** What {@linkcode parseArgs} finds: `any` for a name only if none is declared. */
export type Args<
  B extends string = never,
  S extends string = never,
  C extends string = never,
  D = Record<never, never>,
> =
  & { _: (string | number)[]; "--"?: string[] }
  & Defaulted<Declared<B, S, C>, D>
  & Record<
    string,
    // deno-lint-ignore no-explicit-any
    [B | S | C] extends [never] ? any : unknown
  >;

function isNumber(text: string): boolean {
  return text.trim() !== "" && Number.isFinite(Number(text));
}

function typed(text: string): string | number {
  return isNumber(text) ? Number(text) : text;
}

/** The flags of one parse: what each name means and what was given so far. */
class Flags {
  readonly #aliases = new Map<string, Set<string>>();
  readonly booleans: Set<string>;
  readonly strings: Set<string>;
  readonly #collected: Set<string>;
  readonly negatable: Set<string>;
  readonly #unknown: NonNullable<ParseOptions["unknown"]>;
  readonly values: Record<string, unknown> = {};

  constructor(options: ParseOptions) {
    for (const [name, others] of Object.entries(options.alias ?? {})) {
      const all = [name, ...[others].flat()];
      for (const one of all) {
        this.#aliases.set(one, new Set(all.filter((other) => other !== one)));
      }
    }
    this.booleans = this.#named(options.boolean);
    this.strings = this.#named(options.string);
    this.#collected = this.#named(options.collect);
    this.negatable = this.#named(options.negatable);
    this.#unknown = options.unknown ?? (() => {});
  }

  #named(names: string | readonly string[] = []): Set<string> {
    return new Set([names].flat().flatMap((name) => this.#names(name)));
  }

  #names(name: string): string[] {
    return [name, ...(this.#aliases.get(name) ?? [])];
  }

  /** Whether a flag is to be left out; to be collected alone does not declare it. */
  #isRefused(name: string, value: unknown, arg: string): boolean {
    return !this.booleans.has(name) && !this.strings.has(name) &&
      !this.#aliases.has(name) && this.#unknown(arg, name, value) === false;
  }

  /** Sets a flag to what `arg` gives it. */
  set(name: string, value: unknown, arg: string): void {
    if (this.#isRefused(name, value, arg)) return;
    if (typeof value === "string" && !this.strings.has(name)) {
      value = typed(value);
    }
    for (const key of this.#names(name)) {
      const before = this.values[key];
      this.values[key] = this.#collected.has(name)
        ? [...(Array.isArray(before) ? before : []), value]
        : value;
    }
  }

  /** What a flag without a value stands for. */
  bare(name: string): string | boolean {
    return this.strings.has(name) ? "" : true;
  }

  negate(name: string, arg: string): void {
    if (this.#isRefused(name, false, arg)) return;
    for (const key of this.#names(name)) this.values[key] = false;
  }

  complete(defaults: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(defaults)) {
      if (name in this.values) continue;
      for (const key of this.#names(name)) this.values[key] = value;
    }
    for (const name of this.booleans) {
      this.values[name] ??= this.#collected.has(name) ? [] : false;
    }
    for (const name of this.strings) {
      if (this.#collected.has(name)) this.values[name] ??= [];
    }
  }
}

const LONG = /^--(?<negated>no-)?(?<name>.+?)(?:=(?<value>.+))?$/s;

/** Takes one `--flag` and, if it has one, its value from `queue`. */
function takeLong(flags: Flags, arg: string, queue: string[]): void {
  const groups = LONG.exec(arg)?.groups;
  let name = groups?.["name"] ?? "";
  const value = groups?.["value"];
  if (value !== undefined) {
    flags.set(name, flags.booleans.has(name) ? value !== "false" : value, arg);
    return;
  }
  if (groups?.["negated"]) {
    if (flags.negatable.has(name)) return flags.negate(name, arg);
    name = `no-${name}`;
  }
  const next = queue[0];
  if (next && !flags.booleans.has(name) && !next.startsWith("-")) {
    flags.set(name, queue.shift(), arg);
  } else if (next === "true" || next === "false") {
    flags.set(name, queue.shift() === "true", arg);
  } else {
    flags.set(name, flags.bare(name), arg);
  }
}

/** The value that follows `letter` in the same group, if one does. */
function attached(letter: string, rest: string): string | undefined {
  if (rest === "-") return rest;
  if (/[A-Za-z]/.test(letter)) {
    const value = /=(?<value>.+)/.exec(rest)?.groups?.["value"];
    if (value !== undefined) return value;
    if (/-?\d+(\.\d*)?(e-?\d+)?$/.test(rest)) return rest;
  }
  return rest.length > 1 && /^\W/.test(rest) ? rest : undefined;
}

/** Takes one group of letters, as `-v`, `-xvf` or `-n5`, and its value. */
function takeShort(flags: Flags, arg: string, queue: string[]): void {
  const last = arg.slice(-1);
  for (let i = 1; i < arg.length - 1; i++) {
    const value = attached(arg[i], arg.slice(i + 1));
    flags.set(arg[i], value ?? flags.bare(arg[i]), arg);
    if (value !== undefined) return;
  }
  const next = queue[0];
  if (next && !/^--?[^-]/.test(next) && !flags.booleans.has(last)) {
    flags.set(last, queue.shift(), arg);
  } else if (next === "true" || next === "false") {
    flags.set(last, queue.shift() === "true", arg);
  } else {
    flags.set(last, flags.bare(last), arg);
  }
}

/** Sorts command line arguments into flags and the rest. */
export function parseArgs<
  const B extends string = never,
  const S extends string = never,
  const C extends string = never,
  D extends Record<string, unknown> = Record<never, never>,
>(args: string[], options: ParseOptions<B, S, C, D> = {}): Args<B, S, C, D> {
  const flags = new Flags(options);
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  const queue = args.slice(0, end);
  const unparsed = args.slice(end + 1);
  const others: (string | number)[] = [];
  while (queue.length > 0) {
    const arg = queue.shift() ?? "";
    if (arg.startsWith("--")) {
      takeLong(flags, arg, queue);
    } else if (arg.startsWith("-") && arg !== "-") {
      takeShort(flags, arg, queue);
    } else {
      if (options.unknown?.(arg) !== false) {
        others.push(flags.strings.has("_") ? arg : typed(arg));
      }
      if (options.stopEarly) others.push(...queue.splice(0));
    }
  }
  flags.complete(options.default ?? {});
  return {
    ...flags.values,
    ...(options["--"]
      ? { _: others, "--": unparsed }
      : { _: [...others, ...unparsed] }),
  } as Args<B, S, C, D>;
}
