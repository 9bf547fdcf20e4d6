// Callbacks that are counted, some of which throw.

import type { Rcu } from "../../mod.ts";
import { PATIENCE } from "../_workers.ts";
import { type Control, later } from "./_control.ts";
import { count, type Tally } from "./_tally.ts";

const EXPECTED = "A callback that throws";

/** The callbacks of one thread, whatever memberships it has had. */
export class Closures {
  readonly #control: Control;
  readonly #tally: Tally;
  readonly #left = new WeakSet<Rcu>();
  #queued = 0;
  #ran = 0;
  #thrown = 0;
  #reported = 0;

  constructor(control: Control, tally: Tally) {
    this.#control = control;
    this.#tally = tally;
  }

  /** Counts the errors of a membership that are expected, and notes the others. */
  listen(rcu: Rcu): void {
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      const { message } = event as ErrorEvent;
      if (message === EXPECTED) {
        this.#reported++;
        return;
      }
      this.#tally.errors.push(`"error" event: ${message}`);
      this.#control.fail();
    });
  }

  /** Closes a membership; its callbacks are still to run, but queue no others. */
  close(rcu: Rcu): void {
    this.#left.add(rcu);
    rcu.close();
  }

  /** Has something done after a grace period. */
  add(rcu: Rcu, callback: () => void = () => {}): void {
    this.#queued++;
    rcu.callRcu(() => {
      this.#ran++;
      count(this.#tally, "callbacks");
      callback();
    });
  }

  /** A callback that queues one, which queues one, and so on. */
  addChain(rcu: Rcu, length: number): void {
    this.add(rcu, () => {
      if (length > 1 && !this.#left.has(rcu)) this.addChain(rcu, length - 1);
    });
  }

  /** A callback that throws. */
  addThrowing(rcu: Rcu): void {
    this.add(rcu, () => {
      this.#thrown++;
      throw new Error(EXPECTED);
    });
  }

  /**
   * Waits until all have run, and those that they queued.
   *
   * @param wait What helps.
   */
  async finish(wait: () => Promise<void>): Promise<void> {
    const deadline = performance.now() + PATIENCE / 2;
    while (this.#ran < this.#queued) {
      if (performance.now() > deadline) {
        throw new Error(
          `${this.#queued - this.#ran} of ${this.#queued} callbacks never ran`,
        );
      }
      await wait();
      await later();
    }
    // The last one's event comes after it.
    await later();
    if (this.#thrown !== this.#reported) {
      throw new Error(
        `${this.#thrown} callbacks threw and ${this.#reported} "error" events came`,
      );
    }
    count(this.#tally, "thrown", this.#thrown);
    this.#thrown = this.#reported = 0;
  }
}
