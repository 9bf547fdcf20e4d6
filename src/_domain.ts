// Creating a domain's buffer, and checking one that another thread created.

import { type OptionNames, takeOptions } from "./_arguments.ts";
import {
  CHECKS,
  HEADER_DEBUG,
  HEADER_DETECTOR,
  HEADER_HIGH_WATER,
  HEADER_ID,
  HEADER_MAGIC,
  HEADER_MAX_READERS,
  HEADER_STALL_TIMEOUT,
  HEADER_VERSION,
  HEADER_WORDS_LOW,
  layout,
  LAYOUT_VERSION,
  MAGIC,
} from "./_layout.ts";
import { Sequence } from "./grace_periods/_sequence.ts";
import { show } from "./memory/_codec.ts";
import { PAGE_WORDS } from "./memory/_size_classes.ts";
import type { AttachOptions, RcuHandle, RcuOptions } from "./options.ts";
import { readPolicy, writePolicy } from "./_policy.ts";
import { checkSettings, checkThread, SMALLEST_CAPACITY } from "./_settings.ts";

/** The options that a domain is created with. */
export const CREATE_OPTIONS: OptionNames<RcuOptions> = {
  capacity: true,
  maxReaders: true,
  detector: true,
  callbacks: true,
  highWater: true,
  stallTimeout: true,
  debug: true,
  name: true,
  reclaimer: true,
};
const ATTACH_OPTIONS: OptionNames<AttachOptions> = {
  name: true,
  reclaimer: true,
};

/** A domain's buffer, and what the calling thread wants to be called. */
export interface OpenedDomain {
  handle: RcuHandle;
  words: Int32Array;
  name: string;
  /** Whether the calling thread starts a worker that reclaims. */
  startsReclaimer: boolean;
}

/**
 * Lays a fresh domain out.
 *
 * @param passed The caller's options.
 * @returns Its handle and words.
 */
export function createDomain(passed: RcuOptions): OpenedDomain {
  const options = takeOptions(passed, CREATE_OPTIONS, "create a domain");
  const settings = checkSettings(options);
  checkThread(options);
  const { capacity, maxReaders, detector, callbacks, debug } = settings;
  const length = capacity / 4;
  const places = layout(length, maxReaders, detector, debug);
  if (places.endPage - places.firstPage < places.endPage / 2) {
    throw new RangeError(
      `Cannot create a domain as ${maxReaders} readers must leave half of the capacity free: received ${
        options.capacity ?? capacity
      } bytes`,
    );
  }
  const buffer = new SharedArrayBuffer(length * 4);
  const words = new Int32Array(buffer);
  const id = crypto.randomUUID();
  words[HEADER_WORDS_LOW] = length | 0;
  words[HEADER_MAX_READERS] = maxReaders;
  words[HEADER_HIGH_WATER] = settings.highWater;
  words[HEADER_STALL_TIMEOUT] = settings.stallTimeout;
  words[HEADER_DEBUG] = debug ? CHECKS : 0;
  words[HEADER_DETECTOR] = detector;
  words.set(idWords(id), HEADER_ID);
  writePolicy(words, callbacks);
  new Sequence(words, places.sequence).initialize();
  words[HEADER_VERSION] = LAYOUT_VERSION;
  words[HEADER_MAGIC] = MAGIC;
  return {
    handle: { kind: "rcu", version: LAYOUT_VERSION, buffer, id },
    words,
    name: options.name ?? "",
    startsReclaimer: callbacks.mode === "offloaded" &&
      options.reclaimer !== "none",
  };
}

/**
 * Checks a handle before anything is done with its memory.
 *
 * @param handle What the caller got from another thread.
 * @param passed The caller's options.
 * @returns The domain's words.
 */
export function openDomain(
  handle: RcuHandle,
  passed: AttachOptions,
): OpenedDomain {
  const options = takeOptions(passed, ATTACH_OPTIONS, "attach");
  const { name = "", reclaimer = "none" } = options;
  checkThread(options);
  const refuse = (must: string, received: unknown): never => {
    throw new TypeError(
      `Cannot attach as the handle must ${must}: received ${received}`,
    );
  };
  if (typeof handle !== "object" || handle === null) {
    return refuse("be the handle of an Rcu", show(handle));
  }
  const { kind, version, buffer, id } = handle;
  if (isRcu(handle)) {
    refuse("be what `handle` of an Rcu is", "an Rcu itself");
  }
  if (kind !== "rcu") {
    refuse(
      "be what `handle` of an Rcu is",
      `one of kind ${show(kind)}`,
    );
  }
  if (version !== LAYOUT_VERSION) {
    refuse(`have layout version ${LAYOUT_VERSION}`, show(version));
  }
  if (!(buffer instanceof SharedArrayBuffer)) {
    return refuse("hold a SharedArrayBuffer", typeof buffer);
  }
  if (
    buffer.growable || buffer.byteLength < SMALLEST_CAPACITY / 2 ||
    buffer.byteLength % (PAGE_WORDS * 4) !== 0
  ) {
    return refuse("hold a domain's whole buffer", `${buffer.byteLength} bytes`);
  }
  const words = new Int32Array(buffer);
  if (
    words[HEADER_MAGIC] !== MAGIC ||
    words[HEADER_WORDS_LOW] !== (words.length | 0)
  ) {
    refuse("hold a buffer that Rcu.create() laid out", "a foreign one");
  }
  if (words[HEADER_VERSION] !== LAYOUT_VERSION) {
    refuse(`have layout version ${LAYOUT_VERSION}`, words[HEADER_VERSION]);
  }
  if (
    typeof id !== "string" ||
    !/^[\da-f]{8}(-[\da-f]{4}){4}[\da-f]{8}$/.test(id) ||
    !idWords(id).every((word, i) => words[HEADER_ID + i] === word)
  ) {
    refuse("bear the id of its buffer", show(id));
  }
  const startsReclaimer = reclaimer === "worker" &&
    readPolicy(words).mode === "offloaded";
  return {
    handle: { kind, version, buffer, id },
    words,
    name,
    startsReclaimer,
  };
}

function idWords(id: string): number[] {
  const digits = id.replaceAll("-", "").padEnd(32, "0");
  return [0, 8, 16, 24].map((at) =>
    Number.parseInt(digits.slice(at, at + 8), 16) | 0
  );
}

/** Whether somebody has passed an `Rcu` in place of its handle. */
function isRcu(value: object): boolean {
  return "handle" in value && "readerId" in value;
}
