import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { json, Rcu, RcuCell, RcuMap, string, u32 } from "../mod.ts";
import { settle } from "./_settle.ts";

function setUp(options = {}) {
  const rcu = Rcu.create({ capacity: 2 ** 22, debug: true, ...options });
  const member = Rcu.attach(rcu.handle);
  const numbers = RcuMap.open(rcu, "n", { key: string, value: u32 });
  const texts = RcuMap.open(rcu, "t", { key: u32, value: string });
  const other = RcuMap.open(member, "n", { key: string, value: u32 });
  return {
    rcu,
    member,
    numbers,
    texts,
    other,
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

Deno.test("RcuMap.update() passes the current value, or undefined, and returns the new one", () => {
  using t = setUp();
  const seen: unknown[] = [];
  const add = (old: number | undefined) => {
    seen.push(old);
    return (old ?? 10) + 1;
  };
  assertEquals(t.numbers.update("a", add), 11);
  assertEquals(t.numbers.update("a", add), 12);
  assertEquals(seen, [undefined, 11]);
  assertEquals(t.other.get("a"), 12);
});

Deno.test("RcuMap.getOrInsert() inserts once", () => {
  using t = setUp();
  assertEquals(t.numbers.getOrInsert("a", 1), 1);
  assertEquals(t.other.getOrInsert("a", 2), 1);
  assertEquals(t.numbers.size, 1);
});

Deno.test("RcuMap.update() whose function throws changes nothing", () => {
  using t = setUp();
  t.numbers.set("a", 1);
  const mine = new Error("mine");
  for (const key of ["a", "b"]) {
    const got = assertThrows(() =>
      t.numbers.update(key, () => {
        throw mine;
      })
    );
    assertStrictEquals(got, mine);
  }
  assertEquals([...t.numbers], [["a", 1]]);
  // Nothing is locked and no section is open.
  t.other.set("a", 2).set("b", 3);
  t.member.threadOffline();
  t.rcu.synchronizeSync();
});

Deno.test("RcuMap.update() calls its function again when the key was set meanwhile", () => {
  using t = setUp();
  const set: Record<string, () => void> = {
    "by itself": () => t.numbers.set("a", 100),
    "by another member": () => t.other.set("a", 100),
    "by a replacement of all": () => t.other.replaceAll([["a", 100]]),
    "by an update in the update": () => {
      t.numbers.update("a", () => 100);
    },
  };
  for (const [how, act] of Object.entries(set)) {
    t.numbers.set("a", 1);
    const seen: unknown[] = [];
    const result = t.numbers.update("a", (old) => {
      seen.push(old);
      if (seen.length === 1) act();
      return old! + 1;
    });
    assertEquals(seen, [1, 100], how);
    assertEquals([result, t.numbers.get("a")], [101, 101], how);
  }
});

Deno.test("RcuMap.update() calls its function again when the key came or went meanwhile", () => {
  using t = setUp();
  let calls = 0;
  t.numbers.update("a", (old) => {
    if (calls++ === 0) t.other.set("a", 5);
    return (old ?? 0) + 1;
  });
  assertEquals([calls, t.numbers.get("a")], [2, 6]);
  calls = 0;
  t.numbers.update("a", (old) => {
    if (calls++ === 0) t.other.delete("a");
    return (old ?? 0) + 1;
  });
  assertEquals([calls, t.numbers.get("a")], [2, 1]);
});

Deno.test("RcuMap.update() notices a string or json value that was set to the same text", () => {
  using t = setUp();
  t.texts.set(1, "x");
  let calls = 0;
  t.texts.update(1, (old) => {
    if (calls++ === 0) t.texts.set(1, "x");
    return old + "!";
  });
  assertEquals([calls, t.texts.get(1)], [2, "x!"]);
});

Deno.test("RcuMap.update() does not notice other keys, nor a resize", () => {
  using t = setUp();
  t.numbers.set("a", 1);
  let calls = 0;
  t.numbers.update("a", (old) => {
    calls++;
    for (let i = 0; i < 2000; i++) t.other.set(`key ${i}`, i);
    return old! + 1;
  });
  assertEquals([calls, t.numbers.get("a"), t.numbers.size], [1, 2, 2001]);
});

Deno.test("a lost update is noticed: get and set in place of update lose one", () => {
  using t = setUp();
  const increments = (add: (map: RcuMap<string, number>) => () => void) => {
    t.numbers.set("a", 0);
    // Both read before either writes.
    const [first, second] = [add(t.numbers), add(t.other)];
    first();
    second();
    return t.numbers.get("a");
  };
  assertEquals(
    increments((map) => {
      const old = map.get("a")!;
      return () => map.set("a", old + 1);
    }),
    1,
  );
  assertEquals(increments((map) => () => map.update("a", (n) => n! + 1)), 2);
});

Deno.test("a section may set, delete and update, and sees what it did", () => {
  using t = setUp();
  t.numbers.set("a", 1).set("b", 2);
  t.rcu.read(() => {
    assertEquals(t.numbers.get("a"), 1);
    t.numbers.set("a", 3).set("c", 4);
    assertEquals(t.numbers.update("a", (n) => n! + 1), 4);
    assert(t.numbers.delete("b"));
    assertEquals(t.numbers.getOrInsert("d", 9), 9);
    assertEquals(new Map(t.numbers), new Map([["a", 4], ["c", 4], ["d", 9]]));
    for (let i = 0; i < 1000; i++) t.numbers.set(`key ${i}`, i);
    for (let i = 0; i < 1000; i++) assertEquals(t.numbers.get(`key ${i}`), i);
    t.numbers.replaceAll([["z", 1]]);
    assertEquals([...t.numbers], [["z", 1]]);
    t.numbers.clear();
    assertEquals([...t.numbers], []);
  });
  t.rcu.synchronizeSync();
});

Deno.test("callbacks may update the map whose update made them run", async () => {
  using t = setUp();
  let ran = 0;
  for (let i = 0; i < 1000; i++) {
    t.numbers.set(`key ${i}`, i);
    t.rcu.callRcu(() => {
      ran++;
      t.numbers.set(`key ${i}`, i * 2);
      t.numbers.update("sum", (sum = 0) => sum + i);
      t.texts.set(i, `${i}`);
    });
  }
  await settle(t.rcu);
  assertEquals(ran, 1000);
  assertEquals(t.numbers.size, 1001);
  for (let i = 0; i < 1000; i++) {
    assertEquals(t.numbers.get(`key ${i}`), i * 2);
    assertEquals(t.texts.get(i), `${i}`);
  }
  assertEquals(t.numbers.get("sum"), 499_500);
});

Deno.test("a toJSON that updates the same key loses to the set that called it", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: u32, value: json<unknown>() });
  map.set(1, {
    toJSON() {
      map.set(1, "inner");
      return "outer";
    },
  });
  assertEquals(map.get(1), "outer");
});

