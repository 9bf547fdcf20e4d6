// Fields that are for the engine's eyes only.

/**
 * Keeps a class's fields, which lead to all of shared memory, out of what
 * the console and `JSON.stringify` show.
 *
 * @param type The class.
 * @param show What the console shows of an instance.
 */
export function hideFields<T extends object>(
  type: { prototype: T },
  show: (instance: T) => string,
): void {
  Object.defineProperties(type.prototype, {
    [Symbol.for("Deno.customInspect")]: {
      value(this: T): string {
        return show(this);
      },
    },
    // As of a Map.
    toJSON: { value: () => ({}) },
  });
}
