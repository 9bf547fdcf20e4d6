// What the threads of an exploration share beside the memory that is explored.

import { sharedWords } from "../_workers.ts";
import type { Choice, Schedule } from "./_schedule.ts";

/** Most threads of a scenario. */
export const MOST_THREADS = 4;
/** Most choices of a schedule. */
const MOST_CHOICES = 64;
/** Most events of one run that are written down. */
export const MOST_EVENTS = 1 << 14;
/** Most waits that a thread can have at a time. */
export const MOST_WAITS = 4;

// Words of the board.
export const STEP = 0;
export const HASH = 1;
/** How many choices have been made. */
export const MADE = 2;
export const CHOICES = 3;
/** 1 once something has failed: every thread unwinds. */
export const ABORTED = 4;
/** Sleeps that ended by their timeout because nothing else could happen. */
export const RESCUES = 5;
export const EVENTS = 6;
/** 1 if a word turned out to be shared that was not known to be. */
export const GREW = 7;
export const FAILURE = 8;
/** Numbers waits, so that the longest one is woken first. */
export const TICKETS = 9;
/** 1 tells those who follow to stop. */
export const STOP = 10;
/** Highest address that was ever written. */
export const TOP = 11;
/** 1 while every step is to be described. */
export const DESCRIBE = 12;
const CHOICE_TABLE = 16;
const THREADS = CHOICE_TABLE + 3 * MOST_CHOICES;
const THREAD_WORDS = 16;
/** A thread's words: whether it has the baton, and what it does. */
export const GO = 0;
export const STATUS = 1;
const WAITS = THREADS + THREAD_WORDS * MOST_THREADS;
const WAIT_WORDS = 4;
/** A wait's words. */
export const WAIT_STATE = 0;
export const WAIT_ADDRESS = 1;
export const WAIT_TICKET = 2;
const BOARD_WORDS = WAITS + WAIT_WORDS * MOST_WAITS * MOST_THREADS;

/** Words of an event. */
export const EVENT_WORDS = 4;

// What a thread does.
export const READY = 0;
export const BLOCKED = 1;
export const ENDED = 2;

// What became of a wait.
export const NO_WAIT = 0;
export const WAITING = 1;
export const WOKEN = 2;
export const TIMED_OUT = 3;

const LONGEST_FAILURE = 1 << 16;

/** The buffers, as they are sent to workers. */
export interface BoardBuffers {
  words: Int32Array;
  /** Every event of a run at which a thread could have been preempted. */
  events: Int32Array;
  /** The clock, when each thread would wake, when each wait would end. */
  times: Float64Array;
  /** By address: which threads have read and written a word. */
  uses: Uint8Array;
  /** By address: whether accesses to a word are places for a preemption. */
  shared: Uint8Array;
  failure: Uint8Array;
}

/**
 * Makes a board.
 *
 * @param length Words of the memory that is explored.
 * @returns Its buffers.
 */
export function makeBoard(length: number): BoardBuffers {
  const bytes = (size: number) => new Uint8Array(new SharedArrayBuffer(size));
  return {
    words: sharedWords(BOARD_WORDS),
    events: sharedWords(MOST_EVENTS * EVENT_WORDS),
    times: new Float64Array(
      new SharedArrayBuffer(8 * (1 + MOST_THREADS * (1 + MOST_WAITS))),
    ),
    uses: bytes(length),
    shared: bytes(length),
    failure: bytes(LONGEST_FAILURE),
  };
}

/** The clock's place among the times. */
export const CLOCK = 0;

/** When a thread would wake by itself: its place among the times. */
export function wakeTime(thread: number): number {
  return 1 + thread;
}

/** When a wait would end by itself: its place among the times. */
export function waitTime(wait: number): number {
  return 1 + MOST_THREADS + wait;
}

/** The address of a thread's word. */
export function threadWord(thread: number, word: number): number {
  return THREADS + thread * THREAD_WORDS + word;
}

/** The address of a wait's word. */
export function waitWord(wait: number, word: number): number {
  return WAITS + wait * WAIT_WORDS + word;
}

/** Puts the schedule of the next run on the board. */
export function putSchedule(words: Int32Array, schedule: Schedule): void {
  if (schedule.length > MOST_CHOICES) {
    throw new RangeError(
      `Cannot run a schedule of more than ${MOST_CHOICES} choices`,
    );
  }
  words[CHOICES] = schedule.length;
  for (const [i, { at, to, hash }] of schedule.entries()) {
    words[CHOICE_TABLE + 3 * i] = at;
    words[CHOICE_TABLE + 3 * i + 1] = to;
    words[CHOICE_TABLE + 3 * i + 2] = hash;
  }
}