Deno.test("code of the caller that closes the Rcu in the middle of an update leaves nothing locked", async () => {
  const closing: Record<string, (rcu: Rcu, n: RcuMap<string, number>) => void> =
    {
      "the function of update": (rcu, n) => {
        n.update("a", () => {
          rcu.close();
          return 2;
        });
      },
      "the entries of replaceAll": (rcu, n) => {
        n.replaceAll(function* (): Generator<[string, number]> {
          yield ["a", 5];
          rcu.close();
          yield ["b", 6];
        }());
      },
      "a toJSON": (rcu) => {
        const map = RcuMap.open(rcu, "j", { key: u32, value: json<unknown>() });
        const toJSON = () => (rcu.close(), 2);
        map.set(1, { toJSON });
      },
      "the function of a cell's update": (rcu) => {
        const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
        cell.update(() => (rcu.close(), 2));
      },
    };
  for (const [what, act] of Object.entries(closing)) {
    using t = setUp({ stallTimeout: 200 });
    t.numbers.set("a", 1);
    assertThrows(() => act(t.member, t.other), Error, "closed", what);
    t.numbers.set("a", 3).set("b", 4);
    assertEquals(t.numbers.get("a"), 3, what);
    t.numbers.clear();
    await settle(t.rcu);
  }
});

Deno.test("waiting for a grace period inside update's function is allowed: no section is open", () => {
  using t = setUp();
  t.numbers.set("a", 1);
  t.member.close();
  assertEquals(
    t.numbers.update("a", (old) => {
      t.rcu.synchronizeSync();
      return old! + 1;
    }),
    2,
  );
});

Deno.test("getOrInsertComputed() computes only where there is nothing", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  const asked: string[] = [];
  const length = (key: string) => asked.push(key) && key.length;
  assertEquals(map.getOrInsertComputed("abc", length), 3);
  assertEquals(map.getOrInsertComputed("abc", length), 3);
  assertEquals(asked, ["abc"]);
  // A key that the computation itself puts there stays.
  assertEquals(
    map.getOrInsertComputed("x", () => map.set("x", 7) && 8),
    7,
  );
});
