import { assert, assertEquals } from "@std/assert";
import { watch } from "../bench/_latency_load.ts";

Deno.test("watch() counts each tick that a stalled thread missed, from when it was due", async () => {
  const STALL = 30;
  const watched = watch(40);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL);
  const late = await watched;
  assertEquals(late.length, 40);
  assert(late.every((ms) => ms >= 0));
  // The first was due after 1 ms and served after 30: one late tick in 40 would hide the others.
  for (let tick = 1; tick < STALL; tick++) {
    assert(late[tick - 1] >= STALL - tick - 1, `tick ${tick}`);
  }
});
