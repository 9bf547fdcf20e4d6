import * as rcuPackage from "../../mod.ts";
import { inWorker } from "./scenario.js";

let go;
self.onmessage = ({ data }) => {
  if (data === "go") {
    go();
    self.postMessage("done");
    self.close();
    return;
  }
  const worker = inWorker(rcuPackage, data);
  go = worker.go;
  self.postMessage(worker.answer);
};
