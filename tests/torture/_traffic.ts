// Maps and cells beside the elements, whose values say what they are.

import {
  type Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  string,
  u32,
} from "../../mod.ts";
import { count } from "./_tally.ts";
import type { Kit } from "./_thread.ts";

const KEYS = 64;
/** A text is so many digits, once and in reverse: of one length, whatever it says. */
const DIGITS = 8;

/** The maps and the cell of a domain, as one membership sees them. */
export class Traffic {
  readonly #kit: Kit;
  readonly #rcu: Rcu;
  readonly #text: RcuCell<string>;
  readonly #map: RcuMap<number, string>;
  readonly #sorted: RcuSortedMap<number, string>;

  constructor(rcu: Rcu, kit: Kit) {
    const { text, map, sorted } = Traffic.open(rcu);
    this.#kit = kit;
    this.#rcu = rcu;
    this.#text = text;
    this.#map = map;
    this.#sorted = sorted;
  }

  /** Opens what there is. */
  static open(rcu: Rcu) {
    const types = { key: u32, value: string };
    return {
      text: RcuCell.open(rcu, "text", { value: string, initial: textOf(0) }),
      map: RcuMap.open(rcu, "map", types),
      sorted: RcuSortedMap.open(rcu, "sorted", types),
    };
  }

  /** Leaves everything as it was at first. No other thread writes. */
  static reset(rcu: Rcu): void {
    const { text, map, sorted } = Traffic.open(rcu);
    text.set(textOf(0));
    map.clear();
    sorted.clear();
  }

  /** A leaf read of the cell. */
  readText(): void {
    const text = this.#text.get();
    this.#expect(text.length === 2 * DIGITS && isText(text));
  }

  /** Reads what others write. */
  read(): void {
    const { random, tally } = this.#kit;
    count(tally, "map reads");
    for (const map of [this.#map, this.#sorted]) {
      for (let i = 0; i < KEYS; i++) {
        const key = random.below(KEYS);
        this.#expect(isOf(key, map.get(key)));
      }
    }
    this.#rcu.read(() => {
      let last = -1;
      for (const [key, value] of this.#sorted) {
        this.#expect(key > last && isOf(key, value));
        last = key;
      }
      for (const [key, value] of this.#map) this.#expect(isOf(key, value));
    });
    this.readText();
  }

  /** Changes something. */
  write(): void {
    const { random, tally } = this.#kit;
    count(tally, "map writes");
    this.#text.set(textOf(random.below(10 ** DIGITS)));
    for (const map of [this.#map, this.#sorted]) {
      const key = random.below(KEYS);
      switch (random.below(6)) {
        case 0:
          map.delete(key);
          break;
        case 1:
          map.update(key, (old) => valueOf(key, old?.length ?? 0));
          break;
        case 2:
          if (random.oneIn(20)) {
            map.replaceAll(
              Array.from({ length: KEYS / 2 }, (_, i) => [i, valueOf(i, i)]),
            );
          } else map.getOrInsert(key, valueOf(key, 1));
          break;
        default:
          map.set(key, valueOf(key, random.below(1_000)));
      }
    }
  }

  #expect(right: boolean): void {
    if (right) return;
    this.#kit.tally.torn++;
    this.#kit.control.fail();
  }
}

function textOf(n: number): string {
  const digits = `${n}`.padStart(DIGITS, "0");
  return digits + [...digits].reverse().join("");
}

function isText(text: string): boolean {
  return text === textOf(Number(text.slice(0, DIGITS)));
}

/** A value of a key; of many lengths. */
function valueOf(key: number, n: number): string {
  return `${key}:${"=".repeat(n % 50)}${key}`;
}

function isOf(key: number, value: string | undefined): boolean {
  return value === undefined ||
    value.startsWith(`${key}:`) && value.endsWith(`${key}`);
}
