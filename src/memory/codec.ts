/**
 * How values of one type lie in shared memory. The codecs of this package are
 * `u32`, `i32`, `f64`, `string`, `bytes`, `json()` and `struct()`; there is no
 * way to make others.
 *
 * @typeParam T What goes in and comes out.
 * @typeParam View What a zero-copy view of a value is.
 *
 * @example Choosing codecs
 * ```ts
 * import { type Codec, f64, json, Rcu, RcuCell, struct, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const point: Codec<{ x: number; y: number }> = struct({ x: f64, y: f64 });
 * using rcu = Rcu.create();
 * const cell = RcuCell.open(rcu, "p", { value: point, initial: { x: 0.5, y: 2 } });
 * assertEquals(cell.get(), { x: 0.5, y: 2 });
 * assertEquals(point.schema, "struct{x:f64,y:f64}");
 * assertEquals([u32.schema, json().schema], ["u32", "json"]);
 * ```
 */
export interface Codec<T, View = T> {
  /** What the codec is called in error messages and comparisons of schemas. */
  readonly schema: string;
  /** The codec's types, for inference; nothing at run time. */
  readonly types: { value: T; view: View };
}

/**
 * A codec whose values can be keys: `u32`, `i32`, `f64`, `string` and `bytes`.
 *
 * @typeParam K What goes in and comes out.
 * @typeParam View What a zero-copy view of a key is.
 *
 * @example A map's key
 * ```ts
 * import { type KeyCodec, Rcu, RcuMap, string, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const key: KeyCodec<string> = string;
 * using rcu = Rcu.create();
 * const map = RcuMap.open(rcu, "m", { key, value: u32 });
 * assertEquals(map.set("a", 1).get("a"), 1);
 * ```
 */
export interface KeyCodec<K, View = K> extends Codec<K, View> {
  /** Marks codecs whose values can be keys. */
  readonly isKey: true;
}
