// The Web Locks of this process, which Deno has and its types lack.

/** What this package uses of a `LockManager`. */
export interface WebLocks {
  request<T>(
    name: string,
    granted: (lock: unknown) => T | Promise<T>,
  ): Promise<T>;
  request<T>(
    name: string,
    options: {
      mode?: "exclusive" | "shared";
      ifAvailable?: boolean;
      signal?: AbortSignal;
    },
    granted: (lock: unknown) => T | Promise<T>,
  ): Promise<T>;
  query(): Promise<{ held: WebLock[]; pending: WebLock[] }>;
}

/** A lock that is held or requested. */
export interface WebLock {
  name: string;
}

/**
 * The process's Web Locks.
 *
 * @returns The manager, or `undefined` where there is none.
 */
export function webLocks(): WebLocks | undefined {
  return (globalThis.navigator as unknown as { locks?: WebLocks } | undefined)
    ?.locks;
}

/** What tells a worker of `node:worker_threads` in Deno from a main thread. */
interface NodeProcess {
  versions?: { deno?: unknown };
  getBuiltinModule?(name: string): { isMainThread?: boolean } | undefined;
}

/**
 * Whether this thread is a worker that may hold a Web Lock: a Web Worker, which lives until it is
 * ended whatever it holds, or one of `node:worker_threads` in Deno, which a lock keeps alive.
 *
 * Workers of Node.js are none: there, a thread knows of its own locks alone, so that
 * the absence of another one's proves nothing.
 *
 * @returns Whether it is.
 */
export function isWorker(): boolean {
  const { WorkerGlobalScope, process } = globalThis as {
    WorkerGlobalScope?: new () => object;
    process?: NodeProcess;
  };
  if (
    WorkerGlobalScope !== undefined && globalThis instanceof WorkerGlobalScope
  ) return true;
  // In Deno such a worker has the scope of a main thread; a Web Worker is a "main thread" there.
  return process?.versions?.deno !== undefined &&
    process.getBuiltinModule?.("node:worker_threads")?.isMainThread === false;
}
