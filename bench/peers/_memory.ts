/**
 * A program of its own: opens a map in some threads, and prints the bytes that
 * the process has then. Arguments: contender, threads, entries.
 */
import { Peer } from "../_workers.ts";
import { contenderOf } from "./_contenders.ts";
import { entriesOf } from "./_entries.ts";

const { gc } = globalThis as unknown as { gc(): void };

async function measure(
  name: string,
  threads: number,
  count: number,
): Promise<number> {
  const contender = contenderOf(name);
  const opened = await contender.create(entriesOf(count));
  const peers: Peer[] = [];
  for (let i = 0; i < threads; i++) {
    peers.push(
      await Peer.start(import.meta.resolve("./_memory_worker.ts"), "hold", {
        contender: name,
        handle: opened.handle,
      }),
    );
  }
  // Where each thread has a copy, this one is none of them.
  if (!contender.shares) {
    await opened.close();
    opened.handle = undefined;
    opened.get = () => undefined;
    opened.set = () => undefined;
    opened.close = () => {};
  }
  for (let i = 0; i < 3; i++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { rss } = Deno.memoryUsage();
  await Promise.all(peers.map((peer) => peer[Symbol.asyncDispose]()));
  await opened.close();
  return rss;
}

const [name, threads, entries] = Deno.args;
console.log(await measure(name, Number(threads), Number(entries)));
Deno.exit(0);
