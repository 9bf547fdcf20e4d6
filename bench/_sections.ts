/** Ways to follow one shared pointer: the contenders of the read-side benchmark. */
import { Rcu, RcuCell, type RcuHandle, u32 } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { acquire, lockOwner, release } from "../src/sync/_mutex.ts";
import { pause } from "../src/sync/_park.ts";
import { calibrate, type Contender, effort, interleave } from "./_measure.ts";
import type { Series } from "./_measure.ts";
import { readLock, readUnlock, writeLock, writeUnlock } from "./_rw_lock.ts";
import { obey, paced, Peer } from "./_workers.ts";

/** Pointers of each contender: more than one, or the engine loads it once a loop. */
const POINTERS = 64;
const MASK = POINTERS - 1;
/** Words of a block; each pointer has two, one of which it points to. */
const BLOCK = 4;
/** Words that share nothing with their neighbours. */
const LINE = 16;
const CONTROL_LINES = 2;
const PLACE_WORDS = CONTROL_LINES * LINE + POINTERS + 2 * POINTERS * BLOCK;

/** A contender. */
export interface Section {
  name: string;
  /** That many sections, each of which follows one pointer. Returns the sum. */
  read: (count: number) => number;
  /** Replaces what pointer `i` leads to. */
  update: (i: number, value: number) => void;
}

/** What a thread needs to take part. */
export interface Shared {
  handle: RcuHandle;
  /** Where each contender's words are, by its number. */
  places: number[];
  /** Which slot the thread uses where slots are used, 0 or 1. */
  thread: number;
}

const NAMES = [
  "plain load, no protection",
  "Atomics.load, no protection",
  "RcuCell.get",
  "reader.enter and exit (internal)",
  "rcu.read",
  "rcu.readLock, disposed by hand",
  "rcu.readLock with using",
  "seqlock",
  "two stores in a slot",
  "reference count",
  "mutex",
  "reader-writer lock",
] as const;

/** Those of {@linkcode NAMES} that replace blocks and free the old ones after a grace period. */
const REPLACING: readonly string[] = NAMES.slice(3, 7);
/** What all are compared with: what programs that use the package do most. */
export const BASE: string = NAMES[2];
/** How many contenders there are. */
export const KINDS: number = NAMES.length;

/** Lays the contenders out in a domain. */
export function share(rcu: Rcu): Omit<Shared, "thread"> {
  const { words } = rcu.memory;
  const places = NAMES.map(() => {
    const start = rcu.memory.allocate(PLACE_WORDS + LINE);
    const place = Math.ceil(start / LINE) * LINE;
    words.fill(0, place, place + PLACE_WORDS);
    return place;
  });
  for (const [n, place] of places.entries()) {
    const { pointers, blocks } = parts(place);
    for (let i = 0; i < POINTERS; i++) {
      const block = REPLACING.includes(NAMES[n])
        ? rcu.memory.allocate(BLOCK)
        : blocks + 2 * i * BLOCK;
      words[block] = i;
      words[pointers + i] = block;
    }
  }
  return { handle: rcu.handle, places };
}

function parts(place: number) {
  const pointers = place + CONTROL_LINES * LINE;
  return { control: place, pointers, blocks: pointers + POINTERS };
}

/** Opens all contenders in this thread. */
export function openSections(rcu: Rcu, shared: Shared): Section[] {
  const { words } = rcu.memory;
  const { places, thread } = shared;
  const opened = [
    plain(words, places[0]),
    atomic(words, places[1]),
    cells(rcu),
    enterAndExit(rcu, places[3]),
    readFunction(rcu, places[4]),
    readLocks(rcu, places[5]),
    readLocksWithUsing(rcu, places[6]),
    seqlock(words, places[7]),
    slots(words, places[8], thread),
    counted(words, places[9]),
    mutex(words, places[10], thread),
    readerWriterLock(words, places[11]),
  ];
  return opened.map((section, n) => ({ name: NAMES[n], ...section }));
}

// Each with a loop of its own: one that is shared is compiled for all of them at once.

type Opened = Omit<Section, "name">;

function plain(words: Int32Array, place: number): Opened {
  const { pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        sum = (sum + words[words[pointers + (i & MASK)]]) | 0;
      }
      return sum;
    },
    update: inPlace(words, pointers),
  };
}

/** Overwrites what the pointer leads to, under whatever lock the caller holds. */
function inPlace(words: Int32Array, pointers: number): Section["update"] {
  return (i, value) => {
    words[words[pointers + (i & MASK)]] = value;
  };
}

function atomic(words: Int32Array, place: number): Opened {
  const { pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const block = Atomics.load(words, pointers + (i & MASK));
        sum = (sum + words[block]) | 0;
      }
      return sum;
    },
    update: inPlace(words, pointers),
  };
}

