// The command lines of the commands that look for longer than the tests do.

import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { readCount } from "./_command_line.ts";
import { PLANS, targetsOf } from "./mutation/_plan.ts";
import { runDeno } from "./_processes.ts";

Deno.test("a command that takes a number takes one, none or --help, and names anything else", () => {
  assertEquals(readCount([], "ROUNDS", 7), 7);
  assertEquals(readCount(["12"], "ROUNDS", 7), 12);
  assertEquals(readCount(["--help"], "ROUNDS", 7), "help");
  assertEquals(readCount(["x", "-h"], "ROUNDS", 7), "help");
  for (const args of [["x"], ["0"], ["-1"], ["1.5"], ["1", "2"], ["1e3"]]) {
    assertThrows(
      () => readCount(args, "ROUNDS", 7),
      RangeError,
      `Cannot run as ROUNDS must be one positive integer: received ${
        args.join(" ")
      }`,
    );
  }
  assertThrows(
    () => readCount([""], "ROUNDS", 7),
    RangeError,
    "received nothing",
  );
});

Deno.test("mutants are of folders, of files and of lines", () => {
  assertEquals([...targetsOf([]).keys()], Object.keys(PLANS));
  const file = "src/sync/_mutex.ts";
  const lines = `${file}:2-3`;
  assertEquals(
    [...targetsOf(["readers", file, lines])],
    [["readers", ["src/readers/**/*.ts"]], ["sync", [file, lines]]],
  );
});

Deno.test("what is no folder, file or lines that can be mutated is named", () => {
  const wrong = [
    "nosuch",
    "toString",
    "src/nosuch.ts",
    "src/sync/nosuch.ts",
    "src/routing/fib.ts",
    "src/sync/_mutex.ts:9",
    "--bogus",
  ];
  for (const arg of wrong) {
    assertThrows(
      () => targetsOf(["sync", arg]),
      RangeError,
      `or lines of that: received ${arg}`,
    );
  }
  for (const lines of ["9-1", "0-1", "1-99999"]) {
    assertThrows(
      () => targetsOf([`src/sync/_mutex.ts:${lines}`]),
      RangeError,
      `of src/sync/_mutex.ts, the first one first: received ${lines}`,
    );
  }
});

for (
  const [task, bad] of [
    ["litmus", "x"],
    ["linearizability", "x"],
    ["mutation", "nosuch"],
  ]
) {
  const start = (arg: string) =>
    runDeno(
      ["run", "-q", "--no-check", "--allow-read=."]
        .concat(
          "--import-map=tests/_std/offline.json",
          `tests/${task}/run.ts`,
          arg,
        ),
    );

  Deno.test(`${task} prints its usage when asked to, and when it cannot run`, async () => {
    const asked = await start("--help");
    assertEquals([asked.code, asked.stderr], [0, ""]);
    assertMatch(asked.stdout, /exit code is 0, [^]* 2 if/);
    const refused = await start(bad);
    assertEquals([refused.code, refused.stdout], [2, ""]);
    assertMatch(refused.stderr, /^Cannot run as .* must be .*: received /);
    assertEquals(refused.stderr.endsWith(asked.stdout), true);
  });
}
