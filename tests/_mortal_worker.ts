// A thread that dies on the spot, in the middle of whatever it does.

/** What it is asked to do. */
export interface MortalTask {
  handle: { buffer: SharedArrayBuffer };
  /** The name of a task. */
  task: string;
  /** Before which of its atomic accesses it dies; -1: it does not. */
  at: number;
  /** Word 0 becomes 1 when it begins, 2 when it has come to the end alive, and 3 just before its death; word 1 is the task's. */
  state: Int32Array;
}

const ACCESSES = [
  "add",
  "compareExchange",
  "exchange",
  "load",
  "notify",
  "store",
  "sub",
] as const;
const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<MortalTask>) => void;
  close(): void;
};

let left = -1;
let die = () => {};
const { store } = Atomics;
// Before the package is loaded.
for (const name of ACCESSES) {
  // deno-lint-ignore no-explicit-any
  const original = Atomics[name] as (...access: any[]) => unknown;
  Object.assign(Atomics, {
    // deno-lint-ignore no-explicit-any
    [name]: (...access: any[]) => {
      if (left >= 0 && left-- === 0) die();
      return original(...access);
    },
  });
}

scope.onmessage = async ({ data: { handle, task, at, state } }) => {
  const { tasks } = await import("./_mortal_tasks.ts");
  die = () => {
    store(state, 0, 3);
    Atomics.notify(state, 0);
    scope.close();
    // Where that does not stop it on the spot.
    while (true);
  };
  // deno-lint-ignore no-explicit-any
  const act = tasks[task](handle as any, state);
  store(state, 0, 1);
  Atomics.notify(state, 0);
  left = at;
  const result = act();
  left = -1;
  if (result instanceof Promise) await result;
  store(state, 0, 2);
  Atomics.notify(state, 0);
};
