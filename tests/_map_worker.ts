// What workers do in the tests of RcuMap.

import { Rcu, type RcuHandle, RcuMap, string, u32 } from "../mod.ts";
import {
  type Found,
  keyAt,
  type Kind,
  openMap,
  valueOf,
  Watcher,
} from "./_map_checks.ts";
import { PATIENCE, serve, tell, waitFor } from "./_workers.ts";

/** Every task's domain. */
interface Task {
  handle: RcuHandle;
}

/** A task that goes on until word 0 is set. */
interface Until extends Task {
  stop: Int32Array;
}

/** A map's codecs, by name. */
interface Codecs {
  key: "u32" | "string";
  kind: Kind;
}

function* rounds(stop: Int32Array): Generator<number> {
  const deadline = performance.now() + PATIENCE;
  for (let round = 0; Atomics.load(stop, 0) === 0; round++) {
    if (performance.now() > deadline) throw new Error("Never told to stop");
    yield round;
  }
}

serve({
  increment(
    { handle, key, kind, keys, times }: Task & Codecs & {
      keys: number;
      times: number;
    },
  ): void {
    using rcu = Rcu.attach(handle);
    const map = openMap(rcu, "counters", key, kind);
    const of = (old: unknown): number =>
      kind === "json" ? (old as { n: number }).n : Number(old ?? 0);
    const as = (n: number): unknown =>
      kind === "json" ? { n } : kind === "string" ? `${n}` : n;
    for (let i = 0; i < times; i++) {
      map.update(
        keyAt(key, i % keys),
        (old) => as((old === undefined ? 0 : of(old)) + 1),
      );
    }
  },

  /** Sets and deletes keys of its own, and sets keys that all writers share. */
  write(
    { handle, key, kind, me, own, shared, times }: Task & Codecs & {
      me: number;
      own: number;
      shared: number;
      times: number;
    },
  ): void {
    using rcu = Rcu.attach(handle);
    const map = openMap(rcu, "m", key, kind);
    for (let version = 1; version <= times; version++) {
      for (let n = 0; n < shared; n++) {
        // Only upwards: a reader that sees an older one later has been misled.
        map.update(keyAt(key, n), (old) => newer(kind, n, old, version));
      }
      const first = shared + me * own;
      for (let n = first; n < first + own; n++) {
        map.set(keyAt(key, n), valueOf(kind, n, version));
        if (n % 3 === 0) map.delete(keyAt(key, n));
      }
    }
  },

  watch(
    { handle, stop, key, kind, always, some }: Until & Codecs & {
      always: number;
      some: number;
    },
  ): Found {
    using rcu = Rcu.attach(handle);
    const watcher = new Watcher(openMap(rcu, "m", key, kind), key, kind);
    Atomics.add(stop, 1, 1);
    for (const _ of rounds(stop)) {
      for (let n = 0; n < always; n++) watcher.look(n, true);
      for (let n = always; n < always + some; n++) watcher.look(n, false);
    }
    return watcher.found;
  },

  /** Lets a map grow and shrink. */
  churn(
    { handle, stop, key, kind, first, count }: Until & Codecs & {
      first: number;
      count: number;
    },
  ): number {
    using rcu = Rcu.attach(handle);
    const map = openMap(rcu, "m", key, kind);
    let done = 0;
    for (const round of rounds(stop)) {
      const version = round & 0xffff;
      for (let n = first; n < first + count; n++) {
        map.set(keyAt(key, n), valueOf(kind, n, version));
      }
      for (let n = first; n < first + count; n++) map.delete(keyAt(key, n));
      Atomics.store(stop, 2, ++done);
    }
    return done;
  },

  /** Checks that a section sees one generation of a map that is replaced. */
  watchGenerations(
    { handle, stop, keys }: Until & { keys: number },
  ): { sections: number; generations: number; mixed: number } {
    using rcu = Rcu.attach(handle);
    const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
    const seen = new Set<number>();
    let sections = 0;
    let mixed = 0;
    Atomics.add(stop, 1, 1);
    for (const round of rounds(stop)) {
      rcu.read(() => {
        sections++;
        const generation = map.get("0");
        seen.add(generation!);
        if (round % 8 === 0) {
          for (const [key, value] of map) {
            if (!key.startsWith("extra") && value !== generation) mixed++;
          }
        }
        for (let n = 0; n < keys; n++) {
          if (map.get(`${n}`) !== generation) mixed++;
        }
      });
    }
    return { sections, generations: seen.size, mixed };
  },

  /** Inserts keys that another thread inserts at the same time. */
  agree(
    { handle, words, me, keys }: Task & {
      words: Int32Array;
      me: number;
      keys: number;
    },
  ): string[] {
    using rcu = Rcu.attach(handle);
    const map = RcuMap.open(rcu, "m", { key: string, value: string });
    tell(words, me);
    waitFor(words, 1 - me);
    return Array.from(
      { length: keys },
      (_, n) => map.getOrInsert(`key ${n}`, `of ${me}`),
    );
  },

  /** Replaces all, by contents of two sizes. */
  replace({ handle, me, times }: Task & { me: number; times: number }): void {
    using rcu = Rcu.attach(handle);
    const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
    for (let round = 0; round < times; round++) {
      const value = round * 4 + me * 2 + (round & 1);
      const length = value % 2 === 0 ? 50 : 700;
      map.replaceAll(
        Array.from({ length }, (_, n): [string, number] => [`${n}`, value]),
      );
    }
  },

  /** Announces what it reads, and looks out for anything older than what was announced. */
  follow(
    { handle, words, me, last, kind }: Task & {
      words: Int32Array;
      me: number;
      last: number;
      kind: "string" | "json";
    },
  ): { reads: number; older: number } {
    using rcu = Rcu.attach(handle);
    const map = openMap<string>(rcu, "m", "string", kind);
    let older = 0;
    let reads = 0;
    const deadline = performance.now() + PATIENCE;
    while (true) {
      const announced = Atomics.load(words, 0);
      const value = map.get("key");
      const n = kind === "json" ? (value as { n: number }).n : Number(value);
      if (n < announced) older++;
      for (let seen = announced; seen < n;) {
        const found = Atomics.compareExchange(words, 0, seen, n);
        if (found === seen) break;
        seen = found;
      }
      if ((++reads & 63) === 0) {
        Atomics.store(words, 2 + me, reads);
        if (performance.now() > deadline) throw new Error("No end in sight");
      }
      if (n === last) break;
    }
    Atomics.store(words, 2 + me, -1);
    return { reads, older };
  },

  /** Spins until a key has a value, with nothing but reads in the loop. */
  spin(
    { handle, ready }: Task & { ready: Int32Array },
  ): boolean {
    using rcu = Rcu.attach(handle);
    const numbers = RcuMap.open(rcu, "n", { key: u32, value: u32 });
    const texts = RcuMap.open(rcu, "t", { key: string, value: string });
    tell(ready, 0);
    let left = 2 ** 31;
    while (numbers.get(1) !== 7 && left > 0) left--;
    tell(ready, 1);
    while (texts.get("a") !== "b" && left > 0) left--;
    return left > 0;
  },

  /** How much the heap grows or shrinks between reads, in bytes. */
  measureReads(
    { handle, rounds, each, allocates }: Task & {
      rounds: number;
      each: number;
      allocates: boolean;
    },
  ): number[] {
    using rcu = Rcu.attach(handle);
    const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
    const box: unknown[] = [undefined];
    const read = allocates
      ? (n: number) => {
        const found = { value: map.get(n) };
        box[0] = found;
        return found.value!;
      }
      : (n: number) => map.get(n)!;
    let sum = 0;
    const some = () => {
      for (let i = 0; i < each; i++) sum = (sum + read(i & 1023)) | 0;
    };
    for (let i = 0; i < 5; i++) some();
    const used = new Float64Array(rounds + 1);
    for (let i = 0; i <= rounds; i++) {
      if (i > 0) some();
      used[i] = Deno.memoryUsage().heapUsed;
    }
    if (sum === 1) throw new Error("unlikely");
    return Array.from({ length: rounds }, (_, i) => used[i + 1] - used[i]);
  },
});

function newer(
  kind: Kind,
  n: number,
  old: unknown,
  version: number,
): unknown {
  const seen = kind === "u32"
    ? (old as number) & 0xffff
    : kind === "string"
    ? Number((old as string).split(/[:|]/)[1])
    : (old as { version: number }).version;
  return valueOf(kind, n, Math.max(seen, version));
}
