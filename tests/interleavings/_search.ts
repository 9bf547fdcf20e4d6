// Which schedules there are: a depth-first search without a state, as in CHESS.

import { BLOCK, END, type Event, READ, START, WRITE } from "./_board.ts";
import type { Schedule } from "./_schedule.ts";

/** A schedule that is to be run. */
interface Node {
  schedule: Schedule;
  preemptions: number;
  /** If its last choice is a preemption before an access: which one, and its siblings. */
  preempted?: { index: number; event: Event; isFollowed: boolean };
  siblings?: Siblings;
}

/** Schedules that differ in where a thread is preempted by another one: the last one comes first. */
interface Siblings {
  /** Before which event the thread was preempted in the schedule that was run last. */
  index: number;
  /** What others did until it was back, if that is all that they could have done. */
  uses: Map<number, number> | undefined;
}

/**
 * All schedules with at most so many preemptions (Musuvathi and Qadeer,
 * "Iterative context bounding for systematic testing of multithreaded
 * programs", PLDI 2007). A schedule is run, and what it passed by are its
 * children: the same with one more choice, later than all others. So each is
 * run once.
 *
 * 1. A preemption is a choice where the thread could have gone on, or a timeout
 *    that is up although something else could have happened. Who comes after a
 *    thread that ended or cannot go on is free; after one that yields, the
 *    next one is.
 * 2. A preemption before an access to a word that no other thread uses, or that
 *    nobody writes, is the same as one before the next access: those are no events.
 * 3. Of a preemption before an access with which nothing conflicts that others
 *    do until the thread is back, the same is true. What would be chosen
 *    after it, or would bring the thread back sooner, belongs to that later one.
 *    The search does not even run it if it knows what others do from the run with
 *    that later one: with two threads, or without preemptions that are left.
 * 4. Of several loads of the same word in a row, the first two and the last one
 *    are places for a preemption: the others differ in a loop's counter.
 */
export class Search {
  /** How many schedules have been run, by preemptions. */
  readonly runs: number[];
  readonly #most: number;
  readonly #threads: number;
  readonly #reduced: boolean;
  #left: Node[] = [{ schedule: [], preemptions: 0 }];
  #node: Node | undefined;

  /**
   * @param most Preemptions.
   * @param threads How many threads there are.
   * @param reduced Whether what (3) and (4) say is left out.
   */
  constructor(most: number, threads: number, reduced: boolean) {
    this.#most = most;
    this.#threads = threads;
    this.#reduced = reduced;
    this.runs = new Array(most + 1).fill(0);
  }

  /** Schedules that are known and have not been run. */
  get left(): number {
    return this.#left.length;
  }

  /** The next schedule to run, or `undefined` if that was all. */
  next(): Schedule | undefined {
    do this.#node = this.#left.pop(); while (
      this.#node !== undefined && this.#isKnown(this.#node)
    );
    return this.#node?.schedule;
  }

  /** Whether a schedule is the same as one with a later preemption (3). */
  #isKnown({ preempted, preemptions, siblings }: Node): boolean {
    if (siblings?.uses === undefined || preempted === undefined) return false;
    const { event, index, isFollowed } = preempted;
    const use = siblings.uses.get(event.address) ?? 0;
    const isSame = isFollowed && siblings.index === index + 1 &&
      (use === 0 || ((use | event.kind) & WRITE) === 0) &&
      (this.#threads === 2 || preemptions === this.#most);
    if (isSame) siblings.index = index;
    return isSame;
  }

  /**
   * Takes note of the run of the schedule that was next.
   *
   * @param events What happened.
   */
  ran(events: readonly Event[]): void {
    const { schedule, preemptions, preempted, siblings } = this.#node!;
    this.runs[preemptions]++;
    const last = schedule.at(-1);
    const from = last === undefined
      ? 0
      : events.findIndex(({ step }) => step === last.at) + 1;
    // The part of the run in which a preemption without effect leaves something to choose.
    let end = events.length;
    let away = -1;
    if (
      this.#reduced && last !== undefined && isAccess(events[from - 1]) &&
      (events[from - 1].ready >> last.to & 1) !== 0
    ) {
      const back = returnOf(events, from - 1);
      if (preempted !== undefined && siblings !== undefined) {
        siblings.index = preempted.index;
        siblings.uses = usesOf(events, from - 1, back);
      }
      if (!isAffected(events, from - 1, back)) {
        end = back;
        away = events[from - 1].thread;
      }
    }
    const families: Siblings[] = [];
    for (let i = from; i < end; i++) {
      const event = events[i];
      if (this.#reduced && isRepeated(events, i)) continue;
      const { step, kind, hash } = event;
      for (let to = 0; to < 4; to++) {
        const isReady = (event.ready >> to & 1) !== 0;
        const isAsleep = (event.sleeping >> to & 1) !== 0;
        if (!isReady && !isAsleep || to === away) continue;
        if (!isAccess(event) && to === event.to) continue;
        const free = isReady &&
          (kind === BLOCK || kind === END || kind === START);
        const cost = preemptions + (free ? 0 : 1);
        if (cost > this.#most) continue;
        const node: Node = {
          schedule: [...schedule, { at: step, to, hash }],
          preemptions: cost,
        };
        if (this.#reduced && isAccess(event) && isReady) {
          const { thread } = event;
          const next = events[i + 1];
          const isFollowed = next?.thread === thread && isAccess(next);
          node.preempted = { index: i, event, isFollowed };
          node.siblings = families[thread * 4 + to] ??= {
            index: -1,
            uses: undefined,
          };
        }
        this.#left.push(node);
      }
    }
  }
}

function isAccess({ kind }: Event): boolean {
  return kind <= (READ | WRITE);
}

/** The event with which the thread of another one goes on. */
function returnOf(events: readonly Event[], i: number): number {
  const { thread } = events[i];
  for (let j = i + 1; j < events.length; j++) {
    if (events[j].thread === thread) return j;
  }
  return events.length;
}

/** Whether it matters what others did between an access's event and its thread's return. */
function isAffected(
  events: readonly Event[],
  i: number,
  back: number,
): boolean {
  const { address, kind } = events[i];
  for (let j = i + 1; j < back; j++) {
    const other = events[j];
    // A timeout is up: time is something that all threads share.
    if ((other.sleeping >> other.to & 1) !== 0) return true;
    if (
      isAccess(other) && other.address === address &&
      ((kind | other.kind) & WRITE) !== 0
    ) return true;
  }
  return false;
}

/**
 * What others did between an access's event and its thread's return: by
 * address, whether they read it or wrote it. Nothing is said if they could have
 * done something else for free, or a timeout was up.
 */
function usesOf(
  events: readonly Event[],
  i: number,
  back: number,
): Map<number, number> | undefined {
  const uses = new Map<number, number>();
  const { thread } = events[i];
  for (let j = i + 1; j < back; j++) {
    const { address, kind, ready, sleeping, to } = events[j];
    if ((sleeping >> to & 1) !== 0) return undefined;
    if (isAccess(events[j])) {
      uses.set(address, (uses.get(address) ?? 0) | kind);
    } else if ((ready & ~(1 << to) & ~(1 << thread)) !== 0) return undefined;
  }
  return uses;
}

function isRepeated(events: readonly Event[], i: number): boolean {
  const { address, kind, thread } = events[i];
  if (kind !== READ || i === 0 || i + 1 === events.length) return false;
  return [events[i - 1], events[i + 1]].every((other) =>
    other.kind === READ && other.address === address &&
    other.thread === thread
  );
}
