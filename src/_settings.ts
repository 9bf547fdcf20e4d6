// What the threads of a domain have in common, as callers ask for it and as it lies in the header.

import { checkBoolean, checkInteger, checkNames } from "./_arguments.ts";
import {
  CHECKS,
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_HIGH_WATER,
  HEADER_MAX_READERS,
  HEADER_STALL_TIMEOUT,
} from "./_layout.ts";
import {
  CLASSIC,
  DEFAULT_FANOUT,
  LARGEST_FANOUT,
  SCAN,
  SMALLEST_FANOUT,
} from "./grace_periods/_detectors.ts";
import { show } from "./memory/_codec.ts";
import { PAGE_WORDS } from "./memory/_size_classes.ts";
import type { AttachOptions, RcuOptions } from "./options.ts";
import { checkPolicy, type FullPolicy, readPolicy } from "./_policy.ts";

export const SMALLEST_CAPACITY = 2 ** 21;
const LARGEST_CAPACITY = 2 ** 33;

/** What all threads of a domain have in common, with every default filled in. */
export interface Settings {
  /** In bytes, rounded down. */
  capacity: number;
  maxReaders: number;
  /** As `_detectors.ts` numbers them. */
  detector: number;
  callbacks: FullPolicy;
  highWater: number;
  stallTimeout: number;
  debug: boolean;
}

/**
 * Checks what the caller wants a domain to be, and fills the defaults in.
 *
 * @param options The caller's options.
 * @returns The settings.
 */
export function checkSettings(options: RcuOptions): Settings {
  const {
    capacity = 2 ** 28,
    maxReaders = 64,
    detector = "scan",
    callbacks = { mode: "immediate" },
    highWater = 10_000,
    stallTimeout = 10_000,
    debug = false,
  } = options;
  checkInteger("capacity", capacity, SMALLEST_CAPACITY, LARGEST_CAPACITY);
  checkInteger("maxReaders", maxReaders, 1, 4096);
  checkInteger("highWater", highWater, 1, 2 ** 31 - 1);
  checkInteger("stallTimeout", stallTimeout, 1, 2 ** 31 - 1);
  checkBoolean("debug", debug, "create a domain");
  const page = PAGE_WORDS * 4;
  return {
    capacity: Math.floor(capacity / page) * page,
    maxReaders,
    detector: detectorKind(detector),
    callbacks: checkPolicy(callbacks),
    highWater,
    stallTimeout,
    debug,
  };
}

/**
 * Checks what the caller wants a domain to be, and makes it plain: objects in it are read
 * now, and not when the domain is created.
 *
 * @param options The caller's options.
 * @returns The same, without the caller's objects.
 */
export function plainSettings(options: RcuOptions): RcuOptions {
  const { detector, callbacks } = checkSettings(options);
  return {
    ...options,
    ...(options.detector === undefined
      ? {}
      : { detector: detectorOf(detector) }),
    ...(options.callbacks === undefined ? {} : { callbacks }),
  };
}

/**
 * What the threads of a domain have in common.
 *
 * @param words The domain's words.
 * @returns Its settings.
 */
export function readSettings(words: Int32Array): Settings {
  return {
    capacity: words.length * 4,
    maxReaders: words[HEADER_MAX_READERS],
    detector: words[HEADER_DETECTOR],
    callbacks: readPolicy(words),
    highWater: words[HEADER_HIGH_WATER],
    stallTimeout: words[HEADER_STALL_TIMEOUT],
    debug: (words[HEADER_DEBUG] & CHECKS) !== 0,
  };
}

/**
 * Checks what the calling thread wants for itself.
 *
 * @param options Its name, and whether it starts a reclaimer.
 */
export function checkThread(
  { name = "", reclaimer = "none" }: AttachOptions,
): void {
  if (typeof name !== "string") {
    throw new TypeError(
      `Cannot name a thread as its name must be a string: received ${
        show(name)
      }`,
    );
  }
  if (reclaimer !== "worker" && reclaimer !== "none") {
    throw new RangeError(
      `Cannot join a domain as reclaimer must be "worker" or "none": received ${
        show(reclaimer)
      }`,
    );
  }
}

/**
 * What of a domain is not as the caller asks for it. What the caller leaves open is always right.
 *
 * @param words The domain's words.
 * @param options The caller's options.
 * @returns Which option, and what the domain has; `undefined` if all is right.
 */
export function differenceFrom(
  words: Int32Array,
  options: RcuOptions,
): { option: keyof Settings; actual: unknown } | undefined {
  const wanted = checkSettings(options);
  const actual = readSettings(words);
  for (const option of Object.keys(wanted) as (keyof Settings)[]) {
    if (options[option] === undefined) continue;
    if (text(wanted[option]) === text(actual[option])) continue;
    const shown = option === "detector"
      ? detectorOf(actual.detector)
      : actual[option];
    return { option, actual: shown };
  }
  return undefined;
}

/** Settings are flat, and `checkSettings` and `readSettings` name their fields in the same order. */
function text(setting: Settings[keyof Settings]): string {
  return JSON.stringify(setting);
}

/** The option that stands for a detector's number. */
function detectorOf(kind: number): NonNullable<RcuOptions["detector"]> {
  if (kind === SCAN) return "scan";
  if (kind === CLASSIC) return "classic";
  return { type: "tree", fanout: kind };
}

function detectorKind(detector: RcuOptions["detector"]): number {
  if (detector === "scan") return SCAN;
  if (detector === "classic") return CLASSIC;
  if (detector === "tree") return DEFAULT_FANOUT;
  if (typeof detector === "object" && detector?.type === "tree") {
    checkNames(detector, { type: true, fanout: true }, "create a domain");
    const { fanout } = detector;
    checkInteger("detector.fanout", fanout, SMALLEST_FANOUT, LARGEST_FANOUT);
    return fanout;
  }
  throw new RangeError(
    `Cannot create a domain as detector must be "scan", "classic", "tree" or { type: "tree", fanout }: received ${
      show(detector)
    }`,
  );
}
