/**
 * Read-copy update for Deno: many workers share one mutable, read-mostly data
 * set in shared memory. Reads take no lock, never wait and cost what private
 * memory costs; updates publish with one store and reclaim after a grace
 * period.
 *
 * @example A map shared by two threads
 * ```ts
 * import { Rcu, RcuMap, string, u32 } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create({ name: "main" });
 * const ports = RcuMap.open(rcu, "ports", { key: string, value: u32 });
 * ports.set("https", 443);
 *
 * // A worker gets `rcu.handle` by postMessage and does the same:
 * using member = Rcu.attach(rcu.handle, { name: "worker" });
 * const shared = RcuMap.open(member, "ports", { key: string, value: u32 });
 * assertEquals(shared.get("https"), 443);
 * ```
 *
 * @module
 */
export { Rcu } from "./src/rcu.ts";
export type {
  AttachOptions,
  BarrierOptions,
  ConnectOptions,
  RcuHandle,
  RcuOptions,
  SynchronizeOptions,
  SynchronizeSyncOptions,
} from "./src/options.ts";
export {
  ReaderLostEvent,
  type ReaderLostEventInit,
} from "./src/reader_lost.ts";
export { type ReclaimerOptions, runReclaimer } from "./src/reclaimer.ts";
export type {
  CallbackStats,
  GracePeriodStats,
  RcuStats,
  ReaderStats,
} from "./src/stats.ts";
export { top, type TopOptions } from "./src/top.ts";
export type { ReadSection } from "./src/readers/section.ts";
export type { CallbackPolicy } from "./src/callbacks/policy.ts";
export type { GracePeriodCookie } from "./src/grace_periods/cookie.ts";
export {
  StallEvent,
  type StallEventInit,
} from "./src/grace_periods/stall_event.ts";
export {
  RcuStallError,
  type StalledReader,
  type StallReport,
} from "./src/grace_periods/stall_report.ts";
export type { Address, Arena, MemoryAudit } from "./src/memory/arena.ts";
export type { Codec, KeyCodec } from "./src/memory/codec.ts";
export { bytes, f64, i32, json, string, u32 } from "./src/memory/codecs.ts";
export { RcuMemoryError } from "./src/memory/errors.ts";
export {
  struct,
  type StructFields,
  type StructValue,
  type StructView,
} from "./src/memory/struct.ts";
export { Fib } from "./src/routing/fib.ts";
export {
  type Neighbor,
  type NeighborState,
  NeighborTable,
  type NeighborTableOptions,
  type NeighborTableStats,
  type NeighborUpdate,
} from "./src/routing/neighbor_table.ts";
export {
  RouteCache,
  type RouteCacheOptions,
  type RouteCacheStats,
  type RouteHold,
  type RouteKey,
  type RouteResult,
} from "./src/routing/route_cache.ts";
export type { Prefix, Route } from "./src/routing/route.ts";
export {
  Srcu,
  type SrcuSection,
  type SrcuSynchronizeOptions,
} from "./src/srcu/srcu.ts";
export {
  RcuCell,
  type RcuCellOptions,
  type WaitForChangeOptions,
} from "./src/structures/cell.ts";
export type { ChangesOptions } from "./src/structures/changes.ts";
export { RcuMap, type RcuMapOptions } from "./src/structures/map.ts";
export {
  RcuSortedMap,
  type RcuSortedMapOptions,
} from "./src/structures/sorted_map.ts";
