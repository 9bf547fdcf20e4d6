/**
 * Runs experiments in threads of their own: what one has taught the engine
 * cannot help or harm the next, nor can what it left behind when it failed, and
 * the progress bar goes on while it measures.
 */
import type { Experiment, Findings, RunOptions } from "./_experiment.ts";
import type { Outcome } from "./_page.ts";
import { introduce } from "./_spawn.ts";

/** What the thread of an experiment is told. */
export interface Request {
  name: string;
  quick: boolean;
}

/** What it says: what it is doing, and at the end what it found, or why it failed. */
export type Said = { doing: string } | { findings: Findings } | {
  error: string;
};

/** How long an experiment may go without taking a step, in ms. */
const PATIENCE = 300_000;

/** Runs an experiment in a thread of its own. Rejects if it fails. */
export async function runInThread(
  { name }: Experiment,
  { quick, onStep }: RunOptions,
): Promise<Findings> {
  const url = import.meta.resolve("./_experiment_worker.ts");
  const worker = new Worker(url, { type: "module" });
  using _introduction = introduce(worker);
  const { promise, resolve, reject } = Promise.withResolvers<Findings>();
  const giveUp = () =>
    reject(new Error(`Nothing happened for ${PATIENCE / 1000} s`));
  let timer = setTimeout(giveUp, PATIENCE);
  worker.onmessage = ({ data }: MessageEvent<Said>) => {
    if ("findings" in data) return resolve(data.findings);
    if ("error" in data) return reject(data.error);
    clearTimeout(timer);
    timer = setTimeout(giveUp, PATIENCE);
    onStep(data.doing);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(event.error ?? event.message);
  };
  worker.postMessage({ name, quick } satisfies Request);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}

/** How far a report is. */
export interface Follower {
  /** Told what an experiment does next. */
  step(doing: string): void;
  /** Told how many steps are done at the end of one, also if it did not take them all. */
  skipTo(steps: number): void;
}

/** Runs experiments one after the other, also after one that fails. */
export async function runAll(
  experiments: readonly Experiment[],
  quick: boolean,
  follower: Follower,
  run: typeof runInThread = runInThread,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let steps = 0;
  for (const [n, experiment] of experiments.entries()) {
    const place = `${n + 1}/${experiments.length} ${experiment.name}`;
    const onStep = (doing: string) => follower.step(`${place}: ${doing}`);
    const start = performance.now();
    const { name, title, about, command } = experiment;
    const outcome: Outcome = {
      experiment: { name, title, about, command },
      seconds: 0,
    };
    try {
      outcome.findings = await run(experiment, { quick, onStep });
    } catch (error) {
      outcome.error = typeof error === "string" ? error : Deno.inspect(error);
    }
    outcome.seconds = (performance.now() - start) / 1000;
    outcomes.push(outcome);
    steps += experiment.steps({ quick });
    follower.skipTo(steps);
  }
  return outcomes;
}
