// Acts with hardly any room on the stack.

/** Levels from the end of the stack up to which an act may need room. */
const MOST_LEVELS = 2000;

/**
 * Does something at the very end of the stack, and again at each level above, until it fits.
 *
 * @param act What to do.
 * @param pad Words by which all levels lie lower.
 * @returns How often the stack overflowed.
 */
export function atEveryDepth(act: () => void, pad: number): number {
  let overflows = 0;
  let done = false;
  let failure: unknown;
  const deepest = (): void => {
    try {
      deepest();
    } catch {
      // The end of the stack.
    }
    if (done || overflows > MOST_LEVELS) return;
    try {
      act();
      done = true;
    } catch (error) {
      overflows++;
      if (error instanceof RangeError) return;
      // Not thrown here, where the level above would take it for the end of the stack.
      failure = error;
      done = true;
    }
  };
  // As many registers as it has arguments to pass.
  const start = new Function(
    "deepest",
    `if (false) deepest(${Array(pad).fill(0)}); deepest();`,
  );
  start(deepest);
  if (failure !== undefined) throw failure;
  if (!done) throw new Error(`no room even ${MOST_LEVELS} levels further up`);
  return overflows;
}
