// A worker that finds domains by their names.

import { type ConnectOptions, Rcu, RcuMap, u32 } from "../mod.ts";
import { serve, waitFor } from "./_workers.ts";

const members: Rcu[] = [];

/** What a thread found. */
export interface Found {
  id: string;
  capacity: number;
  readers: number;
}

function found(rcu: Rcu): Found {
  members.push(rcu);
  const { memory, readers } = rcu.stats();
  return {
    id: rcu.handle.id,
    capacity: memory.capacity,
    readers: readers.length,
  };
}

serve({
  connect: async (
    { name, options }: { name: string; options?: ConnectOptions },
  ) => found(await Rcu.connect(name, options)),
  /** Several at once in this thread. */
  connectAll: async (names: string[]) =>
    (await Promise.all(names.map((name) => Rcu.connect(name)))).map(found),
  /** A worker of this worker does it. */
  nested: async (name: string) => {
    const worker = new Worker(import.meta.url, {
      type: "module",
      name: `nested ${crypto.randomUUID()}`,
    });
    try {
      return await new Promise<Found>((resolve, reject) => {
        worker.onmessage = ({ data: { id, result, error } }) => {
          if (id === 0) {
            worker.postMessage({ id: 1, task: "connect", argument: { name } });
          } else if (error === undefined) resolve(result);
          else reject(new Error(error));
        };
      });
    } finally {
      worker.terminate();
    }
  },
  put: ([key, value]: [number, number]) => {
    const map = RcuMap.open(members[0], "numbers", { key: u32, value: u32 });
    map.set(key, value);
  },
  get: (key: number) =>
    RcuMap.open(members[0], "numbers", { key: u32, value: u32 }).get(key),
  close: () => {
    for (const member of members.splice(0)) member.close();
  },
  /** Keeps the thread in one turn until another one says so. */
  block: (words: Int32Array) => waitFor(words, 0),
});
