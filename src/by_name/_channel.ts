// Opening a BroadcastChannel that works.

/** How often a channel is opened anew that turns out to be deaf. */
const TRIES = 5;

/** A turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/**
 * Opens a channel, and sees to it that it sends and receives.
 *
 * In Deno 2.9.6 all channels of a thread share one subscription, which ends some turns after the
 * last of them was closed. A channel that is opened meanwhile goes down with it, without a word: it
 * receives nothing any more, and throws when it is to send. So look again when that has happened.
 *
 * @param name The channel's name.
 * @returns The channel.
 */
export async function openChannel(name: string): Promise<BroadcastChannel> {
  for (let tries = 1;; tries++) {
    const channel = new BroadcastChannel(name);
    await turn();
    await turn();
    try {
      channel.postMessage({});
      return channel;
    } catch (error) {
      channel.close();
      if (tries === TRIES) throw error;
    }
  }
}
