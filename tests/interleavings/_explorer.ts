// A thread's side of an exploration: it plays its part in one run after the other.

import {
  ABORTED,
  type BoardBuffers,
  clearBoard,
  DESCRIBE,
  FAILURE,
  failureOf,
  forgetShared,
  GREW,
  learnShared,
  putFailure,
  putSchedule,
  readEvents,
  RESCUES,
  STOP,
  TOP,
} from "./_board.ts";
import { messageOf, play, realNow, watch } from "./_hooks.ts";
import { type Line, Player } from "./_player.ts";
import type { Part, Scenario, Scene } from "./_scenario.ts";
import { type Schedule, seedOf } from "./_schedule.ts";
import { Search } from "./_search.ts";

/** Words beyond those that a scenario lays out which every run restores. */
const MARGIN = 1 << 13;

/** A schedule under which something fails. */
export interface Found {
  /** Its seed. */
  schedule: string;
  /** What failed. */
  message: string;
}

/** How far an exploration is. */
export interface Progress {
  /** Schedules run, by preemptions, since the set of shared words was last found wanting. */
  runs: number[];
  /** Schedules run in all. */
  all: number;
  /** Known schedules that have not been run. */
  left: number;
  /** Most steps of a run. */
  steps: number;
  found: Found | undefined;
  /** What memory was in the end, a number for each state; if that was asked for. */
  outcomes: number[];
  /** Whether all schedules have been run. */
  complete: boolean;
}

/** What is explored. */
export interface Scope {
  /** Preemptions at most. */
  preemptions: number;
  /** Whether schedules that are equivalent to others are run all the same. */
  unreduced?: boolean;
  /** Whether to keep what memory was in the end. */
  keepsOutcomes?: boolean;
}

/** One thread of an exploration. */
export class Explorer {
  readonly #board: BoardBuffers;
  readonly #buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #scenario: Scenario;
  readonly #player: Player;
  readonly #scene: Scene;
  #snapshot = new Int32Array(0);
  #scope: Scope = { preemptions: 0 };
  #search = new Search(0, 0, true);
  #outcomes = new Set<number>();
  #all = 0;
  #steps = 0;

  /**
   * @param board The board of all threads.
   * @param words The memory.
   * @param scenario What is explored.
   * @param me Which thread this is; the first one leads.
   * @param scene What the first thread laid out; `undefined` in the first thread.
   */
  constructor(
    board: BoardBuffers,
    words: Int32Array,
    scenario: Scenario,
    me: number,
    scene: Scene | undefined,
  ) {
    this.#board = board;
    this.#words = words;
    this.#buffer = words.buffer as SharedArrayBuffer;
    this.#scenario = scenario;
    const player = new Player(board, me, scenario.threads);
    this.#player = player;
    let naps: number[] = [];
    watch(words, player, {
      spins: scenario.spins ?? false,
      naps: (address) => naps.includes(address),
    });
    this.#scene = scene ?? this.#lay();
    naps = scenario.naps?.(this.#buffer, this.#scene) ?? [];
  }

  /** What the other threads have to know. */
  get scene(): Scene {
    return this.#scene;
  }

  #lay(): Scene {
    this.#words.fill(0);
    const scene = this.#scenario.lay(this.#buffer);
    const used = this.#words.findLastIndex((word) => word !== 0) + 1;
    this.#snapshot = this.#words.slice(0, used + MARGIN);
    return scene;
  }

  // The first thread

