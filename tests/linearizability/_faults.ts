// Faults that a thread plants in its structures: what the search must notice.

import { RcuCell, RcuMap, RcuSortedMap } from "../../mod.ts";
import { CHANGES, TABLE, Table } from "../../src/structures/_table.ts";
import { TREE, Tree } from "../../src/structures/_tree.ts";

/** The names of the faults. */
export type Fault =
  | "forgets to void what threads remember"
  | "voids what threads remember too early"
  | "updates as get, then set"
  | "gets or inserts as get, then set"
  | "deletes as has, then delete"
  | "does not keep a section to one generation";

// deno-lint-ignore no-explicit-any -- methods of any structure
type Method = (this: any, ...of: any[]) => unknown;

/**
 * A sleep between two halves of what should be one, in ms: other threads get in between, even
 * where there is but one processor for all of them.
 */
const GAP = 0.05;
const idle = new Int32Array(new SharedArrayBuffer(4));

function dawdle(): void {
  Atomics.wait(idle, 0, 0, GAP);
}

/** Replaces a method; it can call what it replaces. */
function replace(
  kind: { prototype: object },
  name: string,
  make: (original: Method) => Method,
): void {
  const target = kind.prototype as Record<string, Method>;
  target[name] = make(target[name]);
}

const MAPS = [RcuMap, RcuSortedMap];

const FAULTS: Record<Fault, () => void> = {
  "forgets to void what threads remember": () => {
    replace(Table, "beginChange", () => () => {});
    replace(Table, "endChange", () => () => {});
  },
  "voids what threads remember too early": () => {
    replace(Table, "beginChange", (): Method =>
      function (hash: number) {
        Atomics.add(this.words, this.versionAt(hash), 2);
        Atomics.add(this.words, this.header + CHANGES, 1);
        dawdle();
      });
    replace(Table, "endChange", () => () => {});
  },
  "updates as get, then set": () => {
    for (const kind of MAPS) {
      replace(
        kind,
        "update",
        (): Method =>
          function (key: unknown, fn: (old: unknown) => unknown) {
            const next = fn(this.get(key));
            dawdle();
            this.set(key, next);
            return next;
          },
      );
    }
    replace(
      RcuCell,
      "update",
      (): Method =>
        function (fn: (old: unknown) => unknown) {
          const next = fn(this.get());
          dawdle();
          this.set(next);
          return next;
        },
    );
  },
  "gets or inserts as get, then set": () => {
    for (const kind of MAPS) {
      replace(
        kind,
        "getOrInsert",
        (): Method =>
          function (key: unknown, value: unknown) {
            const found = this.get(key);
            if (found !== undefined) return found;
            dawdle();
            this.set(key, value);
            return value;
          },
      );
    }
  },
  "deletes as has, then delete": () => {
    for (const kind of MAPS) {
      replace(kind, "delete", (original): Method =>
        function (key: unknown) {
          const had = this.has(key);
          dawdle();
          original.call(this, key);
          return had;
        });
    }
  },
  "does not keep a section to one generation": () => {
    replace(Table, "root", (): Method =>
      function () {
        if (this.membership.reader.depth > 0) dawdle();
        return this.words[this.header + TABLE];
      });
    replace(Tree, "tree", (): Method =>
      function () {
        if (this.membership.reader.depth > 0) dawdle();
        return this.words[this.header + TREE];
      });
  },
};

/**
 * Plants a fault in this thread, for as long as it lives.
 *
 * @param fault Which one.
 */
export function plant(fault: Fault): void {
  FAULTS[fault]();
}
