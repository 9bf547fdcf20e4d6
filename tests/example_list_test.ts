import { assert, assertEquals, assertFalse, assertRejects } from "@std/assert";
import { Rcu } from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { SortedList } from "./_list.ts";
import { sharedWords, tell, until, waitFor, withWorkers } from "./_workers.ts";

const MOST = 64;

function fill(list: SortedList): void {
  for (let key = 0; key < MOST; key += 2) list.add(key);
}

async function empty(rcu: Rcu, list: SortedList, head: number): Promise<void> {
  for (const key of list.keys()) list.delete(key);
  await rcu.barrier();
  rcu.memory.free(head);
}

Deno.test("a list of one's own keeps its keys sorted, once each", () =>
  withDomain({ debug: true }, async (rcu) => {
    const head = SortedList.create(rcu);
    const list = new SortedList(rcu, head);
    for (const key of [5, 1, 3, 1, 4, 5]) list.add(key);
    assertEquals(list.keys(), [1, 3, 4, 5]);
    assertFalse(list.add(3));
    assert(list.delete(3));
    assertFalse(list.delete(3));
    assertEquals(list.keys(), [1, 4, 5]);
    await empty(rcu, list, head);
  }));

for (const debug of [false, true]) {
  Deno.test(`workers walk a list of one's own while another one changes it, debug: ${debug}`, () =>
    withDomain(
      { debug, capacity: 2 ** 21 },
      (rcu) =>
        withWorkers("_list_worker.ts", 3, async (writer, ...readers) => {
          const head = SortedList.create(rcu);
          const list = new SortedList(rcu, head);
          fill(list);
          const join = { handle: rcu.handle, head };
          await writer.call("join", { ...join, name: "writer" });
          const words = sharedWords(2);
          const walks = readers.map(async (reader, i) => {
            await reader.call("join", { ...join, name: `reader ${i}` });
            return await reader.call<number>("walk", { words, most: MOST });
          });
          const all = Promise.all(walks);
          await until("both walk", () => Atomics.load(words, 0) === 2);
          // More memory goes through than there is: it is reused while they walk.
          await writer.call("write", { rounds: 150_000, most: MOST });
          tell(words, 1);
          assert((await all).every((walks) => walks > 0));
          for (const worker of [writer, ...readers]) await worker.call("leave");
          assertEquals(list.keys().length, MOST / 2);
          await empty(rcu, list, head);
        }),
    ));
}

Deno.test("the check of the tests before notices a node that is freed at once", () =>
  withDomain(
    { debug: true },
    (rcu) =>
      withWorkers("_list_worker.ts", 2, async (writer, reader) => {
        const head = SortedList.create(rcu);
        const list = new SortedList(rcu, head);
        fill(list);
        const join = { handle: rcu.handle, head };
        await writer.call("join", { ...join, name: "writer" });
        await reader.call("join", { ...join, name: "reader" });
        const words = sharedWords(2);
        const walk = assertRejects(
          () => reader.call("walkSlowly", words),
          Error,
          "was freed under a reader",
        );
        waitFor(words, 0);
        await writer.call("deleteTooEarly", 0);
        tell(words, 1);
        await walk;
        for (const worker of [writer, reader]) await worker.call("leave");
        await empty(rcu, list, head);
      }),
  ));
