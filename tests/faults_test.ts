// One test for each kind of fault that was found by attacking the package.

import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import {
  bytes,
  f64,
  json,
  Rcu,
  RcuCell,
  RcuMap,
  RcuMemoryError,
  type RcuOptions,
  RcuSortedMap,
  string,
  u32,
} from "../mod.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { settle } from "./_settle.ts";
import { sharedWords, tell, until, waitFor, withWorkers } from "./_workers.ts";

function domain(options: RcuOptions = {}): Rcu {
  return Rcu.create({
    capacity: 2 ** 22,
    maxReaders: 8,
    debug: true,
    ...options,
  });
}

/** Lets errors be counted instead of printed. */
function countErrors(rcu: Rcu): () => number {
  let count = 0;
  rcu.addEventListener("error", (event) => {
    event.preventDefault();
    count++;
  });
  return () => count;
}

for (const hint of [2 ** 32 - 1, 2 ** 31, 2 ** 22]) {
  Deno.test(`replaceAll() of an array of length ${hint} without entries harms nothing`, async () => {
    using rcu = domain();
    const other = RcuMap.open(rcu, "other", { key: u32, value: string });
    for (let i = 0; i < 1000; i++) other.set(i, `${i}`);
    const map = RcuMap.open(rcu, "m", { key: u32, value: u32 }).set(1, 1);
    assertThrows(() => map.replaceAll(new Array(hint) as never));
    assertEquals([...map], [[1, 1]]);
    for (let i = 0; i < 1000; i++) assertEquals(other.get(i), `${i}`);
    await settle(rcu);
    assertAddsUp(rcu.memory.audit());
    assertLists(rcu.memory.words);
  });
}

Deno.test("a map of an unbelievable size takes no more memory than its entries need", () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const liar = new Map([[1, 2]]);
  Object.defineProperty(liar, "size", { value: Infinity });
  map.replaceAll(liar);
  assertEquals([...map], [[1, 2]]);
});

Deno.test("any number of callbacks may become ready at once", async () => {
  using rcu = domain();
  let ran = 0;
  rcu.read(() => {
    for (let i = 0; i < 200_000; i++) rcu.callRcu(() => ran++);
  });
  await settle(rcu);
  assertEquals(ran, 200_000);
});

Deno.test("a callback that throws what cannot be printed stops nothing", async () => {
  using rcu = domain();
  const errors = countErrors(rcu);
  let ran = 0;
  rcu.callRcu(() => {
    throw Object.create(null);
  });
  rcu.callRcu(() => {
    throw {
      toString() {
        throw new Error("not even this");
      },
    };
  });
  rcu.callRcu(() => ran++);
  await settle(rcu);
  assertEquals([ran, errors()], [1, 2]);
});

const hostile: Record<string, () => unknown> = {
  "an error whose message is a symbol": () =>
    Object.assign(new Error(), { message: Symbol("x") }),
  "an error that throws when it is asked for its message": () =>
    Object.defineProperty(new Error(), "message", {
      get() {
        throw new Error("getter");
      },
    }),
  "a proxy that throws when it is asked for its prototype": () =>
    new Proxy({}, {
      getPrototypeOf() {
        throw new Error("trap");
      },
    }),
  "a function that throws when it is made a string": () =>
    Object.assign(() => {}, {
      toString() {
        throw new Error("toString");
      },
    }),
};

for (const [what, make] of Object.entries(hostile)) {
  Deno.test(`a callback that throws ${what} stops no other one`, () => {
    using rcu = domain();
    const errors = countErrors(rcu);
    let ran = 0;
    rcu.callRcu(() => {
      throw make();
    });
    rcu.callRcu(() => ran++);
    rcu.callRcu(() => ran++);
    rcu.barrierSync();
    assertEquals([ran, errors(), rcu.stats().callbacks.pending], [2, 1, 0]);
  });
}

for (
  const callbacks of [
    { mode: "immediate" },
    { mode: "throttled", maxBatch: 2 },
  ] as const
) {
  Deno.test(`an error that cannot be reported loses no other callback (${callbacks.mode})`, async () => {
    using rcu = domain({ callbacks });
    const ran: number[] = [];
    rcu.callRcu(() => {
      throw new Error("mine");
    });
    for (let i = 0; i < 5; i++) rcu.callRcu(() => ran.push(i));
    rcu.dispatchEvent = () => {
      throw new Error("not reported");
    };
    assertThrows(() => rcu.barrierSync(), Error, "not reported");
    assertEquals(ran, []);
    assertEquals(rcu.stats().callbacks.pending, 5);
    rcu.callRcu(() => ran.push(5));
    await settle(rcu);
    assertEquals(ran, [0, 1, 2, 3, 4, 5]);
    assertEquals(rcu.stats().callbacks.pending, 0);
  });
}

