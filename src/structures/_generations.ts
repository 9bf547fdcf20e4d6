// A bounded per-thread cache: two maps, the older one dropped when the younger one is full.

/** Entries of one generation: what a thread keeps privately stays bounded. */
const LIMIT = 2 ** 16;

/**
 * A cache of at most two generations of {@linkcode LIMIT} entries. What is
 * used stays: a hit in the older generation moves to the younger one.
 */
export class Generations<K, E> {
  #young = new Map<K, E>();
  #old = new Map<K, E>();

  /**
   * Looks an entry up.
   *
   * @param key Its key.
   * @returns The entry, or `undefined`.
   */
  get(key: K): E | undefined {
    return this.#young.get(key) ?? this.#promote(key);
  }

  /**
   * Keeps an entry.
   *
   * @param key Its key.
   * @param entry The entry.
   */
  set(key: K, entry: E): void {
    if (this.#young.size >= LIMIT) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, entry);
  }

  #promote(key: K): E | undefined {
    if (this.#old.size === 0) return undefined;
    const entry = this.#old.get(key);
    if (entry !== undefined) this.set(key, entry);
    return entry;
  }
}
