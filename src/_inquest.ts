// Asking which members of a domain have died, and having them buried.

import { windUp } from "./_estate.ts";
import { HEADER_DETECTOR, HEADER_MAX_READERS, layout } from "./_layout.ts";
import { Life, takeRoll } from "./_life.ts";
import { PROVABLE, ReaderTable } from "./readers/_slots.ts";

/** Between two inquests of a thread, in ms. */
const INTERVAL = 100;
/** Between the first two undertakers that a thread starts, in ms; twice that before each further one. */
const ELSEWHERE_INTERVAL = 500;
/** After so long without one, the next is the first again. */
const ELSEWHERE_FORGET = 20_000;

/** One thread's way to find out who has died. It need not be a member. */
export class Inquest {
  readonly #words: Int32Array;
  readonly #readers: ReaderTable;
  #running = false;
  #begun = -Infinity;
  #begunElsewhere = -Infinity;
  #interval = ELSEWHERE_INTERVAL;

  /** @param words The domain's words. */
  constructor(words: Int32Array) {
    const maxReaders = words[HEADER_MAX_READERS];
    const places = layout(words.length, maxReaders, words[HEADER_DETECTOR]);
    this.#words = words;
    this.#readers = new ReaderTable(words, places.readers, maxReaders);
  }

  /**
   * Asks after every member whose death can be proven, and winds up what the dead
   * leave. Costs one question for the Web Locks that there are; keeps no process
   * alive for longer than that takes.
   */
  async run(): Promise<void> {
    const readers = this.#readers;
    const lives: number[] = [];
    const buriers: number[] = [];
    for (let index = 0; index < readers.size; index++) {
      lives.push(readers.lifeOf(index));
      buriers.push(readers.burierOf(index));
    }
    if (lives.every((life) => (life & PROVABLE) === 0)) return;
    const roll = await takeRoll(this.#words);
    // Of a life that began later the roll says nothing.
    const known = new Set([...lives, ...buriers]);
    const isDead = (life: number) => known.has(life) && roll(life);
    if (!lives.some(isDead)) return;
    const me = new Life(this.#words);
    const dead: number[] = [];
    lives.forEach((life, index) => {
      if (
        isDead(life) && readers.claimBurial(index, life, me.mark, isDead)
      ) dead.push(index);
    });
    try {
      windUp(this.#words, dead);
    } finally {
      for (const index of dead) readers.leaveBurial(index, me.mark);
      me.end();
    }
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
    const since = now - this.#begunElsewhere;
    if (since < this.#interval) return;
    // Most who are waited for are not dead but slow, and starting workers makes them slower.
    this.#interval = since > ELSEWHERE_FORGET
      ? ELSEWHERE_INTERVAL
      : 2 * this.#interval;
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
