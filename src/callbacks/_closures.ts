// The closures whose turn has come.

/** Closures in the order in which they are run, one inside no other. */
export class Closures {
  readonly #onError: (error: unknown) => void;
  readonly #onDone: (count: number) => void;
  #ready: (() => void)[] = [];
  #running = false;

  /**
   * @param onError Gets what a closure threw.
   * @param onDone Gets how many have been run.
   */
  constructor(
    onError: (error: unknown) => void,
    onDone: (count: number) => void,
  ) {
    this.#onError = onError;
    this.#onDone = onDone;
  }

  /** Whether one is being run right now. */
  get running(): boolean {
    return this.#running;
  }

  /**
   * Runs closures, or leaves them to the call that is already running some.
   *
   * @param closures A list of closures.
   * @param from The first one.
   * @param to One past the last one.
   */
  run(closures: (() => void)[], from: number, to: number): void {
    // One by one: a call cannot have as many arguments as there may be closures.
    for (let i = from; i < to; i++) this.#ready.push(closures[i]);
    if (this.#running) return;
    this.#running = true;
    try {
      // A closure may wait for memory and so make further ones ready: they queue up behind.
      for (let i = 0; i < this.#ready.length; i++) {
        try {
          this.#ready[i]();
        } catch (error) {
          this.#onError(error);
        }
      }
    } finally {
      const count = this.#ready.length;
      this.#ready = [];
      this.#running = false;
      this.#onDone(count);
    }
  }
}
