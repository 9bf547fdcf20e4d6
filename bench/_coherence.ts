/**
 * Memory as many processors share it: code that was written for `Int32Array` and
 * `Atomics` runs on it unchanged, and each access costs what the state of its
 * cache line makes it cost.
 */

/** What accesses cost, in ns. Of the order of a two-socket server's, and the same for all contenders. */
export const COSTS = {
  /** An access to a line that the processor has. */
  hit: 1,
  /** A line that another processor's cache has, or memory. */
  transfer: 80,
  /** How long a line that is on its way keeps the next one waiting. */
  handover: 80,
  /** What an atomic read-modify-write takes beyond the access. */
  atomic: 6,
} as const;

/** Words of a line. */
const LINE_SHIFT = 4;
/** The owner of a line that several processors may have. */
const NOBODY = -1;

interface Line {
  /** The processor that alone has it and may write it. */
  owner: number;
  /** Those that have a copy. */
  sharers: Set<number>;
  /** From when on it can go to another processor. */
  freeAt: number;
}

/** A processor that runs one operation after another. */
export class Processor {
  readonly index: number;
  /** Its time, in ns. */
  clock = 0;
  /** What it has spent on lines that it did not have. */
  waited = 0;

  constructor(index: number) {
    this.index = index;
  }
}

const ATOMICS = [
  "add",
  "and",
  "compareExchange",
  "exchange",
  "load",
  "or",
  "store",
  "sub",
] as const;

type Access = (...access: unknown[]) => unknown;
type Method = (...args: number[]) => unknown;

/** Shared memory with caches that keep each other right (MESI, without the difference of E and M). */
export class CoherentMemory implements Disposable {
  /** What the code under study gets in the place of its words. */
  readonly words: Int32Array;
  readonly #words: Int32Array;
  readonly #lines = new Map<number, Line>();
  readonly #originals = new Map<string, Access>();
  #processor: Processor | undefined;

  constructor(words: Int32Array) {
    this.#words = words;
    this.words = new Proxy(words, {
      get: (target, key) => {
        if (typeof key !== "string" || !isIndex(key)) {
          const value = Reflect.get(target, key, target) as unknown;
          return typeof value === "function"
            ? this.#method(key, value as Method)
            : value;
        }
        this.#touch(Number(key), false);
        return target[Number(key)];
      },
      set: (target, key, value: number) => {
        if (typeof key !== "string") return false;
        this.#touch(Number(key), true);
        target[Number(key)] = value;
        return true;
      },
    });
    const atomics = Atomics as unknown as Record<string, Access>;
    for (const name of ATOMICS) {
      const original = atomics[name];
      this.#originals.set(name, original);
      atomics[name] = (array, index, ...rest) => {
        if (array !== this.words) return original(array, index, ...rest);
        this.#touch(index as number, name !== "load");
        if (this.#processor !== undefined && name !== "load") {
          this.#processor.clock += COSTS.atomic;
        }
        return original(this.#words, index, ...rest);
      };
    }
  }

  /** Gives `Atomics` back. */
  [Symbol.dispose](): void {
    Object.assign(Atomics, Object.fromEntries(this.#originals));
  }

  /** Runs something on a processor, on its clock. Elsewhere accesses cost nothing. */
  run(processor: Processor, act: () => void): void {
    this.#processor = processor;
    try {
      act();
    } finally {
      this.#processor = undefined;
    }
  }

  /** Methods work on the words themselves; those that write a range touch its lines. */
  #method(name: string | symbol, method: Method): Method {
    return (...args: number[]) => {
      if (name === "fill") this.#touchRange(args[1], args[2]);
      if (name === "copyWithin") {
        this.#touchRange(args[0], args[0] + args[2] - args[1]);
      }
      return Reflect.apply(method, this.#words, args);
    };
  }

  #touchRange(from: number, to: number): void {
    for (let at = from; at < to; at += 1 << LINE_SHIFT) this.#touch(at, true);
  }

  #touch(address: number, writes: boolean): void {
    const processor = this.#processor;
    if (processor === undefined) return;
    processor.clock += COSTS.hit;
    const { index } = processor;
    const number = address >>> LINE_SHIFT;
    let line = this.#lines.get(number);
    if (line === undefined) {
      line = { owner: NOBODY, sharers: new Set(), freeAt: 0 };
      this.#lines.set(number, line);
    }
    if (line.owner === index) return;
    if (!writes && line.sharers.has(index)) return;
    const begin = Math.max(processor.clock, line.freeAt);
    line.freeAt = begin + COSTS.handover;
    processor.waited += begin + COSTS.transfer - processor.clock;
    processor.clock = begin + COSTS.transfer;
    if (writes) {
      line.owner = index;
      line.sharers.clear();
    } else {
      if (line.owner !== NOBODY) line.sharers.add(line.owner);
      line.owner = NOBODY;
    }
    line.sharers.add(index);
  }
}

function isIndex(key: string): boolean {
  const first = key.charCodeAt(0);
  return first >= 48 && first <= 57;
}

/**
 * Lets processors run, always the one whose clock is behind.
 *
 * @param processors The processors.
 * @param operations How many operations there are in all.
 * @param operate Runs one.
 */
export function simulate(
  processors: Processor[],
  operations: number,
  operate: (processor: Processor) => void,
): void {
  // A binary heap by clock.
  const heap = [...processors].sort((a, b) => a.clock - b.clock);
  for (let i = 0; i < operations; i++) {
    const first = heap[0];
    operate(first);
    let at = 0;
    while (true) {
      let next = 2 * at + 1;
      if (next >= heap.length) break;
      if (next + 1 < heap.length && heap[next + 1].clock < heap[next].clock) {
        next++;
      }
      if (heap[next].clock >= first.clock) break;
      heap[at] = heap[next];
      at = next;
    }
    heap[at] = first;
  }
}
