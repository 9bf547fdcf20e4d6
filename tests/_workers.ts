// Workers for tests: started from a module of this folder, asked by name, and proven to have ended.

/** Longest wait for anything that a test waits for, in ms. Nothing is timed: this only ends a hang. */
export const PATIENCE = 90_000;

/** What a worker can be asked to do, by name. */
// deno-lint-ignore no-explicit-any
export type Tasks = Record<string, (argument: any) => unknown>;

/** A worker whose module called {@linkcode serve}. */
export interface TestWorker {
  /**
   * Has a task done.
   *
   * @param task Its name.
   * @param argument What it gets; cloned.
   * @returns What it returned, or what the promise that it returned resolved to.
   */
  call<R = void>(task: string, argument?: unknown): Promise<R>;
}

interface Request {
  id: number;
  task: string;
  argument: unknown;
}

interface Reply {
  id: number;
  result?: unknown;
  error?: string;
}

/** The part of a worker's global scope that is used here. */
interface Scope {
  name: string;
  onmessage: (event: MessageEvent<Request>) => void;
  postMessage(reply: Reply): void;
  close(): void;
}

/** The Web Locks of this process, which Deno has and its types lack. */
interface Locks {
  request(name: string, granted: () => unknown): Promise<void>;
  request(
    name: string,
    options: { signal: AbortSignal },
    granted: () => unknown,
  ): Promise<void>;
}

const { locks } = navigator as unknown as { locks: Locks };

/** The id of the reply that says that the worker is there. */
const READY = 0;
/** The task that ends the worker. */
const END = "end of the worker";

/**
 * The worker's side: answers calls until the test is over.
 *
 * @param tasks What it can do.
 */
export function serve(tasks: Tasks): void {
  const scope = globalThis as unknown as Scope;
  scope.onmessage = async ({ data: { id, task, argument } }) => {
    try {
      const result = task === END ? undefined : await tasks[task](argument);
      scope.postMessage({ id, result });
    } catch (error) {
      scope.postMessage({ id, error: String(error) });
    }
    if (task === END) scope.close();
  };
  // Held for life: whoever is granted it afterwards knows that this thread has stopped.
  locks.request(scope.name, () => {
    scope.postMessage({ id: READY });
    return new Promise(() => {});
  });
}

class Started implements TestWorker, AsyncDisposable {
  readonly #worker: Worker;
  readonly #life = `test-${crypto.randomUUID()}`;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = READY;
  #failure: Error | undefined;
  /** Resolves when the worker can be called. */
  readonly ready: Promise<unknown>;

  constructor(module: string) {
    const url = new URL(module, import.meta.url);
    this.ready = this.#expect(READY, `start of ${module}`);
    this.#worker = new Worker(url, { type: "module", name: this.#life });
    this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      const waiting = this.#waiting.get(data.id);
      if (data.error === undefined) waiting?.resolve(data.result);
      else waiting?.reject(new Error(data.error));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#failure = new Error(`Uncaught in ${module}: ${event.message}`);
      for (const { reject } of this.#waiting.values()) reject(this.#failure);
    };
  }

  call<R>(task: string, argument?: unknown): Promise<R> {
    const id = ++this.#calls;
    this.#worker.postMessage({ id, task, argument });
    return this.#expect(id, task) as Promise<R>;
  }

  async #expect(id: number, what: string): Promise<unknown> {
    if (this.#failure !== undefined) throw this.#failure;
    const waiting = Promise.withResolvers();
    this.#waiting.set(id, waiting);
    const timer = setTimeout(
      () => waiting.reject(new Error(`No answer from a worker: ${what}`)),
      PATIENCE,
    );
    try {
      return await waiting.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const patience = new AbortController();
    const timer = setTimeout(
      () => patience.abort(new Error("A worker did not end")),
      PATIENCE,
    );
    try {
      await this.ready;
      await this.call(END);
      const { signal } = patience;
      await locks.request(this.#life, { signal }, () => {});
    } finally {
      clearTimeout(timer);
      this.#worker.terminate();
    }
  }
}

/**
 * Runs a test with workers, and asserts that every one of them has ended.
 *
 * @param module Their module's name in this folder; it calls {@linkcode serve}.
 * @param count How many.
 * @param use The test.
 * @returns What it returned.
 */
export async function withWorkers<R>(
  module: string,
  count: number,
  use: (...workers: TestWorker[]) => Promise<R>,
): Promise<R> {
  await using ends = new AsyncDisposableStack();
  const workers: Started[] = [];
  for (let i = 0; i < count; i++) {
    workers.push(ends.use(new Started(module)));
  }
  await Promise.all(workers.map((worker) => worker.ready));
  return await use(...workers);
}

/**
 * Words for two threads to tell each other how far they are.
 *
 * @param length How many.
 * @returns The words, all 0.
 */
export function sharedWords(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}

/**
 * Sets a shared word and wakes whoever waits for it.
 *
 * @param words The words.
 * @param index Which one.
 * @param value Its value.
 */
export function tell(words: Int32Array, index: number, value = 1): void {
  Atomics.store(words, index, value);
  Atomics.notify(words, index);
}

/**
 * Blocks the thread until a shared word has a value.
 *
 * @param words The words.
 * @param index Which one.
 * @param value The value.
 */
export function waitFor(words: Int32Array, index: number, value = 1): void {
  const deadline = performance.now() + PATIENCE;
  for (let seen; (seen = Atomics.load(words, index)) !== value;) {
    const left = deadline - performance.now();
    if (left <= 0) throw new Error(`Word ${index} never became ${value}`);
    Atomics.wait(words, index, seen, left);
  }
}

/**
 * Waits until something is so, the event loop turning meanwhile.
 *
 * @param what What.
 * @param isSo Whether it is.
 */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`It never was: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
