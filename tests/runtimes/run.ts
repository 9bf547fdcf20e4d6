/** `deno task runtimes`: the smoke test in each runtime that is there or that npm has. */
import {
  findChromium,
  nodeVersion,
  runInChromium,
  runInNode,
} from "./_runtimes.ts";
import { EXPECTED } from "./scenario.js";

const NODES = [["node"], ["npx", "-y", "node@22"], ["npx", "-y", "node@24"]];

let failed = 0;
let ran = 0;

async function attempt(
  name: string,
  run: (() => Promise<string[]>) | undefined,
): Promise<void> {
  if (run === undefined) {
    console.log(`${name}: not there`);
    return;
  }
  ran++;
  const seen = await run();
  const right = seen.every((line, i) => line === EXPECTED[i]) &&
    seen.length >= EXPECTED.length - 1;
  if (!right) failed++;
  console.log(
    `${name}: ${right ? "all is well" : `FAILED: ${seen.join("; ")}`}`,
  );
}

for (const command of NODES) {
  const version = await nodeVersion(command);
  await attempt(
    `Node.js ${version ?? command.join(" ")}`,
    version === undefined ? undefined : () => runInNode(command),
  );
}
const chromium = await findChromium();
await attempt(
  "Chromium",
  chromium === undefined ? undefined : () => runInChromium(chromium),
);
Deno.exit(failed === 0 && ran > 0 ? 0 : 1);
