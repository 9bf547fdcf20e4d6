// An explicit read section.

import type { Reader } from "./_reader.ts";

/**
 * An open read section. Disposing of it a second time does nothing.
 *
 * @example Ending it early
 * ```ts
 * import { Rcu, type ReadSection } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const section: ReadSection = rcu.readLock();
 * section[Symbol.dispose]();
 * section[Symbol.dispose]();
 * assertEquals(section.open, false);
 * ```
 */
export interface ReadSection extends Disposable {
  /** Whether it is still open. */
  readonly open: boolean;
}

/** What `readLock` returns. */
export class OpenSection implements ReadSection {
  #reader: Reader | undefined;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  get open(): boolean {
    return this.#reader !== undefined;
  }

  [Symbol.dispose](): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    this.#reader = undefined;
    const { held } = reader;
    // As in `Rcu.read`.
    if (--reader.depth === 0) reader.leave();
    if (held) throw reader.heldAcrossAwait();
  }
}
