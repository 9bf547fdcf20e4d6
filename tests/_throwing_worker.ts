// A worker that reads, and ends by an exception in the same turn.

import { Rcu, RcuCell, type RcuHandle, u32 } from "../mod.ts";

interface Scope {
  onmessage: (event: MessageEvent<RcuHandle>) => void;
}

(self as unknown as Scope).onmessage = ({ data }) => {
  const rcu = Rcu.attach(data, { name: "thrower" });
  RcuCell.open(rcu, "cell", { value: u32 }).get();
  throw new Error("as planned");
};
