import { assert, assertEquals, assertThrows } from "@std/assert";
import { Rcu } from "../mod.ts";
import type { Membership } from "../src/_membership.ts";
import { membershipOf } from "../src/rcu.ts";
import { withDomain } from "./_audit.ts";
import { withWorkers } from "./_workers.ts";

/** Opens a name the way structures do; the structure is one word. */
function open(
  membership: Membership,
  name: string,
  schema = "test",
  make = () => membership.allocate(1),
): number {
  return membership.roots.open(
    name,
    schema,
    membership.stallTimeout,
    (words) => membership.allocate(words),
    make,
    (data) => membership.heap.free(data),
  );
}

const NAMES = [
  "",
  "a",
  "é",
  "日本",
  "👩‍👩‍👧",
  "\ud800 alone",
  "\0",
  "x".repeat(100_000),
];

Deno.test("open() finds in every thread what one thread made, whatever the name", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  using other = Rcu.attach(rcu.handle);
  const [first, second] = [rcu, other].map((rcu) => membershipOf(rcu, "test"));
  const made = NAMES.map((name) => open(first, name, `schema of ${name}`));
  assertEquals(new Set(made).size, NAMES.length);
  const { live } = rcu.memory.audit();
  NAMES.forEach((name, i) => {
    const found = open(second, name, `schema of ${name}`, () => {
      throw new Error("made twice");
    });
    assertEquals(found, made[i]);
  });
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("open() with another schema is a TypeError that names both", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const membership = membershipOf(rcu, "test");
  open(membership, "ports", "map of u32");
  const { live } = rcu.memory.audit();
  assertThrows(
    () => open(membership, "ports", "map of strings"),
    TypeError,
    'Cannot open "ports" as map of strings: it was opened as map of u32',
  );
  assertEquals(rcu.memory.audit().live, live);
});

Deno.test("open() leaves nothing behind when the structure cannot be made", () =>
  withDomain({}, (rcu) => {
    const membership = membershipOf(rcu, "test");
    const boom = () => {
      throw new RangeError("no room");
    };
    assertThrows(() => open(membership, "a", "test", boom), RangeError);
    assertEquals(rcu.memory.audit().live, 0);
  }));

Deno.test("open() takes what another thread published in the meantime, and discards its own", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  using other = Rcu.attach(rcu.handle);
  const [first, second] = [rcu, other].map((rcu) => membershipOf(rcu, "test"));
  let theirs = 0;
  let live = 0;
  const mine = open(first, "a", "test", () => {
    theirs = open(second, "a");
    live = rcu.memory.audit().live;
    return first.allocate(1);
  });
  assertEquals(mine, theirs);
  // Less the record that was allocated before theirs.
  assert(rcu.memory.audit().live < live);
  assertThrows(
    () =>
      open(first, "b", "test", () => {
        open(second, "b", "other");
        return first.allocate(1);
      }),
    TypeError,
    'Cannot open "b" as test: it was opened as other',
  );
});

Deno.test("workers that open the same names at once all get the same structures", () =>
  withWorkers("_heap_worker.ts", 2, async (...workers) => {
    using rcu = Rcu.create({ capacity: 2 ** 22 });
    const names = Array.from({ length: 500 }, (_, i) => `name ${i}`);
    for (const worker of workers) {
      await worker.call("join", { handle: rcu.handle });
    }
    const [a, b] = await Promise.all(
      workers.map((worker) => worker.call<number[]>("openRoots", names)),
    );
    assertEquals(a, b);
    assertEquals(new Set(a).size, names.length);
    const membership = membershipOf(rcu, "test");
    const found = names.map((name) => open(membership, name));
    assertEquals(found, a);
    for (const worker of workers) await worker.call("leave");
    // A name's record (3 words and two short texts) and its word, nothing of the losers.
    const { live } = rcu.memory.audit();
    const single = Rcu.create({ capacity: 2 ** 22 });
    names.forEach((name) => open(membershipOf(single, "test"), name));
    assertEquals(live, single.memory.audit().live);
    single.close();
  }));
