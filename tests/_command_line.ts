// The command line of a command that takes one number.

/**
 * Reads the command line of a command that takes nothing but a number, or `--help`.
 *
 * @param args The arguments.
 * @param what What the number is, such as "ROUNDS".
 * @param otherwise The number where none is given.
 * @returns The number, or "help".
 * @throws {RangeError} If it is something else; says what.
 */
export function readCount(
  args: readonly string[],
  what: string,
  otherwise: number,
): number | "help" {
  if (args.some((arg) => arg === "--help" || arg === "-h")) return "help";
  if (args.length === 0) return otherwise;
  const count = /^\d+$/.test(args[0]) ? Number(args[0]) : NaN;
  if (args.length === 1 && count > 0 && Number.isSafeInteger(count)) {
    return count;
  }
  throw new RangeError(
    `Cannot run as ${what} must be one positive integer: received ${
      args.join(" ") || "nothing"
    }`,
  );
}

/**
 * Runs a command unless its command line asks for its usage, or makes no sense.
 *
 * @param usage What `--help` prints.
 * @param read Reads the command line; throws a `RangeError` that says what is wrong.
 * @param run The command; returns its exit code.
 */
export async function runCommand<T>(
  usage: string,
  read: () => T | "help",
  run: (asked: T) => Promise<number>,
): Promise<void> {
  let asked: T | "help";
  try {
    asked = read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    Deno.exitCode = 2;
    return;
  }
  if (asked === "help") console.log(usage);
  else Deno.exitCode = await run(asked);
}
