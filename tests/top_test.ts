import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { Rcu, RcuMap, string, top, type TopOptions, u32 } from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { sharedWords, tell, until, withWorkers } from "./_workers.ts";

async function next(tables: AsyncGenerator<string>): Promise<string> {
  const { value, done } = await tables.next();
  assert(!done);
  return value;
}

/** The numbers in a line of a table that begins so. */
function numbersOf(table: string, line: string): number[] {
  const found = table.split("\n").find((text) => text.startsWith(line));
  assert(found !== undefined, `${line} in ${table}`);
  return [...found.matchAll(/[\d,]*\d(\.\d+)?/g)].map(([number]) =>
    Number(number.replaceAll(",", ""))
  );
}

/** Has another thread hold a section while something is done. */
async function whileHeld(
  rcu: Rcu,
  name: string,
  use: () => Promise<void>,
): Promise<void> {
  await withWorkers("./_stall_worker.ts", 1, async (holder) => {
    await holder.call("join", { handle: rcu.handle, name });
    const words = sharedWords(2);
    const held = holder.call("hold", words);
    await until("a section", () => Atomics.load(words, 0) === 1);
    try {
      await use();
    } finally {
      tell(words, 1);
      await held;
      await holder.call("leave");
    }
  });
}

Deno.test("top shows who is there, what waits, and where memory is", () =>
  withDomain({ name: "watcher" }, async (rcu) => {
    const map = RcuMap.open(rcu, "m", { key: u32, value: string });
    const tables = top(rcu, { interval: 1 });
    const first = await next(tables);
    assertStringIncludes(first, "1 reader, 0 online");
    assertMatch(first, / 0 {2}watcher +offline/);
    assertStringIncludes(first, "grace periods  -/s, ");
    await whileHeld(rcu, "reader\n\u001b[2Jone", async () => {
      map.set(1, "a").set(1, "b");
      const table = await next(tables);
      assertStringIncludes(table, "2 readers, 1 online");
      assertMatch(table, / 1 {2}reader\ufffd\ufffd\[2Jone +online +[01] +0/);
      // The one that is in a section is in the way.
      assertStringIncludes(table, "none within 1000 ms");
      const { memory } = rcu.stats();
      assertEquals(numbersOf(table, "callbacks")[0], 1);
      assertEquals(numbersOf(table, "memory")[0], memory.capacity / 2 ** 20);
    });
    const last = await next(tables);
    assertMatch(last, /\/s, \d+\.\d\d ms each/);
    assertStringIncludes(last, "1 reader, 0 online");
    await tables.return();
    map.clear();
    await rcu.barrier();
  }, (rcu) => void RcuMap.open(rcu, "m", { key: u32, value: string })));

Deno.test("top shows the stalls that it sees, and nobody else is told of them", () =>
  withDomain(
    { stallTimeout: 20 },
    (rcu) =>
      whileHeld(rcu, "slow\u009b2J", async () => {
        const tables = top(rcu, { interval: 1 });
        const table = await next(tables);
        const [stalls] = numbersOf(table, "stalls");
        assert(stalls > 0, table);
        assertMatch(table, /stalls.*ms: reader 1 "slow\ufffd2J"/);
        await tables.return();
      }),
  ));

Deno.test("top ends with its signal and with the membership", async () => {
  const rcu = Rcu.create({ capacity: 2 ** 21 });
  const controller = new AbortController();
  const tables = top(rcu, { interval: 60_000, signal: controller.signal });
  await next(tables);
  const pending = tables.next();
  const reason = new Error("enough");
  controller.abort(reason);
  assertEquals(await pending.catch((error) => error), reason);
  assertEquals(await tables.next(), { value: undefined, done: true });
  const others = top(rcu, { interval: 1 });
  await next(others);
  rcu.close();
  await assertRejects(() => others.next(), Error, "it is closed");
  assertThrows(() => top(rcu), Error, "it is closed");
});

Deno.test("top notices a signal that is aborted, and a membership that is closed, while its table is looked at", async () => {
  const rcu = Rcu.create({ capacity: 2 ** 21 });
  const controller = new AbortController();
  const reason = new Error("enough");
  const forever = { interval: 2 ** 31 - 1 };
  const aborted = top(rcu, { ...forever, signal: controller.signal });
  await next(aborted);
  controller.abort(reason);
  assertEquals(await aborted.next().catch((error) => error), reason);
  const closed = top(rcu, forever);
  await next(closed);
  const pending = closed.next();
  rcu.close();
  await assertRejects(() => pending, Error, "it is closed");
});

Deno.test("bad arguments of top are refused at once", () => {
  using rcu = Rcu.create({ capacity: 2 ** 21 });
  const wrong: [unknown, unknown, string][] = [
    [{}, {}, "its first argument must be an Rcu"],
    [rcu, null, "its options must be an object"],
    [rcu, { intervall: 1 }, 'received "intervall"'],
    [rcu, { interval: 0 }, "interval must be an integer from 1"],
    [rcu, { interval: 2 ** 31 }, "interval must be an integer from 1"],
    [rcu, { signal: 1 }, "the signal must be an AbortSignal"],
  ];
  for (const [first, options, message] of wrong) {
    assertThrows(
      () => top(first as Rcu, options as TopOptions),
      Error,
      message,
    );
  }
});