Deno.test("callbacks have their turn in the event loop although an error could not be reported", async () => {
  using rcu = domain();
  let ran = 0;
  rcu.callRcu(() => {
    throw new Error("mine");
  });
  rcu.callRcu(() => ran++);
  rcu.dispatchEvent = () => {
    throw new Error("not reported");
  };
  const uncaught = new Promise<string>((resolve) =>
    addEventListener("error", (event) => {
      event.preventDefault();
      resolve(event.message);
    }, { once: true })
  );
  assertMatch(await uncaught, /not reported/);
  await until("the other callback has run", () => ran === 1);
  assertEquals(rcu.stats().callbacks.pending, 0);
});

Deno.test("a recursion of reads that overflows the stack does not leave the thread online", async () => {
  using rcu = domain();
  using other = Rcu.attach(rcu.handle);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 }).set(1, 1);
  const recursions: (() => void)[] = [
    function read(): void {
      cell.get();
      read();
    },
    function look(): void {
      map.get(1);
      look();
    },
    function deepest(): void {
      try {
        deepest();
      } finally {
        cell.get();
      }
    },
  ];
  for (const recurse of recursions) {
    assertThrows(recurse, RangeError);
    await new Promise((resolve) => setTimeout(resolve));
    other.synchronizeSync();
  }
  assertEquals([map.get(1), cell.get()], [1, 1]);
});

Deno.test("a callback that closes its Rcu in the middle of a replaceAll() loses nothing and frees the slot", async () => {
  using rcu = domain();
  const { live } = rcu.memory.audit();
  const header = RcuMap.open(rcu, "m", { key: u32, value: string });
  const empty = rcu.memory.audit().live;
  assert(empty > live);
  for (let round = 0; round < 20; round++) {
    const member = Rcu.attach(rcu.handle);
    const map = RcuMap.open(member, "m", { key: u32, value: string });
    for (let i = 0; i < 2000; i++) map.set(i, "x");
    await settle(member);
    member.callRcu(() => member.close());
    map.replaceAll([]);
    assertThrows(() => map.size + Number(map.get(1)), Error, "closed");
  }
  await settle(rcu);
  const { callbacks, memory, readers } = rcu.stats();
  assertEquals([callbacks.pending, memory.deferred, readers.length], [0, 0, 1]);
  assertEquals(header.size, 0);
  assertEquals(memory.live, empty);
});

Deno.test("a bytes key that changes while the entry is made is the key that was passed", () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: bytes, value: json<unknown>() });
  const scratch = Uint8Array.of(1);
  map.update(scratch, () => {
    scratch[0] = 2;
    return 7;
  });
  scratch[0] = 3;
  map.set(scratch, {
    toJSON() {
      scratch[0] = 4;
      return 8;
    },
  });
  assertEquals(
    [1, 2, 3, 4].map((key) => map.get(Uint8Array.of(key))),
    [7, undefined, 8, undefined],
  );
});

Deno.test("bytes are what they are, whatever their object says", () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: u32, value: bytes });
  class Liar extends Uint8Array {
    override get length(): number {
      return 4000;
    }
  }
  map.set(1, new Liar(4).fill(9));
  assertEquals(map.get(1), Uint8Array.of(9, 9, 9, 9));
  class Thrower extends Uint8Array {
    override get length(): number {
      throw new Error("boom");
    }
  }
  map.set(1, new Thrower(2).fill(8));
  assertEquals(map.get(1), Uint8Array.of(8, 8));
});

Deno.test("a debug view of bytes checks every way to look at it", () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: u32, value: bytes });
  map.set(1, Uint8Array.of(1, 2, 3));
  const [view, part] = rcu.read(() => {
    const view = map.view(1)!;
    assertEquals([view[1], view.subarray(1)[1], view.length], [2, 3, 3]);
    return [view, view.subarray(1)];
  });
  const looks: (() => unknown)[] = [
    () => view[0],
    () => part[0],
    () => Object.keys(view),
    () => 0 in view,
    () => view.at(0),
    () => Object.getOwnPropertyDescriptor(view, 0),
  ];
  for (const look of looks) {
    assertThrows(look, Error, "outside the read section");
  }
});

