import {
  assert,
  assertEquals,
  assertGreater,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { Rcu, RcuMemoryError } from "../mod.ts";
import { POISON } from "../src/memory/_heap.ts";
import { LARGEST_SLAB, PAGE_WORDS } from "../src/memory/_size_classes.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertAddsUp, withDomain } from "./_audit.ts";
import { sharedWords, tell, until, waitFor, withWorkers } from "./_workers.ts";

const SMALL = { capacity: 2 ** 21 };

/** Allocates blocks of a size until there is no room. */
function fill(rcu: Rcu, size: number): { blocks: number[]; error: unknown } {
  const blocks: number[] = [];
  try {
    while (true) blocks.push(rcu.memory.allocate(size));
  } catch (error) {
    return { blocks, error };
  }
}

function largest(rcu: Rcu): number {
  return membershipOf(rcu, "test").heap.largest;
}

for (const size of [1, 100, LARGEST_SLAB, 3 * PAGE_WORDS]) {
  Deno.test(`memory full of blocks of ${size} words is an error with the audit's figures, until blocks are freed`, () =>
    withDomain(SMALL, async (rcu) => {
      const { memory } = rcu;
      for (let round = 0; round < 3; round++) {
        const { blocks, error } = fill(rcu, size);
        const { free, deferred, live } = assertAddsUp(memory.audit());
        assert(error instanceof RcuMemoryError);
        const { requested, available } = error;
        assertEquals([requested, available], [size * 4, free]);
        assertEquals([error.deferred, deferred], [0, 0]);
        assertStringIncludes(
          error.message,
          `Cannot allocate ${size * 4} bytes`,
        );
        assertGreater(live, memory.audit().capacity / 2);
        memory.free(blocks.pop()!);
        blocks.push(memory.allocate(size));
        // Everything is freed at once, or after a grace period.
        for (const block of blocks) {
          if (round === 0) memory.free(block);
          else rcu.deferFree(block);
        }
        if (round === 1) await rcu.barrier();
      }
    }));
}

Deno.test("memory full of small blocks serves one of the whole arena once they are freed", () =>
  withDomain(SMALL, (rcu) => {
    for (const size of [4, 40, 600]) {
      const { blocks } = fill(rcu, size);
      // In an order in which no page empties before its neighbours.
      const odd = blocks.filter((_, i) => i % 2 === 1);
      for (const block of odd) rcu.memory.free(block);
      assertThrows(() => rcu.memory.allocate(largest(rcu)), RcuMemoryError);
      blocks.forEach((block, i) => i % 2 === 0 && rcu.memory.free(block));
      const all = rcu.memory.allocate(largest(rcu));
      assertEquals(rcu.memory.audit().free, 0);
      rcu.memory.free(all);
    }
  }));

Deno.test("scavenging keeps the pages that hold a live block, and loses none of their free ones", () =>
  withDomain(SMALL, (rcu) => {
    const { blocks } = fill(rcu, 8);
    const kept = blocks.filter((_, i) => i % 1_000 === 0);
    blocks.forEach((block, i) => i % 1_000 === 0 || rcu.memory.free(block));
    assertThrows(() => rcu.memory.allocate(largest(rcu)), RcuMemoryError);
    const again = fill(rcu, 8).blocks;
    assertEquals(again.length + kept.length, blocks.length);
    assertEquals(new Set([...again, ...kept]), new Set(blocks));
    for (const block of [...again, ...kept]) rcu.memory.free(block);
  }));

Deno.test("an allocation waits for the blocks that its own thread has deferred", () =>
  withDomain(SMALL, (rcu) => {
    for (const size of [largest(rcu), 4]) {
      for (const block of fill(rcu, size).blocks) rcu.deferFree(block);
      rcu.memory.free(rcu.memory.allocate(largest(rcu)));
    }
  }));

Deno.test("memory that a reader holds up is an error that names the reader, and comes back after it", () =>
  withDomain({ ...SMALL, stallTimeout: 20 }, (rcu) => {
    using reader = Rcu.attach(rcu.handle, { name: "slow one" });
    const all = rcu.memory.allocate(largest(rcu) - PAGE_WORDS);
    const section = reader.readLock();
    rcu.deferFree(all);
    const { deferred } = rcu.memory.audit();
    const error = assertThrows(
      () => rcu.memory.allocate(2 * PAGE_WORDS),
      RcuMemoryError,
      `reader ${reader.readerId} ("slow one") holds the grace period up`,
    );
    assertEquals(error.deferred, deferred);
    section[Symbol.dispose]();
    reader.threadOffline();
    rcu.memory.free(rcu.memory.allocate(2 * PAGE_WORDS));
  }));

Deno.test("memory that runs out inside a read section is an error at once: nothing waits there", () =>
  withDomain(SMALL, (rcu) => {
    const all = rcu.memory.allocate(largest(rcu));
    rcu.deferFree(all);
    rcu.read(() => {
      assertThrows(
        () => rcu.memory.allocate(1),
        RcuMemoryError,
        "inside a read section it cannot wait",
      );
    });
    rcu.memory.free(rcu.memory.allocate(1));
  }));

Deno.test("a thread that closes leaves no magazine and no deferred block stuck", () =>
  withDomain(SMALL, (rcu) => {
    const other = Rcu.attach(rcu.handle, { name: "other" });
    using reader = Rcu.attach(rcu.handle);
    const section = reader.readLock();
    for (const size of [4, 8, 100, 700, 5_000]) {
      for (let i = 0; i < 20; i++) {
        const block = other.memory.allocate(size);
        if (i % 2 === 0) other.memory.free(block);
        else other.deferFree(block);
      }
    }
    other.close();
    assertGreater(rcu.memory.audit().deferred, 0);
    section[Symbol.dispose]();
    reader.threadOffline();
    // Every page is needed for this.
    rcu.memory.free(rcu.memory.allocate(largest(rcu)));
  }));

Deno.test("blocks that one worker allocates and another thread frees come back through the depot", () =>
  withDomain(
    SMALL,
    (rcu) =>
      withWorkers("_heap_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        // Each round takes half of the memory.
        const round = { size: 16, count: 2 ** 21 / 64 / 2 };
        for (let i = 0; i < 8; i++) {
          const blocks = await worker.call<number[]>("allocate", round);
          assertEquals(new Set(blocks).size, round.count);
          if (i % 2 === 0) {
            for (const block of blocks) rcu.memory.free(block);
          } else {
            for (const block of blocks) rcu.deferFree(block);
            await rcu.barrier();
          }
        }
        await worker.call("leave");
      }),
  ));

