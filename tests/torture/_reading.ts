// The ways in which readers read.

import { judge, PLACES, see, type Sight } from "./_element.ts";
import { count } from "./_tally.ts";
import { later } from "./_control.ts";
import { Thread } from "./_thread.ts";

/** Longest nap inside a section, in ms: several grace periods without it. */
const LONGEST_NAP = 3;
/** More sections than a turn has between two looks at the sequence. */
const MANY = 300;
/** A place that is a cell: reading it is a section of its own. */
const CELL = PLACES - 1;

/** A thread that reads. */
export class ReadingThread extends Thread {
  #order: string[] = [];

  /** Reads in the next way. */
  async step(): Promise<void> {
    const { control, random, tally } = this.kit;
    if (this.#order.length === 0) {
      this.#order = random.shuffled(Object.keys(READING));
    }
    const way = this.#order.pop()!;
    count(tally, way);
    await READING[way](this);
    control.stutter(this.rcu);
    if (random.oneIn(2)) await later();
  }

  /** A section that looks at an element, does something, and looks again. */
  look(between: () => void = () => this.work()): void {
    this.rcu.read(() => this.hold(between));
  }

  /** The same in a section that is open. */
  hold(between: () => void): void {
    const seen = this.see();
    between();
    this.check(seen);
  }

  /** Finds an element. */
  see(): Sight | undefined {
    const { rcu, places, kit } = this;
    count(kit.tally, "looks");
    return see(rcu.memory.words, places, kit.random.below(PLACES));
  }

  /** Looks again at what was found. */
  check(seen: Sight | undefined): void {
    const { control, tally } = this.kit;
    if (seen === undefined) return;
    if (!judge(this.rcu.memory.words, seen, tally)) control.fail();
  }

  /** Spends time: none, a little, or so much that grace periods would end. */
  work(): void {
    const { control, random } = this.kit;
    const kind = random.below(5);
    if (kind === 1) this.leaves();
    else if (kind === 2) {
      for (let i = random.below(5_000); i > 0; i--) Atomics.pause();
    } else if (kind > 2) control.nap(random.upTo(LONGEST_NAP));
  }

  /** More leaf reads than a turn has between two looks at the sequence. */
  leaves(): void {
    for (let i = 0; i < MANY; i++) this.places.find(CELL);
    this.traffic?.readText();
  }
}

type Way = (thread: ReadingThread) => void | Promise<void>;

/** Every way, by its name. */
export const READING: Record<string, Way> = {
  "read"(thread) {
    thread.look();
  },

  "read lock"(thread) {
    using _section = thread.rcu.readLock();
    thread.hold(() => thread.work());
  },

  /** What ends in the middle ends nothing. */
  "nested sections"(thread) {
    const { rcu } = thread;
    thread.look(() => {
      thread.look();
      {
        using _inner = rcu.readLock();
        thread.hold(() => thread.look(() => {}));
      }
      thread.work();
    });
  },

  /** More leaf reads than a turn's budget has, in one section. */
  "leaf reads in a section"(thread) {
    thread.look(() => {
      for (let part = 0; part < 3; part++) {
        thread.leaves();
        thread.work();
      }
    });
  },

  "leaf reads alone"(thread) {
    thread.leaves();
  },

  "long section"(thread) {
    const { control, random } = thread.kit;
    thread.look(() => {
      for (let i = random.below(4); i >= 0; i--) thread.look();
      control.nap(LONGEST_NAP);
    });
  },

  "many sections in a turn"(thread) {
    for (let i = 0; i < MANY; i++) thread.look(() => {});
    thread.look();
  },

  "polling loop"(thread) {
    const { rcu, kit: { random } } = thread;
    let cookie = rcu.startPoll();
    for (let i = random.below(30); i >= 0; i--) {
      thread.look(() => {});
      rcu.quiescentState();
      if (rcu.poll(cookie)) cookie = rcu.startPoll();
      if (random.oneIn(8)) thread.look();
    }
  },

  /** A period that begins inside a section must wait for it. */
  "polling inside a section"(thread) {
    const { rcu, kit: { control, random, tally } } = thread;
    thread.look(() => {
      const cookie = rcu.startPoll();
      for (let i = random.below(4); i >= 0; i--) {
        if (rcu.poll(cookie)) {
          tally.ended++;
          control.fail();
        }
        thread.work();
      }
    });
  },

  "offline while blocked"(thread) {
    const { rcu, kit: { control, random } } = thread;
    thread.look();
    rcu.threadOffline();
    control.nap(random.upTo(LONGEST_NAP));
    rcu.threadOnline();
    thread.look();
  },

  /** Nothing of what is deferred inside a section is done there. */
  "deferring inside a section"(thread) {
    const { rcu, kit: { closures, random } } = thread;
    thread.look(() => {
      for (let i = random.below(2); i >= 0; i--) {
        rcu.deferFree(rcu.memory.allocate(1 + random.below(8)));
        closures.addChain(rcu, 2);
      }
      thread.work();
    });
  },

  async "a turn each"(thread) {
    for (let i = thread.kit.random.below(3); i >= 0; i--) {
      thread.look();
      await undefined;
      thread.look();
      await later();
    }
  },

  "maps and cells"({ traffic }) {
    traffic?.read();
  },
};
