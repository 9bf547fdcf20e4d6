/**
 * The part of `@std/testing/mock` that this project uses: functions and methods
 * whose calls are recorded. Names, signatures and meanings are the package's.
 */
import { AssertionError } from "./assert.ts";

/** Thrown when something cannot be spied on or restored. */
export class MockError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MockError";
  }
}

/** One recorded call. */
export interface SpyCall<
  // deno-lint-ignore no-explicit-any
  Self = any,
  // deno-lint-ignore no-explicit-any
  Args extends unknown[] = any[],
  // deno-lint-ignore no-explicit-any
  Return = any,
> {
  args: Args;
  returned?: Return;
  error?: Error;
  self?: Self;
}

/** A function that records its calls. */
export interface Spy<
  // deno-lint-ignore no-explicit-any
  Self = any,
  // deno-lint-ignore no-explicit-any
  Args extends unknown[] = any[],
  // deno-lint-ignore no-explicit-any
  Return = any,
> {
  (this: Self, ...args: Args): Return;
  original: (this: Self, ...args: Args) => Return;
  calls: SpyCall<Self, Args, Return>[];
  restored: boolean;
  restore(): void;
}

/** A method that records its calls until it is restored. */
export interface MethodSpy<
  // deno-lint-ignore no-explicit-any
  Self = any,
  // deno-lint-ignore no-explicit-any
  Args extends unknown[] = any[],
  // deno-lint-ignore no-explicit-any
  Return = any,
> extends Spy<Self, Args, Return>, Disposable {}

// deno-lint-ignore no-explicit-any
type Method = (this: any, ...args: any[]) => any;

function record(original: Method, behaviour: Method): Spy {
  const calls: SpyCall[] = [];
  function spied(this: unknown, ...args: unknown[]): unknown {
    const call: SpyCall = { args };
    if (this) call.self = this;
    try {
      return call.returned = behaviour.apply(this, args);
    } catch (error) {
      call.error = error as Error;
      throw error;
    } finally {
      calls.push(call);
    }
  }
  return Object.assign(spied, {
    original,
    calls,
    restored: false,
    restore(): void {
      throw new MockError("Cannot restore: function cannot be restored");
    },
  });
}

function replace(self: object, property: PropertyKey, by?: Method): MethodSpy {
  const own = Object.getOwnPropertyDescriptor(self, property);
  const original = Reflect.get(self, property);
  if (typeof original !== "function") {
    throw new MockError(
      `Cannot spy: property ${String(property)} is not an instance method`,
    );
  }
  if ("calls" in original && "original" in original) {
    throw new MockError("Cannot spy: already spying on instance method");
  }
  if (own?.configurable === false) {
    throw new MockError("Cannot spy: non-configurable instance method");
  }
  const spied = record(original, by ?? original);
  function restore(): void {
    if (spied.restored) {
      throw new MockError("Cannot restore: instance method already restored");
    }
    if (own) Object.defineProperty(self, property, own);
    else Reflect.deleteProperty(self, property);
    spied.restored = true;
  }
  Object.defineProperty(self, property, {
    configurable: true,
    enumerable: own?.enumerable ?? false,
    writable: true,
    value: spied,
  });
  return Object.assign(spied, { restore, [Symbol.dispose]: restore });
}

type MethodOf<Self, Prop extends keyof Self> = Self[Prop] extends
  (...args: infer Args) => infer Return ? MethodSpy<Self, Args, Return> : never;

/** Makes a recording function, or records the calls of an object's method. */
export function spy<
  // deno-lint-ignore no-explicit-any
  Self = any,
  // deno-lint-ignore no-explicit-any
  Args extends unknown[] = any[],
  Return = undefined,
>(): Spy<Self, Args, Return>;
export function spy<Self, Args extends unknown[], Return>(
  func: (this: Self, ...args: Args) => Return,
): Spy<Self, Args, Return>;
export function spy<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
): MethodOf<Self, Prop>;
export function spy(target: unknown = () => {}, property?: PropertyKey): Spy {
  if (property !== undefined) return replace(target as object, property);
  return record(target as Method, target as Method);
}

/** Replaces an object's method by `func`, or by nothing, and records calls. */
export function stub<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
  func?: Self[Prop],
): MethodOf<Self, Prop>;
export function stub(
  self: object,
  property: PropertyKey,
  func: Method = () => {},
): MethodSpy {
  return replace(self, property, func);
}

/** Asserts how many calls a spy has recorded. */
export function assertSpyCalls<Self, Args extends unknown[], Return>(
  spy: Spy<Self, Args, Return>,
  expectedCalls: number,
): void {
  if (spy.calls.length === expectedCalls) return;
  throw new AssertionError(
    `Expected ${expectedCalls} calls of the spy: received ${spy.calls.length}`,
  );
}