Deno.test("aborted waits for a change leave nothing behind that the next change would wake", async () => {
  using rcu = domain();
  const cell = RcuCell.open(rcu, "n", { value: u32, initial: 1 });
  let sleeps = 0;
  const { waitAsync } = Atomics;
  Atomics.waitAsync = ((...wait: Parameters<typeof waitAsync>) => {
    sleeps++;
    return waitAsync(...wait);
  }) as typeof waitAsync;
  try {
    for (let i = 0; i < 100; i++) {
      const controller = new AbortController();
      const changed = cell.waitForChange({ signal: controller.signal });
      controller.abort(new Error("enough"));
      await changed.then(() => assert(false), () => {});
    }
    // A wait does not keep the program alive.
    const timer = setInterval(() => {}, 10);
    const changed = cell.waitForChange();
    cell.set(2);
    assertEquals(await changed, 2);
    clearInterval(timer);
  } finally {
    Atomics.waitAsync = waitAsync;
  }
  assertEquals(sleeps, 1);
});

Deno.test("an allocation that waits for other threads' blocks is offline meanwhile", () => {
  using rcu = domain({ stallTimeout: 200 });
  using waiting = Rcu.attach(rcu.handle);
  const cell = RcuCell.open(waiting, "c", { value: u32, initial: 1 });
  // Blocks that the other thread has deferred, and nothing else that would do.
  const large = Math.floor(rcu.memory.audit().free / 4 * 0.9);
  const block = rcu.memory.allocate(large);
  const section = rcu.readLock();
  rcu.deferFree(block);
  assertEquals(cell.get(), 1);
  const online = () =>
    rcu.stats().readers.find(({ id }) => id === waiting.readerId)!.online;
  assertEquals(online(), true);
  const seen = new Set<boolean>();
  const { wait } = Atomics;
  Atomics.wait = ((words: Int32Array, at: number, value: number) => {
    seen.add(online());
    return wait(words, at, value, 0);
  }) as typeof wait;
  try {
    assertThrows(() => waiting.memory.allocate(large), RcuMemoryError);
  } finally {
    Atomics.wait = wait;
  }
  section[Symbol.dispose]();
  assertEquals([...seen], [false]);
});

Deno.test("an update whose function writes what is updated is an Error, not an endless loop", () => {
  using rcu = domain();
  using second = Rcu.attach(rcu.handle);
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 1 });
  const view = RcuCell.open(second, "c", { value: u32 });
  const any = RcuCell.open(rcu, "j", { value: json<unknown>(), initial: 1 });
  const map = RcuMap.open(rcu, "m", { key: string, value: u32 });
  const words = RcuMap.open(rcu, "w", { key: u32, value: string });
  const doubles = RcuMap.open(rcu, "d", { key: f64, value: u32 });
  const scratch = RcuMap.open(rcu, "b", { key: bytes, value: u32 });
  const sorted = RcuSortedMap.open(rcu, "s", { key: f64, value: string });
  const next = (n = 0) => n + 1;
  const updates: (() => unknown)[] = [
    () => cell.update((n) => (cell.set(n + 1), n)),
    () => cell.update((n) => (view.set(n + 1), n)),
    () => cell.update((n) => cell.update(next) + n),
    () => any.update(() => ({ toJSON: () => (any.set(2), 3) })),
    () => map.update("k", (n) => (map.set("k", next(n)), 1)),
    () => map.update("k", (n) => map.update("k", next) + (n ?? 0)),
    () => words.update(7, () => (words.set(7, "x"), "y")),
    () => words.update(7, () => (words.replaceAll([[7, "x"]]), "y")),
    () => sorted.update(NaN, () => (sorted.set(NaN, "x"), "y")),
    () => sorted.update(1, () => (sorted.replaceAll([[1, "x"]]), "y")),
    () => doubles.update(NaN, (n) => (doubles.set(NaN, next(n)), 1)),
    () => doubles.update(0, (n) => (doubles.set(-0, next(n)), 1)),
    () =>
      scratch.update(Uint8Array.of(1, 2), (n) => {
        scratch.set(Uint8Array.of(1, 2), next(n));
        return 1;
      }),
  ];
  for (const update of updates) {
    assertThrows(update, Error, "must not write the same place itself");
  }
  // One that stops doing it gets through.
  let calls = 0;
  cell.set(1);
  cell.update((n) => (calls++ < 5 && cell.set(calls), n + 1));
  assertEquals([calls, cell.get()], [6, 6]);
});

