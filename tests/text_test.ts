import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import fc from "fast-check";
import {
  equalsText,
  hashText,
  measureText,
  readText,
  textWords,
  writeText,
} from "../src/memory/_text.ts";
import { anyText } from "./_arbitrary.ts";

const GUARD = 0x5eed5eed;

/** Writes a string between guards and asserts that nothing else was touched. */
function written(text: string, at = 3): Int32Array {
  const size = measureText(text);
  const words = new Int32Array(new SharedArrayBuffer((at + size + 3) * 4));
  words.fill(GUARD);
  const end = writeText(words, at, text);
  assertEquals(end, at + size, "the address behind the string");
  for (let i = 0; i < words.length; i++) {
    if (i < at || i >= end) assertEquals(words[i], GUARD, `word ${i}`);
  }
  return words;
}

Deno.test("text comes back as it was, and fills the words that were measured", () => {
  fc.assert(fc.property(anyText, fc.nat(5), (text, at) => {
    const words = written(text, at);
    assertStrictEquals(readText(words, at), text);
    assertEquals(textWords(words, at), measureText(text));
  }));
});

Deno.test("equal text compares equal in place, and different text does not", () => {
  fc.assert(fc.property(anyText, anyText, (text, other) => {
    const words = written(text);
    assert(equalsText(words, 3, text));
    assertEquals(equalsText(words, 3, other), text === other);
  }));
});

Deno.test("text that differs in one unit anywhere does not compare equal", () => {
  fc.assert(
    fc.property(
      anyText.filter((text) => text !== ""),
      fc.nat(),
      fc.integer({ min: 1, max: 0xffff }),
      (text, place, difference) => {
        const i = place % text.length;
        const unit = String.fromCharCode(text.charCodeAt(i) ^ difference);
        const other = text.slice(0, i) + unit + text.slice(i + 1);
        assert(!equalsText(written(text), 3, other));
        assert(!equalsText(written(other), 3, text));
      },
    ),
  );
});

Deno.test("text does not compare equal to a prefix of itself", () => {
  fc.assert(fc.property(anyText, anyText, (text, more) => {
    fc.pre(more !== "");
    assert(!equalsText(written(text + more), 3, text));
    assert(!equalsText(written(text), 3, text + more));
  }));
});

Deno.test("a unit above 255 is not taken for the one with the same low bits", () => {
  for (let length = 1; length <= 9; length++) {
    for (let i = 0; i < length; i++) {
      const text = "a".repeat(length);
      const other = text.slice(0, i) + "\u0161" + text.slice(i + 1);
      assert(!equalsText(written(text), 3, other), `${length}, ${i}`);
    }
  }
});

Deno.test("text takes one byte a unit below 256, else two", () => {
  assertEquals(measureText(""), 1);
  assertEquals(measureText("a".repeat(8)), 1 + 2);
  assertEquals(measureText("ÿ".repeat(9)), 1 + 3);
  assertEquals(measureText("Ā".repeat(9)), 1 + 5);
  assertEquals(measureText("a".repeat(7) + "Ā"), 1 + 4);
});

Deno.test("text of a megabyte comes back in each width", () => {
  for (const unit of ["a", "é", "\ud83d\ude00", "\ud800"]) {
    const text = unit.repeat(2 ** 20 / unit.length) + "|";
    const words = written(text);
    assertStrictEquals(readText(words, 3), text);
    assert(equalsText(words, 3, text));
    assert(!equalsText(words, 3, text.slice(0, -1) + "!"));
  }
});

Deno.test("equal text has equal hashes, and another seed gives another hash", () => {
  fc.assert(fc.property(anyText, fc.integer(), (text, seed) => {
    const copy = text.split("").join("");
    assertEquals(hashText(copy, seed) | 0, hashText(text, seed) | 0);
  }));
  const seeds = new Set<number>();
  for (let seed = 0; seed < 1000; seed++) seeds.add(hashText("key", seed) | 0);
  assert(seeds.size > 990, `${seeds.size} hashes for 1000 seeds`);
});

Deno.test("hashes of similar strings spread over the buckets", () => {
  const buckets = new Int32Array(1024);
  const keys = 16 * buckets.length;
  for (let i = 0; i < keys; i++) buckets[hashText(`key:${i}`, 7) & 1023]++;
  const longest = Math.max(...buckets);
  assert(longest < 64, `a bucket holds ${longest}, the mean being 16`);
});
