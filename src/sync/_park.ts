// Being idle for a moment, and sleeping on a word where a thread may.

/** Tells the processor that this is a spin loop; a no-op where the engine has no `Atomics.pause`. */
export const pause: () => void = typeof Atomics.pause === "function"
  ? () => Atomics.pause()
  : () => {};

/** Whether this thread may sleep; not known before the first time. */
let maySleep: boolean | undefined;

/**
 * Sleeps until somebody notifies a word that has a value, for some time at most. A browser's
 * main thread must not sleep: it looks again and again for as long.
 *
 * @param words The arena's words.
 * @param address The word.
 * @param value What it must hold, or this returns at once.
 * @param ms Longest sleep in ms.
 */
export function park(
  words: Int32Array,
  address: number,
  value: number,
  ms: number,
): void {
  if (maySleep !== false) {
    try {
      Atomics.wait(words, address, value, ms);
      maySleep = true;
      return;
    } catch (error) {
      if (maySleep || !(error instanceof TypeError)) throw error;
      maySleep = false;
    }
  }
  const end = performance.now() + ms;
  while (Atomics.load(words, address) === value && performance.now() < end) {
    pause();
  }
}
