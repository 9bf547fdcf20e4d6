/**
 * Beyond this machine: the shipped detectors and the shipped enqueue path on
 * simulated processors, and the same operations on the real ones.
 */
import { Rcu, type RcuHandle, type RcuOptions } from "../mod.ts";
import { Membership } from "../src/_membership.ts";
import type { Sequence } from "../src/grace_periods/_sequence.ts";
import { membershipOf } from "../src/rcu.ts";
import { CoherentMemory, Processor, simulate } from "./_coherence.ts";
import { readLock, readUnlock } from "./_rw_lock.ts";
import { IDLE, obey, Peer } from "./_workers.ts";

/** What an operation does besides, in ns: opening and closing a file took about this long. */
export const WORK = 1000;
/** Operations of a turn of the event loop. */
const TURN = 64;
/** Words of what an operation frees. */
const FILE_WORDS = 48;
/** Operations between two looks at the control word on a real processor. */
const BATCH = 256;
/** Callbacks beyond which the fault of 2009 forced a period on every call. */
const FAULTY_MARK = 16;

/** What protects the readers, and who notices the end of a period. */
export type System =
  | { name: string; detector: NonNullable<RcuOptions["detector"]> }
  | { name: string; detector: "scan"; fault: true }
  | { name: string; lock: true };

/** What a number of processors come to. */
export interface Prediction {
  processors: number;
  /** What an operation costs beyond its work, in ns. */
  cost: number;
  /** Of that, waiting for lines. */
  waited: number;
  /** Mean length of a grace period, in µs; NaN without periods. */
  period: number;
}

/**
 * Runs operations on simulated processors.
 *
 * @param system What is under study.
 * @param count How many processors.
 * @param operations How many operations in all, after the first turns.
 * @param work What each does besides, in ns.
 */
export async function predict(
  system: System,
  count: number,
  operations: number,
  work = WORK,
): Promise<Prediction> {
  using domain = Rcu.create({
    capacity: 2 ** 27,
    maxReaders: count + 1,
    ...("detector" in system ? { detector: system.detector } : {}),
    // Nothing is forced: what a period costs is to be seen, not what overload does.
    highWater: 2 ** 30,
  });
  const { words } = domain.memory;
  // One word that all read, in a line of its own: what RCU protects, or the lock.
  const shared = domain.memory.allocate(16);
  words[shared] = 0;
  using memory = new CoherentMemory(words);
  const onError = (error: unknown) => {
    throw error;
  };
  const members = Array.from(
    { length: count },
    () => new Membership(memory.words, "", { onError }),
  );
  const processors = members.map((_, index) => new Processor(index));
  const periods = new PeriodClock(members[0].sequence);
  const turns = new Int32Array(count);
  const operate = operation(system, memory.words, shared);
  const step = (processor: Processor) => {
    const { index } = processor;
    memory.run(processor, () => operate(members[index]));
    // The turns of the processors do not end all at once.
    if ((turns[index]++ + index) % TURN === 0) {
      memory.run(processor, () => members[index].reader.goOffline());
    }
    processor.clock += work;
    periods.look(processor.clock);
  };
  // Until every cache has what it needs.
  simulate(processors, count * TURN * 2, step);
  const begin = processors.map(({ clock, waited }) => ({ clock, waited }));
  periods.forget();
  simulate(processors, operations, step);
  let spent = 0;
  let waited = 0;
  for (const [i, processor] of processors.entries()) {
    spent += processor.clock - begin[i].clock;
    waited += processor.waited - begin[i].waited;
  }
  // All of them first: one that is online would have each that closes leave everything to the next.
  for (const { reader } of members) reader.goOffline();
  for (const member of members) member.close();
  domain.memory.free(shared);
  // The ends of their turns come while the memory still works.
  await new Promise((resolve) => setTimeout(resolve));
  return {
    processors: count,
    cost: spent / operations - work,
    waited: waited / operations,
    period: periods.mean / 1000,
  };
}

