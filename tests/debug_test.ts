// Misuse in debug mode, in one thread: each throws an error that says what was done before, and where.

import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Address,
  bytes,
  Rcu,
  RcuCell,
  RcuMap,
  RcuSortedMap,
  struct,
  u32,
} from "../mod.ts";
import { withDomain } from "./_audit.ts";
import { assertBlames, assertNames } from "./_blame.ts";
import { membershipOf } from "../src/rcu.ts";
import { POISON } from "../src/memory/_heap.ts";

const FREED = "this thread freed it";
const DEFERRED = "this thread deferred freeing it";
const PUBLISHED = "this thread published it";
const UNLINKED = "this thread unlinked it";

function inDebug(
  use: (rcu: Rcu) => void | Promise<void>,
  before?: (rcu: Rcu) => void,
): Promise<void> {
  return withDomain({ debug: true, name: "main" }, use, before);
}

// Acts with names of their own, by which a stack is known.
function free(rcu: Rcu, block: Address): void {
  rcu.memory.free(block);
}
function defer(rcu: Rcu, block: Address): void {
  rcu.deferFree(block);
}
function publish(rcu: Rcu, pointer: Address, block: Address): void {
  rcu.assignPointer(pointer, block);
}
function unlink(rcu: Rcu, pointer: Address): void {
  rcu.assignPointer(pointer, 0);
}
/** A block whose words are all 0. */
function allocate(rcu: Rcu, words = 4): Address {
  const block = rcu.memory.allocate(words);
  rcu.memory.words.fill(0, block, block + words);
  return block;
}

for (const size of [4, 9_000]) {
  Deno.test(`what is done to a block of ${size} words that is gone names how it went`, () =>
    inDebug(async (rcu) => {
      const gone = allocate(rcu, size);
      free(rcu, gone);
      const deferred = allocate(rcu, size === 4 ? 8 : size);
      defer(rcu, deferred);
      const pointer = allocate(rcu, 100);
      const check = (
        block: Address,
        state: string,
        act: string,
        by: string,
      ) => {
        const acts = [[act, by]] as const;
        const must = `must be live: block ${block} is already ${state}`;
        assertBlames(
          () => rcu.memory.free(block),
          `Cannot free a block as it ${must}`,
          acts,
        );
        assertBlames(
          () => rcu.deferFree(block),
          `Cannot defer freeing a block as it ${must}`,
          acts,
        );
        assertBlames(
          () => rcu.assignPointer(pointer, block + 1),
          `Cannot assign a pointer as its value must be a word of a live block: that of word ${
            block + 1
          } is already ${state}`,
          acts,
        );
      };
      if (size === 4) check(gone, "free", FREED, "free");
      check(deferred, "deferred", DEFERRED, "defer");
      await rcu.barrier();
      // Whoever frees it in the end, this is who has said so.
      if (size === 4) check(deferred, "free", DEFERRED, "defer");
      rcu.memory.free(pointer);
    }));
}

Deno.test("a block that is used again has no past", () =>
  inDebug((rcu) => {
    const block = allocate(rcu);
    defer(rcu, block);
    rcu.barrierSync();
    assertEquals(allocate(rcu), block);
    free(rcu, block);
    assertBlames(() => rcu.deferFree(block), "Cannot defer", [[FREED, "free"]]);
    // Nor do structures tell what they do.
    const membership = membershipOf(rcu, "allocate");
    assertEquals(membership.allocate(4), block);
    membership.heap.free(block);
    const { message } = assertThrows(() => rcu.memory.free(block), Error);
    assert(message.endsWith("is already free"), message);
  }));

Deno.test("what a pointer in a section leads to is free: the error names who freed it", () =>
  inDebug((rcu) => {
    const pointer = allocate(rcu);
    const block = allocate(rcu);
    rcu.memory.words[pointer] = block;
    free(rcu, block);
    assertBlames(
      () => rcu.read(() => rcu.dereference(pointer)),
      `Cannot dereference as its target must be a word of a live block: that of word ${block} is already free`,
      [[FREED, "free"]],
    );
    assertBlames(
      () => rcu.read(() => rcu.dereference(block)),
      `Cannot dereference as its pointer must be a word of a live block: that of word ${block} is already free`,
      [[FREED, "free"]],
    );
    rcu.memory.words[pointer] = POISON;
    assertThrows(
      () => rcu.read(() => rcu.dereference(pointer)),
      Error,
      `Cannot dereference a pointer as it must have been assigned: word ${pointer} holds what fills freed memory`,
    );
    rcu.memory.words[pointer] = -1;
    assertEquals(rcu.read(() => rcu.dereference(pointer)), -1);
    rcu.memory.free(pointer);
  }));

