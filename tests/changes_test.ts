import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { Rcu, RcuMap, RcuSortedMap, u32 } from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { atEveryStep } from "./_steps.ts";
import { PATIENCE, withWorkers } from "./_workers.ts";

type AnyMap = RcuMap<number, number> | RcuSortedMap<number, number>;

const KINDS = { RcuMap, RcuSortedMap };
const OPTIONS = { key: u32, value: u32 };

/** A map that is there before the test. */
async function withMap(
  kind: keyof typeof KINDS,
  use: (map: AnyMap, rcu: Rcu) => Promise<void>,
): Promise<void> {
  let map: AnyMap | undefined;
  await withDomain(
    {},
    async (rcu) => {
      await use(map!, rcu);
      map!.clear();
    },
    (rcu) => map = KINDS[kind].open(rcu, "m", OPTIONS),
  );
}

/** How many watch a map. */
function watchers(map: AnyMap): number {
  const { _header, _words } = map as unknown as {
    _header: number;
    _words: Int32Array;
  };
  return Atomics.load(_words, _header + (map instanceof RcuMap ? 5 : 1));
}

/** Whether a promise is settled once everything that is due has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  promise.then(() => settled = true, () => settled = true);
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return settled;
}

/** Waits no longer than a test may take; keeps the process alive. */
function soon(): { signal: AbortSignal; keepAlive: true } {
  return { signal: AbortSignal.timeout(PATIENCE), keepAlive: true };
}

const WRITES: Record<string, (map: AnyMap) => void> = {
  "set of a new key": (map) => map.set(9, 1),
  "set of a key that is there": (map) => map.set(1, 2),
  "delete": (map) => map.delete(1),
  "update": (map) => map.update(1, (n) => n! + 1),
  "getOrInsert": (map) => map.getOrInsert(9, 1),
  "replaceAll": (map) => map.replaceAll([[5, 5]]),
  "clear": (map) => map.clear(),
};

for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  for (const [name, write] of Object.entries(WRITES)) {
    Deno.test(`${kind}: ${name} is a change, of one's own and of another member`, async () => {
      await withMap(kind, async (map, rcu) => {
        map.set(1, 1);
        const changes = map.changes(soon());
        const first = changes.next();
        assertEquals(await isSettled(first), false);
        write(map);
        const one = await first;
        map.clear();
        map.set(1, 1);
        await changes.next();
        using other = Rcu.attach(rcu.handle);
        const second = changes.next();
        assertEquals(await isSettled(second), false);
        write(KINDS[kind].open(other, "m", OPTIONS));
        const two = await second;
        assertEquals([one.done, two.done], [false, false]);
        assertNotEquals(one.value, two.value);
        await changes.return?.();
      });
    });
  }

  Deno.test(`${kind}: a thread that sleeps is woken by another one's write`, async () => {
    await withMap(kind, async (map, rcu) => {
      await withWorkers("./_changes_worker.ts", 1, async (worker) => {
        await worker.call("attach", { handle: rcu.handle, kind });
        const seen = worker.call<number>("watch", 40);
        for (let n = 1; n <= 40; n++) {
          map.set(7, n);
          await new Promise((resolve) => setTimeout(resolve));
        }
        assertEquals(await seen, 40);
        await worker.call("close");
      });
      assertEquals(watchers(map), 0);
    });
  });
}

Deno.test("many changes that nobody asked for are one change", async () => {
  await withMap("RcuMap", async (map) => {
    const changes = map.changes(soon());
    for (let n = 0; n < 1000; n++) map.set(n, n);
    assertEquals((await changes.next()).done, false);
    const next = changes.next();
    assertEquals(await isSettled(next), false);
    map.set(1, 2);
    await next;
    await changes.return?.();
  });
});

Deno.test("nobody is counted as a watcher any more once it has left, been aborted or closed", async () => {
  await withMap("RcuMap", async (map, rcu) => {
    for await (const _ of (map.set(1, 1), changing(map))) break;
    assertEquals(watchers(map), 0);

    const abort = new AbortController();
    const aborted = map.changes({ signal: abort.signal });
    const waiting = aborted.next();
    assertEquals(watchers(map), 1);
    abort.abort(new Error("enough"));
    assertEquals(watchers(map), 0);
    await assertRejects(() => waiting, Error, "enough");
    assertEquals((await aborted.next()).done, true);

    const late = map.changes({ signal: AbortSignal.abort(new Error("late")) });
    assertEquals(watchers(map), 0);
    await assertRejects(() => late.next(), Error, "late");

    const left = map.changes();
    const asked = [left.next(), left.next()];
    await left.return?.();
    assertEquals((await Promise.all(asked)).map(({ done }) => done), [
      true,
      true,
    ]);
    assertEquals(watchers(map), 0);

    using other = Rcu.attach(rcu.handle);
    const closed = RcuMap.open(other, "m", OPTIONS).changes();
    const last = closed.next();
    assertEquals(watchers(map), 1);
    other.close();
    await assertRejects(() => last, Error, "closed");
    assertEquals(watchers(map), 0);
  });
});

/** Changes of a map one of which there is already. */
function changing(map: AnyMap): AsyncIterableIterator<number> {
  const changes = map.changes(soon());
  map.set(2, 2);
  return changes;
}

Deno.test("no change is missed, whichever step of the watcher it comes at", async () => {
  await withMap("RcuMap", async (map, rcu) => {
    using other = Rcu.attach(rcu.handle);
    const theirs = RcuMap.open(other, "m", OPTIONS);
    for (let at = 0, steps = 1; at < steps; at++) {
      map.set(1, 0);
      let seen: number | undefined;
      let changes: AsyncIterableIterator<number> | undefined;
      let next: Promise<unknown> | undefined;
      steps = atEveryStep(() => {
        changes = map.changes(soon());
        seen = map.get(1);
        next = changes.next();
      }, (step) => {
        if (step === at) theirs.set(1, 1);
      });
      assert(steps >= 2, `${steps} steps`);
      if (seen !== 1) await next;
      await changes!.return?.();
    }
  });
});

Deno.test("the options of changes are checked", async () => {
  await withMap("RcuMap", (map) => {
    const watch = (options: unknown) => () => map.changes(options as object);
    assertThrows(watch(5), TypeError, "5");
    assertThrows(watch({ since: 1 }), TypeError, "since");
    assertThrows(watch({ signal: 1 }), TypeError, "signal");
    assertThrows(watch({ keepAlive: 1 }), TypeError, "keepAlive");
    assertEquals(watchers(map), 0);
    return Promise.resolve();
  });
});
