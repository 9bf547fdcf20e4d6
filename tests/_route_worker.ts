/// <reference lib="deno.worker" />
// A worker of the routing tests: see `_route_workers.ts`.

import { Rcu } from "../src/rcu.ts";
import { Fib } from "../src/routing/fib.ts";
import { NeighborTable } from "../src/routing/neighbor_table.ts";
import { RouteCache, type RouteResult } from "../src/routing/route_cache.ts";
import { destinationOf, DONE, STOP, type Task } from "./_route_workers.ts";

function random(seed: number): () => number {
  let x = Math.imul(seed + 1, 0x9e3779b1) | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return x >>> 0;
  };
}

function churnNeighbors(rcu: Rcu, name: string, seed: number): number {
  const table = NeighborTable.open(rcu, name);
  const next = random(seed);
  let wrong = 0;
  for (let i = 0; i < 20_000; i++) {
    const address = next() % 24;
    const byte = address.toString(16).padStart(2, "0");
    const linkAddress = `${byte}:${byte}:${byte}:${byte}:${byte}:${byte}`;
    const turn = next() % 8;
    if (turn === 0) table.delete(address, 1);
    else if (turn === 1) table.set(address, 1, { state: "failed" });
    else if (turn < 4) table.set(address, 1, { linkAddress });
    else {
      const found = turn === 4
        ? table.resolve(address, 1)
        : table.lookup(address, 1);
      if (found === undefined) continue;
      const right = found.address === `0.0.0.${address}` &&
        (found.linkAddress === null || found.linkAddress === linkAddress);
      if (!right) wrong++;
    }
  }
  return wrong;
}

/** Whether a route is one that a destination's network has at some time, and its next hop fits it. */
function isRight({ route, nextHop }: RouteResult, destination: number) {
  const network = (destination >>> 8) & 255;
  if (route.gateway === null) {
    return nextHop === `10.0.${network}.${destination & 255}`;
  }
  return nextHop === route.gateway &&
    route.gateway.startsWith(`192.0.${network}.`);
}

/** Counts wrong answers. */
function churnRoutes(rcu: Rcu, seed: number, control: Int32Array): number {
  const cache = RouteCache.open(rcu, "routes", {
    fib: Fib.open(rcu, "fib"),
    neighbors: NeighborTable.open(rcu, "neighbors"),
  });
  const next = random(seed);
  let wrong = 0;
  while (Atomics.load(control, STOP) === 0) {
    for (let i = 0; i < 256; i++) {
      const destination = destinationOf(next());
      if ((next() & 63) === 0) {
        using hold = cache.hold({ destination });
        if (hold !== undefined && !isRight(hold.result, destination)) wrong++;
        continue;
      }
      const found = cache.lookupFields(destination, seed & 1, 0, 0);
      if (found === undefined || !isRight(found, destination)) wrong++;
    }
    Atomics.add(control, DONE, 256);
  }
  return wrong;
}

self.onmessage = ({ data }: MessageEvent<Task>) => {
  const rcu = Rcu.attach(data.handle, { name: `worker ${data.seed}` });
  const wrong = data.kind === "neighbors"
    ? churnNeighbors(rcu, data.name, data.seed)
    : churnRoutes(rcu, data.seed, data.control);
  rcu.close();
  self.postMessage(wrong);
};
