/** Replacing all entries of a map beside a reader, to be run in a fresh thread. */
import { Rcu, type RcuHandle, RcuMap, u32 } from "../mod.ts";
import { consume, median, quantile } from "./_measure.ts";
import { obey, Peer } from "./_workers.ts";

const MODULE = import.meta.url;
const OPTIONS = { key: u32, value: u32 };
/** Reads of a section, whose time is taken. */
const READS = 256;
/** Values of one generation are this far from those of the one before. */
const GENERATION = 2 ** 24;

/** What came out. */
export interface BulkFigures {
  count: number;
  /** Of each `replaceAll`, in another thread. */
  seconds: number[];
  /** Sections of 256 reads, in µs: their median, a high quantile and the longest. */
  alone: Times;
  meanwhile: Times;
  /** Sections that saw old entries and new ones. */
  mixed: number;
  /** What it takes to copy a private map of as many entries for another thread, in s. */
  clone: number;
}

export interface Times {
  sections: number;
  median: number;
  p999: number;
  most: number;
}

function* entries(
  count: number,
  generation: number,
): Iterable<[number, number]> {
  for (let i = 0; i < count; i++) yield [i, generation * GENERATION + i];
}

/** Replaces everything so many times once it is told to. */
export function replacer(
  { handle, count, times }: { handle: RcuHandle; count: number; times: number },
  control: Int32Array,
): void {
  using rcu = Rcu.attach(handle, { name: "replacer" });
  const map = RcuMap.open(rcu, "bulk", OPTIONS);
  const idle = new Int32Array(new SharedArrayBuffer(4));
  let generation = 0;
  obey(control, () => {
    if (generation === times) {
      Atomics.wait(idle, 0, 0, 10);
      return 0;
    }
    map.replaceAll(entries(count, ++generation));
    return 1;
  }, () => rcu.threadOffline());
}

/** Reads alone, and then while another thread replaces all entries `times` times. */
export async function replaceBeside(
  { count, times }: { count: number; times: number },
): Promise<BulkFigures> {
  using rcu = Rcu.create({ name: "reader", capacity: 2 ** 29 });
  const map = RcuMap.open(rcu, "bulk", OPTIONS);
  map.replaceAll(entries(count, 0));
  await using peer = await Peer.start(MODULE, "replacer", {
    handle: rcu.handle,
    count,
    times,
  });
  let mixed = 0;
  let at = 0;
  const section = () => {
    const first = Math.floor(map.get(at)! / GENERATION);
    for (let i = 1; i < READS; i++) {
      at = (at + 7919) % count;
      if (Math.floor(map.get(at)! / GENERATION) !== first) mixed++;
    }
    return first;
  };
  const read = (goOn: () => boolean): number[] => {
    const took: number[] = [];
    while (goOn()) {
      for (let i = 0; i < 100; i++) {
        const begin = performance.now();
        consume(rcu.read(section));
        took.push((performance.now() - begin) * 1000);
      }
    }
    return took;
  };
  const until = performance.now() + 300;
  read(() => performance.now() < until);
  const end = performance.now() + 500;
  const alone = read(() => performance.now() < end);
  const seconds: number[] = [];
  peer.select(1);
  let done = 0;
  let begin = performance.now();
  const meanwhile = read(() => {
    const now = peer.count;
    if (now !== done) {
      seconds.push((performance.now() - begin) / 1000 / (now - done));
      begin = performance.now();
      done = now;
    }
    return done < times;
  });
  peer.select(0);
  const copied = new Map(entries(count, 0));
  begin = performance.now();
  consume(structuredClone(copied).size);
  const clone = (performance.now() - begin) / 1000;
  return {
    count,
    seconds,
    alone: timesOf(alone),
    meanwhile: timesOf(meanwhile),
    mixed,
    clone,
  };
}

function timesOf(took: number[]): Times {
  return {
    sections: took.length,
    median: median(took),
    p999: quantile(took, 0.999),
    most: quantile(took, 1),
  };
}