/** The n-th choice of the schedule on the board, if it has so many. */
export function choiceAt(words: Int32Array, n: number): Choice | undefined {
  if (n >= words[CHOICES]) return undefined;
  const at = CHOICE_TABLE + 3 * n;
  return { at: words[at], to: words[at + 1], hash: words[at + 2] };
}

/** Notes what failed first. */
export function putFailure(board: BoardBuffers, message: string): void {
  const { words, failure } = board;
  if (words[FAILURE] !== 0) return;
  const text = new TextEncoder().encode(message || "something unnamed");
  failure.set(text.subarray(0, LONGEST_FAILURE));
  words[FAILURE] = Math.min(text.length, LONGEST_FAILURE);
  words[ABORTED] = 1;
}

/** What failed, if something did. */
export function failureOf({ words, failure }: BoardBuffers): string {
  return new TextDecoder().decode(failure.slice(0, words[FAILURE]));
}

/** Clears the board for another run. */
export function clearBoard({ words, times }: BoardBuffers): void {
  const { [STOP]: stop, [TOP]: top, [DESCRIBE]: describe, [GREW]: grew } =
    words;
  words.fill(0);
  words[STOP] = stop;
  words[TOP] = top;
  words[DESCRIBE] = describe;
  words[GREW] = grew;
  times.fill(Infinity);
  times[CLOCK] = 0;
}

// Events

// What an event is. A read and a write are accesses: bits, so that both is both.
export const READ = 1;
export const WRITE = 2;
/** A thread cannot go on. */
export const BLOCK = 4;
/** A thread could go on, but in vain. */
export const YIELD = 5;
export const END = 6;
export const START = 7;

/** An event, read from the board. */
export interface Event {
  step: number;
  thread: number;
  kind: number;
  /** The other threads that could have gone on, a bit each. */
  ready: number;
  /** The other threads that a timeout could have woken. */
  sleeping: number;
  /** Who would go on by default. */
  to: number;
  address: number;
  /** Stands for the history up to this event. */
  hash: number;
}

/** Packs what an event is into a word. */
export function packEvent(
  thread: number,
  kind: number,
  ready: number,
  sleeping: number,
  to: number,
): number {
  return thread | kind << 4 | ready << 8 | sleeping << 12 | to << 16;
}

/** Reads the events of the run that is over. */
export function readEvents({ words, events }: BoardBuffers): Event[] {
  const read: Event[] = [];
  for (let i = 0; i < words[EVENTS]; i++) {
    const at = i * EVENT_WORDS;
    const packed = events[at + 1];
    read.push({
      step: events[at],
      thread: packed & 15,
      kind: packed >> 4 & 15,
      ready: packed >> 8 & 15,
      sleeping: packed >> 12 & 15,
      to: packed >> 16 & 15,
      address: events[at + 2],
      hash: events[at + 3],
    });
  }
  return read;
}

// Uses

/** By the use byte of a word: whether two threads use it, one of which writes. */
const CONFLICTS = Uint8Array.from({ length: 256 }, (_, uses) => {
  let users = 0;
  for (let t = 0; t < MOST_THREADS; t++) if (uses >> 2 * t & 3) users++;
  return users > 1 && (uses & 0b10101010) !== 0 ? 1 : 0;
});

/** Notes that a thread uses a word, and whether that is news that it is shared. */
export function noteUse(
  { uses, shared, words }: BoardBuffers,
  address: number,
  thread: number,
  kind: number,
): void {
  const use = uses[address] | kind << 2 * thread;
  uses[address] = use;
  if (CONFLICTS[use] > shared[address]) words[GREW] = 1;
}

/** Forgets which words are shared, or takes all of them for shared, once and for all. */
export function forgetShared(board: BoardBuffers, all: boolean): void {
  const { uses, shared, words } = board;
  uses.fill(0);
  shared.fill(all ? 1 : 0);
  words[GREW] = 0;
}

/** Makes every word shared whose uses say so. */
export function learnShared({ uses, shared, words }: BoardBuffers): void {
  for (let i = 0; i < uses.length; i++) shared[i] = CONFLICTS[uses[i]];
  words[GREW] = 0;
}
