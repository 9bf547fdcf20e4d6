/**
 * Read-copy update for Deno: many workers share one mutable, read-mostly data
 * set in shared memory. Reads take no lock, never wait and cost what private
 * memory costs; updates publish with one store and reclaim after a grace
 * period.
 *
 * 1. `deno add jsr:@grace/rcu`
 * 2. The first thread creates a domain, opens a map by its name, and posts the domain's handle;
 *    or all threads find the domain by a name, as {@linkcode Rcu.connect} says.
 * 3. A worker attaches to the handle and opens the same map by the same name. What one thread sets,
 *    all see from then on.
 *
 * A worker file of yours needs `deno run --allow-read`; the package asks for nothing. `RcuMap` has the
 * methods of `Map`; `RcuSortedMap` keeps its keys in order, `RcuCell` is one value, `Fib` a
 * routing table. Keys and values lie in shared memory by codecs: {@linkcode u32},
 * {@linkcode i32}, {@linkcode f64}, {@linkcode string}, {@linkcode bytes}, {@linkcode json}
 * and {@linkcode struct}. Reads are safe by themselves; several that belong together go into
 * one {@linkcode Rcu.read}. Structures of your own start at {@linkcode Arena}.
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
 * shared.set("smtp", 25);
 * assertEquals([shared.get("https"), ports.get("smtp")], [443, 25]);
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