Deno.test("an allocation gets what another thread's deferred blocks leave", () =>
  withDomain(
    SMALL,
    (rcu) =>
      withWorkers("_heap_worker.ts", 1, async (worker) => {
        await worker.call("join", { handle: rcu.handle });
        const size = largest(rcu);
        const blocks = await worker.call("allocate", { size, count: 1 });
        await worker.call("deferFree", blocks);
        let block = 0;
        // On a busy machine the worker may need longer than an allocation waits.
        await until("free memory", () => {
          try {
            block = rcu.memory.allocate(size);
          } catch (error) {
            assert(error instanceof RcuMemoryError);
          }
          return block !== 0;
        });
        rcu.memory.free(block);
        await worker.call("leave");
      }),
  ));

Deno.test("two workers allocate and free at random, and every audit meanwhile adds up", () =>
  withDomain(
    { capacity: 2 ** 23 },
    (rcu) =>
      withWorkers("_heap_worker.ts", 2, async (...workers) => {
        let running = workers.length;
        const churns = workers.map(async (worker, i) => {
          await worker.call("join", { handle: rcu.handle });
          const task = { seed: 1234 + i, rounds: 60_000 };
          const wrong = await worker.call<number>("churn", task);
          running--;
          assertEquals(wrong, 0, "words that another block overwrote");
          await worker.call("barrier");
          await worker.call("leave");
        });
        const all = Promise.all(churns);
        let audits = 0;
        await until("both done", () => {
          for (let i = 0; i < 10; i++, audits++) {
            assertAddsUp(rcu.memory.audit());
          }
          return running === 0;
        });
        await all;
        assertGreater(audits, 10);
      }),
  ));

/** Publishes a block, lets a worker hold it, and takes it away; what the worker held in the end. */
async function holdAndTake(
  rcu: Rcu,
  take: (block: number) => void,
): Promise<number[]> {
  const { memory } = rcu;
  return await withWorkers("_heap_worker.ts", 1, async (worker) => {
    await worker.call("join", { handle: rcu.handle });
    const words = sharedWords(2);
    const [pointer, block] = [memory.allocate(1), memory.allocate(8)];
    memory.words.fill(42, block, block + 8);
    rcu.assignPointer(pointer, block);
    const held = worker.call<number[]>("hold", { words, pointer, length: 8 });
    waitFor(words, 0);
    rcu.assignPointer(pointer, 0);
    take(block);
    tell(words, 1);
    const found = await held;
    await worker.call("leave");
    memory.free(pointer);
    return found;
  });
}

Deno.test("a deferred block is not reused while a worker's section may hold it", () =>
  withDomain({ debug: true, stallTimeout: 20 }, async (rcu) => {
    const found = await holdAndTake(rcu, (block) => {
      rcu.deferFree(block);
      // Everything but waiting: a thousand allocations, and a thousand more deferred.
      for (let i = 0; i < 1_000; i++) {
        const other = rcu.memory.allocate(8);
        assert(other !== block);
        rcu.memory.words.fill(i, other, other + 8);
        rcu.deferFree(other);
        rcu.poll(rcu.startPoll());
      }
      assertGreater(rcu.memory.audit().deferred, 1_000 * 8 * 4);
    });
    assertEquals(found, Array(8).fill(42));
  }));

Deno.test("the check of the test before notices a block that is freed at once", () =>
  withDomain({ debug: true }, async (rcu) => {
    // As a structure may, for which debug mode does not answer.
    const { heap } = membershipOf(rcu, "free at once");
    const found = await holdAndTake(rcu, (block) => heap.free(block));
    assertEquals(found, Array(8).fill(POISON));
  }));
