// What `Rcu.stats` returns.

import type { MemoryAudit } from "./memory/arena.ts";

/** What a domain has done and holds, at one moment. */
export interface RcuStats {
  /** Grace periods since the domain was created. */
  gracePeriods: {
    /** Periods that have begun. */
    started: number;
    /** Periods that have ended. */
    completed: number;
    /** Waits that asked for an expedited period. */
    expedited: number;
    /** Periods that overload forced. */
    forced: number;
  };
  /** Callbacks and deferred frees. */
  callbacks: {
    /** Those of all threads that wait. */
    pending: number;
    /** The largest number that waited in one thread, of the threads registered now. */
    peak: number;
    /** Those invoked by the records of all threads, modulo 2³². */
    invoked: number;
  };
  /** Where every byte is. */
  memory: MemoryAudit;
  /** The registered threads. */
  readers: ReaderStats[];
}

/** A registered thread. */
export interface ReaderStats {
  /** Its `readerId`. */
  id: number;
  /** Its name, or `""`. */
  name: string;
  /** Whether it may be in a read section. */
  online: boolean;
  /** How many grace periods had begun when it last announced a quiescent state; 0 while offline. */
  observed: number;
  /** Its callbacks and deferred frees that wait. */
  pending: number;
}
