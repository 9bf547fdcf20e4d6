// The smoke test in Node.js, which takes the types out of the package by itself.

import {
  isMainThread,
  parentPort,
  Worker,
  workerData,
} from "node:worker_threads";
import * as rcuPackage from "../../mod.ts";
import { inMain, inWorker } from "./scenario.js";

if (isMainThread) {
  const seen = await inMain(rcuPackage, async (handle) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: handle });
    const next = () =>
      new Promise((resolve, reject) => {
        worker.once("message", resolve);
        worker.once("error", reject);
      });
    const answer = await next();
    const done = next();
    return { answer, done, begin: () => worker.postMessage("go") };
  });
  console.log(JSON.stringify(seen));
} else {
  const { answer, go } = inWorker(rcuPackage, workerData);
  parentPort.once("message", () => {
    go();
    parentPort.postMessage("done");
  });
  parentPort.postMessage(answer);
}
