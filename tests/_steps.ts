// What another thread does between two atomic steps of this one, without the other thread.

import { stub } from "@std/testing/mock";

const STEPS = [
  "add",
  "compareExchange",
  "exchange",
  "load",
  "store",
  "sub",
] as const;

type Access = (...access: unknown[]) => unknown;

/**
 * Does something before every atomic access of an act.
 *
 * @param act The act.
 * @param before What to do; gets the number of the access. Its own accesses do not count.
 * @returns How many accesses there were.
 */
export function atEveryStep(
  act: () => void,
  before: (step: number) => void,
): number {
  let step = 0;
  let inside = false;
  using stubs = new DisposableStack();
  for (const name of STEPS) {
    const original = Atomics[name] as Access;
    const target = Atomics as unknown as Record<string, Access>;
    stubs.use(stub(target, name, (...access) => {
      if (!inside) {
        inside = true;
        try {
          before(step++);
        } finally {
          inside = false;
        }
      }
      return original(...access);
    }));
  }
  act();
  return step;
}

/**
 * Plays a scenario once for every atomic access of an act: another act is done
 * in one piece just before that access, and in a last play after all of them.
 *
 * @param play Sets a fresh scenario up, and returns the two acts and what must
 * be true after both.
 * @param most Where to stop, for an act that waits for the other one.
 */
export function interleave(
  play: () => {
    act: () => void;
    other: () => void;
    check: (step: number) => void;
  },
  most = Infinity,
): void {
  for (let at = 0, ended = false; at < most && !ended; at++) {
    const { act, other, check } = play();
    // Up to here the act takes the steps that it would take alone: if it has none left, it is over.
    ended = true;
    atEveryStep(act, (step) => {
      if (step !== at) return;
      ended = false;
      other();
    });
    if (ended) other();
    check(at);
  }
}
