// Explorations from the outside: workers, one scenario after the other.

import { sharedWords, type TestWorker, withWorkers } from "../_workers.ts";
import { makeBoard } from "./_board.ts";
import type { Progress, Scope } from "./_explorer.ts";
import type { Fault } from "./_faults.ts";
import type { Line } from "./_player.ts";
import type { Enrolment } from "./_worker.ts";
import { CAPACITY, type Scenario, type Scene } from "./_scenario.ts";

/** Between two looks at how far an exploration is, in ms. */
const BATCH = 500;
/** Threads of the largest scenario. */
const CREW = 3;

/** How an exploration is done. */
export interface ExploreOptions extends Scope {
  /** Runs at most. */
  most?: number;
  fault?: Fault | undefined;
  /** Told now and then how far it is. */
  onProgress?: (progress: Progress) => void;
}

/** What became of an exploration. */
export interface Result extends Progress {
  /** How long it took, in ms. */
  time: number;
}

/** What became of one schedule. */
export interface Replayed {
  message: string | undefined;
  lines: Line[];
}

/** Workers that explore. */
export class Crew {
  readonly #workers: readonly TestWorker[];
  readonly #words = sharedWords(CAPACITY / 4);
  readonly #board = makeBoard(CAPACITY / 4);

  constructor(workers: readonly TestWorker[]) {
    this.#workers = workers;
  }

  async #enrol(scenario: Scenario, fault: Fault | undefined): Promise<void> {
    let scene: Scene | undefined;
    for (let thread = 0; thread < scenario.threads; thread++) {
      const enrolment: Enrolment = {
        board: this.#board,
        words: this.#words,
        scenario: scenario.name,
        thread,
        scene,
        fault,
      };
      scene = await this.#workers[thread].call<Scene>("enrol", enrolment);
    }
  }

  /** Has the first worker do something that the others take part in. */
  async #together<R>(
    { threads }: Scenario,
    task: string,
    argument: unknown,
  ): Promise<R> {
    const [first, ...others] = this.#workers.slice(0, threads);
    const [result] = await Promise.all([
      first.call<R>(task, argument),
      ...others.map((worker) => worker.call("follow")),
    ]);
    return result;
  }

  /**
   * Runs the schedules of a scenario, until one fails, or all have been run.
   *
   * @param scenario The scenario.
   * @param options How.
   * @returns What became of it.
   */
  async explore(
    scenario: Scenario,
    { most = Infinity, fault, onProgress, ...scope }: ExploreOptions,
  ): Promise<Result> {
    await this.#enrol(scenario, fault);
    await this.#workers[0].call("begin", scope);
    const begin = performance.now();
    let done = 0;
    while (true) {
      const progress = await this.#together<Progress>(scenario, "explore", {
        time: BATCH,
        most: most - done,
      });
      onProgress?.(progress);
      const { all, complete, found } = progress;
      done = all;
      if (complete || found !== undefined || done >= most) {
        return { ...progress, time: performance.now() - begin };
      }
    }
  }

  /**
   * Runs one schedule, and describes it.
   *
   * @param scenario The scenario.
   * @param schedule The schedule's seed.
   * @param fault What is wrong with the threads.
   */
  async replay(
    scenario: Scenario,
    schedule: string,
    fault?: Fault,
  ): Promise<Replayed> {
    await this.#enrol(scenario, fault);
    const message = await this.#together<string | undefined>(
      scenario,
      "replay",
      schedule,
    );
    const lines = await Promise.all(
      this.#workers.slice(0, scenario.threads).map((worker) =>
        worker.call<Line[]>("lines")
      ),
    );
    return { message, lines: lines.flat().sort((a, b) => a.step - b.step) };
  }
}

/**
 * Does something with workers that explore.
 *
 * @param use What.
 */
export function withCrew<R>(use: (crew: Crew) => Promise<R>): Promise<R> {
  return withWorkers(
    "interleavings/_worker.ts",
    CREW,
    (...workers) => use(new Crew(workers)),
  );
}
