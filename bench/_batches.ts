/** Batches of lookups, of keys drawn beforehand. */
import { consume, type Contender } from "./_measure.ts";

/** Operations of a batch: half a millisecond or so, in which others rarely cut in. */
export const BATCH = 2 ** 14;
/** Keys drawn beforehand, several batches. */
export const DRAWS = 2 ** 16;

/** Which part of an array each round takes. */
export function windows(
  length: number,
  batch: number,
): (round: number) => [number, number] {
  const count = Math.floor(length / batch);
  return (round) => {
    const from = (round % count) * batch;
    return [from, from + batch];
  };
}

/** Which part of {@linkcode DRAWS} keys each round takes. */
export const ofDraws: (round: number) => [number, number] = windows(
  DRAWS,
  BATCH,
);

/** A contender that does a batch each round. */
export function batch(
  name: string,
  run: (round: number) => number,
): Contender {
  return { name, operations: BATCH, run };
}

/** Runs each batch once before the clock, as the contender before it has emptied the caches. */
export function warmed(
  name: string,
  run: (round: number) => number,
): Contender {
  return { ...batch(name, run), before: (round) => consume(run(round)) };
}
