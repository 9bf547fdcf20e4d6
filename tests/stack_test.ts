// Updates near the end of the stack.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import {
  bytes,
  Rcu,
  RcuCell,
  RcuMap,
  type RcuOptions,
  RcuSortedMap,
  string,
  u32,
} from "../mod.ts";
import { Heap } from "../src/memory/_heap.ts";
import { hasStack, probeStack } from "../src/sync/_stack.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { withWorkers } from "./_workers.ts";

/**
 * Does something at the deepest levels of a recursion that overflows the stack,
 * from the innermost outwards, until it succeeds.
 *
 * @param act What to do.
 * @param padding Words by which the levels are shifted.
 * @returns How often it failed.
 */
function atTheEnd(act: () => void, padding: number): number {
  let failed = 0;
  let succeeded = false;
  const deep = (): void => {
    try {
      deep();
    } catch {
      // The deepest level, or one at which there is not even room for what follows.
    }
    if (succeeded) return;
    try {
      act();
      succeeded = true;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      failed++;
    }
  };
  const pad = (...words: number[]): number => {
    deep();
    return words.length;
  };
  pad(...new Array(padding).fill(0));
  assert(succeeded);
  return failed;
}

Deno.test("the probe refuses while there is room, be it optimized or not", () => {
  const words = (act: () => void): number => {
    let depth = 0;
    let refused = 0;
    const deep = (): void => {
      depth++;
      try {
        act();
      } catch {
        refused++;
      }
      deep();
    };
    try {
      deep();
    } catch {
      // The end.
    }
    return refused / depth;
  };
  const cold = words(probeStack);
  for (let i = 0; i < 100_000; i++) probeStack();
  const hot = words(probeStack);
  const asked = words(() => assert(hasStack()));
  // Of a stack of about 1 MiB, one part in a hundred.
  for (const part of [cold, hot, asked]) {
    assert(part > 0.004 && part < 0.04, `${part}`);
  }
});

const options: RcuOptions = {
  capacity: 2 ** 22,
  maxReaders: 8,
  stallTimeout: 500,
  debug: true,
};

/** What must leave a domain in order wherever the stack ends. */
const updates: Record<string, (rcu: Rcu) => (i: number) => unknown> = {
  "RcuCell.set()": (rcu) => {
    const cell = RcuCell.open(rcu, "c", { value: string, initial: "" });
    return (i) => cell.set(`${i}`);
  },
  "RcuCell.update()": (rcu) => {
    const cell = RcuCell.open(rcu, "n", { value: u32, initial: 0 });
    return () => cell.update((n) => n + 1);
  },
  "RcuMap.set()": (rcu) => {
    const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
    return (i) => map.set(i % 500, i);
  },
  "RcuMap.update()": (rcu) => {
    const map = RcuMap.open(rcu, "s", { key: string, value: string });
    return (i) => map.update(`${i % 500}`, () => `${i}`);
  },
  "RcuMap.delete()": (rcu) => {
    const map = RcuMap.open(rcu, "d", { key: bytes, value: string });
    const keys = Array.from({ length: 200 }, (_, i) => Uint8Array.of(i));
    for (const key of keys) map.set(key, "");
    return (i) => map.delete(keys[i % 200]);
  },
  "RcuMap.replaceAll()": (rcu) => {
    const map = RcuMap.open(rcu, "r", { key: u32, value: string });
    return (i) => map.replaceAll([[1, `${i}`], [i, ""]]);
  },
  "iteration": (rcu) => {
    const map = RcuMap.open(rcu, "i", { key: u32, value: u32 }).set(1, 1);
    return () => [...map];
  },
  "RcuSortedMap.set()": (rcu) => {
    const map = RcuSortedMap.open(rcu, "t", { key: string, value: string });
    return (i) => map.set(`${i % 500}`, `${i}`);
  },
  "RcuSortedMap.delete()": (rcu) => {
    const map = RcuSortedMap.open(rcu, "u", { key: u32, value: u32 });
    for (let i = 0; i < 200; i++) map.set(i, i);
    return (i) => map.delete(i % 200);
  },
  "RcuSortedMap.update()": (rcu) => {
    const map = RcuSortedMap.open(rcu, "w", { key: u32, value: string });
    return (i) => map.update(i % 500, () => `${i}`);
  },
  "read()": (rcu) => () => rcu.read(() => {}),
  "deferFree()": (rcu) => () => rcu.deferFree(rcu.memory.allocate(4)),
  "callRcu()": (rcu) => () => rcu.callRcu(() => {}),
  "free()": (rcu) => () => rcu.memory.free(rcu.memory.allocate(4)),
  "synchronizeSync()": (rcu) => () => rcu.synchronizeSync(),
  "barrierSync()": (rcu) => () => rcu.barrierSync(),
  "stats()": (rcu) => () => rcu.stats(),
};

