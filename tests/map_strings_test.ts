// What a thread remembers of string keys must never be older than what any thread has announced.

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Buffer } from "node:buffer";
import {
  bytes,
  type Codec,
  f64,
  json,
  Rcu,
  RcuMap,
  string,
  struct,
  u32,
} from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { openMap } from "./_map_checks.ts";
import { sharedWords, until, withWorkers } from "./_workers.ts";
import { settle } from "./_settle.ts";

/** More lookups than a calm map needs to be remembered as a whole. */
const CALM = 5000;

const KINDS: [string, Codec<unknown>, (n: number) => unknown][] = [
  ["u32", u32 as Codec<unknown>, (n) => n],
  ["f64", f64 as Codec<unknown>, (n) => n / 2],
  ["string", string as Codec<unknown>, (n) => `value ${n}`],
  ["bytes", bytes as Codec<unknown>, (n) => Uint8Array.of(n, n >>> 8)],
  ["json", json(), (n) => ({ n })],
  ["struct", struct({ n: u32 }) as unknown as Codec<unknown>, (n) => ({ n })],
];

function setUp(value: Codec<unknown>) {
  const rcu = Rcu.create({ capacity: 2 ** 24, maxReaders: 8, debug: true });
  const member = Rcu.attach(rcu.handle);
  const options = { key: string, value };
  return {
    rcu,
    mine: RcuMap.open(rcu, "m", options),
    other: RcuMap.open(member, "m", options),
    [Symbol.dispose]() {
      member.close();
      rcu.close();
    },
  };
}

for (const [name, value, make] of KINDS) {
  for (const warm of [0, 1, CALM]) {
    Deno.test(`after ${warm} reads of a ${name} value the next read sees each change by another member`, () => {
      using t = setUp(value);
      const twin = new Map<string, unknown>();
      const set = (key: string, value: unknown) => {
        t.other.set(key, value);
        twin.set(key, value);
      };
      for (let n = 0; n < 40; n++) set(`key ${n}`, make(n));
      const changes: Record<string, () => void> = {
        set: () => set("key 1", make(1001)),
        "set of the same": () => set("key 1", make(1001)),
        update: () => {
          t.other.update("key 1", () => make(1002));
          twin.set("key 1", make(1002));
        },
        delete: () => {
          t.other.delete("key 1");
          twin.delete("key 1");
        },
        insert: () => set("key 1", make(1003)),
        "delete and insert": () => {
          t.other.delete("key 1");
          set("key 1", make(1004));
        },
        grow: () => {
          for (let n = 100; n < 2000; n++) set(`key ${n}`, make(n));
        },
        "set after growing": () => set("key 1", make(1005)),
        shrink: () => {
          for (let n = 100; n < 2000; n++) {
            t.other.delete(`key ${n}`);
            twin.delete(`key ${n}`);
          }
        },
        "set after shrinking": () => set("key 1", make(1006)),
        replaceAll: () => {
          t.other.replaceAll([["key 1", make(5)], ["key 2", make(6)]]);
          twin.clear();
          twin.set("key 1", make(5)).set("key 2", make(6));
        },
        clear: () => {
          t.other.clear();
          twin.clear();
        },
        "insert after clearing": () => set("key 1", make(1007)),
      };
      for (const [what, change] of Object.entries(changes)) {
        for (let i = 0; i < warm; i++) t.mine.get(`key ${i % 4}`);
        change();
        for (let n = 0; n < 42; n++) {
          const key = `key ${n}`;
          assertEquals(t.mine.get(key), twin.get(key), `${what}: ${key}`);
        }
      }
    });
  }
}

Deno.test("a string key's value is right after its memory has been another one's", async () => {
  using t = setUp(string as Codec<unknown>);
  for (let round = 0; round < 300; round++) {
    t.other.set(`key ${round % 7}`, `value ${round}`);
    for (let n = 0; n < 7; n++) {
      const got = t.mine.get(`key ${n}`);
      if (n === round % 7) assertEquals(got, `value ${round}`);
    }
    t.other.delete(`key ${(round + 3) % 7}`);
    assertEquals(t.mine.get(`key ${(round + 3) % 7}`), undefined);
    await settle(t.rcu);
  }
});

