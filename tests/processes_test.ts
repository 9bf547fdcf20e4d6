// The package in processes of its own, imported from a URL, with as few permissions as the README says.

import { assertEquals } from "@std/assert";
import { type Ended, runDeno, withPackage } from "./_processes.ts";

/** Runs a program of those that are served, which may import from there and do nothing else. */
function run(
  programs: Record<string, string>,
  flags: (host: string) => string[] = (host) => [`--allow-import=${host}`],
): Promise<Ended> {
  return withPackage(programs, (url) =>
    runDeno(
      ["run", "--no-config", "--no-lock", "--no-check", "--no-prompt"]
        .concat(flags(new URL(url).host), `${url}/main.ts`),
      { cwd: "/" },
    ));
}

/** What a program printed, if it ended well. */
function printed({ code, stdout, stderr }: Ended): string[] {
  assertEquals({ code, stderr: stderr.replaceAll(/^Download.*\n/gm, "") }, {
    code: 0,
    stderr: "",
  });
  return stdout.trim().split("\n");
}

Deno.test("imported from a URL, threads share a map, and a reclaimer frees what they replace", async () => {
  const ended = await run({
    "main.ts": `
      import { Rcu, RcuMap, string } from "./mod.ts";
      using rcu = Rcu.create({
        capacity: 2 ** 22,
        callbacks: { mode: "offloaded" },
      });
      rcu.addEventListener("error", ({ message }) => console.log(message));
      const map = RcuMap.open(rcu, "m", { key: string, value: string });
      const worker = new Worker(new URL("./worker.ts", import.meta.url), {
        type: "module",
      });
      const told = () => new Promise((resolve) => worker.onmessage = resolve);
      map.set("a", "1");
      worker.postMessage(rcu.handle);
      console.log((await told()).data);
      for (let i = 0; i < 5_000; i++) map.set("a", String(i));
      // Two workers are in the domain with this thread: its own and the package's.
      while (rcu.stats().readers.length < 3) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await rcu.barrier();
      console.log(rcu.stats().callbacks.pending, rcu.stats().memory.deferred);
      worker.postMessage("again");
      console.log((await told()).data);
      worker.terminate();
    `,
    "worker.ts": `
      import { Rcu, RcuMap, string } from "./mod.ts";
      let map;
      self.onmessage = ({ data }) => {
        if (data !== "again") {
          const rcu = Rcu.attach(data);
          map = RcuMap.open(rcu, "m", { key: string, value: string });
        }
        self.postMessage(map.get("a"));
      };
    `,
  });
  assertEquals(printed(ended), ["1", "0 0", "4999"]);
});

Deno.test("imported from a URL, threads find each other by name", async () => {
  const ended = await run({
    "main.ts": `
      import { Rcu, RcuCell, string } from "./mod.ts";
      const rcu = await Rcu.connect("app", { capacity: 2 ** 22 });
      const cell = RcuCell.open(rcu, "c", { value: string, initial: "-" });
      const worker = new Worker(new URL("./worker.ts", import.meta.url), {
        type: "module",
      });
      console.log(await cell.waitForChange({ since: 0, keepAlive: true }));
      worker.terminate();
      rcu.close();
    `,
    "worker.ts": `
      import { Rcu, RcuCell, string } from "./mod.ts";
      const rcu = await Rcu.connect("app");
      RcuCell.open(rcu, "c", { value: string }).set("hello");
      rcu.close();
    `,
  });
  assertEquals(printed(ended), ["hello"]);
});

Deno.test("without any permission a program in one thread works, and ends although it has closed nothing", async () => {
  const ended = await run(
    {
      "main.ts": `
        import { Rcu, RcuMap, u32 } from "./mod.ts";
        const rcu = await Rcu.connect("left open", { capacity: 2 ** 22 });
        const map = RcuMap.open(rcu, "m", { key: u32, value: u32 });
        map.set(1, 10);
        console.log(map.get(1), (await Rcu.connect("left open")).readerId);
      `,
    },
    // The entry point and what it imports need no permission to be loaded.
    () => [],
  );
  assertEquals(printed(ended), ["10 1"]);
});
