// Values of every kind that the codecs take, for property tests.

import fc from "fast-check";

function unitsUpTo(most: number): fc.Arbitrary<string> {
  return fc.array(fc.integer({ min: 0, max: most }), { size: "medium" })
    .map((units) => String.fromCharCode(...units));
}

/** Strings: of one and of two bytes a unit, lone surrogates and NULs among them. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  unitsUpTo(0x7f),
  unitsUpTo(0xff),
  unitsUpTo(0xffff),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "\0", "\0\0", "\ud800", "\udc00\ud800", "__proto__"),
  // Around the lengths at which the decoder changes its ways.
  fc.tuple(
    fc.constantFrom("a", "ÿ", "Ā", "\udfff"),
    fc.constantFrom(63, 64, 65, 4095, 4096, 4097, 8193),
  ).map(([unit, length]) => unit.repeat(length)),
);

const double = new Float64Array(1);
const halves = new Int32Array(double.buffer);

/** Doubles, by their bits: every NaN, subnormal and zero among them. */
export const anyDouble: fc.Arbitrary<number> = fc.oneof(
  fc.double(),
  fc.tuple(fc.integer(), fc.integer()).map(([low, high]) => {
    halves[0] = low;
    halves[1] = high;
    return double[0];
  }),
  fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 5e-324, 2 ** 53),
);

/** Byte arrays, some in the middle of larger buffers, some on shared ones. */
export const anyBytes: fc.Arbitrary<Uint8Array> = fc.tuple(
  fc.uint8Array({ size: "medium" }),
  fc.nat(9),
  fc.nat(9),
  fc.boolean(),
).map(([content, before, after, shared]) => {
  const length = before + content.length + after;
  const buffer = shared
    ? new SharedArrayBuffer(length)
    : new ArrayBuffer(length);
  new Uint8Array(buffer).fill(0xee);
  const bytes = new Uint8Array(buffer, before, content.length);
  bytes.set(content);
  return bytes;
});

/** Values that JSON keeps, with any keys. */
export const anyJson: fc.Arbitrary<unknown> =
  fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.oneof(
        anyText,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
      ),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.array(
        fc.tuple(
          fc.oneof(
            anyText,
            fc.constantFrom("__proto__", "constructor", "1", "ключ", ""),
          ),
          tie("value"),
        ),
        { maxLength: 5 },
      ).map((entries) => Object.fromEntries(entries)),
    ),
  })).value;
