// Random histories of cells of every codec, against a plain variable. Two members of the domain alternate.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  bytes,
  type Codec,
  f64,
  i32,
  json,
  Rcu,
  RcuCell,
  string,
  struct,
  u32,
} from "../mod.ts";
import { anyBytes, anyDouble, anyJson, anyText } from "./_arbitrary.ts";
import { settle } from "./_settle.ts";

// deno-lint-ignore no-explicit-any -- any codec's
type Any = any;

const plainBytes = anyBytes.map((value) => Uint8Array.from(value));

/** Codecs, values of each, and one that each refuses. */
const VALUES: Record<string, [Codec<Any, Any>, fc.Arbitrary<Any>, Any]> = {
  u32: [u32, fc.integer({ min: 0, max: 2 ** 32 - 1 }), -1],
  i32: [i32, fc.integer(), 2 ** 31],
  f64: [f64, anyDouble, "1"],
  string: [string, anyText, 5],
  bytes: [bytes, plainBytes, [1]],
  json: [json(), anyJson, 5n],
  struct: [
    struct({ n: u32, more: struct({ text: string, data: bytes }) }),
    fc.record({
      n: fc.nat(),
      more: fc.record({ text: anyText, data: plainBytes }),
    }),
    { n: 1, more: { text: "a", data: 5 } },
  ],
};

const ACTS = [
  "set",
  "update",
  "fail",
  "refuse",
  "write elsewhere",
  "look",
] as const;

type Step = { act: typeof ACTS[number]; value: unknown };

class Tripped extends Error {}

/** Does a step to a cell, and says what the cell has to hold then. */
function apply(
  { act, value }: Step,
  cell: RcuCell<unknown>,
  other: RcuCell<unknown>,
  twin: unknown,
  refused: unknown,
): unknown {
  const { version } = cell;
  const attempt = (write: () => void): void => {
    let thrown: unknown;
    try {
      write();
    } catch (error) {
      thrown = error;
    }
    assert(thrown instanceof Error, "it was not refused");
    assertEquals(cell.version, version);
  };
  switch (act) {
    case "set":
      cell.set(value);
      assertEquals(cell.version, version + 1);
      return value;
    case "update":
      assertEquals(
        cell.update((old) => {
          assertEquals(old, twin);
          return value;
        }),
        value,
      );
      assertEquals(cell.version, version + 1);
      return value;
    case "fail":
      attempt(() =>
        cell.update(() => {
          throw new Tripped();
        })
      );
      return twin;
    case "refuse":
      attempt(() => cell.set(refused));
      attempt(() => cell.update(() => refused));
      return twin;
    case "write elsewhere": {
      // The function is called again with what the other one wrote.
      let calls = 0;
      const seen: unknown[] = [];
      cell.update((old) => {
        seen.push(old);
        if (calls++ === 0) other.set(value);
        return old;
      });
      assertEquals(seen, [twin, value]);
      return value;
    }
    case "look":
      assertEquals(cell.get(), twin);
      return twin;
  }
}

for (const [name, [value, values, refused]] of Object.entries(VALUES)) {
  Deno.test(`a cell of ${name} does in two members what a variable does`, async () => {
    const history = fc.array(
      fc.record({ act: fc.constantFrom(...ACTS), value: values }),
      { maxLength: 30 },
    );
    await fc.assert(
      fc.asyncProperty(values, history, async (initial, history) => {
        using rcu = Rcu.create({ capacity: 2 ** 21, debug: true });
        using member = Rcu.attach(rcu.handle);
        const cells = [
          RcuCell.open<unknown>(rcu, "c", { value, initial }),
          RcuCell.open<unknown>(member, "c", { value }),
        ];
        let twin: unknown = initial;
        for (const [i, step] of history.entries()) {
          const [cell, other] = i % 2 === 0 ? cells : cells.toReversed();
          twin = apply(step, cell, other, twin, refused);
          for (const cell of cells) assertEquals(cell.get(), twin);
        }
        // As many bytes as a cell takes that never had another value.
        const live = await settle(member);
        using fresh = Rcu.create({ capacity: 2 ** 21, debug: true });
        using _second = Rcu.attach(fresh.handle);
        RcuCell.open<unknown>(fresh, "c", { value, initial: twin });
        assertEquals(live, fresh.memory.audit().live);
      }),
      { numRuns: 20, interruptAfterTimeLimit: 10_000 },
    );
  });
}
