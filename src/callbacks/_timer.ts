// A timer that keeps the process alive only while it is told to.

interface Unrefable {
  ref(): void;
  unref(): void;
}

/** What a timer is to do, and when. */
interface Wish {
  task: () => void;
  ms: number;
}

/**
 * A one-shot timer whose hold on the process can be changed while it runs.
 *
 * A microtask sets it, for updates start it, wherever on the stack they are: the
 * timers of the runtime take more of the stack than an update, and if it overflows in
 * them, all timers of the process may be lost.
 */
export class Timer {
  #id: ReturnType<typeof setTimeout> | undefined;
  #wish: Wish | undefined;
  #queued = false;
  #held = false;

  /** Whether it is running. */
  get armed(): boolean {
    return this.#id !== undefined || this.#wish !== undefined;
  }

  /**
   * Starts it; does nothing while it runs.
   *
   * @param task What to do in a later turn.
   * @param ms How much later, in ms.
   */
  start(task: () => void, ms: number): void {
    if (this.armed) return;
    // First: if there is no room on the stack for the call, nothing has happened.
    if (!this.#queued) queueMicrotask(this.#set);
    this.#queued = true;
    this.#wish = { task, ms };
  }

  readonly #set = (): void => {
    this.#queued = false;
    const wish = this.#wish;
    // It may have been stopped.
    if (wish === undefined) return;
    this.#wish = undefined;
    this.#id = setTimeout(() => {
      this.#id = undefined;
      wish.task();
    }, wish.ms);
    if (!this.#held) hold(this.#id, false);
  };

  /**
   * Says whether the process has to live until the timer fires.
   *
   * @param held Whether it has to.
   */
  keepAlive(held: boolean): void {
    if (held === this.#held) return;
    if (this.#id !== undefined) hold(this.#id, held);
    this.#held = held;
  }

  /** Stops it. */
  stop(): void {
    this.#wish = undefined;
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
