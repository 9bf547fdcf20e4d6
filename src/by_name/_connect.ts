// Finding a domain by its name, or creating it: one at a time.

import {
  checkSignal,
  type OptionNames,
  refuseNumber,
  takeOptions,
} from "../_arguments.ts";
import {
  CREATE_OPTIONS,
  createDomain,
  openDomain,
  type OpenedDomain,
} from "../_domain.ts";
import { show } from "../memory/_codec.ts";
import type { ConnectOptions, RcuHandle, RcuOptions } from "../options.ts";
import { checkThread, differenceFrom, plainSettings } from "../_settings.ts";
import { type WebLocks, webLocks } from "../sync/_web_locks.ts";
import { openChannel } from "./_channel.ts";
import {
  type Answer,
  bePresent,
  nodeThreads,
  type Place,
  type Presence,
  type Question,
} from "./_presence.ts";

const CONNECT_OPTIONS: OptionNames<ConnectOptions> = {
  ...CREATE_OPTIONS,
  signal: true,
  timeout: true,
};

/** How long an answer is waited for before it is asked again, in ms. */
const PATIENCE = 200;
/** How long connecting may take unless the caller says otherwise, in ms. */
const TIMEOUT = 10_000;

/** What a thread needs to be a member by name. */
export interface Member {
  close(): void;
}

/**
 * Becomes a member of the domain of a name.
 *
 * There is at most one domain of a name among the living. 1. Whoever looks for
 * it, creates it or becomes present holds the name's one exclusive lock. 2. It creates
 * one only if it has seen, since it got the lock, that nobody is present (invariant 1
 * of {@linkcode bePresent}); nobody can become present meanwhile, by (1). 3. It gives the lock back when it is
 * present itself, or has given up its own membership. 4. If whoever is present leaves or dies
 * while it is being asked, the next look says so; if it has answered before, the answer is good,
 * for the memory lives on in it, and nobody else can have created another one, by (1).
 *
 * @typeParam M What a membership is to the caller.
 * @param name The name.
 * @param options The caller's options.
 * @param join Makes a membership.
 * @returns The membership, and what ends the presence.
 */
export async function connect<M extends Member>(
  name: string,
  options: ConnectOptions,
  join: (opened: OpenedDomain) => M,
): Promise<{ member: M; presence: Presence }> {
  const act = "connect";
  const { signal, timeout = TIMEOUT, ...taken } = takeOptions(
    options,
    CONNECT_OPTIONS,
    act,
  );
  checkName(name);
  checkSignal(signal, act);
  checkTimeout(timeout);
  const rest = plainSettings(taken);
  checkThread(rest);
  const locks = webLocks();
  if (locks === undefined || nodeThreads() === undefined) {
    throw new Error(
      "Cannot connect by name as the runtime must have Web Locks, and a BroadcastChannel that carries shared memory, as Deno and Node.js 24 do; pass the handle and use Rcu.attach",
    );
  }
  signal?.throwIfAborted();
  const place = placeOf(name);
  const timer = new AbortController();
  const late = setTimeout(() => timer.abort(tooLate(name, timeout)), timeout);
  const either = signal === undefined
    ? timer.signal
    : AbortSignal.any([signal, timer.signal]);
  try {
    return await locks.request(
      `${place}, who looks for it`,
      { signal: either },
      () => find(locks, name, place, rest, join, either),
    );
  } finally {
    clearTimeout(late);
  }
}

async function find<M extends Member>(
  locks: WebLocks,
  name: string,
  place: Place,
  options: RcuOptions,
  join: (opened: OpenedDomain) => M,
  signal: AbortSignal,
): Promise<{ member: M; presence: Presence }> {
  const handle = await ask(locks, place, signal);
  signal.throwIfAborted();
  const opened = handle === undefined
    ? createDomain(options)
    : openFound(name, handle, options);
  const member = join(opened);
  let presence: Presence | undefined;
  try {
    presence = await bePresent(place, opened.handle);
    await unlessAborted(presence.there, signal);
    return { member, presence };
  } catch (error) {
    member.close();
    presence?.end();
    throw error;
  }
}

/** Asks those that are there; nothing if nobody is. */
async function ask(
  locks: WebLocks,
  place: Place,
  signal: AbortSignal,
): Promise<RcuHandle | undefined> {
  // Whoever is there holds it shared. Not by `query`, which in Node.js knows of one thread alone.
  const isThere = () =>
    locks.request(
      place,
      { ifAvailable: true },
      (lock) => lock === null,
    );
  if (!await isThere()) return undefined;
  const { promise: answered, resolve } = Promise.withResolvers<RcuHandle>();
  const question: Question = { from: crypto.randomUUID() };
  const channel = await openChannel(place);
  channel.onmessage = ({ data }: MessageEvent<Partial<Answer> | null>) => {
    if (data?.to === question.from) resolve(data.handle as RcuHandle);
  };
  try {
    while (await isThere()) {
      channel.postMessage(question);
      const handle = await withinPatience(answered, signal);
      if (handle) return handle;
    }
    return undefined;
  } finally {
    channel.close();
  }
}

async function withinPatience<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, PATIENCE);
  try {
    return await unlessAborted(Promise.race([promise, over]), signal);
  } finally {
    clearTimeout(timer);
  }
}

async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    if (signal.aborted) abort();
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Opens a domain that others have, if it is what the caller asks for. */
function openFound(
  name: string,
  handle: RcuHandle,
  options: RcuOptions,
): OpenedDomain {
  const { name: thread = "", reclaimer = "worker" } = options;
  const opened = openDomain(handle, { name: thread, reclaimer });
  const difference = differenceFrom(opened.words, options);
  if (difference === undefined) return opened;
  const { option, actual } = difference;
  throw new RangeError(
    `Cannot connect to ${
      show(name)
    } as ${option} must be what the domain has, ${
      JSON.stringify(actual)
    }, or be left out: received ${JSON.stringify(options[option])}`,
  );
}

/** Lone surrogates, which would become one and the same character, are escaped. */
function placeOf(name: string): Place {
  return `@grace/rcu ${JSON.stringify(name)}`;
}

function checkName(name: unknown): void {
  if (typeof name === "string") return;
  throw new TypeError(
    `Cannot connect as the domain's name must be a string: received ${
      show(name)
    }`,
  );
}

function checkTimeout(timeout: unknown): void {
  if (
    Number.isInteger(timeout) && (timeout as number) >= 1 &&
    (timeout as number) < 2 ** 31
  ) return;
  refuseNumber(
    "Cannot connect as timeout must be an integer from 1 to 2147483647",
    timeout,
  );
}

function tooLate(name: string, timeout: number): DOMException {
  return new DOMException(
    `Cannot connect to ${
      show(name)
    } within ${timeout} ms as a thread that is there must answer: none did, all being busy or blocked, or another thread was still looking`,
    "TimeoutError",
  );
}
