/** The fault of 2009, planted in a thread: a benchmark has to see it. */
import type { Address, Rcu } from "../mod.ts";
import { Callbacks } from "../src/callbacks/_callbacks.ts";
import { membershipOf } from "../src/rcu.ts";

// Words that all threads with the fault share: they have a cache line of their own.
const LOCK = 0;
const FORCED = 1;
const LOST = 2;
const LINE = 16;

/** Makes the words that the fault needs. */
export function faultWords(rcu: Rcu): Address {
  const place = rcu.memory.allocate(LINE);
  rcu.memory.words.fill(0, place, place + LINE);
  return place;
}

/** How often threads have forced a period, those included that found another one at it. */
export function timesForced(rcu: Rcu, place: Address): number {
  const { words } = rcu.memory;
  return Atomics.load(words, place + FORCED) +
    Atomics.load(words, place + LOST);
}

/**
 * Has this thread do what Linux 2.6.31 did: past the high-water mark *every*
 * `call_rcu` forced quiescent states. It looked at the global numbers of the
 * period, tried for a global lock, and with the lock looked at every processor
 * ("tree rcu: call_rcu scalability problem?", Nick Piggin, September 2009).
 *
 * Only on the prototype, and only here: `src/` forces once per `highWater`
 * further callbacks. The thread is to have this one membership.
 *
 * @param rcu The thread's membership.
 * @param place What {@linkcode faultWords} returned.
 * @param mark The high-water mark.
 * @returns Takes the fault away again.
 */
export function plantFault(
  rcu: Rcu,
  place: Address,
  mark: number,
): Disposable {
  const membership = membershipOf(rcu, "plant a fault");
  const { readers, sequence, words } = membership;
  const { checkCallbacks } = Callbacks.prototype;
  Callbacks.prototype.checkCallbacks = function (): void {
    if (this.pending <= mark) return checkCallbacks.call(this);
    if (sequence.inProgress()) {
      if (Atomics.compareExchange(words, place + LOCK, 0, 1) !== 0) {
        Atomics.add(words, place + LOST, 1);
      } else {
        Atomics.add(words, place + FORCED, 1);
        // The looking is what it costs; what there is to find, `processCallbacks` finds.
        for (let reader = 0; reader < readers.count; reader++) {
          Atomics.load(words, readers.slot(reader));
        }
        Atomics.store(words, place + LOCK, 0);
      }
    }
    this.processCallbacks();
  };
  return {
    [Symbol.dispose](): void {
      Callbacks.prototype.checkCallbacks = checkCallbacks;
    },
  };
}
