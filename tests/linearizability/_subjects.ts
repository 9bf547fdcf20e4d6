// The structures under test, as a thread uses them.

import {
  type KeyCodec,
  type Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  string,
  u32,
} from "../../mod.ts";
import {
  ABSENT,
  initialValue,
  isPresent,
  KEYS,
  type Step,
  updated,
  valueOf,
} from "./_plan.ts";
import type { Recorder } from "./_recorder.ts";
import { CODECS, decode, encode, type Subject } from "./_values.ts";

/** Keys besides those that operations are about, which make a map grow and shrink. */
const OTHERS = 700;
/** How many of them come or go in a step. */
const STIRRED = 20;

/** What a thread can do with a structure. */
export interface Player {
  /** Brings everything to what it is when a round begins; no other thread does anything. */
  prepare(round: number, present: number): void;
  /** Takes a step, and writes it down. */
  take(step: Step, round: number, thread: number, number: number): void;
  /** What there is at the end of a round. */
  look(): void;
  /** Makes everything as it was when it was opened for the first time. */
  empty(): void;
}

/**
 * Opens a structure.
 *
 * @param rcu The thread's membership.
 * @param subject Which one.
 * @param recorder Where the thread writes down what it does.
 * @param thread Which thread it is.
 * @returns What it can do.
 */
export function open(
  rcu: Rcu,
  subject: Subject,
  recorder: Recorder,
  thread: number,
): Player {
  return subject.structure === "cell"
    ? new CellPlayer(rcu, subject, recorder)
    : new MapPlayer(rcu, subject, recorder, thread);
}

class CellPlayer implements Player {
  readonly #cell: RcuCell<unknown>;
  readonly #kind: Subject["value"];
  readonly #recorder: Recorder;

  constructor(rcu: Rcu, { value }: Subject, recorder: Recorder) {
    const initial = encode(value, 0);
    this.#cell = RcuCell.open(rcu, "cell", { value: CODECS[value], initial });
    this.#kind = value;
    this.#recorder = recorder;
  }

  prepare(round: number): void {
    this.#cell.set(encode(this.#kind, initialValue(round, 0)));
    // Which version that is.
    this.#recorder.write(0, 0, this.#cell.version);
  }

  take({ action }: Step, round: number, thread: number, number: number): void {
    const cell = this.#cell;
    const kind = this.#kind;
    const recorder = this.#recorder;
    const value = encode(kind, valueOf(round, thread, number, 0));
    const next = (old: unknown): unknown =>
      encode(kind, updated(decode(kind, old), round, thread, number, 0));
    const called = recorder.ticket();
    let output: unknown;
    switch (action) {
      case "get":
        output = cell.get();
        break;
      case "set":
        output = cell.set(value);
        break;
      case "update":
        output = cell.update(next);
        break;
      case "version":
        return this.#version(called);
      default:
        throw new Error(`Not for cells: ${action}`);
    }
    recorder.write(called, recorder.ticket(), decode(kind, output));
  }

