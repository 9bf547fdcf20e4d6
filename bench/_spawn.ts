/**
 * Starting threads. A worker that another worker starts needs a second to begin
 * (Deno 2.9.6: half a second until its module is there, half a second more until
 * its first message is), one that the main thread starts 50 ms. So threads of
 * the report have the main thread, which only waits, start theirs.
 */

/** What the starter of a thread needs of a worker. */
export interface Started {
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  postMessage(message: unknown): void;
  terminate(): void;
}

/** What the main thread is asked for, with the port for all that follows. */
interface Wanted {
  module: string;
  port: MessagePort;
}

/** To the thread that was started, through the main thread. */
type Told = { message: unknown } | { terminate: true };

/** From it. */
type Heard = { message: unknown } | { failed: string };

/** The first message of a thread that can have others started. */
export interface Introduction {
  starter: MessagePort;
}

let starter: MessagePort | undefined;

/**
 * Has all further threads of this one started by the main thread.
 *
 * @param introduction What {@linkcode introduce} made.
 */
export function useStarter(introduction: Introduction): void {
  starter = introduction.starter;
}

/**
 * Starts a thread.
 *
 * @param module Its module.
 * @returns The thread, as if it were a worker of this one.
 */
export function spawn(module: string): Started {
  if (starter === undefined) return new Worker(module, { type: "module" });
  const { port1, port2 } = new MessageChannel();
  starter.postMessage({ module, port: port2 } satisfies Wanted, [port2]);
  const tell = (told: Told) => port1.postMessage(told);
  const started: Started = {
    onmessage: null,
    onerror: null,
    postMessage: (message) => tell({ message }),
    terminate() {
      tell({ terminate: true });
      port1.close();
    },
  };
  port1.onmessage = ({ data }: MessageEvent<Heard>) => {
    if ("failed" in data) {
      const message = data.failed;
      started.onerror?.(new ErrorEvent("error", { message, cancelable: true }));
    } else {
      started.onmessage?.(new MessageEvent("message", { data: data.message }));
    }
  };
  return started;
}

/**
 * The main thread's side: starts what a worker wants to have started.
 *
 * @param worker A worker of the main thread, whose first message this is.
 * @returns Stops it.
 */
export function introduce(worker: Worker): Disposable {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }: MessageEvent<Wanted>) => start(data);
  worker.postMessage({ starter: port2 } satisfies Introduction, [port2]);
  return { [Symbol.dispose]: () => port1.close() };
}

function start({ module, port }: Wanted): void {
  const worker = new Worker(module, { type: "module" });
  const introduction = introduce(worker);
  const tell = (heard: Heard) => port.postMessage(heard);
  worker.onmessage = ({ data }) => tell({ message: data });
  worker.onerror = (event) => {
    event.preventDefault();
    tell({ failed: event.message });
  };
  port.onmessage = ({ data }: MessageEvent<Told>) => {
    if ("message" in data) return worker.postMessage(data.message);
    worker.terminate();
    introduction[Symbol.dispose]();
    port.close();
  };
}
