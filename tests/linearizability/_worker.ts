// A thread that plays its part of plans, round after round.

import { Rcu, type RcuHandle } from "../../mod.ts";
import { Gate, GATE_WORDS } from "../_gate.ts";
import { serve } from "../_workers.ts";
import { type Fault, plant } from "./_faults.ts";
import type { Plan, Shared } from "./_plan.ts";
import { Recorder } from "./_recorder.ts";
import { open, type Player } from "./_subjects.ts";
import type { Subject } from "./_values.ts";

/** What a thread must know to take part. */
export interface Join {
  handle: RcuHandle;
  subject: Subject;
  shared: Shared;
  me: number;
}

/** A batch of rounds of one plan. */
export interface Batch {
  plan: Plan;
  /** The number of the first round. */
  first: number;
  rounds: number;
}

interface Joined {
  rcu: Rcu;
  player: Player;
  recorder: Recorder;
  control: Int32Array;
  me: number;
}

/** Some ms, so that threads that have a processor each never sleep. */
const LOOKS = 200_000;
/** The same where there are more threads than processors: others wait for this one's. */
const LOOKS_IN_A_CROWD = 5_000;

let joined: Joined | undefined;

serve({
  /** Does something wrong, for the rest of its life. */
  plant(fault: Fault): void {
    plant(fault);
  },

  join({ handle, subject, shared, me }: Join): void {
    const rcu = Rcu.attach(handle);
    const { control, log } = shared;
    const recorder = new Recorder(control, GATE_WORDS, log);
    const player = open(rcu, subject, recorder, me);
    joined = { rcu, player, recorder, control, me };
  },

  /** Plays a batch; the gate is a fresh one each time. */
  play(batch: Batch): void {
    const { me, control, recorder, plan } = { ...joined!, ...batch };
    if (me >= plan.threads.length) return;
    recorder.rewind();
    const gate = new Gate(
      control,
      plan.threads.length,
      plan.threads.length > navigator.hardwareConcurrency
        ? LOOKS_IN_A_CROWD
        : LOOKS,
    );
    try {
      const last = batch.first + batch.rounds;
      for (let round = batch.first; round < last; round++) {
        playRound(joined!, gate, plan, round);
      }
    } catch (error) {
      gate.break();
      throw error;
    }
  },

  leave(): void {
    joined!.rcu.close();
  },
});

function playRound(
  { me, player, control }: Joined,
  gate: Gate,
  { threads, present }: Plan,
  round: number,
): void {
  gate.pass();
  if (me === 0) player.prepare(round, present);
  gate.pass();
  const steps = threads[me];
  for (let number = 0; number < steps.length; number++) {
    const step = steps[number];
    for (let i = 0; i < step.pause; i++) Atomics.load(control, 0);
    player.take(step, round, me, number);
  }
  gate.pass();
  player.look();
}
