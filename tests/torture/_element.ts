// What is published: an element, and the places where it can be found.

import { type Address, type Rcu, RcuCell, u32 } from "../../mod.ts";
import { POISON } from "../../src/memory/_heap.ts";
import { PIPE, type Tally } from "./_tally.ts";

// An element. A free block's first word may be a link, so that is where the age is.
/** Grace periods that have ended since it was unlinked, the unlinking itself counted as one. */
const AGE = 0;
const MAGIC = 1;
/** Like no other element's. */
const SERIAL = 2;
/** The complement of the serial. */
const CHECK = 3;
const ELEMENT_WORDS = 4;

const ELEMENT = 0x70727475;

/** What a reader has found, and what it was then. */
export interface Sight {
  element: Address;
  serial: number;
}

/** Places that are pointers; as many are cells. */
const POINTERS = 2;
/** Where elements can be found. */
export const PLACES: number = 2 * POINTERS;

/** The places of elements, as one membership sees them. */
export class Places {
  readonly #rcu: Rcu;
  readonly #pointers: Address;
  readonly #cells: RcuCell<number>[];

  /**
   * @param rcu The membership.
   * @param pointers Where the pointers are.
   */
  constructor(rcu: Rcu, pointers: Address) {
    this.#rcu = rcu;
    this.#pointers = pointers;
    this.#cells = Places.openCells(rcu);
  }

  /** Makes the pointers of a domain; the cells are there. */
  static create(rcu: Rcu): Address {
    const pointers = rcu.memory.allocate(POINTERS);
    for (let i = 0; i < POINTERS; i++) rcu.assignPointer(pointers + i, 0);
    return pointers;
  }

  /** Opens the cells, each of which holds the address of an element. */
  static openCells(rcu: Rcu): RcuCell<number>[] {
    return Array.from(
      { length: POINTERS },
      (_, i) => RcuCell.open(rcu, `place ${i}`, { value: u32, initial: 0 }),
    );
  }

  /** What is at a place, or 0. Inside a section. */
  find(place: number): Address {
    return place < POINTERS
      ? this.#rcu.dereference(this.#pointers + place)
      : this.#cells[place - POINTERS].get();
  }

  /** Puts an element, or 0, in a place, and so unlinks the one that was there. */
  publish(place: number, element: Address): void {
    if (place < POINTERS) {
      this.#rcu.assignPointer(this.#pointers + place, element);
    } else {
      this.#cells[place - POINTERS].set(element);
    }
  }
}

/** Makes an element that nobody can find yet. */
export function createElement(rcu: Rcu, serial: number): Address {
  const { memory } = rcu;
  const { words } = memory;
  const element = memory.allocate(ELEMENT_WORDS);
  Atomics.store(words, element + AGE, 0);
  words[element + MAGIC] = ELEMENT;
  words[element + SERIAL] = serial;
  words[element + CHECK] = ~serial;
  return element;
}

/** Notes that an element was unlinked, or that another period has ended; returns its age. */
export function age(words: Int32Array, element: Address): number {
  return Atomics.add(words, element + AGE, 1) + 1;
}

/** Finds an element in a place, or `undefined`. Inside a section. */
export function see(
  words: Int32Array,
  places: Places,
  place: number,
): Sight | undefined {
  const element = places.find(place);
  if (element === 0) return undefined;
  return { element, serial: words[element + SERIAL] };
}

/**
 * Looks again at what was found in the section, and counts what it is like.
 *
 * @returns Whether it is as it has to be.
 */
export function judge(
  words: Int32Array,
  { element, serial }: Sight,
  tally: Tally,
): boolean {
  const magic = Atomics.load(words, element + MAGIC);
  const isSame = magic === ELEMENT &&
    Atomics.load(words, element + SERIAL) === serial &&
    Atomics.load(words, element + CHECK) === ~serial;
  if (magic === POISON) tally.poisoned++;
  else if (!isSame) tally.reused++;
  else {
    const found = Atomics.load(words, element + AGE);
    tally.ages[Math.min(found, PIPE)]++;
    return found < 2;
  }
  return false;
}
