// A codec in whose middle another member of the domain does something: two threads' steps in an
// order that a test chooses, on one thread.

import { BlockKeyCodec } from "../src/memory/_codec.ts";
import type { Address } from "../src/memory/arena.ts";
import { Rcu, RcuMap, type RcuOptions, u32 } from "../mod.ts";

/**
 * Keys from 0 to 2^32 - 1 whose hash is the key without its 8 low bits: a test
 * decides which keys share a hash, a bucket, a stripe. Each comparison and
 * each decoding is a place for {@linkcode at}.
 */
export class ChosenHash extends BlockKeyCodec<number> {
  readonly schema: string;
  readonly reusable = false;
  /** Called in the middle of a walk through a chain. */
  at: () => void = () => {};

  /** @param schema `"string"` makes the map keep versions and a thread-private cache. */
  constructor(schema = "chosen") {
    super();
    this.schema = schema;
  }
  prepare(key: number): number {
    return key;
  }
  prepareKey(key: number): number {
    return key;
  }
  measure(): number {
    return 1;
  }
  wordsAt(): number {
    return 1;
  }
  write(words: Int32Array, address: Address, key: number): void {
    words[address] = key;
  }
  read(words: Int32Array, address: Address): number {
    const key = words[address] >>> 0;
    this.at();
    return key;
  }
  view(words: Int32Array, address: Address): number {
    return words[address] >>> 0;
  }
  hash(key: number): number {
    return key >>> 8;
  }
  equals(words: Int32Array, address: Address, key: number): boolean {
    const same = words[address] >>> 0 === key;
    this.at();
    return same;
  }
  compare(words: Int32Array, address: Address, key: number): number {
    const stored = words[address] >>> 0;
    this.at();
    return stored - key;
  }
}

/**
 * A key whose hash has given bits.
 *
 * @param hash The hash, up to 24 bits.
 * @param which Tells keys of one hash apart, up to 255.
 * @returns The key.
 */
export function keyOf(hash: number, which = 0): number {
  return ((hash << 8) | which) >>> 0;
}

/** Two members of one domain and their views of one map. */
export interface Pair extends Disposable {
  /** The member that is interrupted. */
  mine: RcuMap<number, number>;
  /** The member that acts meanwhile. */
  other: RcuMap<number, number>;
  rcu: Rcu;
  /**
   * Lets `act` happen at the n-th step of `mine`, once.
   *
   * @param n The step, from 0.
   * @param act What the other member does.
   */
  interrupt(n: number, act: () => void): void;
  /** Steps since the last `interrupt`. */
  readonly steps: number;
}

/**
 * Opens a map of chosen hashes twice.
 *
 * @param capacity The map's initial capacity.
 * @param schema The schema of its keys.
 * @param options The domain's options.
 * @returns Both views.
 */
export function openPair(
  capacity = 0,
  schema = "chosen",
  options: RcuOptions = {},
): Pair {
  const rcu = Rcu.create({
    capacity: 2 ** 23,
    maxReaders: 8,
    debug: true,
    ...options,
  });
  const member = Rcu.attach(rcu.handle);
  const key = new ChosenHash(schema);
  const mine = RcuMap.open<number, number>(rcu, "m", {
    key,
    value: u32,
    capacity,
  });
  const other = RcuMap.open<number, number>(member, "m", {
    key: new ChosenHash(schema),
    value: u32,
  });
  // An iteration asks for the hash of every node that it comes to: another place in a walk.
  const { _table } = mine as unknown as {
    _table: { hashOf(node: number): number };
  };
  const { hashOf } = _table;
  _table.hashOf = (node) => {
    const hash = hashOf.call(_table, node);
    key.at();
    return hash;
  };
  let steps = 0;
  return {
    mine,
    other,
    rcu,
    get steps() {
      return steps;
    },
    interrupt(n, act) {
      steps = 0;
      key.at = () => {
        if (steps++ !== n) return;
        act();
      };
    },
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

/**
 * Makes a map grow, then shrink to where it was if no other key keeps it large.
 *
 * @param map The map.
 * @param count How many keys come and go; their hashes have `from` as lowest.
 * @param from The first hash.
 */
export function growAndShrink(
  map: RcuMap<number, number>,
  count: number,
  from = 0x10000,
): void {
  for (let i = 0; i < count; i++) map.set(keyOf(from + i), 0);
  for (let i = 0; i < count; i++) map.delete(keyOf(from + i));
}
