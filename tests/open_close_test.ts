import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Rcu } from "../mod.ts";
import { PathCache, somePaths } from "../bench/_open_close_cache.ts";
import {
  faultWords,
  plantFault,
  timesForced,
} from "../bench/_open_close_fault.ts";
import { OpenFiles } from "../bench/_open_close_files.ts";
import { Lab, type Variant } from "../bench/_open_close_lab.ts";
import { AT_ONCE, PAIRS, STEPS } from "../bench/_open_close_worker.ts";
import { withDomain } from "./_audit.ts";

/** Runs a scenario with a path cache; no reference is left and the cache can be destroyed. */
async function withCache(
  paths: string[],
  use: (rcu: Rcu, cache: PathCache) => void,
  debug = true,
): Promise<void> {
  await withDomain({ debug }, (rcu) => {
    const cache = new PathCache(rcu, PathCache.create(rcu), 2);
    for (const path of paths) cache.insert(path);
    use(rcu, cache);
    assertEquals(cache.count().references, 0);
    cache.destroy();
  });
}

/** Whether there is such a path; holds no reference afterwards. */
function has(cache: PathCache, path: string): boolean {
  cache.parse(path, 0);
  const dentry = cache.walk(0);
  if (dentry === 0) return false;
  cache.putParents(0);
  cache.put(dentry);
  return true;
}

Deno.test("A path cache finds the paths that were inserted and the directories on the way", async () => {
  const paths = somePaths();
  await withCache(paths, (_rcu, cache) => {
    for (const path of paths) assert(has(cache, path), path);
    for (const path of ["/", "/usr", "/usr/lib/x3", "/usr/lib/x3/plugins"]) {
      assert(has(cache, path), path);
    }
    const others = [
      "/lib",
      "/usr/x3",
      "/usr/lib/x3/y1.s",
      "/opt/lib/x3/y1.so/x",
    ];
    for (const path of others) assert(!has(cache, path), path);
  });
});

Deno.test("A path cache agrees with a set of all prefixes, whatever the names", async () => {
  // Few characters, so that names are prefixes of each other, and lengths around whole words.
  const name = fc.string({
    unit: fc.constantFrom("a", "b"),
    minLength: 1,
    maxLength: 32,
  });
  const path = fc.array(name, { minLength: 1, maxLength: 6 })
    .map((names) => `/${names.join("/")}`);
  const some = fc.array(path, { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(some, some, async (inserted, others) => {
      const known = new Set(inserted.flatMap((path) => {
        const names = path.split("/");
        return names.map((_, i) => names.slice(0, i + 1).join("/"));
      }));
      await withCache(inserted, (_rcu, cache) => {
        assertEquals(cache.count().dentries, Math.max(known.size, 1));
        for (const path of [...inserted, ...others]) {
          assertEquals(has(cache, path), known.has(path), path);
        }
      });
    }),
    { numRuns: 25 },
  );
});

Deno.test("A path cache refuses paths that are too deep and names that are too long", async () => {
  await withCache([], (_rcu, cache) => {
    assertThrows(() => cache.insert("/1/2/3/4/5/6/7"), RangeError, "6 names");
    assertThrows(() => cache.insert(`/${"n".repeat(33)}`), RangeError, "32");
    assertEquals(cache.count().dentries, 1);
  });
});

Deno.test("A walk holds a reference to every dentry on the way until each is given back", async () => {
  await withCache(["/usr/lib/x.so"], (_rcu, cache) => {
    cache.parse("/usr/lib/x.so", 0);
    cache.parse("/usr/lib", 1);
    const file = cache.walk(0);
    const directory = cache.walk(1);
    assertEquals(cache.count(), { dentries: 4, references: 7 });
    cache.putParents(0);
    assertEquals(cache.count().references, 4);
    cache.put(file);
    cache.putParents(1);
    cache.put(directory);
  });
});

Deno.test("open() takes the lowest free descriptor, and -1 says that there is no such path", async () => {
  await withCache(["/a/b"], (rcu, cache) => {
    const files = new OpenFiles(rcu, cache);
    assertEquals([0, 1, 2].map(() => files.open("/a/b")), [0, 1, 2]);
    files.close(1);
    files.close(0);
    assertEquals(files.open("/a/c"), -1);
    assertEquals(files.open("/a"), 0);
    assertEquals(files.open("/a"), 1);
    for (const fd of [-1, 3, 128]) {
      assertThrows(() => files.close(fd), RangeError, "must be open");
    }
    assertEquals(cache.count().references, 3);
    for (const fd of [0, 1, 2]) files.close(fd);
    files.destroy();
  });
});

Deno.test("The memory of a closed file waits for the sections that were open", async () => {
  // With debug, what is published cannot be freed at once.
  const debug = false;
  await withCache(["/a"], (rcu, cache) => {
    const files = new OpenFiles(rcu, cache);
    using other = Rcu.attach(rcu.handle);
    const section = other.readLock();
    const { live, deferred } = rcu.memory.audit();
    files.close(files.open("/a"));
    const closed = rcu.memory.audit();
    assertEquals(closed.live, live);
    assert(closed.deferred > deferred);
    section[Symbol.dispose]();
    other.threadOffline();
    rcu.barrierSync();
    assertEquals(rcu.memory.audit().deferred, 0);
    files.closeAtOnce(files.open("/a"));
    const freed = rcu.memory.audit();
    assertEquals([freed.live, freed.deferred], [live, 0]);
    files.destroy();
  }, debug);
});

const CALLS = 300;
const MARK = 10;

/** Defers many frees while a section is open; returns how often a period was forced. */
async function overload(planted: boolean): Promise<number> {
  let forced = 0;
  await withDomain({ highWater: MARK }, (rcu) => {
    const place = faultWords(rcu);
    using other = Rcu.attach(rcu.handle);
    using _section = other.readLock();
    using _fault = planted ? plantFault(rcu, place, MARK) : null;
    for (let i = 0; i < CALLS; i++) rcu.deferFree(rcu.memory.allocate(4));
    const { gracePeriods } = rcu.stats();
    forced = gracePeriods.forced + timesForced(rcu, place);
    rcu.deferFree(place);
  });
  return forced;
}

Deno.test("The fault of 2009 forces a period at every call past the mark", async () => {
  // The first of them finds none in progress and begins one.
  assertEquals(await overload(true), CALLS - MARK - 1);
});

Deno.test("Without the fault a period is forced at one look in 64 calls at most", async () => {
  const forced = await overload(false);
  assert(forced > 0 && forced <= CALLS / 64, `forced ${forced} times`);
});

for (const fault of [false, true]) {
  Deno.test(
    `Workers ${
      fault ? "with the fault" : "that open and close"
    } leave nothing behind`,
    async () => {
      const variant: Variant = {
        name: "scan",
        detector: "scan",
        highWater: 100,
        fault,
      };
      // It asserts itself what is left after each run, and that the workers have ended.
      await using lab = await Lab.start(variant, 3);
      for (const task of [PAIRS, AT_ONCE, STEPS] as const) {
        for (const workers of [1, 3]) {
          const run = await lab.run(task, workers, 5, true);
          assert(run.operations > 0);
          assertEquals(run.steps.every((ns) => ns >= 0), task === STEPS);
          if (task === AT_ONCE) assertEquals(run.looks, 0);
        }
      }
      await lab.close();
    },
  );
}
