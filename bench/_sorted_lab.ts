/** A sorted map for each callback policy, and the threads that search in and update them in turn. */
import process from "node:process";
import { type CallbackPolicy, Rcu } from "../mod.ts";
import type { Membership } from "../src/_membership.ts";
import {
  CLASS_BLOCKS,
  classOf,
  PAGE_WORDS,
} from "../src/memory/_size_classes.ts";
import { membershipOf } from "../src/rcu.ts";
import { type Series, turn } from "./_measure.ts";
import { seeded } from "./_random.ts";
import {
  countOf,
  fill,
  firstKeys,
  type Numbers,
  openNumbers,
  valueOf,
} from "./_sorted_keys.ts";
import type { Shared } from "./_sorted_worker.ts";
import { IDLE, inFreshWorker, Peer } from "./_workers.ts";

/** Room for a million keys, and for as much as may wait. */
const CAPACITY = 64 * 2 ** 20;
const MAX_READERS = 16;
const WORKER = import.meta.resolve("./_sorted_worker.ts");

/** Keys that are looked up at the end, beside what the updater has noted. */
const CHECKS = 10_000;
/** Longest wait for workers, in ms: this only ends a hang. */
const PATIENCE = 30_000;
/** Before the clock starts, in ms: as much waits by then as will. */
const RUN_IN = 30;
/** How often the callbacks that wait are counted, in ms. */
const LOOK = 5;

/** Words of a node, and what a page has beside its nodes. */
const NODE = 4;
const PAGE_OVERHEAD = PAGE_WORDS - CLASS_BLOCKS[classOf(NODE)] * NODE;

/** What is measured. */
export interface Setting {
  name: string;
  callbacks: CallbackPolicy;
}

/** What a run came to. Where there are more threads than cores, a second is one of the cores for us alone. */
export interface Run {
  /** Searches a second, of each reader. */
  searches: number[];
  /** Updates a second. */
  updates: number;
  /** Grace periods a second. */
  periods: number;
  /** The most callbacks that waited, as far as seen. */
  pending: number;
}

/** A setting's domain. */
interface Domain {
  setting: Setting;
  rcu: Rcu;
  membership: Membership;
  map: Numbers;
  present: Uint8Array;
  /** What is live beside the keys, in bytes: while no thread has joined, and since all have. */
  empty: number;
  joined: number;
  /** What pages have beside their blocks, in bytes: once all have joined, and now. */
  firstOverhead: number;
  overhead: number;
  reclaimer: Promise<void> | undefined;
}

/** Threads have all started, and maps have been filled, before anything is timed. */
export class SortedLab implements AsyncDisposable {
  readonly #domains: Domain[] = [];
  readonly #readers: Peer[] = [];
  #updater: Peer | undefined;
  /** Bytes that a key takes. */
  #perKey = 0;

  private constructor() {}

  /**
   * Fills the maps and starts the threads.
   *
   * @param settings The settings.
   * @param keys How many keys each map has.
   * @param readers How many readers.
   */
  static async start(
    settings: readonly Setting[],
    keys: number,
    readers: number,
  ): Promise<SortedLab> {
    const lab = new SortedLab();
    try {
      for (const setting of settings) await lab.#createDomain(setting, keys);
      await lab.#startThreads(readers);
    } catch (error) {
      await lab[Symbol.asyncDispose]();
      throw error;
    }
    return lab;
  }