for (const [what, open] of Object.entries(updates)) {
  Deno.test(`${what} at the end of the stack leaves nothing locked, open or lost`, async () => {
    using rcu = Rcu.create(options);
    using other = Rcu.attach(rcu.handle, { name: "other" });
    const act = open(rcu);
    const same = open(other);
    let i = 1;
    for (let warm = 0; warm < 200; warm++) act(i++);
    let failed = 0;
    for (let padding = 0; padding < 16; padding++) {
      failed += atTheEnd(() => act(i++), padding);
      // Nothing is open, nothing is locked, and the turn's end has taken the thread offline.
      rcu.quiescentState();
      for (let k = 0; k < 20; k++) same(i++);
      await new Promise((resolve) => setTimeout(resolve));
      other.synchronizeSync();
      await settle(rcu);
    }
    assert(failed > 16);
    const { callbacks, memory } = rcu.stats();
    assertEquals([callbacks.pending, memory.deferred], [0, 0]);
    assertAddsUp(memory);
    // Where the stack ended between an allocation and the update, the block stays with the thread.
    assertLists(rcu.memory.words, true);
  });
}

Deno.test("sections in sections until the stack overflows are all closed, in code that was never run before", async () => {
  for (const debug of [false, true]) {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug });
    await withWorkers("./_cold_worker.ts", 1, async (worker) => {
      assertEquals(await worker.call<string[]>("sections", rcu.handle), []);
    });
    await rcu.synchronize();
    assertEquals(rcu.stats().readers.length, 1);
  }
});

Deno.test("a release for which the stack has no room is done later, and counted once", async () => {
  for (const failing of [1, 3, 5]) {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
    const { live } = rcu.memory.audit();
    for (let i = 0; i < 5; i++) rcu.deferFree(rcu.memory.allocate(4));
    let released = 0;
    const { release } = Heap.prototype;
    {
      using _full = stub(
        Heap.prototype,
        "release",
        function (this: Heap, block: number, tag: number) {
          if (++released === failing) throw new RangeError("No stack");
          release.call(this, block, tag);
        },
      );
      assertThrows(() => rcu.barrierSync(), RangeError, "No stack");
    }
    await rcu.barrier({ signal: AbortSignal.timeout(30_000) });
    assertEquals(rcu.stats().callbacks.pending, 0);
    const audit = assertAddsUp(rcu.memory.audit());
    assertEquals([audit.live, audit.deferred], [live, 0]);
    assertLists(rcu.memory.words);
  }
});

Deno.test("a readLock for which the stack has no room opens no section", () => {
  for (const debug of [false, true]) {
    using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4, debug });
    rcu.read(() => {});
    const sections: Disposable[] = [];
    let refused = 0;
    const deep = (): void => {
      try {
        deep();
      } catch {
        // The end of the stack.
      }
      try {
        sections.push(rcu.readLock());
      } catch {
        refused++;
      }
    };
    try {
      deep();
    } catch {
      // At the very end.
    }
    assert(refused > 0);
    for (const section of sections.reverse()) section[Symbol.dispose]();
    rcu.threadOffline();
  }
});

Deno.test("a thread that joins where the stack has no room for leaving has not joined, in code that was never run before", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 64 });
  await withWorkers("./_cold_worker.ts", 1, async (worker) => {
    assertEquals(await worker.call<number>("memberships", rcu.handle), 10);
    assertEquals(rcu.stats().readers.length, 1);
  });
});

Deno.test("a callback at the end of the stack is taken and counted, or neither, in code that was never run before", async () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, maxReaders: 4 });
  await withWorkers("./_cold_worker.ts", 1, async (worker) => {
    const { taken, called, pending } = await worker.call<
      { taken: number; called: number; pending: number }
    >("callbacks", rcu.handle);
    assert(taken > 100, `${taken} taken`);
    // A call may have been taken although it threw on its way out.
    assert(called >= taken, `${called} of ${taken} called`);
    assertEquals(pending, 0);
  });
  await rcu.barrier();
  assertEquals(rcu.stats().readers.length, 1);
  assertEquals(rcu.memory.audit().deferred, 0);
});