function operation(
  system: System,
  words: Int32Array,
  shared: number,
): (member: Membership) => void {
  const close = (member: Membership) => {
    member.retire(member.allocate(FILE_WORDS));
    if ("fault" in system) forceAlways(member);
    member.afterUpdate();
  };
  if ("lock" in system) {
    return (member) => {
      readLock(words, shared);
      void words[shared + 1];
      readUnlock(words, shared);
      member.heap.free(member.allocate(FILE_WORDS));
    };
  }
  return (member) => {
    member.reader.enter();
    void words[shared];
    member.reader.exit();
    close(member);
  };
}

/** The fault of 2009: past the mark every call looks at the global state and forces the period. */
function forceAlways(member: Membership): void {
  if (member.callbacks.pending <= FAULTY_MARK) return;
  member.sequence.countForced();
  member.callbacks.processCallbacks();
}

/** What a worker of {@linkcode measureReal} gets. */
export interface RealTask {
  handle: RcuHandle;
  system: System;
  shared: number;
}

/** One real processor: operations without other work, as fast as they go. */
export function runOperations(task: RealTask, control: Int32Array): void {
  const { handle, system, shared } = task;
  using rcu = Rcu.attach(handle);
  const member = membershipOf(rcu, "measure");
  const operate = operation(system, member.words, shared);
  obey(control, () => {
    for (let i = 0; i < BATCH; i++) {
      operate(member);
      if (i % TURN === 0) member.reader.goOffline();
    }
    return BATCH;
  }, () => member.reader.goOffline());
}

/** How many rounds real processors have, and how long each is, in ms. */
export interface Rounds {
  rounds: number;
  ms: number;
}

/** What an operation takes on this machine's processors, in ns, one number a round. */
export async function measureReal(
  system: System,
  count: number,
  { rounds, ms }: Rounds,
): Promise<number[]> {
  using domain = Rcu.create({
    ...("detector" in system ? { detector: system.detector } : {}),
    highWater: 2 ** 30,
  });
  const shared = domain.memory.allocate(16);
  domain.memory.words[shared] = 0;
  const task: RealTask = { handle: domain.handle, system, shared };
  await using peers = new AsyncDisposableStack();
  const workers: Peer[] = [];
  for (let i = 0; i < count; i++) {
    workers.push(
      peers.use(await Peer.start(import.meta.url, "runOperations", task)),
    );
  }
  const times: number[] = [];
  for (const worker of workers) worker.select(1);
  for (let round = 0; round <= rounds; round++) {
    const before = workers.map((worker) => worker.count);
    const begin = performance.now();
    await new Promise((resolve) => setTimeout(resolve, ms));
    const took = (performance.now() - begin) * 1e6;
    const done = workers.reduce(
      (sum, worker, i) => sum + ((worker.count - before[i]) >>> 0),
      0,
    );
    // The first one warms up.
    if (round > 0) times.push(took * count / done);
  }
  for (const worker of workers) worker.select(IDLE);
  await peers.disposeAsync();
  domain.barrierSync();
  domain.memory.free(shared);
  return times;
}

/** Takes the times of periods as the processors' clocks have them. */
class PeriodClock {
  readonly #sequence: Sequence;
  #started: number;
  #completed: number;
  #begins: number[] = [];
  #sum = 0;
  #count = 0;

  constructor(sequence: Sequence) {
    this.#sequence = sequence;
    this.#started = sequence.started();
    this.#completed = sequence.completed();
  }

  look(clock: number): void {
    const started = this.#sequence.started();
    const completed = this.#sequence.completed();
    for (; this.#started < started; this.#started++) this.#begins.push(clock);
    for (; this.#completed < completed; this.#completed++) {
      this.#sum += clock - (this.#begins.shift() ?? clock);
      this.#count++;
    }
  }

  forget(): void {
    this.#sum = 0;
    this.#count = 0;
  }

  /** The mean length, in ns. */
  get mean(): number {
    return this.#sum / this.#count;
  }
}
