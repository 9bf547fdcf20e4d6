// What the console and JSON show: never the arena.

import { assertEquals } from "@std/assert";
import { Fib, Rcu, RcuCell, RcuMap, u32 } from "../mod.ts";

Deno.test("JSON.stringify() and the console show nothing of shared memory", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 }).set(1, 1);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const fib = Fib.open(rcu, "f");
  assertEquals(
    JSON.stringify({ rcu, map, cell, fib }),
    '{"rcu":{},"map":{},"cell":{},"fib":{}}',
  );
  assertEquals(
    [map, cell, fib].map((structure) => Deno.inspect(structure)),
    ["RcuMap(1)", "RcuCell", "Fib(0)"],
  );
});
