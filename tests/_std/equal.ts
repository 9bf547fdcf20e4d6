/**
 * `equal` of `@std/assert`, whose rules are not those of `node:util`: 0 equals
 * -0, a prototype of null equals that of `{}`, and what an instance inherits
 * (its accessors above all) is compared too.
 */

type Loose = Record<PropertyKey, unknown>;

const TypedArray = Object.getPrototypeOf(Uint8Array);

/** Classes whose instances keep their state where no key leads to it. */
const COMPARED_AS_TEXT = [RegExp, URL, URLSearchParams, Intl.Locale];

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function same(a: unknown, b: unknown): boolean {
  return a === b || Object.is(a, b);
}

function kind(value: object): object {
  return Object.getPrototypeOf(value) ?? Object.prototype;
}

/** Own enumerable keys of plain values; for instances every key on the chain. */
function keysOf(value: object): Set<PropertyKey> {
  if (kind(value) === Object.prototype || kind(value) === Array.prototype) {
    return new Set(Reflect.ownKeys({ ...value }));
  }
  const keys = new Set<PropertyKey>();
  for (
    let at: object | null = value;
    at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  ) {
    for (const key of Reflect.ownKeys(at)) keys.add(key);
  }
  return keys;
}

class Comparison {
  /** Pairs under comparison: a cycle that comes back to one holds so far. */
  readonly #open = new Map<object, object>();

  equal(a: unknown, b: unknown): boolean {
    if (same(a, b)) return true;
    if (!isObject(a) || !isObject(b) || kind(a) !== kind(b)) return false;
    if (a instanceof Date) {
      return Object.is(a.getTime(), (b as Date).getTime());
    }
    if (a instanceof WeakMap || a instanceof WeakSet) {
      throw new TypeError(`Cannot compare ${a.constructor.name} instances`);
    }
    if (a instanceof WeakRef) {
      return this.equal(a.deref(), (b as WeakRef<WeakKey>).deref());
    }
    if (a instanceof TypedArray) {
      return this.#elements(a as Uint8Array, b as Uint8Array);
    }
    if (a instanceof ArrayBuffer || a instanceof SharedArrayBuffer) {
      return this.#elements(
        new Uint8Array(a),
        new Uint8Array(b as ArrayBufferLike),
      );
    }
    if (COMPARED_AS_TEXT.some((type) => type.prototype === kind(a))) {
      return String(a) === String(b);
    }
    if (this.#open.get(a) === b) return true;
    if (Object.keys(a).length !== Object.keys(b).length) return false;
    this.#open.set(a, b);
    if (a instanceof Map) return this.#entries(a, b as Map<unknown, unknown>);
    if (a instanceof Set) {
      return this.#entries(
        new Map(a.entries()),
        new Map((b as Set<unknown>).entries()),
      );
    }
    return this.#properties(a as Loose, b as Loose);
  }

  #elements(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!same(a[i], b[i])) return false;
    return true;
  }

  #entries(a: Map<unknown, unknown>, b: Map<unknown, unknown>): boolean {
    if (a.size !== b.size) return false;
    for (const [key, value] of a) {
      // A primitive key is found by itself, an object only by its contents.
      const found = isObject(key)
        ? b.entries().some(([other, its]) =>
          this.equal(key, other) && this.equal(value, its)
        )
        : b.has(key) && this.equal(value, b.get(key));
      if (!found) return false;
    }
    return true;
  }

  #properties(a: Loose, b: Loose): boolean {
    for (const key of keysOf(a).union(keysOf(b))) {
      if (key in a !== key in b || !this.equal(a[key], b[key])) return false;
    }
    return true;
  }
}

/** Tells whether two values are deeply equal. */
export function equal(a: unknown, b: unknown): boolean {
  return new Comparison().equal(a, b);
}
