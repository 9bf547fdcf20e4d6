// The event of a stall.

import type { StallReport } from "./stall_report.ts";

/**
 * What a {@linkcode StallEvent} is made of.
 *
 * @example One of one's own
 * ```ts
 * import { StallEvent, type StallEventInit } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * const init: StallEventInit = { report: { age: 1, readers: [], pending: 0 } };
 * assertEquals(new StallEvent("stall", init).report.age, 1);
 * ```
 */
export interface StallEventInit extends EventInit {
  /** Who is in the way, and since when. */
  report: StallReport;
}

/**
 * The `"stall"` event of an `Rcu`: a grace period that this thread waits for,
 * or its callbacks do, has not ended for `stallTimeout`.
 *
 * @example Who is in the way
 * ```ts
 * import { Rcu, StallEvent } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create({ stallTimeout: 10 });
 * using other = Rcu.attach(rcu.handle, { name: "slow" });
 * const section = other.readLock();
 * rcu.addEventListener("stall", (event: StallEvent) => {
 *   event.preventDefault(); // or it is printed as well
 *   assertEquals(event.report.readers[0].name, "slow");
 *   section[Symbol.dispose]();
 *   other.threadOffline();
 * });
 * rcu.synchronizeSync({ timeout: 10_000 });
 * assertEquals(section.open, false);
 * ```
 */
export class StallEvent extends Event {
  /** Who is in the way, and since when. */
  readonly report: StallReport;

  /**
   * Made by an `Rcu`.
   *
   * @param type `"stall"`.
   * @param init The report, and what an `Event` takes.
   */
  constructor(type: string, init: StallEventInit) {
    super(type, init);
    this.report = init.report;
  }
}
