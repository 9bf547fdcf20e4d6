/** What costs more in debug mode: the same acts in a domain with it, and in one without. */
import { bytes, Rcu, RcuMap, u32 } from "../mod.ts";
import { calibrate, consume } from "./_measure.ts";

/** Keys of each map. */
const KEYS = 1_024;
const MASK = KEYS - 1;
/** Words of a block. */
const BLOCK = 4;
/** How long a batch takes, in ms. */
const BATCH = 5;

/** An act, done so often in a row. Returns something that depends on all of it. */
export type Act = (count: number) => number;

/** The acts, in the order in which they are shown. */
export const ACTS = [
  "RcuMap.get",
  "RcuMap.set",
  "a section with one dereference",
  "a section with a view",
  "replacing a block of one's own",
  "allocate and free",
] as const;

/** The name of an act. */
export type ActName = typeof ACTS[number];

/**
 * Opens a domain.
 *
 * @param debug Whether in debug mode.
 * @returns The acts in it.
 */
export function openActs(debug: boolean): Record<ActName, Act> {
  const rcu = Rcu.create({ name: "bench", capacity: 32 * 2 ** 20, debug });
  const { memory } = rcu;
  const { words } = memory;
  const numbers = RcuMap.open(rcu, "numbers", { key: u32, value: u32 });
  const blobs = RcuMap.open(rcu, "blobs", { key: u32, value: bytes });
  for (let i = 0; i < KEYS; i++) {
    numbers.set(i, i);
    blobs.set(i, Uint8Array.of(i));
  }
  const pointer = memory.allocate(1);
  rcu.assignPointer(pointer, 0);
  const replace = (value: number) => {
    const block = memory.allocate(BLOCK);
    words[block] = value;
    const old = words[pointer];
    rcu.assignPointer(pointer, block);
    if (old !== 0) rcu.deferFree(old);
  };
  replace(1);
  let key = 0;
  const follow = () => words[rcu.dereference(pointer)];
  const look = () => blobs.view(key)![0];
  return {
    "RcuMap.get": (count) => {
      let sum = 0;
      for (let i = 0; i < count; i++) sum += numbers.get(i & MASK)!;
      return sum;
    },
    "RcuMap.set": (count) => {
      for (let i = 0; i < count; i++) numbers.set(i & MASK, i);
      return count;
    },
    "a section with one dereference": (count) => {
      let sum = 0;
      for (let i = 0; i < count; i++) sum += rcu.read(follow);
      return sum;
    },
    "a section with a view": (count) => {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        key = i & MASK;
        sum += rcu.read(look);
      }
      return sum;
    },
    "replacing a block of one's own": (count) => {
      for (let i = 0; i < count; i++) replace(i);
      rcu.barrierSync();
      return count;
    },
    "allocate and free": (count) => {
      for (let i = 0; i < count; i++) memory.free(memory.allocate(BLOCK));
      return count;
    },
  };
}

let acts: Record<ActName, Act>;
const counts = new Map<ActName, number>();

/** Opens the domain of this thread, and finds out how much a batch is. */
export function open({ debug }: { debug: boolean }): void {
  acts = openActs(debug);
  for (const name of ACTS) {
    counts.set(name, calibrate(acts[name], { ms: BATCH }));
  }
}

/** Does an act for a while; returns the ns that one takes. */
export function measure({ name }: { name: ActName }): number {
  const count = counts.get(name)!;
  const start = performance.now();
  consume(acts[name](count));
  return (performance.now() - start) * 1e6 / count;
}
