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

/**
 * Whether this thread is a Web Worker, which lives until it is ended whatever it holds.
 *
 * @returns Whether it is.
 */
export function isWorker(): boolean {
  const { WorkerGlobalScope } = globalThis as {
    WorkerGlobalScope?: new () => object;
  };
  return WorkerGlobalScope !== undefined &&
    globalThis instanceof WorkerGlobalScope;
}
