// Anything for any argument: it works, or is refused by an error that says what must hold, and nothing is lost.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import * as mod from "../mod.ts";
import { membershipOf } from "../src/rcu.ts";
import { assertAddsUp, assertLists } from "./_audit.ts";
import {
  ENTRY_POINTS,
  type EntryPoint,
  EXCEPTIONS,
  World,
} from "./_entry_points.ts";
import {
  anySpoiling,
  everySpoiling,
  MINE,
  spoil,
  type Spoiling,
} from "./_garbage.ts";

const RUNS = 8;

const { RcuMemoryError, RcuStallError } = mod;
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

/** Whether a function is written with parameters, whatever their defaults. */
function takesArguments(value: unknown): boolean {
  return typeof value === "function" && !/^[^(]*\(\)/.test(String(value));
}

/** An object's own methods that take arguments. */
function methodsOf(object: object, prefix: string): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(object))
    .filter(([name, { value }]) =>
      name !== "constructor" && takesArguments(value)
    ).map(([name]) => `${prefix}.${name}`);
}

/** What a caller can pass arguments to, of what the package exports. */
function publicEntryPoints({ rcu }: World): string[] {
  return Object.entries(mod).flatMap(([name, value]) => {
    // Codecs are values: what takes them is listed.
    if (typeof value !== "function") return [];
    if (!/^class\b/.test(String(value))) {
      return takesArguments(value) ? [name] : [];
    }
    const { prototype } = value;
    const statics = methodsOf(value, name);
    // Whoever has no `open` is made by the caller, or by the package.
    const made = Object.hasOwn(value, "open") || value === mod.Rcu
      ? []
      : [`new ${name}`];
    return value === mod.Rcu
      ? [
        ...statics,
        ...methodsOf(prototype, "rcu"),
        ...methodsOf(rcu.memory, "rcu.memory"),
      ]
      : [...made, ...statics, ...methodsOf(prototype, name)];
  });
}

Deno.test("every public entry point that takes arguments is tried, or there is a reason why not", () => {
  using world = new World(false);
  const there = publicEntryPoints(world);
  const tried = ENTRY_POINTS.map(({ name }) => name.replace(/ \(.*\)$/, ""));
  const known = [...new Set(tried), ...Object.keys(EXCEPTIONS)];
  assertEquals(known.toSorted(), there.toSorted());
});
