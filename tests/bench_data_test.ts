import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { parseRanges, toPrefixes } from "../bench/_data.ts";

Deno.test("parseRanges() reads three numbers of a line and skips the name", () => {
  const { start, end, asn } = parseRanges(
    '16777216,16777471,13335,"Cloudflare, Inc."\n' +
      "4278190080,4294967295,64512,Ünïcode\n",
  );
  assertEquals([...start], [0x01000000, 0xff000000]);
  assertEquals([...end], [0x010000ff, 0xffffffff]);
  assertEquals([...asn], [13335, 64512]);
});

Deno.test("parseRanges() needs no newline at the end, and takes no lines", () => {
  assertEquals([...parseRanges("1,2,3,x").end], [2]);
  assertEquals(parseRanges("").start.length, 0);
});

Deno.test("parseRanges() names the line that it cannot parse", () => {
  assertThrows(() => parseRanges("1,2,3,x\n1,b,3,x\n"), SyntaxError, "line 2");
  assertThrows(() => parseRanges("1,2"), SyntaxError, "line 1");
});

function range(start: number, end: number): Parameters<typeof toPrefixes>[0] {
  return {
    start: Uint32Array.of(start),
    end: Uint32Array.of(end),
    asn: Uint32Array.of(1),
  };
}

Deno.test("toPrefixes() gives a range the fewest aligned blocks", () => {
  const { address, length, asn } = toPrefixes(range(0x0a000001, 0x0a000006));
  assertEquals([...address], [0x0a000001, 0x0a000002, 0x0a000004, 0x0a000006]);
  assertEquals([...length], [32, 31, 31, 32]);
  assertEquals([...asn], [1, 1, 1, 1]);
});

Deno.test("toPrefixes() makes one default route of all addresses", () => {
  const { address, length } = toPrefixes(range(0, 0xffffffff));
  assertEquals([...address], [0]);
  assertEquals([...length], [0]);
});

Deno.test("toPrefixes() covers each range exactly, whatever it is", () => {
  const u32 = fc.integer({ min: 0, max: 0xffffffff });
  fc.assert(fc.property(u32, u32, (a, b) => {
    const [start, end] = [Math.min(a, b), Math.max(a, b)];
    const { address, length } = toPrefixes(range(start, end));
    let at = start;
    for (let i = 0; i < address.length; i++) {
      const size = 2 ** (32 - length[i]);
      assertEquals(address[i], at);
      assertEquals(at % size, 0);
      at += size;
    }
    assertEquals(at, end + 1);
  }));
});