  /**
   * Begins an exploration.
   *
   * @param scope What is explored.
   */
  begin(scope: Scope): void {
    const { preemptions, unreduced = false } = scope;
    forgetShared(this.#board, unreduced);
    this.#scope = scope;
    const { threads } = this.#scenario;
    this.#search = new Search(preemptions, threads, !unreduced);
    this.#outcomes.clear();
    this.#all = 0;
    this.#steps = 0;
  }

  /**
   * Goes on with an exploration.
   *
   * @param time How long, in ms.
   * @param most How many runs at most.
   */
  async explore(time: number, most: number): Promise<Progress> {
    const end = realNow() + time;
    let found: Found | undefined;
    let complete = false;
    for (let i = 0; i < most && realNow() < end; i++) {
      const schedule = this.#search.next();
      complete = schedule === undefined;
      if (schedule === undefined) break;
      const message = await this.#run(schedule);
      this.#all++;
      if (message !== undefined) {
        found = { schedule: seedOf(schedule), message };
        break;
      }
      const events = readEvents(this.#board);
      this.#steps = Math.max(this.#steps, events.at(-1)?.step ?? 0);
      if (this.#board.words[GREW] === 0) this.#search.ran(events);
      else {
        // What was taken for a thread's own is not: every run may have more places to preempt.
        learnShared(this.#board);
        const { threads } = this.#scenario;
        this.#search = new Search(this.#scope.preemptions, threads, true);
      }
    }
    this.#release();
    const { runs, left } = this.#search;
    return {
      runs,
      left,
      all: this.#all,
      steps: this.#steps,
      found,
      outcomes: [...this.#outcomes],
      complete,
    };
  }

  /**
   * Runs one schedule.
   *
   * @param schedule The schedule.
   * @returns What failed, if something did.
   */
  async replay(schedule: Schedule): Promise<string | undefined> {
    const { words } = this.#board;
    words[DESCRIBE] = 1;
    try {
      return await this.#run(schedule);
    } finally {
      this.#release();
      words[DESCRIBE] = 0;
    }
  }

  /** Lets the other threads go until the next call. */
  #release(): void {
    this.#board.words[STOP] = 1;
    for (let other = 1; other < this.#scenario.threads; other++) {
      this.#player.pass(other);
    }
  }

  async #run(schedule: Schedule): Promise<string | undefined> {
    const { words } = this.#board;
    clearBoard(this.#board);
    words[STOP] = 0;
    putSchedule(words, schedule);
    const snapshot = this.#snapshot;
    this.#words.set(snapshot);
    if (words[TOP] >= snapshot.length) {
      this.#words.fill(0, snapshot.length, words[TOP] + 1);
    }
    await this.#part();
    if (this.#scope.keepsOutcomes) this.#outcomes.add(this.#hash());
    if (words[FAILURE] === 0 && words[RESCUES] > 0 && !this.#scenario.rescues) {
      putFailure(
        this.#board,
        "A sleeper must be woken: nothing but its timeout ended its sleep",
      );
    }
    if (words[FAILURE] === 0) {
      this.#attempt(() => this.#scenario.check?.(this.#buffer, this.#scene));
    }
    return words[FAILURE] === 0 ? undefined : failureOf(this.#board);
  }

  #hash(): number {
    return this.#words.subarray(0, this.#snapshot.length).reduce(
      (hash, word) => Math.imul(hash ^ word, 0x9e3779b1) ^ (hash >>> 15),
      0,
    );
  }

  // Every thread

  /** Plays the part of another thread than the first until that one has had enough. */
  async follow(): Promise<void> {
    while (true) {
      this.#player.awaitBaton();
      if (this.#board.words[STOP] !== 0) return;
      await this.#part();
    }
  }

  /** The steps of this thread in the run that was replayed. */
  takeLines(): Line[] {
    return this.#player.lines.splice(0);
  }

  async #part(): Promise<void> {
    const player = this.#player;
    const { me } = player;
    const next = (me + 1) % this.#scenario.threads;
    // The baton goes round: everybody joins.
    let part: Part = { act() {} };
    this.#attempt(() => {
      part = this.#scenario.join(me, this.#buffer, this.#scene);
    });
    player.pass(next);
    player.awaitBaton();
    // Then the first one begins.
    await play(() => {
      if (me === 0) player.start();
      return part.act();
    });
    player.awaitBaton();
    // And once more round, when all have ended: the first one leaves last.
    if (me === 0) {
      player.pass(next);
      player.awaitBaton();
    }
    if (this.#board.words[ABORTED] === 0) this.#attempt(() => part.leave?.());
    if (me !== 0) player.pass(next);
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      putFailure(this.#board, messageOf(error));
    }
  }
}
