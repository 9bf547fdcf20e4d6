// Telling the end of a turn from microtasks that run in the middle of one.

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
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Infinity;
  const { stack } = new Error();
  Error.stackTraceLimit = limit;
  // The message, this function, and the microtask that called it.
  const frames = (stack ?? "").split("\n").slice(3);
  return frames.some((frame) => frame !== "" && !RUNTIME_FRAME.test(frame));
}
