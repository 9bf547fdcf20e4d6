// Read sections that may await.

import {
  checkSignal,
  type OptionNames,
  takeOptions,
  uncloneable,
} from "../_arguments.ts";
import type {
  StalledReader,
  StallReport,
} from "../grace_periods/stall_report.ts";
import { turn } from "../grace_periods/_grace_periods.ts";
import { type Membership, nameReaders } from "../_membership.ts";
import type { Address } from "../memory/arena.ts";
import { membershipOf, type Rcu } from "../rcu.ts";
import { hideFields } from "../structures/_hide.ts";
import { openRoot } from "../structures/_open.ts";
import { SrcuPeriods, srcuWords } from "./_periods.ts";

/** Longest pause between two looks of a wait, in ms. */
const LONGEST_PAUSE = 10;

/**
 * How to wait for sections that may await.
 *
 * @example Not for ever
 * ```ts
 * import { Rcu, Srcu, type SrcuSynchronizeOptions } from "@grace/rcu";
 * import { assertRejects } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const srcu = Srcu.open(rcu, "sessions");
 * using _section = srcu.read();
 * const options: SrcuSynchronizeOptions = { signal: AbortSignal.timeout(10) };
 * await assertRejects(() => srcu.synchronize(options));
 * ```
 */
export interface SrcuSynchronizeOptions {
  /** Ends the wait early. */
  signal?: AbortSignal;
}

/**
 * A section that may span awaits. Disposing of it a second time does nothing.
 *
 * @example Ending it
 * ```ts
 * import { Rcu, Srcu, type SrcuSection } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const section: SrcuSection = Srcu.open(rcu, "sessions").read();
 * await section[Symbol.asyncDispose]();
 * assertEquals(section.open, false);
 * ```
 */
export interface SrcuSection extends AsyncDisposable, Disposable {
  /** Whether it is still open. */
  readonly open: boolean;
}

const SYNCHRONIZE_OPTIONS: OptionNames<SrcuSynchronizeOptions> = {
  signal: true,
};
const UNCLONEABLE = uncloneable(
  "an Srcu, which other threads open by its name",
);

/**
 * Read sections that may await, for structures of one's own whose readers hold
 * a reference across I/O: what such a section finds stays until it ends,
 * however many turns of the event loop that takes.
 *
 * Each name is a domain of its own: waiting for the sections of one does not
 * wait for those of another, nor for `rcu.read`. A section costs two atomic
 * additions; nobody waits to begin one. Sleepable RCU after Paul McKenney, 2006.
 *
 * It protects what its users free after {@linkcode Srcu.synchronize}. `RcuMap`
 * and the other structures of this package do not know of it: they free after
 * a grace period of their `Rcu`.
 *
 * @example A block that is in use during an await
 * ```ts
 * import { Rcu, Srcu } from "@grace/rcu";
 * import { assertEquals } from "@std/assert";
 *
 * using rcu = Rcu.create();
 * const { memory } = rcu;
 * const srcu = Srcu.open(rcu, "sessions");
 * const current = memory.allocate(4);
 * const first = memory.allocate(4);
 * memory.words[first] = 1;
 * rcu.assignPointer(current, first);
 *
 * async function use(): Promise<number> {
 *   await using _section = srcu.read();
 *   const session = rcu.read(() => rcu.dereference(current));
 *   await new Promise((resolve) => setTimeout(resolve));
 *   return memory.words[session];
 * }
 *
 * const used = use();
 * rcu.assignPointer(current, 0);
 * await srcu.synchronize();
 * memory.free(first);
 * assertEquals(await used, 1);
 * ```
 */
export class Srcu {
  declare private readonly _uncloneable: symbol;
  readonly #membership: Membership;
  readonly #periods: SrcuPeriods;
  #readBefore = false;

  static {
    hideFields(this, () => "Srcu");
  }

  private constructor(membership: Membership, base: Address) {
    this._uncloneable = UNCLONEABLE;
    const { index, readers, words } = membership;
    this.#membership = membership;
    this.#periods = new SrcuPeriods(words, base, readers, index);
  }

  /**
   * Finds the domain of sections of a name, or creates it.
   *
   * @param rcu The calling thread's membership.
   * @param name Its name, any string.
   * @returns The calling thread's view of it.
   * @throws {TypeError} If the name is taken by another structure, or an argument is of the wrong type.
   * @throws {RcuMemoryError} If it does not fit: it takes 64 bytes for each of `maxReaders`.
   *
   * @example Two threads' views
   * ```ts
   * import { Rcu, Srcu } from "@grace/rcu";
   *
   * using rcu = Rcu.create();
   * using other = Rcu.attach(rcu.handle);
   * const mine = Srcu.open(rcu, "sessions");
   * {
   *   await using _section = Srcu.open(other, "sessions").read();
   * }
   * await mine.synchronize();
   * ```
   */
  static open(rcu: Rcu, name: string): Srcu {
    const membership = membershipOf(rcu, "open an Srcu");
    const { heap, readers, words } = membership;
    const size = srcuWords(readers.size);
    const base = openRoot(membership, name, "srcu", () => {
      const made = membership.allocate(size);
      words.fill(0, made, made + size);
      return made;
    }, (made) => heap.free(made));
    return new Srcu(membership, base);
  }