function cells(rcu: Rcu): Opened {
  const opened = Array.from(
    { length: POINTERS },
    (_, i) => RcuCell.open(rcu, `cell ${i}`, { value: u32, initial: i }),
  );
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        sum = (sum + opened[i & MASK].get()) | 0;
      }
      return sum;
    },
    update(i, value) {
      opened[i & MASK].set(value);
    },
  };
}

/** Publishes a new block and frees the old one after a grace period. */
function replace(rcu: Rcu, pointers: number): Section["update"] {
  const { words } = rcu.memory;
  return (i, value) => {
    const block = rcu.memory.allocate(BLOCK);
    words[block] = value;
    const pointer = pointers + (i & MASK);
    const old = words[pointer];
    rcu.assignPointer(pointer, block);
    rcu.deferFree(old);
  };
}

function enterAndExit(rcu: Rcu, place: number): Opened {
  const { words } = rcu.memory;
  const { pointers } = parts(place);
  const { reader } = membershipOf(rcu, "measure");
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        reader.enter();
        sum = (sum + words[words[pointers + (i & MASK)]]) | 0;
        reader.exit();
      }
      return sum;
    },
    update: replace(rcu, pointers),
  };
}

function readFunction(rcu: Rcu, place: number): Opened {
  const { words } = rcu.memory;
  const { pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const value = rcu.read(() =>
          words[rcu.dereference(pointers + (i & MASK))]
        );
        sum = (sum + value) | 0;
      }
      return sum;
    },
    update: replace(rcu, pointers),
  };
}

function readLocks(rcu: Rcu, place: number): Opened {
  const { words } = rcu.memory;
  const { pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const section = rcu.readLock();
        const block = rcu.dereference(pointers + (i & MASK));
        sum = (sum + words[block]) | 0;
        section[Symbol.dispose]();
      }
      return sum;
    },
    update: replace(rcu, pointers),
  };
}

/** The engine's own share in a `using` is most of it. */
function readLocksWithUsing(rcu: Rcu, place: number): Opened {
  const { words } = rcu.memory;
  const { pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        using _section = rcu.readLock();
        const block = rcu.dereference(pointers + (i & MASK));
        sum = (sum + words[block]) | 0;
      }
      return sum;
    },
    update: replace(rcu, pointers),
  };
}

function seqlock(words: Int32Array, place: number): Opened {
  const { control: sequence, pointers } = parts(place);
  const write = inPlace(words, pointers);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        let before, value;
        do {
          while (((before = Atomics.load(words, sequence)) & 1) !== 0) pause();
          value = words[words[pointers + (i & MASK)]];
        } while (Atomics.load(words, sequence) !== before);
        sum = (sum + value) | 0;
      }
      return sum;
    },
    update(i, value) {
      Atomics.add(words, sequence, 1);
      write(i, value);
      Atomics.add(words, sequence, 1);
    },
  };
}

/** Writes the pointer's other block and publishes it; `wait` returns when nobody reads the first. */
function alternate(
  words: Int32Array,
  place: number,
  wait: () => void,
): Section["update"] {
  const { pointers, blocks } = parts(place);
  return (i, value) => {
    const pointer = pointers + (i & MASK);
    const first = blocks + 2 * (i & MASK) * BLOCK;
    const next = words[pointer] === first ? first + BLOCK : first;
    words[next] = value;
    Atomics.store(words, pointer, next);
    wait();
  };
}

function slots(words: Int32Array, place: number, thread: number): Opened {
  const { control, pointers } = parts(place);
  const slot = control + thread * LINE;
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        Atomics.store(words, slot, 1);
        const block = Atomics.load(words, pointers + (i & MASK));
        sum = (sum + words[block]) | 0;
        Atomics.store(words, slot, 0);
      }
      return sum;
    },
    update: alternate(words, place, () => {
      for (let reader = 0; reader < CONTROL_LINES; reader++) {
        while (Atomics.load(words, control + reader * LINE) !== 0) pause();
      }
    }),
  };
}

function counted(words: Int32Array, place: number): Opened {
  const { control: references, pointers } = parts(place);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        Atomics.add(words, references, 1);
        sum = (sum + words[words[pointers + (i & MASK)]]) | 0;
        Atomics.sub(words, references, 1);
      }
      return sum;
    },
    update: alternate(words, place, () => {
      while (Atomics.load(words, references) !== 0) pause();
    }),
  };
}

function mutex(words: Int32Array, place: number, thread: number): Opened {
  const { control: lock, pointers } = parts(place);
  const owner = lockOwner(thread, 1);
  const write = inPlace(words, pointers);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        acquire(words, lock, owner, 10_000);
        sum = (sum + words[words[pointers + (i & MASK)]]) | 0;
        release(words, lock);
      }
      return sum;
    },
    update(i, value) {
      acquire(words, lock, owner, 10_000);
      write(i, value);
      release(words, lock);
    },
  };
}

