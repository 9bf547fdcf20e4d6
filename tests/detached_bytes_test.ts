// Bytes whose buffer goes away, before they are stored or in the middle of it.

import { assertEquals, assertThrows } from "@std/assert";
import {
  bytes,
  RcuCell,
  RcuMap,
  RcuMemoryError,
  RcuSortedMap,
  struct,
  u32,
} from "../mod.ts";
import { withDomain } from "./_audit.ts";

function detach(value: Uint8Array): void {
  structuredClone(value.buffer, { transfer: [value.buffer as ArrayBuffer] });
}

const MUST =
  "as bytes as its buffer must hold it: received one whose buffer is detached or has shrunk";

Deno.test("bytes whose buffer is gone are refused as a value and as a key, and not taken for empty", () =>
  withDomain({}, (rcu) => {
    const gone = new Uint8Array(8);
    detach(gone);
    const buffer = new ArrayBuffer(8, { maxByteLength: 8 });
    const shrunk = new Uint8Array(buffer, 4, 4);
    buffer.resize(0);
    for (const bad of [gone, shrunk]) {
      for (const Kind of [RcuMap, RcuSortedMap]) {
        const map = Kind.open(rcu, Kind.name, { key: bytes, value: bytes });
        map.set(new Uint8Array(), new Uint8Array());
        const key = `Cannot use a key ${MUST}`;
        assertThrows(() => map.get(bad), TypeError, MUST);
        assertThrows(() => map.set(bad, bad), TypeError, key);
        assertThrows(() => map.delete(bad), TypeError, key);
        const value = `Cannot use a value ${MUST}`;
        const one = Uint8Array.of(1);
        assertThrows(() => map.set(one, bad), TypeError, value);
        assertThrows(() => map.getOrInsert(one, bad), TypeError, value);
        assertThrows(() => map.update(one, () => bad), TypeError, value);
        assertThrows(() => map.replaceAll([[one, bad]]), TypeError, value);
        assertEquals(map.size, 1);
      }
    }
  }, (rcu) => {
    for (const Kind of [RcuMap, RcuSortedMap]) {
      const map = Kind.open(rcu, Kind.name, { key: bytes, value: bytes });
      map.set(new Uint8Array(), new Uint8Array());
    }
  }));

Deno.test("bytes that a later field of their struct detaches lose nothing", () =>
  withDomain({}, (rcu) => {
    const value = struct({ data: bytes, n: u32 });
    const map = RcuMap.open(rcu, "m", { key: u32, value });
    const data = new Uint8Array(8);
    const row = {
      data,
      get n() {
        detach(data);
        return 1;
      },
    };
    assertThrows(() => map.set(1, row), TypeError, "detached");
    assertEquals(map.size, 0);
  }, (rcu) => {
    const value = struct({ data: bytes, n: u32 });
    RcuMap.open(rcu, "m", { key: u32, value });
  }));

Deno.test("bytes that a callback detaches while they wait for memory lose nothing", () =>
  withDomain({}, (rcu) => {
    const initial = new Uint8Array();
    const cell = RcuCell.open(rcu, "c", { value: bytes, initial });
    // All but what is deferred: whoever wants memory has to run the callback first.
    const large = Math.floor(rcu.memory.audit().free / 8);
    const blocks: number[] = [];
    for (let size = large; size > 1000; size >>>= 1) {
      try {
        while (true) blocks.push(rcu.memory.allocate(size));
      } catch (error) {
        if (!(error instanceof RcuMemoryError)) throw error;
      }
    }
    rcu.deferFree(blocks.shift()!);
    const data = new Uint8Array(large * 2);
    let ran = 0;
    rcu.callRcu(() => (ran++, detach(data)));
    assertThrows(() => cell.set(data), TypeError, "detached");
    assertEquals([ran, cell.get(), cell.version], [1, initial, 0]);
    for (const block of blocks) rcu.memory.free(block);
  }, (rcu) => {
    RcuCell.open(rcu, "c", { value: bytes, initial: new Uint8Array() });
  }));
