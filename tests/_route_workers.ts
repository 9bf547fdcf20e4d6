// Starts workers for the routing tests, and waits for what they found.

import type { Rcu, RcuHandle } from "../mod.ts";

/** What a worker is told. */
export type Task =
  | { kind: "neighbors"; handle: RcuHandle; name: string; seed: number }
  | { kind: "routes"; handle: RcuHandle; seed: number; control: Int32Array };

/** Words by which the main thread and its workers keep step. */
export const STOP = 0;
/** Lookups that workers have done since the last change. */
export const DONE = 1;
export const CONTROL_WORDS = 2;

function start(task: Task): Promise<number> {
  const worker = new Worker(new URL("./_route_worker.ts", import.meta.url), {
    type: "module",
  });
  return new Promise<number>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage(task);
  }).finally(() => worker.terminate());
}

/**
 * Lets workers enter, change, look up and delete a few neighbours at random.
 *
 * @param rcu The domain.
 * @param name The table.
 * @param count Workers.
 * @returns How often one of them found something that cannot be.
 */
export async function startNeighborWorkers(
  rcu: Rcu,
  name: string,
  count: number,
): Promise<number> {
  const { handle } = rcu;
  const found = await Promise.all(
    Array.from(
      { length: count },
      (_, seed) => start({ kind: "neighbors", handle, name, seed }),
    ),
  );
  return found.reduce((sum, wrong) => sum + wrong, 0);
}

/**
 * Lets workers look routes up until they are told to stop.
 *
 * @param rcu The domain.
 * @param count Workers.
 * @returns How to stop them, and how often one found a route that cannot be.
 */
export function startRouteWorkers(
  rcu: Rcu,
  count: number,
): { control: Int32Array; wrong: Promise<number> } {
  const { handle } = rcu;
  const control = new Int32Array(new SharedArrayBuffer(CONTROL_WORDS * 4));
  const wrong = Promise.all(
    Array.from(
      { length: count },
      (_, seed) => start({ kind: "routes", handle, seed, control }),
    ),
  ).then((found) => found.reduce((sum, one) => sum + one, 0));
  return { control, wrong };
}

/** Destinations of the route test: 10.0.x.y for few x and y. */
export const NETWORKS = 8;
export const HOSTS = 64;

/**
 * A destination.
 *
 * @param i Any number.
 * @returns An address in one of the networks.
 */
export function destinationOf(i: number): number {
  return 0x0a000000 | ((i % NETWORKS) << 8) | ((i >>> 3) % HOSTS);
}

/**
 * The gateway that a network has in a phase of the test; every fourth phase none.
 *
 * @param network The network.
 * @param phase The phase.
 * @returns The gateway.
 */
export function gatewayOf(network: number, phase: number): string | null {
  return phase % 4 === 3 ? null : `192.0.${network}.${phase % 4}`;
}
