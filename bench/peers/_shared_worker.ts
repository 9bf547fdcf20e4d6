/** What the threads of the comparison of shared maps run. */
import { consume } from "../_measure.ts";
import { seeded, zipf } from "../_random.ts";
import { obeyInTurns, paced } from "../_workers.ts";
import { type Client, contenderOf } from "./_contenders.ts";

/** Tasks of a {@linkcode sharedPeer}. */
export const READ = 1;
export const SLOWLY = 2;
export const QUICKLY = 3;
/** Reads, and looks for the answer to each question of the other thread. */
export const ANSWER = 4;

/** Updates a second. */
export const RATES: Record<typeof SLOWLY | typeof QUICKLY, number> = {
  [SLOWLY]: 100,
  [QUICKLY]: 10_000,
};

/** Keys drawn beforehand. */
const DRAWS = 2 ** 16;
/** Reads of a batch, after which the event loop turns. */
const BATCH = 4_096;
/** Reads between two looks at what is awaited. */
const LOOK = 32;
/** The key that is updated to see when others see it. */
export const PROBE = "probe";

/** A thread's order. */
export interface SharedPeer {
  contender: string;
  handle: unknown;
  keys: string[];
  seed: number;
  /** What it has seen of PROBE. */
  seen: Int32Array;
}

function reader(client: Client, drawn: string[]): (count: number) => number {
  let at = 0;
  return (count) => {
    let length = 0;
    const end = at + count;
    for (let i = at; i < end; i++) length += client.get(drawn[i])!.to.length;
    at = end === drawn.length ? 0 : end;
    return length;
  };
}

/** Reads, or updates. */
export async function sharedPeer(
  { contender, handle, keys, seed, seen }: SharedPeer,
  control: Int32Array,
): Promise<void> {
  const client = await contenderOf(contender).open(handle);
  const random = seeded(seed);
  const draws = zipf(DRAWS, keys.length, random);
  const read = reader(client, Array.from(draws, (i) => keys[i]));
  let round = 0;
  const update = () => {
    const key = keys[Math.floor(random() * keys.length)];
    client.set(key, { to: `10.0.0.${round & 255}`, weight: round++ });
  };
  const updates = {
    [SLOWLY]: paced(control, RATES[SLOWLY], update),
    [QUICKLY]: paced(control, RATES[QUICKLY], update),
  };
  let last = 0;
  const look = () => {
    const { weight } = client.get(PROBE)!;
    if (weight === last) return;
    last = weight;
    Atomics.store(seen, 0, weight);
  };
  await obeyInTurns(control, (task) => {
    if (task === SLOWLY || task === QUICKLY) return updates[task](task);
    if (task === READ) consume(read(BATCH));
    else {
      for (let i = 0; i < BATCH; i += LOOK) {
        consume(read(LOOK));
        look();
      }
    }
    return BATCH;
  }, () => {});
  await client.close();
}

/** What a writer is to write. */
export interface WriterOrder {
  contender: string;
  handle: unknown;
  writer: number;
  own: number;
  contended: number;
  /** Moves when a thread is ready, and when it has written. */
  together: Int32Array;
}

/** What a writer finds afterwards. */
export interface Written {
  /** Keys of both writers that are missing or wrong. */
  lost: number;
  /** Its values of the keys that both wrote. */
  contended: (number | undefined)[];
  /** What it threw, if it did. */
  error: string | undefined;
}

/** Writes at the same time as another thread, and looks at what has become of it. */
export async function writeTogether(
  { contender, handle, writer, own, contended, together }: WriterOrder,
): Promise<Written> {
  const client = await contenderOf(contender).open(handle);
  const writers = 2;
  let error: string | undefined;
  meet(together, writers);
  try {
    for (let i = 0; i < own; i++) {
      client.set(`own ${writer} ${i}`, { to: "", weight: i });
      if (i < contended) {
        client.set(`contended ${i}`, { to: "", weight: writer });
      }
    }
  } catch (thrown) {
    error = String(thrown);
  }
  meet(together, 2 * writers);
  // Messages have their turn.
  await new Promise((resolve) => setTimeout(resolve, 300));
  let lost = 0;
  for (let of = 0; of < writers; of++) {
    for (let i = 0; i < own; i++) {
      if (client.get(`own ${of} ${i}`)?.weight !== i) lost++;
    }
  }
  const values = Array.from(
    { length: contended },
    (_, i) => client.get(`contended ${i}`)?.weight,
  );
  await client.close();
  return { lost, contended: values, error };
}

/** Waits until so many threads have come. */
function meet(together: Int32Array, count: number): void {
  Atomics.add(together, 0, 1);
  Atomics.notify(together, 0);
  const deadline = performance.now() + 60_000;
  for (let seen; (seen = Atomics.load(together, 0)) < count;) {
    if (performance.now() > deadline) throw new Error("The other did not come");
    Atomics.wait(together, 0, seen, 1_000);
  }
}
