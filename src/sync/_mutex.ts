// A mutex in shared memory that costs one compare-and-exchange to take and one exchange to give back.

import { park, pause } from "./_park.ts";

/** Set in a mutex word while somebody may be parked on it. */
const WAITERS = 0x8000_0000 | 0;

/** Tries on a taken mutex before parking; the holder is a few stores away from done. */
const SPINS = 64;

/** A holder that has not given a mutex back after so long may be dead, in ms. */
const SLOW = 200;

/** Longest single sleep, in ms: a parked thread looks at the world again at least this often. */
const SLICE = 50;

/**
 * The mutex protocol. A word is 0 when free; otherwise it names its holder
 * ({@linkcode lockOwner}), so that whoever gives up waiting can say who is in
 * the way, and so that whoever buries a dead holder sees that it has it, and gives it back.
 *
 * 1. The word moves 0 → owner by compare-and-exchange alone: one holder.
 * 2. A waiter sets WAITERS before it parks, and parks only on the exact value
 *    it saw. The holder's exchange to 0 either happens before that (the
 *    waiter's compare-and-exchange or `wait` fails and it tries again) or takes
 *    the flag along (and then notifies). No wake-up is lost.
 * 3. A woken waiter takes the mutex with WAITERS set, because it cannot know
 *    whether others are still parked; at worst the next release notifies nobody.
 * 4. Every sleep ends after SLICE ms at the latest and the whole wait after
 *    `timeout` ms, whatever the holder does.
 *
 * @param words The arena's words.
 * @param address The mutex word.
 * @param owner The caller's name, positive, from {@linkcode lockOwner}.
 * @param timeout Longest wait in ms.
 * @param onSlow Called now and then once the wait is a long one.
 * @returns Whether the mutex is now held by `owner`.
 */
export function acquire(
  words: Int32Array,
  address: number,
  owner: number,
  timeout: number,
  onSlow?: () => void,
): boolean {
  if (Atomics.compareExchange(words, address, 0, owner) === 0) return true;
  for (let i = 0; i < SPINS; i++) {
    pause();
    if (
      Atomics.load(words, address) === 0 &&
      Atomics.compareExchange(words, address, 0, owner) === 0
    ) return true;
  }
  const begin = performance.now();
  const deadline = begin + timeout;
  while (true) {
    const seen = Atomics.load(words, address);
    if (seen === 0) {
      const mine = owner | WAITERS;
      if (Atomics.compareExchange(words, address, 0, mine) === 0) return true;
      continue;
    }
    const parked = seen | WAITERS;
    if (
      seen !== parked &&
      Atomics.compareExchange(words, address, seen, parked) !== seen
    ) continue;
    const left = deadline - performance.now();
    if (left <= 0) return false;
    if (onSlow !== undefined && performance.now() - begin > SLOW) onSlow();
    // Pairs with: the exchange and notify in `release`.
    park(words, address, parked, Math.min(left, SLICE));
  }
}

/**
 * Takes the mutex if it is free now.
 *
 * @param words The arena's words.
 * @param address The mutex word.
 * @param owner The caller's name.
 * @returns Whether the mutex is now held by `owner`.
 */
export function tryAcquire(
  words: Int32Array,
  address: number,
  owner: number,
): boolean {
  return Atomics.compareExchange(words, address, 0, owner) === 0;
}

/**
 * Gives the mutex back. Only its holder may call this.
 *
 * @param words The arena's words.
 * @param address The mutex word.
 */
export function release(words: Int32Array, address: number): void {
  // Pairs with: the compare-and-exchange in `acquire`.
  if (Atomics.exchange(words, address, 0) < 0) {
    Atomics.notify(words, address, 1);
  }
}

/**
 * The name under which a thread holds a mutex.
 *
 * @param reader The thread's reader index, 0 to 4,095.
 * @param generation How often that slot has been taken before; kept to 18 bits.
 * @returns A positive number that no other living thread of the domain has.
 */
export function lockOwner(reader: number, generation: number): number {
  return ((generation & 0x3ffff) << 13) | (reader + 1);
}

/**
 * Who holds a mutex.
 *
 * @param words The arena's words.
 * @param address The mutex word.
 * @returns The holder's reader index, or -1 when the mutex is free.
 */
export function holderOf(words: Int32Array, address: number): number {
  return holderIn(Atomics.load(words, address));
}

/**
 * Whose name something is.
 *
 * @param owner A name, from {@linkcode lockOwner}.
 * @returns The reader index.
 */
export function holderIn(owner: number): number {
  return (owner & 0x1fff) - 1;
}

/**
 * Whether a mutex is held under a name.
 *
 * @param words The arena's words.
 * @param address The mutex word.
 * @param owner The name, from {@linkcode lockOwner}.
 * @returns `true` if it is.
 */
export function isHeldBy(
  words: Int32Array,
  address: number,
  owner: number,
): boolean {
  return (Atomics.load(words, address) & ~WAITERS) === owner;
}
