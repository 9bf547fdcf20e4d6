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

  /** Whether some are left that a call was about to run when it ended early. */
  get waiting(): boolean {
    return !this.#running && this.#ready.length > 0;
  }

  /** Whether one is being run right now. */
  get running(): boolean {
    return this.#running;
  }

  /**
   * Runs closures, after those that are left, or leaves them to the call that is
   * already running some. Should it end early, because an error cannot be
   * reported, then those that have not been run are left for the next call.
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
    let done = 0;
    try {
      // A closure may wait for memory and so make further ones ready: they queue up behind.
      while (done < this.#ready.length) {
        const closure = this.#ready[done++];
        try {
          const result = closure() as unknown;
          // An async function: nobody else looks at its promise.
          if (result instanceof Promise) result.catch(this.#onError);
        } catch (error) {
          this.#onError(error);
        }
      }
    } finally {
      this.#ready = this.#ready.slice(done);
      this.#running = false;
      this.#onDone(done);
    }
  }
}
