// Bad arguments: values of every kind, in place of an argument or deep inside one.

import fc from "fast-check";

/** What the caller's own code throws, where a value has some: passed on as it is. */
export const MINE: Error = new Error("thrown by the caller's own value");

function throws(): never {
  throw MINE;
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

const DESCENDS: ProxyHandler<object> = {
  get: throws,
  has: throws,
  ownKeys: throws,
  getPrototypeOf: throws,
  getOwnPropertyDescriptor: throws,
};

/** Objects whose own code, or the engine in their name, throws when they are looked at. */
const HOSTILE: Readonly<Record<string, unknown>> = {
  proxy: new Proxy({}, DESCENDS),
  "proxy of an array": new Proxy([], DESCENDS),
  "proxy of a function": new Proxy(() => {}, { ...DESCENDS, apply: throws }),
  "revoked proxy": revoked({}),
  "revoked proxy of an array": revoked([]),
  "revoked proxy of a function": revoked(() => {}),
  "object that will not be converted": {
    toJSON: throws,
    toString: throws,
    valueOf: throws,
    then: throws,
  },
  "object that will not be primitive": { [Symbol.toPrimitive]: throws },
  "iterable without an iterator": { [Symbol.iterator]: throws },
  "object that will not say if it is iterable": Object.defineProperty(
    {},
    Symbol.iterator,
    { get: throws },
  ),
  "array that hides an element": Object.defineProperty([1, 2], "0", {
    get: throws,
  }),
  "iterable that fails in the middle": {
    *[Symbol.iterator]() {
      yield ["a", 1];
      throw MINE;
    },
  },
  "function that throws": throws,
  "class that is no function": class {},
  "array whose memory is gone": detached(),
};

const circle: unknown[] = [];
circle.push(circle);

const ORDINARY: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.5,
  NaN,
  Infinity,
  -Infinity,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  5e-324,
  0n,
  2n ** 64n,
  "",
  "1",
  "a",
  "\0",
  "\ud800",
  "__proto__",
  "constructor",
  "10.0.0.1",
  "10.0.0.0/8",
  "10.0.0.1/8",
  "::1",
  "x".repeat(5000),
  Symbol("s"),
  Symbol.iterator,
  {},
  [],
  [[]],
  [[1]],
  circle,
  new Array(3),
  Object.create(null),
  Object.freeze({}),
  { length: -1 },
  { length: 2 ** 53, 0: 1 },
  { then: 5 },
  new Date(NaN),
  /x/,
  new Map([[1, 2]]),
  new Set(["a"]),
  new Error("e"),
  Promise.resolve(1),
  new ArrayBuffer(8),
  new SharedArrayBuffer(8),
  new Uint8Array([1, 2]),
  new Uint8Array(new SharedArrayBuffer(4)),
  new Float64Array(1),
  new DataView(new ArrayBuffer(4)),
  () => {},
  () => 1,
  async () => {},
  function* () {
    yield 1;
  },
  AbortSignal.abort(MINE),
  new AbortController(),
];

const anyOrdinary: fc.Arbitrary<unknown> = fc.oneof(
  { arbitrary: fc.constantFrom(...ORDINARY), weight: 3 },
  {
    arbitrary: fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
      maxDepth: 2,
    }),
    weight: 1,
  },
);

/** Where garbage goes: which argument, and how to get to a part of it. */
export interface Spoiling {
  readonly argument: number;
  readonly path: readonly number[];
  readonly garbage: unknown;
  /** What is put there instead, by its name: fast-check itself looks at its values. */
  readonly hostile: string | undefined;
}

/**
 * Every value in place of every argument.
 *
 * @param count How many arguments there are.
 * @returns Ways to spoil them.
 */
export function* everySpoiling(count: number): Generator<Spoiling> {
  for (let argument = 0; argument < count; argument++) {
    const whole = { argument, path: [] };
    for (const garbage of ORDINARY) {
      yield { ...whole, garbage, hostile: undefined };
    }
    for (const hostile of Object.keys(HOSTILE)) {
      yield { ...whole, garbage: undefined, hostile };
    }
  }
}

/** Ways to spoil arguments, deep inside them, too. */
export const anySpoiling: fc.Arbitrary<Spoiling> = fc.record({
  argument: fc.nat(3),
  path: fc.array(fc.nat(9), { maxLength: 3 }),
  garbage: anyOrdinary,
  hostile: fc.option(fc.constantFrom(...Object.keys(HOSTILE)), {
    freq: 3,
    nil: undefined,
  }),
});

/**
 * Puts garbage in the place of an argument, or of a part of it: a field, an
 * element, what a function returns.
 *
 * @param args The arguments.
 * @param spoiling What to put where.
 * @returns Arguments, one of which is not what it should be.
 */
export function spoil(
  args: readonly unknown[],
  { argument, path, garbage, hostile }: Spoiling,
): unknown[] {
  const bad = hostile === undefined ? garbage : HOSTILE[hostile];
  const spoilt = [...args];
  const at = argument % args.length;
  spoilt[at] = replace(args[at], path, bad);
  return spoilt;
}

function replace(
  value: unknown,
  [step, ...rest]: readonly number[],
  garbage: unknown,
): unknown {
  if (step === undefined) return garbage;
  if (typeof value === "function") {
    return (...args: unknown[]) => replace(value(...args), rest, garbage);
  }
  if (Array.isArray(value)) {
    const copy = [...value];
    const at = step % (copy.length + 1);
    copy[at] = replace(copy[at], rest, garbage);
    return copy;
  }
  if (
    typeof value === "object" && value !== null &&
    Object.getPrototypeOf(value) === Object.prototype
  ) {
    const names = Object.keys(value);
    if (names.length === 0) return garbage;
    const name = names[step % names.length];
    const part = (value as Record<string, unknown>)[name];
    return { ...value, [name]: replace(part, rest, garbage) };
  }
  return garbage;
}
