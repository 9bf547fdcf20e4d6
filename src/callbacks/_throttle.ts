// How many ready callbacks a thread may do before it must let go.

/** More than a thread can have. */
export const UNLIMITED: number = 2 ** 30;

/** Where the flood is over: this part of `highWater` is left. The kernel's qhimark and qlowmark. */
const LOW_WATER = 100;

/**
 * The limit of the policy `throttled`: a batch is what may be done until
 * the thread has been back in its event loop, by way of a timer. Beyond `highWater`
 * the limit is lifted, until nearly nothing waits: throttling must not turn
 * a flood into a shortage of memory.
 */
export class Throttle {
  /** Ticks of 1 ms between a full batch and the next one. */
  readonly plugTicks: number;
  readonly #maxBatch: number;
  readonly #highWater: number;
  #left: number;
  #flooded = false;

  constructor(maxBatch: number, plugTicks: number, highWater: number) {
    this.plugTicks = plugTicks;
    this.#maxBatch = maxBatch;
    this.#highWater = highWater;
    this.#left = maxBatch;
  }

  /** How many callbacks may be done now; 0 once the batch is full. */
  get allowance(): number {
    return this.#flooded ? UNLIMITED : this.#left;
  }

  /**
   * Sees whether there is a flood, or it is over.
   *
   * @param pending How many callbacks wait.
   */
  watch(pending: number): void {
    if (pending >= this.#highWater) this.#flooded = true;
    else if (pending <= this.#highWater / LOW_WATER) this.#flooded = false;
  }

  /**
   * Counts callbacks before they are done: they may ask for more.
   *
   * @param count How many, within the allowance.
   */
  spend(count: number): void {
    this.#left = Math.max(0, this.#left - count);
  }

  /** A later turn has come. */
  replenish(): void {
    this.#left = this.#maxBatch;
  }
}
