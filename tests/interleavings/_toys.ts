// Scenarios that are about the exploration itself.

import { unwatched } from "./_hooks.ts";
import type { Scenario } from "./_scenario.ts";

/** Threads that read and write a few words without any order. */
function race(
  name: string,
  acts: ((words: Int32Array) => void)[],
): Scenario {
  return {
    name,
    threads: acts.length,
    lay: () => ({}),
    join: (thread, buffer) => {
      const words = new Int32Array(buffer);
      return { act: () => acts[thread](words) };
    },
  };
}

/** Waits for a word, and is to be woken by whoever sets it. */
function sleeper(name: string, wakes: boolean, timeout?: number): Scenario {
  return {
    name,
    threads: 2,
    lay: () => ({}),
    join: (thread, buffer) => {
      const words = new Int32Array(buffer);
      return {
        act() {
          if (thread === 0) Atomics.wait(words, 1, 0, timeout);
          else {
            Atomics.store(words, 1, 1);
            if (wakes) Atomics.notify(words, 1);
          }
        },
      };
    },
  };
}

let chance = 0;

/** They have names that no other scenario has, and are no part of the command. */
export const TOYS: Scenario[] = [
  race("toy/race of two", [
    (words) => {
      words[1] = words[2] + 1;
      words[2] = words[1] + words[3];
    },
    (words) => {
      words[3] = words[1] + 2;
      words[2]++;
      words[9] = words[2];
    },
  ]),
  race("toy/race of three", [
    (words) => {
      words[1] = words[2] + 1;
      words[8] = words[3];
    },
    (words) => {
      words[2] = words[1] * 5 + words[3];
    },
    (words) => {
      words[3] = words[1] + words[2] * 3 + 1;
    },
  ]),
  sleeper("toy/sleeper that is woken", true),
  sleeper("toy/sleeper that is not woken", false),
  sleeper("toy/sleeper that a timeout rescues", false, 10),
  race("toy/thread that never ends", [(words) => {
    while (Atomics.load(words, 1) === 0);
  }, () => {}]),
  race("toy/threads that do not repeat themselves", [(words) => {
    words[1]++;
    if (++chance % 2 === 0) words[3]++;
    words[2]++;
  }, (words) => {
    words[2]++;
    words[1]++;
  }]),
  {
    ...race(
      "toy/lost update",
      [0, 1].map(() => (words: Int32Array) => {
        words[1]++;
      }),
    ),
    check() {
      if (unwatched()[1] !== 2) throw new Error("An update was lost");
    },
  },
];
