// A thread whose every access to shared memory is a step of a schedule.

import {
  ABORTED,
  BLOCK,
  BLOCKED,
  type BoardBuffers,
  choiceAt,
  CLOCK,
  DESCRIBE,
  END,
  ENDED,
  EVENT_WORDS,
  EVENTS,
  GO,
  HASH,
  MADE,
  MOST_EVENTS,
  MOST_WAITS,
  NO_WAIT,
  noteUse,
  packEvent,
  putFailure,
  READY,
  RESCUES,
  START,
  STATUS,
  STEP,
  threadWord,
  TICKETS,
  TIMED_OUT,
  TOP,
  WAIT_ADDRESS,
  WAIT_STATE,
  WAIT_TICKET,
  WAITING,
  waitTime,
  waitWord,
  wakeTime,
  WOKEN,
  WRITE,
  YIELD,
} from "./_board.ts";

/** Looks at the baton before a thread sleeps: it is often back within microseconds. */
const LOOKS = 200;
/** Steps of a run that counts as one that never ends. */
const MOST_STEPS = 16_000;

// The real ones: others take their place in this thread.
const { load, store, notify, wait } = Atomics;

/** Thrown at every step once a run has failed: the thread lets go of whatever it does. */
export class Aborted extends Error {
  override readonly name = "Aborted";
}

/** A step, for people. */
export interface Line {
  step: number;
  thread: number;
  text: string;
}

/**
 * One of the threads of a scenario. They run one at a time: whoever has the
 * baton goes on until it ends, cannot go on, or the schedule says that it
 * is another one's turn. Everything that decides about that lies on the board
 * and is touched by whoever has the baton alone; handing the baton over is a
 * store and a load of `Atomics`, so it is in order.
 *
 * 1. Without choices a thread goes on until it ends, is blocked or yields;
 *    then the next one that is ready does, counted upwards. If none is ready, who yields
 *    tries once more, for it may not have seen yet what the others did last; then the
 *    sleeper whose timeout is due first wakes; that is counted as a rescue.
 * 2. A choice of the schedule has another thread go on at a step: one that is
 *    ready, or a sleeper, whose timeout then is up.
 * 3. Time is part of the run: the clock moves only when a timeout is up.
 */
export class Player {
  readonly board: BoardBuffers;
  readonly me: number;
  readonly threads: number;
  /** Every step of this thread, if they are to be described. */
  readonly lines: Line[] = [];
  /** Whether accesses are steps. */
  playing = false;
  readonly #words: Int32Array;
  #step = 0;
  #hash = 0;
  #nextAt = -1;
  /** Whether it has yielded since another thread did something. */
  #triedAgain = false;

  /**
   * @param board The board.
   * @param me Which thread this is.
   * @param threads How many there are.
   */
  constructor(
    board: BoardBuffers,
    me: number,
    threads: number,
  ) {
    this.board = board;
    this.#words = board.words;
    this.me = me;
    this.threads = threads;
  }

  // The baton

  /** Waits for the baton. */
  awaitBaton(): void {
    const words = this.#words;
    const go = threadWord(this.me, GO);
    for (let i = 0; load(words, go) === 0; i++) {
      if (i > LOOKS) wait(words, go, 0, 1000);
    }
    store(words, go, 0);
    this.#triedAgain = false;
    this.#step = words[STEP];
    this.#hash = words[HASH];
    this.#nextAt = choiceAt(words, words[MADE])?.at ?? -1;
  }

  /** Hands the baton to another thread. */
  pass(to: number): void {
    const words = this.#words;
    words[STEP] = this.#step;
    words[HASH] = this.#hash;
    const go = threadWord(to, GO);
    store(words, go, 1);
    notify(words, go);
  }

  // Steps

  /** Begins a run: called by the first thread, when all of them wait for the baton. */
  start(): void {
    this.#step = 0;
    this.#hash = 0;
    this.#nextAt = choiceAt(this.#words, 0)?.at ?? -1;
    this.#part(START);
  }

  /** Ends this thread's part; the last one to do so hands the baton to the first thread. */
  end(): void {
    this.#words[threadWord(this.me, STATUS)] = ENDED;
    this.#part(END);
  }

  /** Lets others go on: this thread could, but in vain. */
  giveWay(): void {
    this.#part(YIELD);
  }

  /**
   * The thread is about to access a word.
   *
   * @param address The word.
   * @param kind READ, WRITE or both.
   * @param what What it does, for people.
   */
  access(address: number, kind: number, what: string): void {
    const words = this.#words;
    const board = this.board;
    if (words[ABORTED] !== 0) throw new Aborted();
    this.#count(kind, address);
    if (words[ABORTED] !== 0) throw new Aborted();
    noteUse(board, address, this.me, kind);
    if ((kind & WRITE) !== 0 && address > words[TOP]) words[TOP] = address;
    if (words[DESCRIBE] !== 0) this.#describe(`${what} ${address}`);
    if (board.shared[address] !== 0) {
      this.#record(
        kind,
        this.#others(READY),
        this.#sleepers(),
        this.me,
        address,
      );
    }
    if (this.#step === this.#nextAt) this.#go(this.#choice());
  }