  /** Makes a setting's domain, and fills its map. */
  async #createDomain(setting: Setting, keys: number): Promise<void> {
    const { callbacks } = setting;
    const rcu = Rcu.create({
      capacity: CAPACITY,
      maxReaders: MAX_READERS,
      callbacks,
      // One that stays between a setting's turns: a worker that `Rcu.create` starts ends after a
      // second without work, and would start anew in each turn.
      reclaimer: "none",
    });
    const domain: Domain = {
      setting,
      rcu,
      membership: membershipOf(rcu, "measure"),
      map: openNumbers(rcu),
      present: firstKeys(keys),
      empty: rcu.memory.audit().live,
      joined: NaN,
      firstOverhead: NaN,
      overhead: NaN,
      reclaimer: undefined,
    };
    this.#domains.push(domain);
    fill(domain.map, domain.present);
    this.#perKey = (rcu.memory.audit().live - domain.empty) / keys;
    await this.#check(domain, domain.empty);
  }

  async #startThreads(readers: number): Promise<void> {
    const all = this.#domains.map(shared);
    for (const domain of this.#domains) {
      const { rcu, setting } = domain;
      if (setting.callbacks.mode !== "offloaded") continue;
      domain.reclaimer = inFreshWorker(WORKER, "reclaimer", rcu.handle);
      // Its failure is seen where it is awaited.
      domain.reclaimer.catch(() => {});
    }
    const start = (name: string, seed: number) =>
      Peer.start(WORKER, name, { all, seed });
    this.#updater = await start("writer", 1);
    const starting = Array.from(
      { length: readers },
      (_, i) => start("reader", i + 2),
    );
    const started = await Promise.allSettled(starting);
    // All that have started are to be ended, whichever has not.
    for (const each of started) {
      if (each.status === "fulfilled") this.#readers.push(each.value);
    }
    await Promise.all(starting);
    for (const { membership, reclaimer } of this.#domains) {
      const deadline = performance.now() + PATIENCE;
      while (reclaimer !== undefined && !membership.handover!.alive) {
        if (performance.now() > deadline) throw stuck();
        await turn();
      }
    }
    for (const domain of this.#domains) {
      const { live } = domain.rcu.memory.audit();
      domain.joined = live - countOf(domain.present) * this.#perKey;
      await this.#check(domain, domain.joined);
      domain.firstOverhead = domain.overhead;
    }
  }

  /**
   * Has some readers search and the updater update, and asserts that it left nothing behind.
   *
   * @param setting Which setting.
   * @param readers How many readers.
   * @param ms For how long.
   */
  async run(setting: number, readers: number, ms: number): Promise<Run> {
    const domain = this.#domains[setting];
    const { membership } = domain;
    const searching = this.#readers.slice(0, readers);
    const peers = [...searching, this.#updater!];
    const nobody = new Int32Array(new SharedArrayBuffer(4));
    this.#offline();
    await this.#select(peers, setting + 1);
    Atomics.wait(nobody, 0, 0, RUN_IN);

    const counts = () => peers.map((peer) => peer.count);
    const completed = membership.sequence.completed();
    const first = counts();
    const cpu = process.cpuUsage();
    const start = performance.now();
    let pending = 0;
    for (let left = ms; left > 0; left = ms - (performance.now() - start)) {
      Atomics.wait(nobody, 0, 0, Math.min(left, LOOK));
      pending = Math.max(pending, membership.pendingOfAll());
    }
    const last = counts();
    const wall = (performance.now() - start) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    const cores = navigator.hardwareConcurrency;
    // More threads than cores use all that they get: what others got meanwhile does not count.
    const seconds = peers.length > cores ? (user + system) / 1e6 / cores : wall;
    const periods = (membership.sequence.completed() - completed) / seconds;

    await this.#select(peers, IDLE);
    await this.#check(domain, domain.joined);
    const searches = last.map((count, i) =>
      ((count - first[i]) >>> 0) / seconds
    );
    const updates = searches.pop()!;
    return { searches, updates, periods, pending };
  }

  /** Tells threads what to do; throws what one of them has thrown. */
  async #select(peers: Peer[], task: number): Promise<void> {
    try {
      Peer.selectAll(peers, task);
    } catch (error) {
      await Promise.race([...peers.map((peer) => peer.ended), turn()]);
      throw error;
    }
  }

  /**
   * Nothing waits, as many keys are there as the updater has noted, and the
   * memory is what they take.
   *
   * @param domain The domain.
   * @param empty What is to be live beside the keys, in bytes.
   */
  async #check(domain: Domain, empty: number): Promise<void> {
    const { map, membership, present, rcu, setting } = domain;
    await rcu.barrier({ signal: AbortSignal.timeout(PATIENCE) });
    const { live, deferred, free, overhead, capacity } = rcu.memory.audit();
    const keys = countOf(present);
    const pending = membership.pendingOfAll();
    const expected = empty + keys * this.#perKey;
    rcu.threadOffline();
    domain.overhead = overhead;
    if (
      map.size !== keys || live !== expected || deferred !== 0 ||
      pending !== 0 || live + deferred + free + overhead !== capacity
    ) {
      throw new Error(
        `Cannot trust a run with ${setting.name} that leaves something behind: ${map.size} keys ` +
          `for ${keys}, ${live} bytes live for ${expected}, ${deferred} deferred, ${pending} callbacks`,
      );
    }
  }

  /**
   * How much memory a setting's map has ever needed beyond what it had when it
   * was filled: pages for nodes are not given back.
   *
   * @param setting Which setting.
   * @returns Bytes.
   */
  memoryPeak(setting: number): number {
    const { firstOverhead, overhead } = this.#domains[setting];
    return (overhead - firstOverhead) / PAGE_OVERHEAD * PAGE_WORDS;
  }

  /** So that this thread holds up no grace period while it sleeps. */
  #offline(): void {
    for (const { rcu } of this.#domains) rcu.threadOffline();
  }

  /**
   * One thread that searches in a setting's map, beside a sorted array of its own.
   *
   * @param setting Which setting.
   * @param quick Whether few rounds will do.
   * @returns The times of `map` and `array`.
   */
  besidePrivate(setting: number, quick: boolean): Promise<Series> {
    const domain = this.#domains[setting];
    return inFreshWorker(WORKER, "besidePrivate", {
      ...shared(domain),
      quick,
    });
  }

  /** Ends the threads and asserts that they are gone, that keys are there as noted, and nothing else. */
  async close(): Promise<void> {
    const failed = (await this.#endPeers())
      .find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    for (const domain of this.#domains) {
      const { map, present, rcu, reclaimer } = domain;
      const random = seeded(3);
      for (let i = 0; i < CHECKS; i++) {
        const key = (random() * present.length) | 0;
        const expected = present[key] === 0 ? undefined : valueOf(key);
        if (map.get(key) !== expected) {
          throw new Error(
            `Cannot trust a map that has ${
              map.get(key)
            } for ${key} instead of ${expected}`,
          );
        }
      }
      if (reclaimer !== undefined) {
        rcu.close();
        await inTime(reclaimer);
        // The same without a reclaimer: attached, a thread takes what it finds.
        domain.rcu = Rcu.attach(rcu.handle);
        domain.membership = membershipOf(domain.rcu, "measure");
        domain.map = openNumbers(domain.rcu);
      }
      await this.#check(domain, domain.empty);
      const { readers } = domain.rcu.stats();
      if (readers.length !== 1) {
        throw new Error(
          `Cannot trust workers that stay: ${readers.length - 1} are there`,
        );
      }
    }
  }

  #endPeers(): Promise<PromiseSettledResult<void>[]> {
    const peers = this.#readers.splice(0);
    if (this.#updater !== undefined) peers.push(this.#updater);
    this.#updater = undefined;
    const ends = peers.map((peer) => peer[Symbol.asyncDispose]());
    return inTime(Promise.allSettled(ends));
  }

  /** Ends the threads, whatever they have left behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#endPeers();
    } finally {
      for (const { rcu } of this.#domains) rcu.close();
      const reclaimers = this.#domains.map(({ reclaimer }) => reclaimer);
      await inTime(Promise.allSettled(reclaimers));
    }
  }
}

function shared({ rcu, present }: Domain): Shared {
  return { handle: rcu.handle, present };
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(stuck()), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function stuck(): Error {
  return new Error(`No answer from the workers within ${PATIENCE} ms`);
}
