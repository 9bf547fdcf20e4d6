/**
 * A reader-writer spin lock in one shared word: how many readers hold it, and
 * a bit for a writer. A writer that waits holds new readers off, so that
 * neither side starves the other.
 */
import { pause } from "../src/sync/_park.ts";

const WRITER = 1 << 30;

/** Takes the lock for reading. */
export function readLock(words: Int32Array, lock: number): void {
  while (true) {
    const seen = Atomics.load(words, lock);
    if (
      seen < WRITER &&
      Atomics.compareExchange(words, lock, seen, seen + 1) === seen
    ) return;
    pause();
  }
}

/** Gives it back. */
export function readUnlock(words: Int32Array, lock: number): void {
  Atomics.sub(words, lock, 1);
}

/** Takes the lock for writing. */
export function writeLock(words: Int32Array, lock: number): void {
  while (true) {
    const seen = Atomics.load(words, lock);
    if (
      seen < WRITER &&
      Atomics.compareExchange(words, lock, seen, seen | WRITER) === seen
    ) break;
    pause();
  }
  while (Atomics.load(words, lock) !== WRITER) pause();
}

/** Gives it back. */
export function writeUnlock(words: Int32Array, lock: number): void {
  Atomics.sub(words, lock, WRITER);
}
