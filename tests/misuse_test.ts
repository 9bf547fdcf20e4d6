// Anything for any argument: it works, or is refused by an error that says what must hold, and nothing is lost.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { RcuMemoryError, RcuStallError } from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import { ENTRY_POINTS, type EntryPoint, World } from "./_entry_points.ts";
import {
  anySpoiling,
  everySpoiling,
  MINE,
  spoil,
  type Spoiling,
} from "./_garbage.ts";

const RUNS = 8;

const DOCUMENTED = [TypeError, RangeError, RcuMemoryError, RcuStallError];

/** Documented not to look at what it gets: the engine may complain. */
const UNCHECKED = ["RouteCache.lookupFields"];

/** An error of this package says what could not be done, as what must hold, and what came in. */
const SAYS = /^Cannot [^]+ (must|can)\b[^]+: received [^]+$/;
/** Where it is not about one argument: names and values may be too large, a wait may be given up. */
const SAYS_WHY =
  /^Cannot (allocate [^]+ must fit|[^]+ the signal was aborted|open [^]+: it was opened as|open [^]+ what it was opened with first)/;

function assertDocumented(
  entryPoint: EntryPoint,
  error: unknown,
  { hostile }: Spoiling,
): void {
  if (error === MINE) return;
  assert(error instanceof Error, String(error));
  // An engine's own error about an object that refuses to be looked at.
  const { name } = entryPoint;
  const engines = hostile !== undefined || UNCHECKED.includes(name);
  if (engines && error instanceof TypeError) return;
  assert(DOCUMENTED.some((type) => error instanceof type), error.stack);
  assert(SAYS.test(error.message) || SAYS_WHY.test(error.message), error.stack);
}

/** Calls with spoilt arguments; returns whether they were refused. */
async function isRefused(
  world: World,
  entryPoint: EntryPoint,
  spoiling: Spoiling,
  before: unknown,
): Promise<boolean> {
  const { args, call } = entryPoint;
  let refused = false;
  try {
    await call(world, ...spoil(args(world), spoiling));
  } catch (error) {
    assertDocumented(entryPoint, error, spoiling);
    refused = true;
  }
  const { depth } = membershipOf(world.rcu, "check").reader;
  assertEquals(depth, 0, "a section is open");
  if (refused) assertEquals(world.content(), before);
  return refused;
}

/** The same, and looks at everything afterwards. */
async function check(
  world: World,
  entryPoint: EntryPoint,
  spoiling: Spoiling,
): Promise<void> {
  const { rcu } = world;
  world.use();
  const { live } = rcu.memory.audit();
  const refused = await isRefused(
    world,
    entryPoint,
    spoiling,
    world.content(),
  );
  world.use();
  const { callbacks, memory, readers } = rcu.stats();
  assertEquals([callbacks.pending, readers.length], [0, 1]);
  if (refused) assertEquals(memory.live, live, "bytes are lost");
  assertAddsUp(memory);
  assertLists(rcu.memory.words);
}

for (const entryPoint of ENTRY_POINTS) {
  const { name, args } = entryPoint;
  Deno.test(`${name} takes anything for each argument or says what must hold`, async () => {
    using world = new World(false);
    let content = world.content();
    for (const spoiling of everySpoiling(args(world).length)) {
      if (await isRefused(world, entryPoint, spoiling, content)) continue;
      content = world.content();
    }
    world.use();
  });

  for (const debug of [false, true]) {
    Deno.test(
      `${name} loses nothing, whatever is wrong in its arguments, ${
        debug ? "with" : "without"
      } debug`,
      async () => {
        using world = new World(debug);
        const property = fc.asyncProperty(
          anySpoiling,
          (spoiling) => check(world, entryPoint, spoiling),
        );
        await fc.assert(property, { numRuns: debug ? RUNS / 2 : RUNS });
      },
    );
  }
}