function readerWriterLock(words: Int32Array, place: number): Opened {
  const { control: lock, pointers } = parts(place);
  const write = inPlace(words, pointers);
  return {
    read(count) {
      let sum = 0;
      for (let i = 0; i < count; i++) {
        readLock(words, lock);
        sum = (sum + words[words[pointers + (i & MASK)]]) | 0;
        readUnlock(words, lock);
      }
      return sum;
    },
    update(i, value) {
      writeLock(words, lock);
      write(i, value);
      writeUnlock(words, lock);
    },
  };
}

// What threads run

/** Sections between two looks at what is wanted. */
const BATCH = 100;

/** A peer that reads: task `n` is contender `n - 1`. */
export function readingPeer(shared: Shared, control: Int32Array): void {
  using rcu = Rcu.attach(shared.handle, { name: "reading peer" });
  const sections = openSections(rcu, shared);
  let sum = 0;
  obey(control, (task) => {
    sum = (sum + sections[task - 1].read(BATCH)) | 0;
    return BATCH;
  }, () => rcu.threadOffline());
  control[control.length - 1] = sum;
}

/** A peer that updates at a rate: task `n` is contender `n - 1`. */
export function updatingPeer(
  { shared, rate }: { shared: Shared; rate: number },
  control: Int32Array,
): void {
  using rcu = Rcu.attach(shared.handle, { name: "updating peer" });
  const sections = openSections(rcu, shared);
  let i = 0;
  const work = paced(
    control,
    rate,
    (task) => sections[task - 1].update(i, i++),
  );
  obey(control, work, () => rcu.threadOffline());
}

/** What the read side took, beside whom. */
export interface ReadSideFigures {
  alone: Series;
  besideReader: Series;
  besideUpdater: Series;
  /** The share of the batches beside a reader in which it ran as well. */
  together: number;
  /** Updates a second that the updater achieved. */
  rate: number;
  gracePeriods: number;
  invoked: number;
  peak: number;
  /** Bytes that waited for a grace period when the last update was done. */
  deferred: number;
}

const CAPACITY = 8 * 2 ** 20;

/** Measures every contender alone, beside a reader, and beside an updater. */
export async function readSideFigures(
  { rate, quick }: { rate: number; quick: boolean },
): Promise<ReadSideFigures> {
  using rcu = Rcu.create({ name: "measuring", capacity: CAPACITY });
  const places = share(rcu);
  const sections = openSections(rcu, { ...places, thread: 0 });
  const module = import.meta.url;
  const shared = { ...places, thread: 1 };
  const alone = await interleave(
    sections.map(({ name, read }): Contender => {
      const operations = calibrate(read, { ms: 0.5, warmUp: 20 });
      return { name, operations, run: () => read(operations) };
    }),
    effort({ rounds: 41 }, quick),
  );
  const reading = await measureBesideReader(sections, module, shared, quick);
  await using peer = await Peer.start(module, "updatingPeer", { shared, rate });
  const start = performance.now();
  const besideUpdater = await interleave(
    sections.map(({ name, read }, n): Contender => {
      peer.select(n + 1);
      // Long enough for some tens of updates.
      const operations = calibrate(read, { ms: 4, warmUp: 5 });
      return {
        name,
        operations,
        before: () => peer.select(n + 1),
        run: () => read(operations),
      };
    }),
    effort({ rounds: 21 }, quick),
  );
  const achieved = peer.count * 1000 / (performance.now() - start);
  const { memory, gracePeriods, callbacks } = rcu.stats();
  return {
    alone,
    ...reading,
    besideUpdater,
    rate: achieved,
    gracePeriods: gracePeriods.completed,
    invoked: callbacks.invoked,
    peak: callbacks.peak,
    deferred: memory.deferred,
  };
}

/** In how many parts of a batch beside a reader it must be seen to run. */
const PARTS = 8;

async function measureBesideReader(
  sections: Section[],
  module: string,
  shared: Shared,
  quick: boolean,
): Promise<{ besideReader: Series; together: number }> {
  await using peer = await Peer.start(module, "readingPeer", shared);
  let batches = 0;
  let together = 0;
  const besideReader = await interleave(
    sections.map(({ name, read }, n): Contender => {
      peer.select(n + 1);
      const part = Math.ceil(calibrate(read, { ms: 1, warmUp: 10 }) / PARTS);
      let ran = true;
      return {
        name,
        operations: PARTS * part,
        before: () => peer.select(n + 1),
        // The scheduler may have the peer wait for this very core: then the two do not meet.
        run: () => {
          let sum = 0;
          ran = true;
          for (let i = 0; i < PARTS; i++) {
            const before = peer.count;
            sum = (sum + read(part)) | 0;
            if (peer.count === before) ran = false;
          }
          return sum;
        },
        counts: () => {
          batches++;
          if (ran) together++;
          return ran;
        },
      };
    }),
    effort({ rounds: 31 }, quick),
  );
  return { besideReader, together: together / batches };
}
