// Scenarios: what is deferred changes hands, sleepers are woken, and barriers.

import { Rcu, RcuCell, u32 } from "../../mod.ts";
import { reclaim as reclaimerLoop } from "../../src/callbacks/_reclaimer.ts";
import { Membership } from "../../src/_membership.ts";
import { membershipOf } from "../../src/rcu.ts";
import { tagOf } from "../_audit.ts";
import { fail, unwatched } from "./_hooks.ts";
import {
  type DomainScene,
  joinDomain,
  layDomain,
  must,
  mustBe,
  mustBeTidy,
  napsOf,
  type Part,
  type Scenario,
  until,
} from "./_scenario.ts";

/** The bytes of the smallest block. */
const BLOCK_BYTES = 16;

interface BlocksScene extends DomainScene {
  /** Live blocks, for threads to defer, and where their tags are. */
  blocks: number[];
  tags: number[];
  /** A block of words that are 0 in the beginning. */
  marks: number;
}

function layBlocks(
  buffer: SharedArrayBuffer,
  offloaded: boolean,
  count: number,
): BlocksScene {
  return layDomain(
    buffer,
    { callbacks: { mode: offloaded ? "offloaded" : "immediate" } },
    ({ memory }) => {
      const marks = memory.allocate(4);
      memory.words.fill(0, marks, marks + 4);
      const blocks = Array.from({ length: count }, () => memory.allocate(4));
      const tags = blocks.map((block) => tagOf(unwatched(), block));
      return { blocks, tags, marks };
    },
  );
}

/** What a thread that has deferred something does in its next turn. */
function turn(rcu: Rcu): void {
  const { callbacks } = membershipOf(rcu, "turn");
  callbacks.adopt();
  callbacks.processCallbacks(true);
}

/** Makes a scenario of what threads do with blocks. */
function blocks(
  name: string,
  offloaded: boolean,
  parts: ((buffer: SharedArrayBuffer, scene: BlocksScene) => Part)[],
  count: number,
): Scenario {
  const scenario: Scenario<BlocksScene> = {
    name,
    threads: parts.length,
    lay: (buffer) => layBlocks(buffer, offloaded, count),
    join: (thread, buffer, scene) => parts[thread](buffer, scene),
    check: (buffer, scene) =>
      mustBeTidy(buffer, scene, () => -count * BLOCK_BYTES),
    naps: napsOf,
  };
  return scenario as unknown as Scenario;
}

/** A thread that defers blocks, has a turn after each, and leaves. */
const defers =
  (...which: number[]) =>
  (buffer: SharedArrayBuffer, scene: BlocksScene): Part => {
    const rcu = joinDomain(buffer, scene);
    return {
      act() {
        for (const i of which) {
          rcu.deferFree(scene.blocks[i]);
          turn(rcu);
        }
        rcu.close();
      },
    };
  };

/** A thread that defers a block, has a turn, and stays until the block is free. */
const awaits =
  (which: number) => (buffer: SharedArrayBuffer, scene: BlocksScene): Part => {
    const rcu = joinDomain(buffer, scene);
    const { words } = rcu.memory;
    return {
      act() {
        rcu.deferFree(scene.blocks[which]);
        turn(rcu);
        until(() => (Atomics.load(words, scene.tags[which]) & 3) === 0);
        rcu.close();
      },
    };
  };

/** A thread that defers a block, has a turn, and is still there when the reclaimer has gone. */
const handsOver =
  (which: number) => (buffer: SharedArrayBuffer, scene: BlocksScene): Part => {
    const rcu = joinDomain(buffer, scene);
    return {
      act() {
        rcu.deferFree(scene.blocks[which]);
        turn(rcu);
      },
      leave() {
        const { handover } = membershipOf(rcu, "look");
        // Nobody would take it any more.
        mustBe(handover!.holder, 0, "The reclaimer's claim in the end");
        mustBe(handover!.count, 0, "What lies on the stack in the end");
        rcu.close();
      },
    };
  };

function joinAsReclaimer(buffer: SharedArrayBuffer): Membership {
  const words = new Int32Array(buffer);
  const membership = new Membership(words, "", { onError: fail }, true);
  must(membership.handover!.claim(membership.owner), "Nobody else claims");
  return membership;
}

/** A reclaimer that goes after its first look, as one does whose signal is aborted. */
function goes(buffer: SharedArrayBuffer): Part {
  const membership = joinAsReclaimer(buffer);
  const { callbacks, handover, owner } = membership;
  return {
    act() {
      callbacks.help(true);
      callbacks.processCallbacks();
      handover!.resign(owner);
      membership.close();
    },
  };
}

