// Telling the end of a turn from microtasks that run in the middle of one.

import { textOf, trace } from "../sync/_trace.ts";

/** A stack frame of the runtime's own, or one that only an await leads back to. */
const RUNTIME_FRAME =
  /^\s*at async |\b(ext|node|deno):|native code|<anonymous>\)?$/;

/**
 * Whether a microtask runs while synchronous code is still on the stack. Deno
 * runs pending microtasks when a global such as `setTimeout` is loaded at its
 * first use, even inside a read section: that section is not held across an
 * `await`. The stack is the only thing that tells the two apart; where the
 * engine does not show one, the answer is no.
 *
 * @returns Whether code outside the runtime and this package's microtask is on the stack.
 */
export function isInsideSynchronousCode(): boolean {
  // The message, `trace`, this function, and the microtask that called it.
  const frames = textOf(trace(Infinity)).split("\n").slice(4);
  return frames.some((frame) => frame !== "" && !RUNTIME_FRAME.test(frame));
}
