/**
 * Beyond this machine: the shipped detectors and the shipped enqueue path on
 * simulated processors, and the same operations on the real ones.
 */
import { Rcu, type RcuOptions } from "../mod.ts";
import { Membership } from "../src/_membership.ts";
import type { Sequence } from "../src/grace_periods/_sequence.ts";
import { CoherentMemory, Processor, simulate } from "./_coherence.ts";
import { readLock, readUnlock } from "./_rw_lock.ts";

/** What an operation does besides, in ns: opening and closing a file took about this long. */
const WORK = 1000;
/** Operations of a turn of the event loop. */
const TURN = 64;
/** Words of what an operation frees. */
const FILE_WORDS = 48;
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

/** Runs operations on simulated processors. */
export async function predict(
  system: System,
  count: number,
  operations: number,
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
    processor.clock += WORK;
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
  for (const member of members) member.close();
  domain.memory.free(shared);
  // The ends of their turns come while the memory still works.
  await new Promise((resolve) => setTimeout(resolve));
  return {
    processors: count,
    cost: spent / operations - WORK,
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
