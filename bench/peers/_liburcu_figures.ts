/** One setting of our map beside liburcu's table, to be run in a fresh thread. */
import { Rcu, type RcuHandle } from "../../mod.ts";
import type { Keys } from "../_keys.ts";
import { consume } from "../_measure.ts";
import { seeded, uniform } from "../_random.ts";
import { IDLE, obey, Peer } from "../_workers.ts";
import {
  type KeyReader,
  keyReader,
  keyUpdater,
  type Mode,
  openMap,
} from "./_liburcu_loops.ts";
import { type Data, LiburcuTable, type Ran } from "./_liburcu_program.ts";

const MODULE = import.meta.url;
/** Lookups of a call, some 50 µs. */
const LOOKUPS = 4096;
/** Updates of a call; also what a count of updates may be wrong by. */
const UPDATES = 256;

/** What is done, to how many keys. */
export interface Setting {
  mode: Mode;
  keys: number;
}

/** How long. */
export interface Turns {
  /** How many rounds count, at least 5. */
  rounds: number;
  /** How many come before them. */
  warmUp: number;
  /** How long each side runs in a round, in ms. */
  ms: number;
}

/** What both sides did, one number a round. */
export interface Compared extends Setting {
  ours: Side;
  liburcu: Side;
}

/** What one side did. */
export interface Side {
  /** Nanoseconds a lookup. */
  lookup: number[];
  /** Nanoseconds an update; NaN where nobody updates. */
  update: number[];
  /** The share of lookups that found something. */
  hits: number[];
  /** How many retired entries waited at most to be freed. */
  pending: number;
}

/** Draws what is done to the keys, the same in every run. */
export function draw(all: Keys, { mode, keys: count }: Setting): Data {
  const { keys, values } = distinct(all, count);
  const random = seeded(9);
  const pick = (length: number) =>
    uniform(length, count, random).map((i) => keys[i]);
  // At least as many as there are keys: fewer would leave many of them out of the caches' way.
  const draws = Math.max(2 ** 16, 2 ** Math.ceil(Math.log2(count)));
  return {
    keys,
    values,
    // Insertions and deletions of keys at random keep half of them in.
    first: mode === "churn" ? Math.floor(count / 2) : count,
    lookups: pick(draws),
    updates: pick(draws),
    seed: 10,
  };
}

/** The first distinct keys: a few are there twice. */
function distinct(
  { address, asn }: Keys,
  count: number,
): { keys: Uint32Array; values: Uint32Array } {
  const entries = new Map<number, number>();
  for (let i = 0; entries.size < count; i++) {
    if (i === address.length) throw new Error("There are too few keys");
    entries.set(address[i], asn[i]);
  }
  return {
    keys: Uint32Array.from(entries.keys()),
    values: Uint32Array.from(entries.values()),
  };
}

/** Our side of a setting: a reader in this thread, an updater in another one. */
export class OurTable implements AsyncDisposable {
  readonly rcu: Rcu;
  readonly #keys: number;
  readonly #reader: KeyReader;
  readonly #updater: Peer | undefined;
  readonly #size: () => number;
  #at = 0;

  private constructor(
    rcu: Rcu,
    keys: number,
    reader: KeyReader,
    updater: Peer | undefined,
    size: () => number,
  ) {
    this.rcu = rcu;
    this.#keys = keys;
    this.#reader = reader;
    this.#updater = updater;
    this.#size = size;
  }

  /** Fills a map. */
  static async start(mode: Mode, data: Data): Promise<OurTable> {
    const rcu = Rcu.create({ name: "reader" });
    const { first, keys, values, lookups, updates, seed } = data;
    const updater = mode === "read" ? undefined : await Peer.start(
      MODULE,
      "updater",
      { handle: rcu.handle, mode, updates, seed },
    );
    fill(rcu.handle, mode, keys.subarray(0, first), values);
    const map = openMap(rcu, mode);
    return new OurTable(
      rcu,
      lookups.length,
      keyReader(map, lookups),
      updater,
      () => map.size,
    );
  }

  /** As the command of the same name of liburcu's program. */
  look(count: number): { hits: number; sum: number } {
    const reader = this.#reader;
    const sum = reader.sum();
    let hits = 0;
    for (let done = 0; done < count; done += LOOKUPS) hits += this.#next();
    return { hits, sum: (reader.sum() - sum) | 0 };
  }

