/** A thread whose event loop turns: it answers calls, one after the other, and keeps its modules' state. */
import { spawn, type Started } from "./_spawn.ts";
import type { Answer, Job } from "./_workers.ts";

/** Another thread, to be started before the clock. */
export class Thread implements Disposable {
  readonly #worker: Started;
  readonly #module: string;
  readonly #calls: PromiseWithResolvers<unknown>[] = [];

  /** @param module The module whose functions it runs. */
  constructor(module: string) {
    this.#module = module;
    this.#worker = spawn(import.meta.resolve("./_lab_worker.ts"));
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const call = this.#calls.shift()!;
      if ("error" in data) call.reject(data.error);
      else call.resolve(data.result);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const error = event.error ?? new Error(event.message);
      for (const call of this.#calls.splice(0)) call.reject(error);
    };
  }

  /**
   * Runs an exported function there. To be called when the last call has been
   * answered: answers come in the order in which functions end.
   */
  call<T>(name: string, args?: unknown): Promise<T> {
    const call = Promise.withResolvers<unknown>();
    this.#calls.push(call);
    const job: Job = { module: this.#module, name, args };
    this.#worker.postMessage(job);
    return call.promise as Promise<T>;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }
}

const { port1, port2 } = new MessageChannel();
const waiting: (() => void)[] = [];
// A port that is listened to keeps a thread alive: only while somebody waits.
const onMessage = () => {
  if (waiting.length === 1) port1.onmessage = null;
  waiting.shift()!();
};

/** Lets the event loop have a turn, without a timer's millisecond. */
export function quickTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    port1.onmessage ??= onMessage;
    port2.postMessage(null);
  });
}