// What is published

Deno.test("a published block cannot be freed at once until a period has ended since it was unlinked", () =>
  inDebug(async (rcu) => {
    const pointer = allocate(rcu);
    const block = allocate(rcu);
    publish(rcu, pointer + 1, block + 2);
    const freeing = () => rcu.memory.free(block);
    assertBlames(
      freeing,
      `Cannot free a block at once as no reader may find it: word ${
        pointer + 1
      } still points to block ${block}`,
      [[PUBLISHED, "publish"]],
    );
    unlink(rcu, pointer + 1);
    const early =
      `Cannot free a block at once as a grace period must have ended since it was unlinked: block ${block}`;
    const acts = [[PUBLISHED, "publish"], [UNLINKED, "unlink"]] as const;
    assertBlames(freeing, early, acts);
    // A period that was in progress is none.
    using other = Rcu.attach(rcu.handle);
    const section = other.readLock();
    publish(rcu, pointer + 1, block);
    const cookie = rcu.startPoll();
    unlink(rcu, pointer + 1);
    section[Symbol.dispose]();
    other.threadOffline();
    assert(rcu.poll(cookie));
    assertBlames(freeing, early, acts);
    await rcu.synchronize();
    freeing();
    rcu.memory.free(pointer);
  }));

Deno.test("a deferred block that is found when its period is over is an error event", () =>
  inDebug(async (rcu) => {
    const pointer = allocate(rcu);
    const block = allocate(rcu);
    const errors: Error[] = [];
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      errors.push(event.error);
    });
    publish(rcu, pointer, block);
    defer(rcu, block);
    await rcu.barrier();
    await Promise.resolve();
    assertEquals(errors.length, 1);
    assertNames(
      errors[0],
      `Cannot free a deferred block as no reader may find it: word ${pointer} still points to block ${block}`,
      [[PUBLISHED, "publish"], [DEFERRED, "defer"]],
    );
    rcu.memory.free(pointer);
  }));

/** Takes a binary tree apart on which the first word of a root hangs. */
type TakeApart = (rcu: Rcu, root: Address, nodes: Address[]) => void;

const LEGAL: Record<string, TakeApart> = {
  "unlinked, and freed from the root on after a period": (rcu, root, nodes) => {
    unlink(rcu, root);
    rcu.synchronizeSync();
    for (const block of [root, ...nodes]) rcu.memory.free(block);
  },
  "unlinked, and freed from the leaves on after a period": (
    rcu,
    root,
    nodes,
  ) => {
    unlink(rcu, root);
    rcu.synchronizeSync();
    for (const block of nodes.toReversed()) rcu.memory.free(block);
    rcu.memory.free(root);
  },
  "unlinked and deferred in any order": (rcu, root, nodes) => {
    unlink(rcu, root);
    for (const i of [2, 0, 3, 1]) rcu.deferFree(nodes[i]);
    rcu.barrierSync();
    rcu.memory.free(root);
  },
  "deferred with its root": (rcu, root, nodes) => {
    for (const block of nodes) rcu.deferFree(block);
    rcu.deferFree(root);
  },
  "partly deferred, partly freed after a period": (rcu, root, nodes) => {
    unlink(rcu, root);
    rcu.deferFree(nodes[0]);
    const [, ...others] = nodes;
    rcu.synchronizeSync();
    for (const block of [...others, root]) rcu.memory.free(block);
  },
  "taken apart by assignPointer a period after the root": (
    rcu,
    root,
    nodes,
  ) => {
    unlink(rcu, root);
    rcu.synchronizeSync();
    for (const node of nodes) {
      for (const word of [0, 1]) {
        if (rcu.memory.words[node + word] !== 0) unlink(rcu, node + word);
      }
    }
    for (const block of [root, ...nodes]) rcu.memory.free(block);
  },
  "unlinked by a store of one's own": (rcu, root, nodes) => {
    Atomics.store(rcu.memory.words, root, 0);
    rcu.synchronizeSync();
    for (const block of [...nodes.toReversed(), root]) rcu.memory.free(block);
  },
};

for (const [how, takeApart] of Object.entries(LEGAL)) {
  Deno.test(`a structure may be ${how}`, () =>
    inDebug(async (rcu) => {
      const errors: string[] = [];
      rcu.addEventListener("error", (event) => void errors.push(event.message));
      const root = allocate(rcu);
      const nodes = [0, 1, 2, 3].map(() => allocate(rcu));
      publish(rcu, nodes[0], nodes[1]);
      publish(rcu, nodes[0] + 1, nodes[2]);
      publish(rcu, nodes[2] + 1, nodes[3]);
      // A way back, and one to itself.
      publish(rcu, nodes[2] + 2, nodes[0]);
      publish(rcu, nodes[2] + 3, nodes[2]);
      publish(rcu, root, nodes[0]);
      takeApart(rcu, root, nodes);
      await rcu.barrier();
      assertEquals(errors, []);
    }));
}

