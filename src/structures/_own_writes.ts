// Noticing that the function of an update writes what is being updated.

import type { Membership } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";

/** The updates of this thread that are in a second attempt or a later one; the innermost one is on top. */
let top: OwnWrites | undefined;

/** Attempts in a row that a function may spoil by itself: more than one that stops doing it needs. */
const MOST_SPOILT = 8;

/**
 * Looks over the shoulder of an update that was not fast enough. It tries again
 * whenever another writer was faster, but a function that writes the same
 * place itself always is.
 *
 * 1. It is on the stack while the function runs, and while its result is
 *    encoded, which may run `toJSON` or a getter. It is not while the result is
 *    published, so the update's own write does not count.
 * 2. Callbacks that happen to run meanwhile are not the function's. Their
 *    writes do not count, unless the update is in a callback itself; then no
 *    other one runs meanwhile.
 * 3. It knows of the writes of this thread alone, so what other threads do
 *    cannot make it speak up.
 */
export class OwnWrites {
  readonly #membership: Membership;
  readonly #place: Address;
  readonly #key: unknown;
  readonly #inCallback: boolean;
  #below: OwnWrites | undefined;
  #found = false;
  #spoilt = 0;

  /**
   * @param membership The updating thread's membership.
   * @param place The structure's first word.
   * @param key The key as it is compared, or `undefined` if there is one value only.
   */
  constructor(membership: Membership, place: Address, key: unknown) {
    this.#membership = membership;
    this.#place = place;
    this.#key = key;
    this.#inCallback = membership.callbacks.running;
  }

  /**
   * Looks from here on, until {@linkcode end}. Throws if the function has
   * spoilt too many attempts by then.
   *
   * @param act What the caller was about to do, for the error.
   */
  beginAgain(act: string): void {
    this.#spoilt = this.#found ? this.#spoilt + 1 : 0;
    if (this.#spoilt === MOST_SPOILT) {
      throw new Error(
        `Cannot ${act} as its function must not write the same place itself: it did so again and again`,
      );
    }
    this.#found = false;
    this.#below = top;
    top = this;
  }

  /** Stops looking. */
  end(): void {
    top = this.#below;
  }

  /**
   * Takes note of a write for all updates that are running.
   *
   * @param membership The writing thread's membership.
   * @param place The structure's first word.
   * @param key The key, or `undefined` for all that there are.
   */
  static note(membership: Membership, place: Address, key: unknown): void {
    for (let own = top; own !== undefined; own = own.#below) {
      own.#note(membership, place, key);
    }
  }

  #note({ callbacks, words }: Membership, place: Address, key: unknown): void {
    const { callbacks: mine, words: here } = this.#membership;
    if (place !== this.#place || words.buffer !== here.buffer) return;
    const inCallback = callbacks.running || mine.running;
    if (inCallback !== this.#inCallback) return;
    if (key === undefined || isSameKey(key, this.#key)) this.#found = true;
  }
}

/**
 * Takes note of a write.
 *
 * @param membership The writing thread's membership.
 * @param place The structure's first word.
 * @param key The key as it is compared; `undefined` for all that there are.
 */
export function noteWrite(
  membership: Membership,
  place: Address,
  key: unknown,
): void {
  // Hardly ever: nothing is noted where no update is in its second attempt.
  if (top !== undefined) OwnWrites.note(membership, place, key);
}

function isSameKey(key: unknown, other: unknown): boolean {
  return key instanceof Uint8Array && other instanceof Uint8Array
    ? key.length === other.length && key.every((byte, i) => byte === other[i])
    : Object.is(key, other);
}
