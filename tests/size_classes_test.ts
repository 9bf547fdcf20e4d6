import {
  assert,
  assertEquals,
  assertGreater,
  assertLessOrEqual,
} from "@std/assert";
import {
  alignLine,
  CLASS_BLOCKS,
  CLASS_DATA,
  CLASS_MAGAZINE,
  CLASS_MAGIC,
  CLASS_WORDS,
  CLASSES,
  classOf,
  LARGEST_SLAB,
  LINE,
  PAGE_SHIFT,
  PAGE_WORDS,
} from "../src/memory/_size_classes.ts";

Deno.test("classOf() is the smallest class that holds the block, for every size", () => {
  for (let words = 1; words <= LARGEST_SLAB; words++) {
    const c = classOf(words);
    assert(CLASS_WORDS[c] >= words, `${words} words`);
    if (c > 0) assert(CLASS_WORDS[c - 1] < words, `${words} words`);
  }
});

Deno.test("sizes rise in multiples of 4 words, at most a fifth of a block between 33 and 512 words is slack", () => {
  for (let c = 0; c < CLASSES; c++) {
    assertEquals(CLASS_WORDS[c] % 4, 0);
    if (c > 0) assertGreater(CLASS_WORDS[c], CLASS_WORDS[c - 1]);
  }
  for (let words = 33; words <= 512; words++) {
    const size = CLASS_WORDS[classOf(words)];
    assertLessOrEqual((size - words) / size, 1 / 5, `${words} words`);
  }
});

Deno.test("the tags and the blocks of a page lie in it and beside each other", () => {
  for (let c = 0; c < CLASSES; c++) {
    const blocks = CLASS_BLOCKS[c];
    assertLessOrEqual(blocks, CLASS_DATA[c], "tags end where blocks begin");
    assertEquals(CLASS_DATA[c] % LINE, 0);
    const end = CLASS_DATA[c] + blocks * CLASS_WORDS[c];
    assertLessOrEqual(end, PAGE_WORDS);
    const more = alignLine(blocks + 1) + (blocks + 1) * CLASS_WORDS[c];
    assertGreater(more, PAGE_WORDS, "one more block would not fit");
  }
});

Deno.test("magic division finds every block of every class, and takes no other offset for one", () => {
  for (let c = 0; c < CLASSES; c++) {
    const size = CLASS_WORDS[c];
    const magic = CLASS_MAGIC[c];
    for (let offset = 0; offset < PAGE_WORDS; offset++) {
      // A product of 32 bits or more would lose its highest ones.
      assert(offset * magic < 2 ** 32);
      const quotient = (offset * magic) >>> 20;
      if ((quotient * size === offset) !== (offset % size === 0)) {
        throw new Error(`${offset} / ${size} is not ${quotient}`);
      }
    }
  }
});

Deno.test("magazines hold from 1 to 32 blocks, at most 4 KiB of small ones", () => {
  for (let c = 0; c < CLASSES; c++) {
    const length = CLASS_MAGAZINE[c];
    assert(length >= 1 && length <= 32);
    assert(length === 1 || length * CLASS_WORDS[c] <= 1024);
  }
});

Deno.test("alignLine() rounds up to whole lines", () => {
  assertEquals([0, 1, 15, 16, 17, 32, 33].map(alignLine), [
    0,
    16,
    16,
    16,
    32,
    32,
    48,
  ]);
  assertEquals(1 << PAGE_SHIFT, PAGE_WORDS);
});
