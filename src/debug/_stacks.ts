// Where something was done: stacks, kept as they are until somebody wants to read one.

import { textOf, trace } from "../sync/_trace.ts";

/** Where this package's own code is. */
const OWN = new URL("../", import.meta.url);
/** How frames may begin to say so: call sites, unlike stacks, have paths of local files. */
const OWN_PLACES = OWN.protocol === "file:"
  ? [OWN.href, decodeURI(OWN.pathname)]
  : [OWN.href];

/** Frames that are kept, this package's own among them. */
const FRAMES = 13;

/**
 * Takes down where the caller is. Cheap, as long as nobody reads the stack.
 *
 * @returns What knows it.
 */
export function capture(): Error {
  return trace(FRAMES);
}

/**
 * The frames of a stack, without this package's own at its top. This is what costs:
 * some 50 times as much as capturing.
 *
 * @param captured What {@linkcode capture} returned.
 * @returns One a line, the innermost first.
 */
export function framesOf(captured: Error): string {
  const frames = textOf(captured).split("\n").slice(1);
  const outer = frames.findIndex((frame) =>
    !OWN_PLACES.some((place) => frame.includes(place))
  );
  return frames.slice(Math.max(outer, 0)).join("\n");
}

/** Something that was done earlier. */
export interface Act {
  /** By whom: "this thread", or what others call it. */
  who: string;
  /** What it did to what this is about, in the past tense. */
  what: string;
  /** The frames of its stack, or `undefined` if they are not known any more. */
  frames: string | undefined;
}

/**
 * An error that says what was done before, and where.
 *
 * @param message What failed, what must hold, what came in.
 * @param acts What was done before, the first act first.
 * @returns The error; the acts are its causes, the last one first.
 */
export function blame(message: string, acts: readonly Act[]): Error {
  let text = message;
  let options: ErrorOptions = {};
  for (const { who, what, frames } of acts) {
    const where = frames === undefined ? "" : placeOf(frames);
    text += `; ${who} ${what}${where === "" ? "" : ` at ${where}`}`;
    const cause = new Error(`${who} ${what}`, options);
    cause.stack = `${cause.name}: ${who} ${what}${
      frames === undefined ? "; its stack was not kept" : ` here:\n${frames}`
    }`;
    options = { cause };
  }
  return new Error(text, options);
}

/** The innermost frame's place. */
function placeOf(frames: string): string {
  const [frame] = frames.split("\n");
  return /\(([^()]+)\)\s*$/.exec(frame)?.[1] ??
    frame.replace(/^\s*at (async )?/, "");
}
