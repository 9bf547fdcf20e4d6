// The package in other runtimes, where they are installed; `deno task runtimes` fetches some.

import { assertEquals } from "@std/assert";
import {
  findChromium,
  nodeVersion,
  runInChromium,
  runInNode,
} from "./runtimes/_runtimes.ts";
import { EXPECTED } from "./runtimes/scenario.js";

const node = await nodeVersion(["node"]);
const chromium = await findChromium();

Deno.test({
  name: "the package runs in Node.js as it is",
  ignore: node === undefined,
  async fn() {
    const seen = await runInNode(["node"]);
    // Without Web Locks there is no connecting by name.
    assertEquals(seen, EXPECTED.slice(0, seen.length));
    assertEquals(seen.length >= EXPECTED.length - 1, true);
  },
});

Deno.test({
  name: "the package runs in a cross-origin isolated page of Chromium",
  ignore: chromium === undefined,
  async fn() {
    assertEquals(await runInChromium(chromium!), EXPECTED);
  },
});
