// Asking which members of a domain have died, and having them buried.

import { windUp } from "./_estate.ts";
import { HEADER_DETECTOR, HEADER_MAX_READERS, layout } from "./_layout.ts";
import { ifDead } from "./_life.ts";
import { PROVABLE, ReaderTable } from "./readers/_slots.ts";

/** Between two inquests of a thread, in ms. */
const INTERVAL = 100;
/** Between two undertakers that a thread starts, in ms. */
const ELSEWHERE_INTERVAL = 1_000;

/** One thread's way to find out who has died. It need not be a member. */
export class Inquest {
  readonly #words: Int32Array;
  readonly #readers: ReaderTable;
  #running = false;
  #begun = -Infinity;
  #begunElsewhere = -Infinity;

  /** @param words The domain's words. */
  constructor(words: Int32Array) {
    const maxReaders = words[HEADER_MAX_READERS];
    const places = layout(words.length, maxReaders, words[HEADER_DETECTOR]);
    this.#words = words;
    this.#readers = new ReaderTable(words, places.readers, maxReaders);
  }

  /**
   * Asks after every member whose death can be proven, and winds up what the dead
   * leave. Costs a request for a Web Lock a member; keeps no process alive for
   * longer than that takes.
   */
  async run(): Promise<void> {
    const readers = this.#readers;
    const over = Promise.withResolvers<void>();
    const requests: Promise<void>[] = [];
    const answers: Promise<number>[] = [];
    for (let index = 0; index < readers.size; index++) {
      const life = readers.lifeOf(index);
      if ((life & PROVABLE) === 0) continue;
      const answer = Promise.withResolvers<number>();
      answers.push(answer.promise);
      const request = ifDead(this.#words, life, () => {
        // Who was granted the lock because it was given back finds another life there, or none.
        answer.resolve(readers.lifeOf(index) === life ? index : -1);
        return over.promise;
      });
      requests.push(request.finally(() => answer.resolve(-1)));
    }
    try {
      const dead = (await Promise.all(answers)).filter((index) => index >= 0);
      windUp(this.#words, dead);
    } finally {
      over.resolve();
    }
    await Promise.all(requests);
  }

  /** As {@linkcode Inquest.run}, now and then at most, for who has other things to do. */
  begin(): void {
    const now = performance.now();
    if (this.#running || now - this.#begun < INTERVAL) return;
    this.#begun = now;
    this.#running = true;
    this.run().catch(() => {}).finally(() => this.#running = false);
  }

  /**
   * Has another thread ask: the caller is about to block, so that nothing
   * can be proven to it. Starts a worker, where it may, if there is anybody who can have died.
   */
  beginElsewhere(): void {
    const now = performance.now();
    if (now - this.#begunElsewhere < ELSEWHERE_INTERVAL) return;
    this.#begunElsewhere = now;
    const readers = this.#readers;
    let suspects = false;
    for (let index = 0; index < readers.size; index++) {
      suspects ||= (readers.lifeOf(index) & PROVABLE) !== 0;
    }
    if (suspects) startUndertaker(this.#words);
  }
}

function startUndertaker(words: Int32Array): void {
  try {
    const url = new URL("./_undertaker_worker.ts", import.meta.url);
    const worker = new Worker(url, { type: "module", name: "@grace/rcu" });
    // Without the permission to load it there is no proof, and the wait ends as it would have.
    worker.onerror = (event) => {
      event.preventDefault();
      worker.terminate();
    };
    worker.onmessage = () => worker.terminate();
    worker.postMessage(words);
  } catch {
    // As above.
  }
}
