// The ways in which updaters send an element down the pipe once it is unlinked.

import type { Address, GracePeriodCookie, Rcu } from "../../mod.ts";
import { PATIENCE } from "../_workers.ts";
import { later } from "./_control.ts";
import { age, createElement, PLACES } from "./_element.ts";
import { count, PIPE } from "./_tally.ts";
import { type Kit, Thread } from "./_thread.ts";

/** Between two polls of a thread that blocks, in ms. */
const NAP = 0.05;
/** Updates for each callback that throws. */
const THROWS = 16;

/** A thread that publishes elements in places of its own. */
export class UpdatingThread extends Thread {
  /** Unlinked elements whose age is counted by waiting. */
  readonly pipe: Address[] = [];
  /** Waits that go on beside other updates. */
  readonly waits: Promise<void>[] = [];
  readonly #current: Map<number, Address>;
  readonly #step: number;
  #serial: number;
  #order: string[] = [];
  #ending = false;

  /**
   * @param rcu The membership.
   * @param kit What the thread has.
   * @param me Which of the updaters this is.
   * @param updaters How many there are.
   */
  constructor(rcu: Rcu, kit: Kit, me: number, updaters: number) {
    super(rcu, kit);
    this.#serial = me;
    this.#step = updaters;
    const own = Array.from({ length: PLACES }, (_, place) => place)
      .filter((place) => place % updaters === me);
    this.#current = new Map(own.map((place) => [place, 0]));
  }

  /** Replaces an element and disposes of the old one in the next way. */
  async step(): Promise<void> {
    const { rcu, kit } = this;
    const { closures, control, random, tally } = kit;
    if (this.#order.length === 0) {
      this.#order = random.shuffled(Object.keys(UPDATING));
    }
    const place = random.pick([...this.#current.keys()]);
    this.#serial = (this.#serial + this.#step) | 0;
    const old = this.#replace(place, createElement(rcu, this.#serial));
    if (old !== 0) {
      const way = this.#order.pop()!;
      count(tally, way);
      await UPDATING[way](this, old);
      count(tally, "updates");
      control.countUpdate();
    }
    if (random.oneIn(THROWS)) closures.addThrowing(rcu);
    control.stutter(rcu);
    if (random.oneIn(2)) await later();
  }

  /** Takes everything back. */
  async end(): Promise<void> {
    const { rcu, pipe, kit: { closures } } = this;
    this.#ending = true;
    for (const place of this.#current.keys()) {
      const old = this.#replace(place, 0);
      if (old !== 0) pipe.push(old);
    }
    await Promise.all(this.waits);
    await rcu.synchronize();
    for (const element of pipe) rcu.memory.free(element);
    await closures.finish(() => rcu.barrier());
  }

  #replace(place: number, element: Address): Address {
    const old = this.#current.get(place)!;
    this.places.publish(place, element);
    this.#current.set(place, element);
    if (old !== 0) this.#age(old);
    return old;
  }

  /** One more period; at the end of the pipe the element is freed. Returns whether it was. */
  #age(element: Address): boolean {
    const { memory } = this.rcu;
    if (age(memory.words, element) < PIPE) return false;
    memory.free(element);
    return true;
  }

  /** Puts an element in the pipe; what is there has lived through a period when the wait ends. */
  pass(old: Address, wait: () => void): void {
    this.pipe.push(old);
    wait();
    this.#ageAll();
  }

  /** The same for a wait that does not block. */
  async passLater(old: Address, wait: () => Promise<void>): Promise<void> {
    this.pipe.push(old);
    await wait();
    this.#ageAll();
  }

  #ageAll(): void {
    const left = this.pipe.filter((element) => !this.#age(element));
    this.pipe.splice(0, Infinity, ...left);
  }

  /** Sends an element down the pipe by callbacks, of which each queues the next. */
  passByCallbacks(element: Address): void {
    const { rcu, kit: { closures } } = this;
    closures.add(rcu, () => {
      if (this.#age(element)) return;
      if (this.#ending) rcu.memory.free(element);
      else this.passByCallbacks(element);
    });
  }

  /** Polls until a period has ended, blocking the thread in between. */
  pollSync(cookie: GracePeriodCookie): void {
    const deadline = performance.now() + PATIENCE / 2;
    while (!this.rcu.poll(cookie)) {
      if (performance.now() > deadline) {
        throw new Error(`Period ${cookie} never ended`);
      }
      this.kit.control.nap(NAP);
    }
  }

  /** Polls until a period has ended, in a turn each. */
  async poll(cookie: GracePeriodCookie): Promise<void> {
    const deadline = performance.now() + PATIENCE / 2;
    while (!this.rcu.poll(cookie)) {
      if (performance.now() > deadline) {
        throw new Error(`Period ${cookie} never ended`);
      }
      await later();
    }
  }

  /** A callback of which a barrier says that it has run. Returns whether that is so. */
  mark(): () => boolean {
    let ran = false;
    this.kit.closures.add(this.rcu, () => {
      ran = true;
    });
    return () => ran;
  }

  /** Notes what a barrier has left. */
  assertRan(ran: () => boolean): void {
    if (!ran()) throw new Error("A callback had not run when a barrier ended");
  }
}

type Way = (thread: UpdatingThread, old: Address) => void | Promise<void>;

/** Every way, by its name. */
export const UPDATING: Record<string, Way> = {
  "synchronize": (thread, old) =>
    thread.passLater(old, () => thread.rcu.synchronize()),

  "synchronize expedited": (thread, old) =>
    thread.passLater(old, () => thread.rcu.synchronize({ expedited: true })),

  "synchronizeSync": (thread, old) =>
    thread.pass(old, () => thread.rcu.synchronizeSync()),

  "synchronizeSync expedited": (thread, old) =>
    thread.pass(old, () => thread.rcu.synchronizeSync({ expedited: true })),

  "poll": (thread, old) =>
    thread.passLater(old, () => thread.poll(thread.rcu.startPoll())),

  "poll blocking": (thread, old) =>
    thread.pass(old, () => thread.pollSync(thread.rcu.startPoll())),

  "callRcu": (thread, old) => thread.passByCallbacks(old),

  "deferFree": ({ rcu }, old) => rcu.deferFree(old),

  /** The wait goes on while others begin and end. */
  "synchronize beside": ({ rcu, waits }, old) => {
    waits.push(rcu.synchronize().then(() => rcu.memory.free(old)));
  },

  "barrier": (thread, old) => {
    const ran = thread.mark();
    // What was enqueued before has had its period.
    return thread.passLater(old, async () => {
      using _barrier = thread.kit.control.beginBarrier();
      await thread.rcu.barrier();
      thread.assertRan(ran);
    });
  },

  "barrierSync": (thread, old) => {
    const ran = thread.mark();
    thread.pass(old, () => {
      using _barrier = thread.kit.control.beginBarrier();
      thread.rcu.barrierSync();
      thread.assertRan(ran);
    });
  },
};