Deno.test("an update may write other entries, however often others are faster, and callbacks its own", async () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const log = RcuMap.open(rcu, "log", { key: u32, value: u32 });
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 0 });
  await withWorkers("_cell_worker.ts", 1, async (worker) => {
    const words = sharedWords(2);
    const done = worker.call("setOnDemand", { handle: rcu.handle, words });
    let calls = 0;
    const result = map.update(1, (old = 0) => {
      map.set(2, calls);
      log.set(1, calls);
      if (calls++ < 20) {
        // The worker sets the entry now.
        tell(words, 0, calls);
        waitFor(words, 1, calls);
      }
      return old + 1;
    });
    tell(words, 0, -1);
    await done;
    assertEquals([calls, result, map.get(2)], [21, 21, 20]);
  });
  // A callback of this thread that an attempt happens to run is not the function's doing.
  let ran = 0;
  let calls = 0;
  cell.update((n) => {
    if (calls++ < 20) {
      rcu.callRcu(() => (ran++, cell.set(n + 10)));
      rcu.barrierSync();
    }
    return n + 1;
  });
  assertEquals([calls, ran, cell.get()], [21, 20, 201]);
});

Deno.test("with debug, pointers lead from live blocks to live blocks", async () => {
  using rcu = domain();
  const pointer = rcu.memory.allocate(4);
  const large = rcu.memory.allocate(10_000);
  const freed = rcu.memory.allocate(4);
  const [whole, gone] = [rcu.memory.allocate(9_000), rcu.memory.allocate(4)];
  rcu.memory.free(freed);
  rcu.memory.free(whole);
  rcu.deferFree(gone);
  rcu.assignPointer(pointer, 0);
  rcu.assignPointer(large + 9_999, 0);
  const before = rcu.memory.words.slice(0, 16);
  const nowhere = [
    ...[0, 1, -1, 0.5, pointer + 0.5, NaN, 2 ** 32, rcu.memory.words.length],
    ...["1", undefined, null, {}, 1n] as unknown as number[],
  ];
  // An object is not asked for its number, nor is a block's tag a word of it.
  const tags = pointer & ~4095;
  for (const word of [...nowhere, tags]) {
    const must = "must be a word of a block that allocate() returned: received";
    assertThrows(
      () => rcu.assignPointer(word, 0),
      RangeError,
      `Cannot assign a pointer as its pointer ${must}`,
    );
    assertThrows(
      () => rcu.read(() => rcu.dereference(word)),
      RangeError,
      `Cannot dereference as its pointer ${must}`,
    );
    if (Object.is(word, 0)) continue;
    assertThrows(
      () => rcu.assignPointer(pointer, word),
      RangeError,
      `Cannot assign a pointer as its value ${must}`,
    );
  }
  for (const [block, state] of [[freed, "free"], [gone, "deferred"]] as const) {
    for (const word of [block, block + 3]) {
      for (const [to, value] of [[word, 0], [pointer, word]] as const) {
        assertThrows(
          () => rcu.assignPointer(to, value),
          Error,
          `must be a word of a live block: that of word ${word} is already ${state}`,
        );
      }
    }
  }
  assertThrows(() => rcu.assignPointer(whole + 5_000, 0), RangeError);
  assertThrows(() => rcu.read(() => rcu.dereference(freed)), Error, "free");
  assertEquals(rcu.memory.words.slice(0, 16), before);
  assertEquals(rcu.read(() => rcu.dereference(pointer)), 0);

  // What is legal: words in the middle, a deferred block in a section, 0.
  rcu.read(() => {
    for (const word of [pointer + 3, large, large + 4_096, large + 9_999]) {
      for (const value of [pointer, large + 9_999, 0]) {
        rcu.assignPointer(word, value);
        assertEquals(rcu.dereference(word), value);
      }
    }
    rcu.dereference(gone + 1);
  });
  rcu.synchronizeSync();
  for (const block of [pointer, large]) rcu.memory.free(block);
  assertEquals(await settle(rcu), 0);

  // A block that fills a page's last place, and one that ends with a page.
  for (const size of [1, 5, 100, 2040, 4096, 8192]) {
    const block = rcu.memory.allocate(size);
    rcu.assignPointer(block + size - 1, block);
    rcu.memory.free(block);
    assertThrows(() => rcu.assignPointer(block + size - 1, 0));
  }
  rcu.close();
  assertThrows(() => rcu.assignPointer(pointer, 0), Error, "it is closed");
  assertThrows(() => rcu.dereference(pointer), Error, "it is closed");
});