  #count(kind: number, address: number): void {
    this.#step++;
    this.#hash = Math.imul(
      this.#hash ^ (address << 5 | kind << 2 | this.me),
      0x9e3779b1,
    ) ^ (this.#hash >>> 15);
    if (this.#step > MOST_STEPS) {
      this.fail(`A run must end within ${MOST_STEPS} steps: it does not`);
    }
  }

  /** Goes on with another thread; this one does when it has the baton again. */
  #go(to: number): void {
    if (to !== this.me) {
      this.pass(to);
      this.awaitBaton();
    }
    if (this.#words[ABORTED] !== 0) throw new Aborted();
  }

  /** Another thread has its turn. */
  #part(kind: number): void {
    const words = this.#words;
    if (words[ABORTED] !== 0) return this.#abort(kind);
    this.#count(kind, 0);
    if (words[DESCRIBE] !== 0) this.#addLine(PARTS[kind]);
    const ready = this.#others(READY);
    const sleeping = this.#sleepers();
    const next = this.#next(kind, ready, sleeping);
    this.#record(kind, ready, sleeping, next, 0);
    let to = next;
    if (this.#step === this.#nextAt) to = this.#choice();
    else if ((sleeping >> to & 1) !== 0) {
      words[RESCUES]++;
      this.#wake(to);
    }
    if (words[ABORTED] !== 0) return this.#abort(kind);
    if (kind === END) this.pass(to);
    else this.#go(to);
  }

  /** Stops here; a thread that ends has the others stop, one after the other. */
  #abort(kind: number): void {
    if (kind !== END) throw new Aborted();
    this.pass(this.#unfinished());
  }

  /** Who goes on by default after this thread. */
  #next(kind: number, ready: number, sleeping: number): number {
    if (kind === START) return this.me;
    for (let i = 1; i < this.threads; i++) {
      const thread = (this.me + i) % this.threads;
      if ((ready >> thread & 1) !== 0) return thread;
    }
    const { times } = this.board;
    let first = -1;
    for (let thread = 0; thread < this.threads; thread++) {
      if ((sleeping >> thread & 1) === 0) continue;
      if (first < 0 || times[wakeTime(thread)] < times[wakeTime(first)]) {
        first = thread;
      }
    }
    const triesAgain = kind === YIELD && !this.#triedAgain;
    if (triesAgain) this.#triedAgain = true;
    if (first >= 0 && !triesAgain) return first;
    if (kind === YIELD) return this.me;
    const left = this.#unfinished();
    if (this.#words[threadWord(left, STATUS)] !== ENDED) {
      this.fail("A thread must be able to go on: all of them wait for ever");
    }
    return left;
  }

  /** A thread that has not ended; the first one if all have. */
  #unfinished(): number {
    for (let thread = 0; thread < this.threads; thread++) {
      if (this.#words[threadWord(thread, STATUS)] !== ENDED) return thread;
    }
    return 0;
  }

  /** The other threads that do something. */
  #others(status: number): number {
    let mask = 0;
    for (let thread = 0; thread < this.threads; thread++) {
      if (thread === this.me) continue;
      if (this.#words[threadWord(thread, STATUS)] === status) {
        mask |= 1 << thread;
      }
    }
    return mask;
  }

  /** The threads that a timeout could wake. */
  #sleepers(): number {
    let mask = 0;
    for (let thread = 0; thread < this.threads; thread++) {
      if (
        this.#words[threadWord(thread, STATUS)] === BLOCKED &&
        this.board.times[wakeTime(thread)] < Infinity
      ) mask |= 1 << thread;
    }
    return mask;
  }

  #record(
    kind: number,
    ready: number,
    sleeping: number,
    to: number,
    address: number,
  ): void {
    const words = this.#words;
    const { events } = this.board;
    const n = words[EVENTS];
    if (n >= MOST_EVENTS) return;
    const at = n * EVENT_WORDS;
    events[at] = this.#step;
    events[at + 1] = packEvent(this.me, kind, ready, sleeping, to);
    events[at + 2] = address;
    events[at + 3] = this.#hash;
    words[EVENTS] = n + 1;
  }

  /** Makes the choice of this step: who goes on. */
  #choice(): number {
    const words = this.#words;
    const { to, hash } = choiceAt(words, words[MADE])!;
    words[MADE]++;
    this.#nextAt = choiceAt(words, words[MADE])?.at ?? -1;
    if (hash !== 0 && hash !== this.#hash) {
      this.fail("A run must repeat itself under its schedule: it does not");
    }
    if ((this.#sleepers() >> to & 1) !== 0) this.#wake(to);
    else if (words[threadWord(to, STATUS)] !== READY) {
      this.fail(`A schedule must choose who can go on: thread ${to} cannot`);
      return this.me;
    }
    return to;
  }

  // Sleeping and waking

  /** The time of the run, in ms. */
  get now(): number {
    return this.board.times[CLOCK];
  }

  /** Lets time pass, in ms, and others go on. */
  nap(ms: number): void {
    this.board.times[CLOCK] += ms;
    this.giveWay();
  }

  /**
   * Begins to wait for a notification of a word.
   *
   * @param address The word.
   * @param timeout How long at most, in ms.
   * @returns The wait.
   */
  enlist(address: number, timeout: number): number {
    const words = this.#words;
    for (let i = 0; i < MOST_WAITS; i++) {
      const it = this.me * MOST_WAITS + i;
      if (words[waitWord(it, WAIT_STATE)] !== NO_WAIT) continue;
      words[waitWord(it, WAIT_STATE)] = WAITING;
      words[waitWord(it, WAIT_ADDRESS)] = address;
      words[waitWord(it, WAIT_TICKET)] = words[TICKETS]++;
      this.board.times[waitTime(it)] = this.now + timeout;
      return it;
    }
    throw new Error("Cannot wait as a thread must have few waits: too many");
  }

  /** Whether a wait is over; forgets it if it is. */
  isOver(it: number): "ok" | "timed-out" | undefined {
    const at = waitWord(it, WAIT_STATE);
    const state = this.#words[at];
    if (state === WAITING) return undefined;
    this.#words[at] = NO_WAIT;
    this.board.times[waitTime(it)] = Infinity;
    return state === WOKEN ? "ok" : "timed-out";
  }

  /**
   * Blocks until one of the thread's waits is over, or it is late enough.
   *
   * @param until A time in ms.
   */
  block(until = Infinity): void {
    const { times } = this.board;
    let due = until;
    for (let i = 0; i < MOST_WAITS; i++) {
      due = Math.min(due, times[waitTime(this.me * MOST_WAITS + i)]);
    }
    times[wakeTime(this.me)] = due;
    this.#words[threadWord(this.me, STATUS)] = BLOCKED;
    this.#part(BLOCK);
  }

  /** A thread's timeout is up. */
  #wake(thread: number): void {
    const { times } = this.board;
    const words = this.#words;
    times[CLOCK] = Math.max(times[CLOCK], times[wakeTime(thread)]);
    for (let i = 0; i < MOST_WAITS; i++) {
      const it = thread * MOST_WAITS + i;
      if (
        words[waitWord(it, WAIT_STATE)] === WAITING &&
        times[waitTime(it)] <= times[CLOCK]
      ) words[waitWord(it, WAIT_STATE)] = TIMED_OUT;
    }
    words[threadWord(thread, STATUS)] = READY;
  }

  /**
   * Wakes who waits for a word.
   *
   * @param address The word.
   * @param most How many at most: who has waited longest comes first.
   * @returns How many.
   */
  notify(address: number, most: number): number {
    const words = this.#words;
    let woken = 0;
    while (woken < most) {
      let first = -1;
      for (let it = 0; it < MOST_WAITS * this.threads; it++) {
        if (
          words[waitWord(it, WAIT_STATE)] === WAITING &&
          words[waitWord(it, WAIT_ADDRESS)] === address &&
          (first < 0 ||
            words[waitWord(it, WAIT_TICKET)] <
              words[waitWord(first, WAIT_TICKET)])
        ) first = it;
      }
      if (first < 0) break;
      words[waitWord(first, WAIT_STATE)] = WOKEN;
      const status = threadWord(Math.floor(first / MOST_WAITS), STATUS);
      if (words[status] === BLOCKED) words[status] = READY;
      woken++;
    }
    return woken;
  }

  // Reports

  /** Notes that something is wrong, and has all threads stop. */
  fail(message: string): void {
    putFailure(this.board, message);
  }

  #describe(text: string): void {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 30;
    const { stack = "" } = new Error();
    Error.stackTraceLimit = stackTraceLimit;
    const [, site = ""] = /(\S+:\d+):\d+\)?$/m.exec(
      stack.split("\n").slice(1).filter((frame) =>
        !/interleavings\/_(player|hooks|faults\w*|plant)\.ts/.test(frame)
      ).join("\n"),
    ) ?? [];
    const at = site.replace(/^.*\/(?=(src|tests)\/)/, "");
    this.#addLine(`${text}  ${at}`);
  }

  #addLine(text: string): void {
    this.lines.push({ step: this.#step, thread: this.me, text });
  }
}

const PARTS: Record<number, string> = {
  [BLOCK]: "sleeps",
  [YIELD]: "gives way",
  [END]: "ends",
  [START]: "starts",
};
