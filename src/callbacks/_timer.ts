// A timer that keeps the process alive only while it is told to.

interface Unrefable {
  ref(): void;
  unref(): void;
}

/** A one-shot timer whose hold on the process can be changed while it runs. */
export class Timer {
  #id: ReturnType<typeof setTimeout> | undefined;
  #held = false;

  /** Whether it is running. */
  get armed(): boolean {
    return this.#id !== undefined;
  }

  /**
   * Starts it; does nothing while it runs.
   *
   * @param task What to do in a later turn.
   * @param ms How much later, in ms.
   */
  start(task: () => void, ms: number): void {
    if (this.#id !== undefined) return;
    this.#id = setTimeout(() => {
      this.#id = undefined;
      task();
    }, ms);
    if (!this.#held) hold(this.#id, false);
  }

  /**
   * Says whether the process has to live until the timer fires.
   *
   * @param held Whether it has to.
   */
  keepAlive(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    if (this.#id !== undefined) hold(this.#id, held);
  }

  /** Stops it. */
  stop(): void {
    clearTimeout(this.#id);
    this.#id = undefined;
  }
}

/** Deno numbers its timers, Node.js has objects; elsewhere a timer holds nothing. */
function hold(id: unknown, held: boolean): void {
  const deno = (globalThis as {
    Deno?: { refTimer(id: number): void; unrefTimer(id: number): void };
  }).Deno;
  if (typeof id === "number") {
    if (held) deno?.refTimer(id);
    else deno?.unrefTimer(id);
  } else if (held) {
    (id as Unrefable).ref();
  } else {
    (id as Unrefable).unref();
  }
}
