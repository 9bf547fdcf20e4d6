/** What counts and times RCU's own functions; nothing is timed here. */
import { assert, assertEquals, assertGreater } from "@std/assert";
import { ROW_NAMES } from "../bench/_route_overhead.ts";
import { inFreshWorker } from "../bench/_workers.ts";
import { Callbacks } from "../src/callbacks/_callbacks.ts";
import { TreeDetector } from "../src/grace_periods/_tree.ts";
import type { Deferring, Measured } from "./_overhead_worker.ts";

const WORKER = import.meta.resolve("./_overhead_worker.ts");
const FREES = 1000;

function measure(
  what: Pick<Deferring, "detector" | "callbacks">,
): Promise<Measured> {
  return inFreshWorker(WORKER, "deferFrees", { ...what, frees: FREES });
}

for (const detector of ["scan", "classic", "tree"] as const) {
  for (const mode of ["immediate", "throttled", "offloaded"] as const) {
    Deno.test(`every call of RCU's own functions is counted, ${detector} and ${mode}`, async () => {
      const { costs, memory } = await measure({
        detector,
        callbacks: { mode },
      });
      const calls = Object.fromEntries(
        ROW_NAMES.map((name, row) => [name, costs[row].calls]),
      );
      assertEquals(calls["callRcu"], FREES);
      // Once after each of them: there is no other update.
      assertEquals(calls["checkCallbacks"], FREES);
      for (
        const name of [
          "processCallbacks",
          "invokeCallbacks",
          "checkQuiescentState",
          "registerBatch",
          "passed, of the detector",
          "report, of the detector",
        ]
      ) assertGreater(calls[name], 0, name);
      if (mode === "offloaded") assertGreater(calls["handing over"], 0);
      for (const { ms } of costs) assert(ms >= 0);
      // What is timed gets all of its arguments: no block is on two lists, none is forgotten.
      assertEquals(memory, { ...memory, after: memory.before, deferred: 0 });
    });
  }
}

Deno.test("what timing takes is found out for a call and for its caller", async () => {
  const { self, inner } = await measure({
    detector: "scan",
    callbacks: { mode: "immediate" },
  });
  assertGreater(self, 0);
  assertGreater(inner, 0);
});

Deno.test("a thread that measures changes nothing in other threads", async () => {
  const before = [
    Callbacks.prototype.deferFree,
    Callbacks.prototype.processCallbacks,
    TreeDetector.prototype.passed,
  ];
  await measure({ detector: "tree", callbacks: { mode: "immediate" } });
  assertEquals([
    Callbacks.prototype.deferFree,
    Callbacks.prototype.processCallbacks,
    TreeDetector.prototype.passed,
  ], before);
});
