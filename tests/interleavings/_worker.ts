// A thread of explorations.

// First: it takes the place of what the package uses.
import "./_install.ts";
import { serve } from "../_workers.ts";
import type { BoardBuffers } from "./_board.ts";
import { Explorer, type Progress, type Scope } from "./_explorer.ts";
import { type Fault, plant } from "./_faults.ts";
import type { Line } from "./_player.ts";
import type { Scene } from "./_scenario.ts";
import { SCENARIOS } from "./_scenarios.ts";
import { TOYS } from "./_toys.ts";
import { scheduleOf } from "./_schedule.ts";

let explorer: Explorer;
let heal: (() => void) | undefined;

/** What a thread needs to take part. */
export interface Enrolment {
  board: BoardBuffers;
  words: Int32Array;
  scenario: string;
  thread: number;
  scene: Scene | undefined;
  fault: Fault | undefined;
}

serve({
  enrol(enrolment: Enrolment): Scene {
    const { board, words, thread, scene, fault } = enrolment;
    heal?.();
    heal = undefined;
    const scenario = [...SCENARIOS, ...TOYS].find(({ name }) =>
      name === enrolment.scenario
    )!;
    explorer = new Explorer(board, words, scenario, thread, scene);
    if (fault !== undefined) heal = plant(fault);
    return explorer.scene;
  },

  begin(scope: Scope): void {
    explorer.begin(scope);
  },

  explore({ time, most }: { time: number; most: number }): Promise<Progress> {
    return explorer.explore(time, most);
  },

  async replay(schedule: string): Promise<string | undefined> {
    return await explorer.replay(scheduleOf(schedule));
  },

  follow(): Promise<void> {
    return explorer.follow();
  },

  lines(): Line[] {
    return explorer.takeLines();
  },
});
