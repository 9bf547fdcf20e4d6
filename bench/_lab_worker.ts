/// <reference lib="deno.worker" />
/** Runs an exported function of a module that it is told by message. */
import { type Introduction, useStarter } from "./_spawn.ts";
import type { Answer, Job } from "./_workers.ts";

self.onmessage = async ({ data }: MessageEvent<Introduction | Job>) => {
  if ("starter" in data) return useStarter(data);
  self.postMessage(await answer(data));
};

async function answer(job: Job): Promise<Answer> {
  try {
    const module = await import(job.module);
    return { result: await module[job.name](job.args, job.control) };
  } catch (error) {
    return { error };
  }
}
