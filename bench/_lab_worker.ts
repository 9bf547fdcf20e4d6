/// <reference lib="deno.worker" />
/** Runs an exported function of a module that it is told by message. */
import type { Answer, Job } from "./_workers.ts";

self.onmessage = async ({ data }: MessageEvent<Job>) => {
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
