// How a domain's callback policy lies in its header.

import type { CallbackPolicy } from "./callbacks/policy.ts";
import { checkBoolean, checkInteger, checkNames } from "./_arguments.ts";
import {
  HEADER_POLICY,
  HEADER_POLICY_FIRST,
  HEADER_POLICY_SECOND,
} from "./_layout.ts";
import { show } from "./memory/_codec.ts";

const IMMEDIATE = 0;
const THROTTLED = 1;
const OFFLOADED = 2;

const THROTTLED_NAMES = {
  mode: true,
  maxBatch: true,
  plugTicks: true,
} as const;
const OFFLOADED_NAMES = { mode: true, delay: true, realTime: true } as const;

/** What an error about the names of a policy's options says was to be done. */
const ACT = "create a domain with such callbacks";

const LARGEST_BATCH = 2 ** 30;
const LONGEST_PAUSE = 60_000;

type ThrottledPolicy = Extract<CallbackPolicy, { mode: "throttled" }>;
type OffloadedPolicy = Extract<CallbackPolicy, { mode: "offloaded" }>;

/** Callback policy, with every default filled in. */
export type FullPolicy = Required<CallbackPolicy>;

/**
 * Checks a policy and fills its defaults in.
 *
 * @param policy What the caller passed.
 * @returns A policy with all its fields.
 */
export function checkPolicy(policy: CallbackPolicy): FullPolicy {
  if (typeof policy !== "object" || policy === null) {
    throw new TypeError(
      `Cannot create a domain as callbacks must be an object with a mode: received ${
        show(policy)
      }`,
    );
  }
  const { mode } = policy;
  switch (mode) {
    case "immediate":
      checkNames(policy, { mode: true }, ACT);
      return { mode: "immediate" };
    case "throttled": {
      checkNames(policy, THROTTLED_NAMES, ACT);
      const { maxBatch = 16, plugTicks = 0 } = policy as ThrottledPolicy;
      checkInteger("callbacks.maxBatch", maxBatch, 1, LARGEST_BATCH);
      checkInteger("callbacks.plugTicks", plugTicks, 0, LONGEST_PAUSE);
      return { mode: "throttled", maxBatch, plugTicks };
    }
    case "offloaded": {
      checkNames(policy, OFFLOADED_NAMES, ACT);
      const { delay = 0, realTime = false } = policy as OffloadedPolicy;
      checkInteger("callbacks.delay", delay, 0, LONGEST_PAUSE);
      checkBoolean("callbacks.realTime", realTime, "create a domain");
      return { mode: "offloaded", delay, realTime };
    }
    default:
      throw new RangeError(
        `Cannot create a domain as callbacks.mode must be "immediate", "throttled" or "offloaded": received ${
          show(mode)
        }`,
      );
  }
}

/**
 * Writes a fresh domain's policy.
 *
 * @param words The domain's words.
 * @param policy The policy.
 */
export function writePolicy(words: Int32Array, policy: FullPolicy): void {
  switch (policy.mode) {
    case "immediate":
      words[HEADER_POLICY] = IMMEDIATE;
      break;
    case "throttled":
      words[HEADER_POLICY] = THROTTLED;
      words[HEADER_POLICY_FIRST] = policy.maxBatch;
      words[HEADER_POLICY_SECOND] = policy.plugTicks;
      break;
    case "offloaded":
      words[HEADER_POLICY] = OFFLOADED;
      words[HEADER_POLICY_FIRST] = policy.delay;
      words[HEADER_POLICY_SECOND] = policy.realTime ? 1 : 0;
  }
}

/**
 * Reads a domain's policy.
 *
 * @param words The domain's words.
 * @returns The policy.
 */
export function readPolicy(words: Int32Array): FullPolicy {
  const first = words[HEADER_POLICY_FIRST];
  const second = words[HEADER_POLICY_SECOND];
  switch (words[HEADER_POLICY]) {
    case THROTTLED:
      return { mode: "throttled", maxBatch: first, plugTicks: second };
    case OFFLOADED:
      return { mode: "offloaded", delay: first, realTime: second !== 0 };
    default:
      return { mode: "immediate" };
  }
}
