// A keyed hash of three words.

/** What the mixing starts from: the constant of lookup3, plus 4 for each of the words. */
const INITIAL = 0xdeadbeef + (3 << 2) | 0;

/**
 * Hashes three words under a secret, so that nobody who does not know it can
 * choose keys that meet in one chain. This is Bob Jenkins' `hashword` of
 * lookup3 (public domain, 2006) for three words, the kernel's `jhash_3words`.
 * A hash table's measure of safety, not a cipher's: the secret has 32 bits and
 * is to be renewed.
 *
 * @param first A word.
 * @param second A word.
 * @param third A word.
 * @param secret The table's secret.
 * @returns 32 bits.
 */
export function hashWords(
  first: number,
  second: number,
  third: number,
  secret: number,
): number {
  let a = (INITIAL + secret + first) | 0;
  let b = (INITIAL + secret + second) | 0;
  let c = (INITIAL + secret + third) | 0;
  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  return ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;
}

/**
 * Draws a secret.
 *
 * @returns 32 bits that nobody can guess.
 */
export function drawSecret(): number {
  return crypto.getRandomValues(new Int32Array(1))[0];
}