/** The reclaimer, as long as others are there. */
function serves(buffer: SharedArrayBuffer): Part {
  const membership = joinAsReclaimer(buffer);
  const { callbacks, handover, heap, index, orphans, owner, periods } =
    membership;
  const { readers, words } = membership;
  return {
    async act() {
      await reclaimerLoop({
        words,
        nap: readers.nap(index),
        callbacks,
        periods,
        handover: handover!,
        heap,
        orphans,
        delay: 0,
        realTime: false,
        idleTimeout: Infinity,
        signal: undefined,
        isAlone: () => !readers.hasOthers(index),
      });
      handover!.resign(owner);
      membership.close();
    },
  };
}

/** Takes the stack back, as who is in need of memory does. */
function helps(buffer: SharedArrayBuffer, scene: BlocksScene): Part {
  const rcu = joinDomain(buffer, scene);
  const { callbacks } = membershipOf(rcu, "help");
  return {
    act() {
      callbacks.help(true);
      callbacks.processCallbacks();
    },
    leave: () => rcu.close(),
  };
}

// Barriers

/** Marks: what a thread has enqueued, and what has run. */
const ENQUEUED = 0;
const RAN = 1;

/** Defers a block and a closure, says so, and does something until both are done. */
const enqueues =
  (then: (rcu: Rcu) => void | Promise<void>, closure = true) =>
  (buffer: SharedArrayBuffer, scene: BlocksScene): Part => {
    const rcu = joinDomain(buffer, scene);
    const { words } = rcu.memory;
    const { blocks, marks } = scene;
    return {
      async act() {
        rcu.deferFree(blocks[0]);
        if (closure) rcu.callRcu(() => void Atomics.add(words, marks + RAN, 1));
        Atomics.store(words, marks + ENQUEUED, 1);
        await then(rcu);
        if (closure) mustBe(words[marks + RAN], 1, "How often a callback ran");
        rcu.close();
      },
    };
  };

/** Waits for whatever has been enqueued, and looks whether it is done; online or not when it begins. */
const waits =
  ({ closure = false, online = false } = {}) =>
  (buffer: SharedArrayBuffer, scene: BlocksScene): Part => {
    const rcu = joinDomain(buffer, scene);
    const { words } = rcu.memory;
    const { marks, tags } = scene;
    return {
      act() {
        // In the way of the period of whoever leaves meanwhile: what it has deferred is left behind.
        if (online) rcu.threadOnline();
        const enqueued = Atomics.load(words, marks + ENQUEUED) === 1;
        rcu.barrierSync();
        if (enqueued) {
          must((words[tags[0]] & 3) === 0, "A barrier must wait for a free");
          if (closure) {
            mustBe(
              words[marks + RAN],
              1,
              "Callbacks that ran before a barrier",
            );
          }
        }
        rcu.close();
      },
    };
  };

// Cells

/** One thread sets a cell, others wait for that. */
function awaitChange(waiters: number): Scenario {
  const scenario: Scenario<DomainScene> = {
    name: `parking/cell: ${waiters === 1 ? "one waiter" : "two waiters"}`,
    threads: 1 + waiters,
    lay: (buffer) =>
      layDomain(buffer, {}, (rcu) => {
        RcuCell.open(rcu, "cell", { value: u32, initial: 1 });
        return {};
      }),
    join(thread, buffer, scene) {
      const rcu = joinDomain(buffer, scene);
      const cell = RcuCell.open(rcu, "cell", { value: u32 });
      return {
        act: thread === 0 ? () => cell.set(2) : async () => {
          const found = await cell.waitForChange({ since: 0 });
          mustBe(found, 2, "What a wait for a change finds");
        },
        leave: () => rcu.close(),
      };
    },
    check: (buffer, scene) => mustBeTidy(buffer, scene, () => 0),
    naps: napsOf,
  };
  return scenario as unknown as Scenario;
}

/** Awaits a barrier, the event loop turning. */
const barrier = (rcu: Rcu): Promise<void> => rcu.barrier();

export const RECLAIMING: Scenario[] = [
  blocks("handover/the reclaimer goes", true, [handsOver(0), goes], 1),
  blocks("handover/two push: the reclaimer goes", true, [
    handsOver(0),
    goes,
    handsOver(1),
  ], 2),
  blocks("handover/somebody helps: the reclaimer goes", true, [
    handsOver(0),
    goes,
    helps,
  ], 1),
  blocks("parking/reclaimer", true, [defers(0, 1), serves], 2),
  blocks("parking/reclaimer that is awaited", true, [awaits(0), serves], 1),
  awaitChange(1),
  awaitChange(2),
  blocks("barrier/both blocks", false, [
    enqueues(barrier),
    waits({ closure: true }),
  ], 1),
  blocks("barrier/the other leaves", false, [
    enqueues(() => {}, false),
    waits({ online: true }),
  ], 1),
  blocks("barrier/a reclaimer in between", true, [
    enqueues(turn, false),
    waits(),
    serves,
  ], 1),
];