  /** Looks up the next few. */
  #next(): number {
    const from = this.#at;
    this.#at = (from + LOOKUPS) % this.#keys;
    return this.#reader.read(from, from + LOOKUPS);
  }

  /** As the command of the same name. */
  async update(count: number): Promise<void> {
    const updater = this.#updater!;
    const { count: before } = updater;
    this.rcu.threadOffline();
    updater.select(ONCE);
    const deadline = performance.now() + 30_000;
    while (((updater.count - before) >>> 0) < count) {
      if (performance.now() > deadline) throw new Error("The updater is stuck");
    }
    await this.#rest();
  }

  /** As the command of the same name. */
  async run(ms: number): Promise<Ran> {
    const updater = this.#updater;
    updater?.select(ON_AND_ON);
    const sum = this.#reader.sum();
    const before = updater?.count ?? 0;
    const start = performance.now();
    let lookups = 0;
    let hits = 0;
    let time = start;
    while (time < start + ms) {
      hits += this.#next();
      lookups += LOOKUPS;
      time = performance.now();
    }
    const updates = ((updater?.count ?? 0) - before) >>> 0;
    await this.#rest();
    const ns = (time - start) * 1e6;
    return {
      ns,
      lookups,
      hits,
      sum: (this.#reader.sum() - sum) | 0,
      updateNs: ns,
      updates,
      pending: this.rcu.stats().callbacks.peak,
    };
  }

  count(): number {
    return this.#size();
  }

  /** Returns when the updater sleeps and everything is reclaimed. */
  async #rest(): Promise<void> {
    this.rcu.threadOffline();
    this.#updater?.select(IDLE);
    await this.rcu.barrier();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#updater?.[Symbol.asyncDispose]();
    this.rcu.close();
  }
}

/** By a membership of its own, so that what it retires does not count as the updater's. */
function fill(
  handle: RcuHandle,
  mode: Mode,
  keys: Uint32Array,
  values: Uint32Array,
): void {
  using rcu = Rcu.attach(handle, { name: "filler" });
  const map = openMap(rcu, mode);
  for (let i = 0; i < keys.length; i++) map.set(keys[i], values[i]);
  rcu.barrierSync();
}

// Tasks of the updater.
const ONCE = 1;
const ON_AND_ON = 2;

/** Updates: task 1 all that is drawn, once, task 2 on and on. */
export function updater(
  { handle, mode, updates, seed }: {
    handle: RcuHandle;
    mode: Mode;
    updates: Uint32Array;
    seed: number;
  },
  control: Int32Array,
): void {
  using rcu = Rcu.attach(handle, { name: "updater" });
  const update = keyUpdater(openMap(rcu, mode), mode, updates, seed);
  let at = 0;
  let once = updates.length;
  const work = (task: number): number => {
    if (task === ONCE) {
      if (once === 0) return 0;
      once -= UPDATES;
    }
    const from = at;
    at = (from + UPDATES) % updates.length;
    update(from, from + UPDATES);
    return UPDATES;
  };
  obey(control, work, () => {
    rcu.barrierSync();
    rcu.threadOffline();
  });
}

/** Checks that both tables hold the same, has them take turns, and checks again. */
export async function compare(
  { program, keys, setting, turns }: {
    program: string;
    keys: Keys;
    setting: Setting;
    turns: Turns;
  },
): Promise<Compared> {
  const data = draw(keys, setting);
  await using ours = await OurTable.start(setting.mode, data);
  await using liburcu = await LiburcuTable.start(program, setting.mode, data);
  await assertSame(ours, liburcu, data, "when filled");
  if (setting.mode !== "read") {
    await ours.update(data.updates.length);
    await liburcu.update(data.updates.length);
    await assertSame(ours, liburcu, data, "after the same updates");
  }
  const sides = { ours: emptySide(), liburcu: emptySide() };
  const tables = { ours, liburcu };
  for (let round = 0; round < turns.warmUp + turns.rounds; round++) {
    // First one, then the other one.
    const order = ["ours", "liburcu"] as const;
    for (const name of round % 2 === 0 ? order : order.toReversed()) {
      const ran = await tables[name].run(turns.ms);
      if (setting.mode !== "churn" && ran.hits !== ran.lookups) {
        throw new Error(
          `${name}: ${
            ran.lookups - ran.hits
          } lookups missed a key that was there all the time`,
        );
      }
      consume(ran.sum);
      if (round >= turns.warmUp) note(sides[name], ran);
    }
  }
  // The program compares it with its own account.
  await liburcu.count();
  return { ...setting, ...sides };
}

function emptySide(): Side {
  return { lookup: [], update: [], hits: [], pending: 0 };
}

function note(side: Side, ran: Ran): void {
  side.lookup.push(ran.ns / ran.lookups);
  side.update.push(ran.updates === 0 ? NaN : ran.updateNs / ran.updates);
  side.hits.push(ran.hits / ran.lookups);
  side.pending = Math.max(side.pending, ran.pending);
}

/** Looks up all that is drawn in both tables. */
async function assertSame(
  ours: OurTable,
  liburcu: LiburcuTable,
  { lookups }: Data,
  when: string,
): Promise<void> {
  const { hits, sum } = await liburcu.look(lookups.length);
  const own = ours.look(lookups.length);
  const entries = await liburcu.count();
  if (
    hits !== own.hits || sum !== own.sum || entries !== ours.count()
  ) {
    throw new Error(
      `The tables differ ${when}: liburcu's has ${entries} entries, ${hits} ` +
        `hits and the sum ${sum}; ours ${ours.count()}, ${own.hits} and ${own.sum}`,
    );
  }
}
