/** What the threads of the sorted map's experiment do. */
import { Rcu, type RcuHandle, runReclaimer } from "../mod.ts";
import { effort, interleave, type Series } from "./_measure.ts";
import {
  arraySearcher,
  openNumbers,
  presentKeys,
  searcher,
  updater,
} from "./_sorted_keys.ts";
import { obey } from "./_workers.ts";

/** A setting, as its threads get it. */
export interface Shared {
  handle: RcuHandle;
  /** Which keys are there. */
  present: Uint8Array;
}

/** What readers and the updater get: all settings, so that each starts once. */
export interface Threads {
  all: Shared[];
  seed: number;
}

/** Searches, and updates, between two looks at the control words. */
const SEARCHES = 256;
const UPDATES = 64;

/** The settings as this thread sees them. Disposing of them closes all. */
function attachAll({ all }: Threads, name: string) {
  const stack = new DisposableStack();
  const members = all.map(({ handle, present }) => {
    const rcu = stack.use(Rcu.attach(handle, { name }));
    return { rcu, map: openNumbers(rcu), present };
  });
  return { members, [Symbol.dispose]: () => stack.dispose() };
}

/** A reader: its tasks, from 1, are to search in the map of each setting. */
export function reader(threads: Threads, control: Int32Array): void {
  const { all, seed } = threads;
  using attached = attachAll(threads, "reader");
  const { members } = attached;
  const search = searcher(all[0].present.length, seed);
  obey(
    control,
    (task) => search(members[task - 1].map, SEARCHES),
    () => members.forEach(({ rcu }) => rcu.threadOffline()),
  );
}

/** The updater: its tasks, from 1, are to update the map of each setting. */
export function writer(threads: Threads, control: Int32Array): void {
  using attached = attachAll(threads, "updater");
  const { members } = attached;
  const update = updater(threads.seed);
  let last: Rcu | undefined;
  obey(
    control,
    (task) => {
      const { rcu, map, present } = members[task - 1];
      last = rcu;
      return update(map, present, UPDATES);
    },
    () => {
      // No turn of the event loop comes for what it has deferred.
      last?.barrierSync();
      last = undefined;
      members.forEach(({ rcu }) => rcu.threadOffline());
    },
  );
}

/** The thread of `call_rcu`. Ends when it is alone. */
export function reclaimer(handle: RcuHandle): Promise<void> {
  return runReclaimer(handle);
}

/** Searches of a run of {@linkcode besidePrivate}. */
const RUN = 2 ** 15;
const ROUNDS = 15;

/**
 * One thread that searches in the map, and, in turn, in a sorted array of its
 * own with the same keys, for the same ones.
 */
export async function besidePrivate(
  { handle, present, quick }: Shared & { quick: boolean },
): Promise<Series> {
  using rcu = Rcu.attach(handle);
  const map = openNumbers(rcu);
  const search = searcher(present.length, 1);
  const searchArray = arraySearcher(presentKeys(present), present.length, 1);
  return await interleave([
    {
      name: "array",
      operations: RUN,
      run: () => inBatches((count) => searchArray(count)),
    },
    {
      name: "map",
      operations: RUN,
      run: () => inBatches((count) => search(map, count)),
    },
  ], effort({ rounds: ROUNDS }, quick));
}

/** Calls that are short and many: the engine compiles the loop in them as a whole. */
function inBatches(run: (count: number) => number): number {
  let sum = 0;
  for (let at = 0; at < RUN; at += SEARCHES) sum += run(SEARCHES);
  return sum;
}