Deno.test("more string keys than a thread remembers are still all found", () => {
  using rcu = Rcu.create({ capacity: 2 ** 26 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  const count = 100_000;
  for (let n = 0; n < count; n++) map.set(`key ${n}`, n);
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < count; n++) {
      const got = map.get(`key ${n}`);
      if (got !== n) assertEquals(got, n);
    }
    // Every other one is another one now.
    for (let n = round; n < count; n += 1000) map.set(`key ${n}`, n);
  }
});

Deno.test("strings that are equal but not the same object are one key to the cache", () => {
  using t = setUp(u32 as Codec<unknown>);
  t.mine.set("ab", 1);
  for (let i = 0; i < CALM; i++) {
    assertEquals(t.mine.get(["a", "b"].join("")), 1);
    assertEquals(t.mine.get("ab"), 1);
  }
  t.mine.set(["a", "b"].join(""), 2);
  assertEquals(t.mine.get("ab"), 2);
});

for (const kind of ["string", "json"] as const) {
  Deno.test(`no reader of a ${kind} value sees an older one than any reader has announced`, async () => {
    using rcu = Rcu.create({ capacity: 2 ** 24, maxReaders: 8, debug: true });
    const map = openMap<string>(rcu, "m", "string", kind);
    const make = (n: number) => kind === "json" ? { n } : `${n}`;
    map.set("key", make(0));
    const words = sharedWords(4);
    await withWorkers("_map_worker.ts", 2, async (...workers) => {
      // 60 changes with calm between them, then many in a row.
      const [calm, last] = [60, 20_000];
      const following = workers.map((worker, me) =>
        worker.call<{ reads: number; older: number }>("follow", {
          handle: rcu.handle,
          words,
          me,
          last,
          kind,
        })
      );
      for (let n = 1; n <= last; n++) {
        if (n <= calm) {
          const from = [2, 3].map((at) => Atomics.load(words, at));
          await until(
            "both readers have read on",
            () =>
              from.every((reads, i) =>
                Atomics.load(words, 2 + i) > reads + 3000
              ),
          );
        }
        map.set("key", make(n));
        map.set(`other ${n % 100}`, make(n));
      }
      for (const { reads, older } of await Promise.all(following)) {
        assertEquals(older, 0);
        assert(reads > calm * 3000, `only ${reads} reads`);
      }
      assertEquals(Atomics.load(words, 0), last);
    });
  });
}

Deno.test("a map that is frozen works as any other", () => {
  using rcu = Rcu.create();
  for (const [name, value, make] of KINDS) {
    const map = Object.freeze(RcuMap.open(rcu, name, { key: string, value }));
    for (let n = 0; n < 3; n++) {
      map.set("key", make(n));
      // Until it is remembered, and then some.
      for (let i = 0; i < 100; i++) assertEquals(map.get("key"), make(n));
      assertEquals(map.get("none"), undefined);
    }
  }
});

Deno.test("getUtf8() finds what get() finds for the string that the bytes are", async () => {
  await withDomain({}, (rcu) => {
    const map = RcuMap.open(rcu, "utf8", { key: string, value: json() });
    const encoder = new TextEncoder();
    const text = fc.oneof(
      fc.string({ unit: fc.constantFrom("a", "b", "\0"), maxLength: 9 }),
      fc.string({ unit: "binary", maxLength: 6 }),
      fc.constantFrom("", "\ufeffa", "é", "\u007f", "\u0080", "a".repeat(300)),
    );
    fc.assert(fc.property(fc.array(text), fc.array(text), (keys, others) => {
      map.clear();
      for (const [i, key] of keys.entries()) map.set(key, { i });
      for (const key of [...keys, ...others]) {
        const bytes = encoder.encode(`<${key}>`);
        const found = map.getUtf8(bytes.subarray(1, bytes.length - 1));
        assertEquals(found, map.get(key.toWellFormed()), JSON.stringify(key));
        const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
        shared.set(bytes);
        assertEquals(map.getUtf8(shared.subarray(1, -1)), found);
        assertEquals(rcu.read(() => map.getUtf8(bytes.slice(1, -1))), found);
      }
    }));
    assertEquals(map.getUtf8(Uint8Array.of(0xff)), map.get("\ufffd"));
    map.clear();
  }, (rcu) => RcuMap.open(rcu, "utf8", { key: string, value: json() }));
});

