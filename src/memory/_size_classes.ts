// Slab geometry: which sizes there are and where a page keeps its blocks.

/** Base-2 logarithm of a page's length in words. */
export const PAGE_SHIFT = 12;
/** A page: 4,096 words, 16 KiB. */
export const PAGE_WORDS: number = 1 << PAGE_SHIFT;
/** The offset of a word within its page. */
export const PAGE_MASK: number = PAGE_WORDS - 1;
/** A cache line in words; blocks start at multiples of it where their size allows. */
export const LINE = 16;

/**
 * Block sizes in words, four steps to a doubling, so that at most a fifth of
 * a block is slack; above 512 whatever divides a page well.
 */
const SIZES: number[] = [];
for (let step = 4, size = 4; size <= 512; size += step) {
  SIZES.push(size);
  if (size >= 32 && (size & (size - 1)) === 0) step = size / 4;
}
for (let blocks = 7; blocks >= 2; blocks--) {
  SIZES.push(Math.floor((PAGE_WORDS - LINE) / blocks) & ~3);
}

/** How many size classes there are. */
export const CLASSES: number = SIZES.length;
/** The largest block that a slab holds, in words; above it, whole pages. */
export const LARGEST_SLAB: number = SIZES[CLASSES - 1];

/** Class → block size in words. */
export const CLASS_WORDS: Int32Array = new Int32Array(SIZES);
/** Class → blocks in a page. */
export const CLASS_BLOCKS: Int32Array = new Int32Array(CLASSES);
/** Class → offset of the first block in its page; the tags stand before it, a word a block. */
export const CLASS_DATA: Int32Array = new Int32Array(CLASSES);
/** Class → blocks that move between a magazine and the depot at once. */
export const CLASS_MAGAZINE: Int32Array = new Int32Array(CLASSES);
/** Class → ⌈2²⁰ / size⌉: `(offset * magic) >>> 20` is the quotient wherever a block begins. */
export const CLASS_MAGIC: Int32Array = new Int32Array(CLASSES);

const CLASS_OF = new Uint8Array(LARGEST_SLAB + 1);

for (let c = 0, words = 0; c < CLASSES; c++) {
  const size = SIZES[c];
  let blocks = Math.floor(PAGE_WORDS / (size + 1));
  while (alignLine(blocks) + blocks * size > PAGE_WORDS) blocks--;
  CLASS_BLOCKS[c] = blocks;
  CLASS_DATA[c] = alignLine(blocks);
  CLASS_MAGAZINE[c] = Math.max(1, Math.min(32, Math.floor(1024 / size)));
  CLASS_MAGIC[c] = Math.ceil(2 ** 20 / size);
  for (; words <= size; words++) CLASS_OF[words] = c;
}

/**
 * Rounds up to whole cache lines.
 *
 * @param words A number of words.
 * @returns The next multiple of {@linkcode LINE}.
 */
export function alignLine(words: number): number {
  return (words + LINE - 1) & -LINE;
}

/**
 * The smallest size class that holds a block.
 *
 * @param words Block size in words, at most {@linkcode LARGEST_SLAB}.
 * @returns The class.
 */
export function classOf(words: number): number {
  return CLASS_OF[words];
}
