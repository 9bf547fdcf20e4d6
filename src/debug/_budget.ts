// A limit to the time that goes into something.

/** What may be spent at first, in ms. */
const CREDIT = 100;

/** A part of the time that passes, and some to begin with. */
export class Budget {
  readonly #share: number;
  // The cheapest clock there is.
  readonly #born = Date.now();
  #spent = 0;

  /** @param share The part. */
  constructor(share: number) {
    this.#share = share;
  }

  /** Whether nothing is left for now. */
  get isSpent(): boolean {
    return this.#spent >= CREDIT + (Date.now() - this.#born) * this.#share;
  }

  /**
   * Counts time.
   *
   * @param ms How long it took.
   */
  spend(ms: number): void {
    this.#spent += ms;
  }
}