  #version(called: number): void {
    const { version } = this.#cell;
    this.#recorder.write(called, this.#recorder.ticket(), version);
  }

  look(): void {
    const recorder = this.#recorder;
    const called = recorder.ticket();
    const value = this.#cell.get();
    recorder.write(called, recorder.ticket(), decode(this.#kind, value));
    this.#version(recorder.ticket());
  }

  empty(): void {
    this.#cell.set(encode(this.#kind, 0));
  }
}

class MapPlayer implements Player {
  readonly #rcu: Rcu;
  readonly #map:
    | RcuMap<number | string, unknown>
    | RcuSortedMap<number | string, unknown>;
  readonly #subject: Subject;
  readonly #recorder: Recorder;
  readonly #keys: (number | string)[];
  readonly #others: (number | string)[];
  #stirred = 0;

  constructor(rcu: Rcu, subject: Subject, recorder: Recorder, thread: number) {
    const { key, value, structure } = subject;
    const codec = (key === "u32" ? u32 : string) as unknown as KeyCodec<
      number | string
    >;
    const options = { key: codec, value: CODECS[value] };
    this.#rcu = rcu;
    this.#map = structure === "map"
      ? RcuMap.open<number | string, unknown>(rcu, "map", options)
      : RcuSortedMap.open<number | string, unknown>(rcu, "map", options);
    this.#subject = subject;
    this.#recorder = recorder;
    const keyOf = (n: number) => key === "u32" ? n : `key ${n}`;
    this.#keys = Array.from({ length: KEYS }, (_, n) => keyOf(1e4 * (n + 1)));
    // On all sides of those in the order of a sorted map, and each thread its own.
    this.#others = Array.from(
      { length: OTHERS },
      (_, n) => keyOf((n * 7919) % 4e4 * 10 + thread + 1),
    );
  }

  prepare(round: number, present: number): void {
    this.#keys.forEach((key, n) => {
      if (isPresent(present, n)) {
        const value = initialValue(round, n);
        this.#map.set(key, encode(this.#subject.value, value));
      } else this.#map.delete(key);
    });
  }

  take(step: Step, round: number, thread: number, number: number): void {
    const map = this.#map;
    const recorder = this.#recorder;
    const kind = this.#subject.value;
    const key = this.#keys[step.key];
    const value = encode(kind, valueOf(round, thread, number, step.key));
    const next = (old: unknown): unknown =>
      encode(kind, updated(decode(kind, old), round, thread, number, step.key));
    if (step.action === "section") {
      return this.#rcu.read(() => step.keys.forEach((key) => this.#get(key)));
    }
    if (step.action === "replaceAll") {
      return this.#replaceAll(step.key, round, thread, number);
    }
    if (step.action === "stir") return this.#stir(round);
    let output: unknown;
    let answer: boolean | undefined;
    const called = recorder.ticket();
    switch (step.action) {
      case "get":
        output = map.get(key);
        break;
      case "has":
        answer = map.has(key);
        break;
      case "set":
        map.set(key, value);
        break;
      case "delete":
        answer = map.delete(key);
        break;
      case "getOrInsert":
        output = map.getOrInsert(key, value);
        break;
      case "update":
        output = map.update(key, next);
        break;
      case "clear":
        map.clear();
        break;
      default:
        throw new Error(`Not for maps: ${step.action}`);
    }
    const returned = recorder.ticket();
    const said = answer === undefined ? decode(kind, output) : Number(answer);
    recorder.write(called, returned, said);
  }

  #get(key: number): void {
    const recorder = this.#recorder;
    const called = recorder.ticket();
    const value = this.#map.get(this.#keys[key]);
    const returned = recorder.ticket();
    recorder.write(called, returned, decode(this.#subject.value, value));
  }

  #replaceAll(
    present: number,
    round: number,
    thread: number,
    number: number,
  ): void {
    const kind = this.#subject.value;
    const recorder = this.#recorder;
    const entries = this.#keys.map((key, n): [number | string, unknown] => [
      key,
      encode(kind, valueOf(round, thread, number, n)),
    ]).filter((_, n) => isPresent(present, n));
    const called = recorder.ticket();
    this.#map.replaceAll(entries);
    recorder.write(called, recorder.ticket(), ABSENT);
  }

  /** Sets or deletes some keys that no operation is about. */
  #stir(round: number): void {
    const others = this.#others;
    for (let i = 0; i < STIRRED; i++) {
      const at = this.#stirred++ % (2 * OTHERS);
      if (at < OTHERS) {
        this.#map.set(others[at], encode(this.#subject.value, round));
      } else this.#map.delete(others[at - OTHERS]);
    }
  }

  look(): void {
    for (let key = 0; key < KEYS; key++) this.#get(key);
  }

  empty(): void {
    this.#map.clear();
  }
}
