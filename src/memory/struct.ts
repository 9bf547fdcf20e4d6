// Structs: several values in one block.

import type { Address } from "./arena.ts";
import { BlockCodec, show, WordCodec } from "./_codec.ts";
import type { Codec } from "./codec.ts";
import { refuse, refuseField } from "./_refusal.ts";

/**
 * The fields of a struct: a name to a codec.
 *
 * @example Naming the shape
 * ```ts
 * import { f64, string, struct, type StructFields } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const fields = { name: string, weight: f64 } satisfies StructFields;
 * assertEquals(struct(fields).schema, "struct{name:string,weight:f64}");
 * ```
 */
// deno-lint-ignore no-explicit-any -- any codec can be a field
export type StructFields = Record<string, Codec<any, any>>;

/**
 * The object that a struct of some fields stands for.
 *
 * @typeParam F The fields.
 *
 * @example Deriving the type
 * ```ts
 * import { f64, string, type StructValue } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const fields = { name: string, weight: f64 };
 * const value: StructValue<typeof fields> = { name: "a", weight: 1 };
 * assertEquals(Object.keys(value), Object.keys(fields));
 * ```
 */
export type StructValue<F extends StructFields> = {
  -readonly [P in keyof F]: F[P] extends Codec<infer T, infer _View> ? T
    : never;
};

/**
 * What a view of a struct shows: each field decoded when it is looked at.
 *
 * @typeParam F The fields.
 *
 * @example The type of a view
 * ```ts
 * import { f64, type StructView, string } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const fields = { name: string, weight: f64 };
 * const view: StructView<typeof fields> = { name: "a", weight: 1 };
 * assertEquals(view.weight, 1);
 * ```
 */
export type StructView<F extends StructFields> = {
  readonly [P in keyof F]: F[P] extends Codec<infer _T, infer View> ? View
    : never;
};

interface Field {
  name: string;
  /** Where its word, or the distance to its block, stands. */
  offset: number;
  word: WordCodec<unknown> | undefined;
  block: BlockCodec<unknown, unknown, unknown> | undefined;
}

type Row = Record<string, unknown>;

/** A word for each field, in order; blocks follow, at the distance that the word says. */
class Struct extends BlockCodec<Row, unknown[], Row> {
  readonly schema: string;
  readonly reusable = false;
  readonly #fields: Field[];

  constructor(fields: StructFields) {
    super();
    if (typeof fields !== "object" || fields === null) {
      throw new TypeError(
        `Cannot define a struct as its fields must be an object of codecs: received ${
          show(fields)
        }`,
      );
    }
    this.#fields = Object.entries(fields).map(([name, codec], offset) => {
      const word = codec instanceof WordCodec ? codec : undefined;
      const block = codec instanceof BlockCodec ? codec : undefined;
      if (word === undefined && block === undefined) {
        throw new TypeError(
          `Cannot define a struct as the field ${
            show(name)
          } must be a codec: received ${show(codec)}`,
        );
      }
      return { name, offset, word, block };
    });
    const parts = Object.entries(fields).map(([name, { schema }]) =>
      `${/^\w+$/.test(name) ? name : JSON.stringify(name)}:${schema}`
    );
    this.schema = `struct{${parts.join(",")}}`;
  }

  prepare(value: Row): unknown[] {
    if (typeof value !== "object" || value === null) {
      refuse(
        TypeError,
        `as ${this.schema} as it must be an object: received ${show(value)}`,
      );
    }
    let current = "";
    try {
      return this.#fields.map(({ name, word, block }) => {
        current = name;
        return word !== undefined
          ? word.toWord(value[name])
          : block!.prepare(value[name]);
      });
    } catch (error) {
      refuseField(error, current);
    }
  }

  measure(prepared: unknown[]): number {
    let size = this.#fields.length;
    for (const { block, offset } of this.#fields) {
      if (block !== undefined) size += block.measure(prepared[offset]);
    }
    return Math.max(size, 1);
  }

  write(words: Int32Array, address: Address, prepared: unknown[]): void {
    let end = this.#fields.length;
    for (const { block, offset } of this.#fields) {
      if (block === undefined) {
        words[address + offset] = prepared[offset] as number;
      } else {
        words[address + offset] = end;
        block.write(words, address + end, prepared[offset]);
        end += block.measure(prepared[offset]);
      }
    }
  }

  wordsAt(words: Int32Array, address: Address): number {
    let size = this.#fields.length;
    for (const { block, offset } of this.#fields) {
      if (block !== undefined) {
        size += block.wordsAt(words, address + words[address + offset]);
      }
    }
    return Math.max(size, 1);
  }

  read(words: Int32Array, address: Address): Row {
    const row: Row = {};
    for (const { name, offset, word, block } of this.#fields) {
      const at = words[address + offset];
      row[name] = word !== undefined
        ? word.fromWord(at)
        : block!.read(words, address + at);
    }
    return row;
  }

  view(
    words: Int32Array,
    address: Address,
    check: (() => void) | undefined,
  ): Row {
    const row: Row = {};
    for (const { name, offset, word, block } of this.#fields) {
      Object.defineProperty(row, name, {
        enumerable: true,
        get: () => {
          check?.();
          const at = words[address + offset];
          return word !== undefined
            ? word.fromWord(at)
            : block!.view(words, address + at, check);
        },
      });
    }
    return Object.freeze(row);
  }
}

/**
 * Objects with fixed fields, each with a codec of its own, in one block.
 * `get` returns a fresh object; `view` decodes a field when it is looked at.
 *
 * @typeParam F The fields.
 * @param fields A codec for each field.
 * @returns The codec.
 * @throws {TypeError} If `fields` is no object, or a field is not a codec.
 *
 * @example Looking at one field
 * ```ts
 * import { Rcu, RcuMap, string, struct, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const hosts = RcuMap.open(rcu, "hosts", {
 *   key: string,
 *   value: struct({ port: u32, banner: string }),
 * });
 * hosts.set("db", { port: 5432, banner: "welcome" });
 * assertEquals(rcu.read(() => hosts.view("db")?.port), 5432);
 * ```
 */
export function struct<const F extends StructFields>(
  fields: F,
): Codec<StructValue<F>, StructView<F>> {
  return new Struct(fields) as unknown as Codec<
    StructValue<F>,
    StructView<F>
  >;
}