const ILLEGAL: Record<string, TakeApart> = {
  "a leaf while the root stands": (rcu, _root, nodes) =>
    rcu.memory.free(nodes[3]),
  "a leaf while readers may be at the root": (rcu, root, nodes) => {
    unlink(rcu, root);
    rcu.memory.free(nodes[3]);
  },
  "a leaf whose root has just been deferred": (rcu, root, nodes) => {
    unlink(rcu, root);
    rcu.deferFree(nodes[0]);
    rcu.memory.free(nodes[3]);
  },
};

for (const [what, act] of Object.entries(ILLEGAL)) {
  Deno.test(`nobody frees ${what}`, () =>
    inDebug((rcu) => {
      const root = allocate(rcu);
      const nodes = [0, 1, 2, 3].map(() => allocate(rcu));
      publish(rcu, root, nodes[0]);
      publish(rcu, nodes[0], nodes[1]);
      publish(rcu, nodes[0] + 1, nodes[2]);
      publish(rcu, nodes[2] + 1, nodes[3]);
      assertBlames(
        () => act(rcu, root, nodes),
        "Cannot free a block at once as no reader may find it",
        [[PUBLISHED, "publish"]],
      );
      if (rcu.memory.words[root] !== 0) unlink(rcu, root);
      rcu.synchronizeSync();
      for (const block of nodes) {
        try {
          rcu.memory.free(block);
        } catch (error) {
          assert((error as Error).message.includes("is already"), `${error}`);
        }
      }
      rcu.memory.free(root);
    }));
}

Deno.test("more published blocks than the trail has room for make no error of what is right", () =>
  inDebug((rcu) => {
    const length = 20_000;
    const table = allocate(rcu, length);
    const blocks: Address[] = [];
    for (let i = 0; i < length; i++) {
      // Each hangs on one whose entry may be lost.
      const block = allocate(rcu, 1);
      publish(rcu, i === 0 ? table : blocks[i - 1], block);
      blocks.push(block);
    }
    unlink(rcu, table);
    rcu.synchronizeSync();
    for (const block of blocks.toReversed()) rcu.memory.free(block);
    rcu.memory.free(table);
  }));

// Sections and memberships

function endSection(section: Disposable): void {
  section[Symbol.dispose]();
}

const FIELDS = struct({ n: u32, data: bytes });

Deno.test("a view that is kept past its section names where the section ended", () =>
  inDebug(
    (rcu) => {
      const row = { n: 1, data: Uint8Array.of(2, 3) };
      const map = RcuMap.open(rcu, "m", { key: u32, value: FIELDS });
      const sorted = RcuSortedMap.open(rcu, "s", { key: u32, value: bytes });
      map.set(1, row);
      sorted.set(1, row.data);
      const late =
        "Cannot use a view outside the read section in which it was taken";
      const ended = [["this thread ended that section", "endSection"]] as const;
      const outer = rcu.readLock();
      const inner = rcu.readLock();
      const view = map.view(1)!;
      const { data } = view;
      const part = data.subarray(1);
      const bytesView = sorted.view(1)!;
      inner[Symbol.dispose]();
      assertEquals([view.n, part[0], bytesView[1]], [1, 3, 3]);
      endSection(outer);
      for (
        const use of [
          () => view.n,
          () => data[0],
          () => part.length,
          () => bytesView[0],
        ]
      ) {
        assertBlames(use, late, ended);
        // Nor in a later one, which is another section.
        assertBlames(() => rcu.read(use), late, ended);
      }
      let kept: Uint8Array | undefined;
      const { length } = rcu.read(() => (kept = sorted.view(1)!).slice());
      assertEquals(length, 2);
      const { message } = assertThrows(() => kept![0], Error, late);
      assert(message.includes("; this thread ended that section at file:"));
      map.delete(1);
      sorted.delete(1);
    },
    (rcu) => {
      RcuMap.open(rcu, "m", { key: u32, value: FIELDS });
      RcuSortedMap.open(rcu, "s", { key: u32, value: bytes });
    },
  ));

