// The smoke test in a page of a browser.

import * as rcuPackage from "../../mod.ts";
import { inMain } from "./scenario.js";

async function attempt() {
  if (!crossOriginIsolated) return ["the page is not cross-origin isolated"];
  try {
    return await inMain(rcuPackage, async (handle) => {
      const worker = new Worker(new URL("./page_worker.js", import.meta.url), {
        type: "module",
      });
      const next = () =>
        new Promise((resolve, reject) => {
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
        });
      const ready = next();
      worker.postMessage(handle);
      const answer = await ready;
      const done = next();
      return { answer, done, begin: () => worker.postMessage("go") };
    });
  } catch (error) {
    return [`${error}\n${error.stack}`];
  }
}

await fetch("/result", {
  method: "POST",
  body: JSON.stringify(await attempt()),
});
