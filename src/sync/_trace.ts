// Stack traces, whatever the program has made of `Error`.

/**
 * Takes down where the caller is. Cheap, as long as nobody reads it.
 *
 * @param frames How many frames at most; where the program has frozen `Error`, as many as it allows.
 * @returns What {@linkcode textOf} reads.
 */
export function trace(frames: number): Error {
  const limit = Error.stackTraceLimit;
  // No plain store, which throws where `Error` is frozen.
  const isSet = Reflect.set(Error, "stackTraceLimit", frames);
  const captured = new Error();
  if (isSet) Reflect.set(Error, "stackTraceLimit", limit);
  return captured;
}

/**
 * Reads a stack trace. A program's own `Error.prepareStackTrace` is asked, which may return
 * anything: the call sites, mostly, which are written down as an engine does.
 *
 * @param captured What {@linkcode trace} returned.
 * @returns A line for the error and one for each frame; empty where nobody says.
 */
export function textOf(captured: Error): string {
  try {
    const stack: unknown = captured.stack;
    if (Array.isArray(stack)) {
      return ["Error", ...stack.map((site) => `    at ${site}`)].join("\n");
    }
    return typeof stack === "string" ? stack : "";
  } catch {
    return "";
  }
}
