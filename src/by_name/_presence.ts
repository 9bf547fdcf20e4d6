// Being there under a name, so that other threads of the process find the domain.

import type { RcuHandle } from "../options.ts";
import { openChannel } from "./_channel.ts";
import { isWorker } from "../sync/_web_locks.ts";

/** What threads post to each other on the channel of a name. */
export interface Question {
  /** Who asks. */
  from: string;
}

/** What comes back, from each thread that is there. */
export interface Answer {
  /** Who asked. */
  to: string;
  handle: RcuHandle;
}

/**
 * What stands for a name among the process's locks and channels: the lock of that name, which
 * whoever is there holds, shared, and the channel on which is asked and answered.
 */
export type Place = string;

/** A thread that is there. */
export interface Presence {
  /** Resolves once others can see it, and fails if that cannot be. */
  there: Promise<void>;
  /** Ends it. */
  end(): void;
}

/**
 * Is there, in this thread: holds the lock and answers.
 *
 * Its text alone is run in another thread, too: it uses nothing of this module.
 *
 * @param channel The name's channel.
 * @param lock The name's lock.
 * @param handle The answer.
 * @returns The presence.
 */
function stay(
  channel: BroadcastChannel,
  lock: string,
  handle: RcuHandle,
): Presence {
  const { locks } = navigator as unknown as {
    locks: {
      request(name: string, options: object, granted: () => unknown): unknown;
    };
  };
  let end = () => {};
  const lasts = new Promise<void>((resolve) => end = resolve);
  channel.onmessage = ({ data }) => {
    if (data?.from !== undefined) {
      channel.postMessage({ to: data.from, handle });
    }
  };
  const there = new Promise<void>((resolve, reject) => {
    const granted = () => {
      resolve();
      return lasts;
    };
    const held = locks.request(lock, { mode: "shared" }, granted);
    (held as Promise<void>).catch(reject);
  });
  return {
    there,
    end() {
      channel.close();
      end();
    },
  };
}

/** The program of a thread that stays in another one's place. */
const DEPUTY = `
import { parentPort, workerData } from "node:worker_threads";
const { place, handle } = workerData;
const { there } = (${stay})(new BroadcastChannel(place), place, handle);
there.then(() => parentPort.postMessage("there"));
`;

/** What this package uses of `node:worker_threads`, which Deno has as well. */
export interface NodeThreads {
  Worker: new (url: URL, options: { workerData: unknown }) => {
    on(event: string, listener: (argument: unknown) => void): void;
    terminate(): unknown;
    unref(): void;
  };
}

/**
 * Threads as Node.js has them, and Deno.
 *
 * @returns The module, or `undefined` in a browser.
 */
export function nodeThreads(): NodeThreads | undefined {
  const { process } = globalThis as unknown as {
    process?: { getBuiltinModule?(name: string): NodeThreads };
  };
  return process?.getBuiltinModule?.("node:worker_threads");
}

/**
 * Has a worker hold the lock and answer. A main thread's own lock would keep
 * its process alive, and it answers nobody while it computes.
 */
function sendDeputy(
  { Worker }: NodeThreads,
  place: Place,
  handle: RcuHandle,
): Presence {
  const url = new URL(`data:text/javascript,${encodeURIComponent(DEPUTY)}`);
  const deputy = new Worker(url, { workerData: { place, handle } });
  const there = new Promise<void>((resolve, reject) => {
    deputy.on("message", () => {
      deputy.unref();
      resolve();
    });
    deputy.on("error", reject);
  });
  const end = () => void deputy.terminate();
  // Deno 2.9.6 prints an error, now and then, of one that is terminated while it starts.
  return { there, end: () => void there.then(end, end) };
}

/**
 * Begins to be there under a name.
 *
 * 1. Whoever is there holds the lock of the name, from before the promise
 *    resolves until after the end; a thread that dies gives it back when its JavaScript
 *    runs no more. So nobody is there if nobody holds or requests it.
 * 2. Whoever holds it answers what it is asked, as soon as its event loop turns; a main
 *    thread's deputy at once.
 *
 * @param place What stands for the name.
 * @param handle The handle of the domain.
 * @returns The presence.
 */
export async function bePresent(
  place: Place,
  handle: RcuHandle,
): Promise<Presence> {
  if (!isWorker()) return sendDeputy(nodeThreads()!, place, handle);
  return stay(await openChannel(place), place, handle);
}
