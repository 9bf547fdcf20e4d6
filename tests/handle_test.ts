import { assertEquals, assertThrows } from "@std/assert";
import { Rcu, type RcuHandle } from "../mod.ts";
import { HEADER_MAGIC, HEADER_VERSION } from "../src/_layout.ts";
import { withDomain } from "./_audit.ts";

function refuses(handle: unknown, why: string): void {
  assertThrows(() => Rcu.attach(handle as RcuHandle), TypeError, why);
}

function copyOf(buffer: SharedArrayBuffer, bytes: number): SharedArrayBuffer {
  const copy = new SharedArrayBuffer(bytes);
  const length = Math.min(bytes, buffer.byteLength);
  new Uint8Array(copy).set(new Uint8Array(buffer, 0, length));
  return copy;
}

Deno.test("a handle is plain and complete: a clone of it and a copy of its buffer attach", () =>
  withDomain({}, ({ handle }) => {
    assertEquals(Object.keys(handle).sort(), [
      "buffer",
      "id",
      "kind",
      "version",
    ]);
    using clone = Rcu.attach(structuredClone(handle));
    assertEquals(clone.memory.words.buffer.byteLength, 2 ** 22);
    const buffer = copyOf(handle.buffer, handle.buffer.byteLength);
    using _copy = Rcu.attach({ ...handle, buffer });
  }));

Deno.test("what is no handle is a TypeError that says what was received", () =>
  withDomain({}, (rcu) => {
    for (const handle of [undefined, null, 5, true]) {
      refuses(handle, `must be the handle of an Rcu: received ${handle}`);
    }
    refuses(rcu, "must be what `handle` of an Rcu is: received an Rcu itself");
    refuses("rcu", 'must be the handle of an Rcu: received "rcu"');
    refuses(() => {}, "must be the handle of an Rcu: received a function");
    refuses(
      {},
      "must be what `handle` of an Rcu is: received one of kind undefined",
    );
    refuses(
      [],
      "must be what `handle` of an Rcu is: received one of kind undefined",
    );
    refuses(new SharedArrayBuffer(8), "must be what `handle` of an Rcu is");
    refuses(
      { kind: "map" },
      'must be what `handle` of an Rcu is: received one of kind "map"',
    );
  }));

Deno.test("a handle of another version or without its buffer is a TypeError", () =>
  withDomain({}, ({ handle }) => {
    const { version } = handle;
    for (const other of [version + 1, 0, true, undefined]) {
      refuses(
        { ...handle, version: other },
        `must have layout version ${version}: received ${other}`,
      );
    }
    for (const buffer of [undefined, null, {}, new ArrayBuffer(2 ** 21)]) {
      refuses({ ...handle, buffer }, "must hold a SharedArrayBuffer");
    }
  }));

Deno.test("a handle with a buffer of the wrong shape is a TypeError", () =>
  withDomain({}, ({ handle }) => {
    const growable = new SharedArrayBuffer(2 ** 22, { maxByteLength: 2 ** 23 });
    for (const bytes of [0, 4, 2 ** 18, 2 ** 22 + 4, 2 ** 22 - 4]) {
      const buffer = copyOf(handle.buffer, bytes);
      refuses({ ...handle, buffer }, `whole buffer: received ${bytes} bytes`);
    }
    refuses(
      { ...handle, buffer: growable },
      "must hold a domain's whole buffer",
    );
  }));

Deno.test("a handle with a foreign, cut or padded buffer is a TypeError", () =>
  withDomain({}, ({ handle }) => {
    const { version } = handle;
    const foreign = new SharedArrayBuffer(2 ** 22);
    const why = "must hold a buffer that Rcu.create() laid out";
    refuses({ ...handle, buffer: foreign }, why);
    new Uint8Array(foreign).fill(0xa5);
    refuses({ ...handle, buffer: foreign }, why);
    for (const bytes of [2 ** 21, 2 ** 22 - 2 ** 14, 2 ** 23]) {
      refuses({ ...handle, buffer: copyOf(handle.buffer, bytes) }, why);
    }
    const buffer = copyOf(handle.buffer, 2 ** 22);
    const words = new Int32Array(buffer);
    words[HEADER_VERSION]++;
    refuses(
      { ...handle, buffer },
      `must have layout version ${version}: received ${version + 1}`,
    );
    words[HEADER_MAGIC]++;
    refuses({ ...handle, buffer }, why);
  }));

Deno.test("a handle whose id is not its buffer's is a TypeError that names it", () =>
  withDomain({}, ({ handle }) => {
    using other = Rcu.create({ capacity: 2 ** 22 });
    const wrong = [other.handle.id, crypto.randomUUID(), "", "x", 7, undefined];
    for (const id of wrong) {
      refuses(
        { ...handle, id },
        `must bear the id of its buffer: received ${JSON.stringify(id)}`,
      );
    }
    refuses({ ...handle, buffer: other.handle.buffer }, "must bear the id");
  }));

Deno.test("a handle that is refused leaves the domain as it was", () =>
  withDomain({}, (rcu) => {
    const before = rcu.stats();
    refuses({ ...rcu.handle, id: crypto.randomUUID() }, "must bear the id");
    assertThrows(
      () => Rcu.attach(rcu.handle, { name: 5 as unknown as string }),
      TypeError,
      "name must be a string: received 5",
    );
    const after = rcu.stats();
    // Statistics themselves go online to read the names.
    assertEquals({ ...after, readers: [] }, { ...before, readers: [] });
    assertEquals(after.readers.length, 1);
  }));

Deno.test("a domain of the largest capacity can be attached to", () => {
  using rcu = Rcu.create({ capacity: 2 ** 33 });
  using other = Rcu.attach(rcu.handle);
  const block = other.memory.allocate(2 ** 30);
  assertEquals(rcu.memory.audit().live, 2 ** 32);
  rcu.memory.free(block);
});
