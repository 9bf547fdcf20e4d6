// A worker of `node:worker_threads` that joins a domain and ends in a section.

import { workerData } from "node:worker_threads";
import process from "node:process";
import { Rcu } from "../mod.ts";

Rcu.attach(workerData, { name: "node worker" }).readLock();
process.exit();