Deno.test("a view may be what a section returns, and is too late to be looked at then", () =>
  inDebug(
    (rcu) => {
      const map = RcuMap.open(rcu, "m", { key: u32, value: bytes });
      map.set(1, Uint8Array.of(2));
      let kept: Uint8Array | undefined;
      const view = rcu.read(() => kept = map.view(1))!;
      for (const late of [view, kept!]) {
        assertThrows(() => late[0], Error, "outside the read section");
      }
      map.clear();
    },
    (rcu) => void RcuMap.open(rcu, "m", { key: u32, value: bytes }),
  ));

function openSection(rcu: Rcu): Disposable {
  return rcu.readLock();
}

Deno.test("a section that is held across an await names where it began", () =>
  inDebug(async (rcu) => {
    const errors: Error[] = [];
    rcu.addEventListener("error", (event) => {
      event.preventDefault();
      errors.push(event.error);
    });
    const section = openSection(rcu);
    await new Promise((resolve) => setTimeout(resolve, 0));
    const message = "Cannot hold a read section across an await";
    const began = [["this thread began it", "openSection"]] as const;
    assertEquals(errors.length, 1);
    assertNames(errors[0], message, began);
    assertThrows(() => rcu.close(), Error, "has not been disposed of");
    assertBlames(() => section[Symbol.dispose](), message, began);
  }));

Deno.test("to dereference or view outside a section names the section of another Rcu that is open", () =>
  inDebug(
    (rcu) => {
      using other = Rcu.attach(rcu.handle, { name: "other" });
      using third = Rcu.create({ capacity: 2 ** 22, debug: true });
      const pointer = allocate(rcu, 1);
      const map = RcuMap.open(rcu, "m", { key: u32, value: bytes });
      const uses: [string, () => unknown][] = [
        [
          `Cannot dereference outside a read section: pointer ${pointer}`,
          () => rcu.dereference(pointer),
        ],
        [
          "Cannot view a value outside a read section: the view would outlive it",
          () => map.view(1),
        ],
      ];
      for (const [message, use] of uses) {
        assertEquals(assertThrows(use, Error).message, message);
        assertEquals(
          assertThrows(() => other.read(() => third.read(use)), Error).message,
          `${message}; the section that is open is of another Rcu, reader 1 ("other"), reader 0, ` +
            "and protects what is read with that one",
        );
        rcu.read(use);
      }
      rcu.memory.free(pointer);
    },
    (rcu) => void RcuMap.open(rcu, "m", { key: u32, value: bytes }),
  ));

Deno.test("after close() every use names where that was", () => {
  const rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const cell = RcuCell.open(rcu, "c", { value: u32, initial: 0 });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  const block = rcu.memory.allocate(1);
  const close = () => rcu.close();
  function leave(): void {
    close();
  }
  leave();
  const uses: Record<string, () => unknown> = {
    "read": () => rcu.read(() => {}),
    "take statistics": () => rcu.stats(),
    "dereference": () => rcu.dereference(block),
    "assign a pointer": () => rcu.assignPointer(block, 0),
    "free": () => rcu.memory.free(block),
    "defer": () => rcu.deferFree(block),
    "allocate": () => rcu.memory.allocate(1),
    "wait for a grace period": () => rcu.synchronizeSync(),
  };
  for (const [act, use] of Object.entries(uses)) {
    assertBlames(
      use,
      `Cannot ${act} as the Rcu must be open: it is closed`,
      [["this thread closed it", "close"]],
    );
  }
  for (
    const use of [
      () => cell.get(),
      () => map.get(1),
      () => map.set(1, 1),
      () => RcuCell.open(rcu, "c", { value: u32 }),
    ]
  ) {
    const { cause } = assertThrows(use, Error, "it is closed; this thread");
    assert((cause as Error).stack!.includes("at leave ("));
  }
});

Deno.test("an Rcu and what was opened with it cannot be taken to another thread", () => {
  using rcu = Rcu.create({ capacity: 2 ** 22, debug: true });
  const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
  for (const value of [rcu, map, { rcu }, [map]]) {
    assertThrows(() => structuredClone(value), DOMException);
  }
});

Deno.test("without debug, nothing of this is looked at", () =>
  withDomain({}, async (rcu) => {
    const pointer = allocate(rcu);
    const block = allocate(rcu);
    rcu.assignPointer(pointer, block);
    assertEquals(rcu.dereference(pointer), block);
    rcu.memory.free(block);
    const error = assertThrows(() => rcu.memory.free(block), Error);
    assertEquals([error.message.includes(";"), error.cause], [
      false,
      undefined,
    ]);
    const other = allocate(rcu);
    rcu.assignPointer(pointer, other);
    rcu.deferFree(other);
    await rcu.barrier();
    rcu.memory.free(pointer);
  }));