Deno.test("getUtf8() runs none of its key's own code in the middle of a lookup", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: string });
  const encoded = () => new TextEncoder().encode("victim");
  let looks = 0;
  let at = Infinity;
  const look = () => {
    if (looks++ !== at) return;
    map.delete("victim");
    rcu.barrierSync();
    for (let i = 0; i < 20; i++) map.set(`other ${i}`, `value ${i}`);
  };
  class Odd extends Uint8Array {
    override get length(): number {
      look();
      return super.length;
    }
  }
  const odd = (): Uint8Array =>
    Object.defineProperty(encoded(), "length", {
      get: () => {
        look();
        return 6;
      },
    });
  const proxy = (): Uint8Array =>
    new Proxy(encoded(), {
      get(target, name) {
        look();
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  for (const make of [() => new Odd(encoded()), odd, proxy]) {
    for (at = 0;; at++) {
      map.clear();
      map.set("victim", "value of victim");
      looks = 0;
      const found = map.getUtf8(make());
      assert(found === "value of victim" || found === undefined, found);
      if (looks <= at) break;
    }
  }
});

Deno.test("getUtf8() takes bytes for what they are, whatever they say of their length", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  map.set("", 0).set("abc", 3).set("é", 2);
  for (const text of ["", "abc", "é"]) {
    const key = new TextEncoder().encode(text);
    Object.defineProperty(key, "length", { value: 2 });
    assertEquals(map.getUtf8(key), map.get(text));
    assertEquals(map.getUtf8(Buffer.from(text)), map.get(text));
  }
  const views = RcuMap.open(rcu, "v", { key: u32, value: bytes });
  views.set(1, new TextEncoder().encode("abc"));
  // In debug mode a view is a Proxy.
  assertEquals(rcu.read(() => map.getUtf8(views.view(1)!)), 3);
});

Deno.test("getUtf8() refuses bytes whose buffer is gone instead of taking them for an empty key", () => {
  using rcu = Rcu.create();
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  map.set("", 1);
  assertEquals(map.getUtf8(new Uint8Array()), 1);
  const gone = new Uint8Array(8);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  const buffer = new ArrayBuffer(8, { maxByteLength: 8 });
  const shrunk = new Uint8Array(buffer, 4, 4);
  buffer.resize(0);
  for (const bad of [gone, shrunk]) {
    assertThrows(
      () => map.getUtf8(bad),
      TypeError,
      "Cannot look UTF-8 up as the key's buffer must hold it: received one whose buffer is detached or has shrunk",
    );
  }
});

Deno.test("getUtf8() refuses keys that are no bytes, and maps whose keys are no strings", () => {
  using rcu = Rcu.create();
  const map = RcuMap.open(rcu, "strings", { key: string, value: u32 });
  const bad = "a" as unknown as Uint8Array;
  assertThrows(() => map.getUtf8(bad), TypeError, "Uint8Array");
  const numbers = RcuMap.open(rcu, "numbers", { key: u32, value: u32 });
  assertThrows(() => numbers.getUtf8(Uint8Array.of(1)), TypeError, "u32");
  const binary = RcuMap.open(rcu, "bytes", { key: bytes, value: u32 });
  assertThrows(() => binary.getUtf8(Uint8Array.of(1)), TypeError, "bytes");
});
