// The news that a thread has died.

/**
 * What is known of a thread that has died.
 *
 * @example Naming it
 * ```ts
 * import { ReaderLostEvent, type ReaderLostEventInit } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const init: ReaderLostEventInit = {
 *   readerId: 3,
 *   name: "worker",
 *   lostCallbacks: 1,
 * };
 * assertEquals(new ReaderLostEvent(init).name, "worker");
 * ```
 */
export interface ReaderLostEventInit {
  /** The `readerId` that it had. Another thread may have it by now. */
  readerId: number;
  /** Its name, or `""`; a long one may be cut short. */
  name: string;
  /** Closures that it had passed to `callRcu` and that will never run. */
  lostCallbacks: number;
}

/**
 * Dispatched by every {@linkcode Rcu} with a listener for `"readerlost"`, once for each
 * worker that has died without `close()`, or after it with closures that had not run (its name is
 * `""` then): by the time it is dispatched, what the thread had has been taken over. Of more
 * deaths than twice `maxReaders` during one turn of the listener's thread, it hears of the last ones.
 *
 * @example Hearing of a worker that has died
 * ```ts
 * import { Rcu, ReaderLostEvent } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const lost: string[] = [];
 * rcu.addEventListener("readerlost", (event) => {
 *   lost.push(`${event.name} (${event.lostCallbacks} callbacks)`);
 * });
 * // What the Rcu does by itself when a worker has died:
 * const init = { readerId: 1, name: "worker", lostCallbacks: 2 };
 * rcu.dispatchEvent(new ReaderLostEvent(init));
 * assertEquals(lost, ["worker (2 callbacks)"]);
 * ```
 */
export class ReaderLostEvent extends Event {
  /** The `readerId` that the thread had. Another one may have it by now. */
  readonly readerId: number;
  /** Its name, or `""`; a long one may be cut short. */
  readonly name: string;
  /** Closures that it had passed to `callRcu` and that will never run. */
  readonly lostCallbacks: number;

  /**
   * Made by the package, and by tests of whoever listens.
   *
   * @param init What is known of the thread.
   */
  constructor(init: ReaderLostEventInit) {
    super("readerlost");
    this.readerId = init.readerId;
    this.name = init.name;
    this.lostCallbacks = init.lostCallbacks;
  }
}