Deno.test("without debug, pointers are not checked", () => {
  using rcu = Rcu.create({ capacity: 2 ** 21 });
  const pointer = rcu.memory.allocate(1);
  rcu.assignPointer(pointer, 5);
  assertEquals(rcu.dereference(pointer), 5);
});

/** Bytes that run code whenever they are asked for their length or buffer. */
function spiteful(kind: "subclass" | "property", act: () => void): Uint8Array {
  if (kind === "subclass") {
    class Spiteful extends Uint8Array {
      override get buffer(): ArrayBuffer {
        act();
        return super.buffer as ArrayBuffer;
      }
    }
    return Spiteful.of(7);
  }
  const bytes = Uint8Array.of(7);
  const get = () => {
    act();
    return 1;
  };
  return Object.defineProperty(bytes, "length", { get });
}

for (const kind of ["subclass", "property"] as const) {
  for (const Kind of [RcuMap, RcuSortedMap]) {
    // A sorted map does not hash, so it asks nobody for a length.
    const asks = kind === "subclass" || Kind === RcuMap;

    Deno.test(`a key of ${Kind.name} that replaces everything when it is looked at (${kind}) is looked up afterwards`, () => {
      using rcu = domain({ stallTimeout: 1000 });
      const map = Kind.open(rcu, "m", { key: bytes, value: u32 });
      let value = 0;
      const replace = () => {
        map.replaceAll([[Uint8Array.of(7), ++value], [Uint8Array.of(8), 0]]);
        rcu.barrierSync();
      };
      replace();
      const key = spiteful(kind, replace);
      for (let i = 0; i < 300; i++) {
        assertEquals(map.get(key), value);
        assertEquals(map.has(key), true);
      }
      assertEquals(value > 600, asks);
      if (map instanceof RcuSortedMap) {
        assertEquals(map.floor(key)?.[1], value);
        assertEquals(map.ceiling(key)?.[1], value);
      }
      assertEquals(map.delete(key), true);
    });

    Deno.test(`a key of ${Kind.name} that takes the thread offline when it is looked at (${kind}) is looked up online`, () => {
      using rcu = domain();
      using other = Rcu.attach(rcu.handle);
      const map = Kind.open(rcu, "m", { key: bytes, value: u32 });
      map.set(Uint8Array.of(7), 1);
      const online = () =>
        other.stats().readers.find(({ id }) => id === rcu.readerId)!.online;
      const key = spiteful(kind, () => rcu.threadOffline());
      for (const look of [() => map.get(key), () => map.has(key)]) {
        look();
        assertEquals(online(), true);
      }
      // Where the thread must not go offline, the key is told so.
      const inSection = () => rcu.read(() => map.get(key));
      if (asks) assertThrows(inSection, Error, "inside a read section");
      else assertEquals(inSection(), 1);
    });
  }
}

Deno.test("view() of a key that ends the section when it is looked at is refused", () => {
  using rcu = domain();
  for (const Kind of [RcuMap, RcuSortedMap]) {
    const map = Kind.open(rcu, Kind.name, { key: bytes, value: bytes });
    map.set(Uint8Array.of(7), Uint8Array.of(1));
    const section = rcu.readLock();
    const key = spiteful("subclass", () => section[Symbol.dispose]());
    assertThrows(() => map.view(key), Error, "outside a read section");
  }
});

Deno.test("bytes with a length or a buffer of their own are as long as they are", () => {
  using rcu = domain();
  const map = RcuMap.open(rcu, "m", { key: bytes, value: bytes });
  const other = RcuMap.open(rcu, "other", { key: u32, value: bytes });
  for (let i = 0; i < 100; i++) other.set(i, Uint8Array.of(i));
  for (const changes of [0, 1, 2, 3, 4, 5]) {
    let asked = 0;
    const liar = Object.defineProperties(Uint8Array.of(5), {
      length: { get: () => asked++ < changes ? 1 : 4000 },
      buffer: { value: new ArrayBuffer(1) },
    });
    map.set(Uint8Array.of(1), liar);
    assertEquals(map.get(Uint8Array.of(1)), Uint8Array.of(5));
    map.set(liar, Uint8Array.of(6));
  }
  assertEquals(map.get(Uint8Array.of(5)), Uint8Array.of(6));
  assertEquals(map.size, 2);
  for (let i = 0; i < 100; i++) assertEquals(other.get(i), Uint8Array.of(i));
});