  /**
   * Begins a section. It lasts until it is disposed of, in this thread, or
   * the membership ends.
   *
   * @returns The section. It has begun when this returns: `await srcu.read()` is the same.
   * @throws {Error} If the membership is closed.
   *
   * @example Across an await
   * ```ts
   * import { Rcu, Srcu } from "@grace/rcu";
   * import { assertEquals } from "@std/assert";
   *
   * using rcu = Rcu.create();
   * const srcu = Srcu.open(rcu, "sessions");
   * {
   *   await using section = await srcu.read();
   *   await new Promise((resolve) => setTimeout(resolve));
   *   assertEquals(section.open, true);
   * }
   * ```
   */
  read(): SrcuSection {
    const membership = this.#membership;
    membership.assertOpen("begin a section");
    if (!this.#readBefore) {
      this.#readBefore = true;
      membership.onClose(() => this.#periods.exitAll());
    }
    return new Section(membership, this.#periods, this.#periods.enter());
  }

  /**
   * Waits until every section of this domain that is open now, in any
   * thread, has ended. Keeps the process alive until then. Not to be awaited in a
   * section of the same domain, which would wait for itself.
   *
   * After `stallTimeout`, and again after twice, four times that and so on, a `"stall"` event of the
   * `Rcu` names the threads that have such sections.
   *
   * @param options A signal to give up.
   * @returns A promise that resolves then.
   * @throws {RcuStallError} If the signal is aborted first; its report names the
   * threads with sections in the way, its cause is the signal's reason.
   * @throws {Error} If the membership is closed, be it meanwhile.
   *
   * @example Who holds it up
   * ```ts
   * import { Rcu, RcuStallError, Srcu } from "@grace/rcu";
   * import { assertEquals, assertRejects } from "@std/assert";
   *
   * using rcu = Rcu.create({ name: "main" });
   * const srcu = Srcu.open(rcu, "sessions");
   * await using _section = srcu.read();
   * const { report } = await assertRejects(
   *   () => srcu.synchronize({ signal: AbortSignal.timeout(10) }),
   *   RcuStallError,
   * );
   * assertEquals(report.readers.map(({ name }) => name), ["main"]);
   * ```
   */
  async synchronize(options: SrcuSynchronizeOptions = {}): Promise<void> {
    const act = "wait for sections that may await";
    const { signal } = takeOptions(options, SYNCHRONIZE_OPTIONS, act);
    checkSignal(signal, act);
    const membership = this.#membership;
    membership.assertOpen(act);
    const begin = performance.now();
    const look = (): StallReport => {
      const age = performance.now() - begin;
      const pending = membership.pendingOfAll();
      return { age, readers: this.#blocking(age), pending };
    };
    const give = () => {
      const report = look();
      membership.throwAborted(act, signal!, report, describe(report));
    };
    let due = membership.stallTimeout;
    if (signal?.aborted) give();
    const target = this.#periods.start();
    const ended = await membership.whileOpen(signal, async (over) => {
      for (let pause = 0; !this.#periods.poll(target);) {
        if (over.aborted) return false;
        if (performance.now() - begin >= due) {
          const report = look();
          while (due <= report.age) due = 2 * due + membership.stallTimeout;
          if (report.readers.length > 0) {
            membership.reportStall(report, stallOf(report));
          }
        }
        await turn(pause, over);
        pause = Math.min(pause + 1, LONGEST_PAUSE);
      }
      return true;
    });
    if (!ended) {
      membership.assertOpen(act);
      give();
    }
    // Debug mode asks for a grace period of the Rcu before what was published is freed: it does
    // not know which sections its readers have.
    if (membership.debug) await membership.synchronize(false, signal);
  }

  #blocking(age: number): StalledReader[] {
    const found: StalledReader[] = [];
    this.#periods.blocking((id, behind) => {
      found.push({ id, name: this.#membership.nameOf(id), age, behind });
    });
    return found;
  }
}

function describe({ readers }: StallReport): string {
  return readers.length === 0
    ? "no section is in the way now"
    : `${nameReaders(readers)} has not left a section that began before`;
}

/** What is printed about a stall that nobody listens for. */
function stallOf(report: StallReport): string {
  return `A wait for sections that may await has not ended for ${
    Math.round(report.age)
  } ms: ${describe(report)}`;
}

class Section implements SrcuSection {
  readonly #membership: Membership;
  #periods: SrcuPeriods | undefined;
  readonly #counter: Address;

  constructor(membership: Membership, periods: SrcuPeriods, counter: Address) {
    this.#membership = membership;
    this.#periods = periods;
    this.#counter = counter;
  }

  get open(): boolean {
    return this.#periods !== undefined && !this.#membership.closed;
  }

  [Symbol.dispose](): void {
    // After the end of the membership its counters may be another thread's.
    if (this.open) this.#periods!.exit(this.#counter);
    this.#periods = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]();
    return Promise.resolve();
  }
}
