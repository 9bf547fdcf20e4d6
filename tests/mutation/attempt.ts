/** What StrykerJS runs for each mutant: fails if a test does, or does not come to an end. */
import { argumentsFor, PLANS } from "./_plan.ts";

/** Runs groups of tests until one fails; each within its limit, in ms. */
async function passes(
  folder: string,
  limits: number[],
  options: string[],
): Promise<boolean> {
  for (const [i, group] of PLANS[folder].entries()) {
    const tests = new Deno.Command(Deno.execPath(), {
      args: argumentsFor(group, options),
      stdout: "null",
      stderr: "null",
    }).spawn();
    const timer = setTimeout(() => tests.kill("SIGKILL"), limits[i]);
    const { success } = await tests.status;
    clearTimeout(timer);
    if (!success) return false;
  }
  return true;
}

const [folder, limits, ...options] = Deno.args;
const passed = await passes(folder, limits.split(",").map(Number), options);
Deno.exitCode = passed ? 0 : 1;
