// An explicit read section.

import { heldAcrossAwait, type Reader } from "./_reader.ts";

/** An open read section. Disposing of it a second time does nothing. */
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
    reader.exit();
    if (held) throw heldAcrossAwait();
  }
}
