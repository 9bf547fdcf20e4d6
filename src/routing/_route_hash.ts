// A keyed hash of three words.

/**
 * Hashes three words under a secret, so that nobody who does not know it can
 * choose keys that meet in one chain: the sum of the words' products with
 * secret odd numbers (Dietzfelbinger, "Universal hashing and k-wise
 * independent random variables via integer arithmetic without primes", STACS
 * 1996), mixed so that the low bits can be used as well. The three products do
 * not wait for each other, which makes it faster than the kernel's
 * `jhash_3words`. A hash table's measure of safety, not a cipher's: the secret
 * has 32 bits, and is to be renewed.
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
  let sum = Math.imul(first, secret | 1);
  sum = (sum + Math.imul(second, Math.imul(secret, 0x9e3779b1) | 1)) | 0;
  sum = (sum + Math.imul(third, Math.imul(secret, 0x85ebca77) | 1)) | 0;
  const mixed = Math.imul(sum ^ (sum >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 12);
}

/**
 * Draws a secret.
 *
 * @returns 32 bits that nobody can guess.
 */
export function drawSecret(): number {
  return crypto.getRandomValues(new Int32Array(1))[0];
}
