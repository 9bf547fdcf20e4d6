/// <reference lib="deno.worker" />
/** Runs the experiment that it is told by message, and says how far it is. */
import type { Request, Said } from "./_run.ts";
import { type Introduction, useStarter } from "./_spawn.ts";

self.onmessage = async ({ data }: MessageEvent<Introduction | Request>) => {
  if ("starter" in data) return useStarter(data);
  self.postMessage(await run(data));
};

async function run({ name, quick }: Request): Promise<Said> {
  try {
    // Not before the handler is there: whoever waits for a module at the top
    // level meanwhile, as that one does, has messages arrive that nobody gets.
    const { EXPERIMENTS } = await import("./_experiments.ts");
    const experiment = EXPERIMENTS.find((one) => one.name === name);
    if (experiment === undefined) throw new Error(`No experiment ${name}`);
    const findings = await experiment.run({
      quick,
      onStep: (doing) => self.postMessage({ doing } satisfies Said),
    });
    return { findings };
  } catch (error) {
    return { error: Deno.inspect(error) };
  }
}
