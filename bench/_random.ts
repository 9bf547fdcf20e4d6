/** Drawing keys beforehand: the same ones in every run. */

/** A seeded generator of numbers from 0 up to 1 (Marsaglia's xorshift32). */
export function seeded(seed: number): () => number {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Draws `length` indexes below `n`, each as likely as the others. */
export function uniform(
  length: number,
  n: number,
  random: () => number,
): Uint32Array {
  return Uint32Array.from({ length }, () => random() * n);
}

/**
 * Draws `length` indexes below `n`, index `i` with a likelihood in proportion
 * to 1 / (i + 1): few are drawn often, as flows, words and users are.
 */
export function zipf(
  length: number,
  n: number,
  random: () => number,
): Uint32Array {
  const upTo = new Float64Array(n);
  let sum = 0;
  for (let i = 0; i < n; i++) upTo[i] = sum += 1 / (i + 1);
  return Uint32Array.from({ length }, () => {
    const at = random() * sum;
    let low = 0;
    let high = n - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (upTo[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  });
}

/** Puts an array in random order (Fisher and Yates), and returns it. */
export function shuffle<T extends Uint32Array | unknown[]>(
  array: T,
  random: () => number,
): T {
  for (let i = array.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [array[i], array[j]] = [array[j], array[i]];
  }
  return array;
}
