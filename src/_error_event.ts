// The event that carries an error.

/**
 * Makes an `"error"` event. Node.js has no `ErrorEvent`: there it is an `Event` with the same
 * fields.
 *
 * @param error What was thrown.
 * @param message Its message.
 * @returns The event; it can be cancelled.
 */
export function errorEvent(error: unknown, message: string): Event {
  if (typeof ErrorEvent === "function") {
    return new ErrorEvent("error", { error, message, cancelable: true });
  }
  const event = new Event("error", { cancelable: true });
  return Object.assign(event, { error, message });
}
