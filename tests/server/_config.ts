// What the threads of a server share: a route table, feature flags and a blocklist, reloaded as one.

import { json, Rcu, RcuCell, RcuMap, string, u32 } from "../../mod.ts";

/** Where a request goes. */
export interface Target {
  to: string;
  generation: number;
}

/** A feature, and from which configuration it is. */
export interface Flag {
  on: boolean;
  generation: number;
}

/** One configuration. */
export interface Config {
  generation: number;
  routes: [string, Target][];
  flags: [string, Flag][];
  blocklist: string[];
}

/** What a request is told: everything from one and the same configuration. */
export interface Decision {
  generation: number;
  target: Target | undefined;
  flag: Flag | undefined;
  /** The generation from which a blocked domain is. */
  blocked: number | undefined;
}

/** The maps of one of two configurations, of which one is in use. */
interface Side {
  routes: RcuMap<string, Target>;
  flags: RcuMap<string, Flag>;
  blocklist: RcuMap<string, number>;
}

/**
 * Configurations that every thread of the process sees. Three maps change as
 * one because there are two sets of them, and a cell that says which: a section looks at the
 * cell once, and the set that it leads to is not written before a grace period has ended
 * since another one is in use.
 */
export class SharedConfig {
  readonly #rcu: Rcu;
  readonly #sides: Side[];
  readonly #current: RcuCell<number>;

  constructor(rcu: Rcu) {
    this.#rcu = rcu;
    this.#sides = [0, 1].map((side) => ({
      routes: RcuMap.open(rcu, `routes ${side}`, {
        key: string,
        value: json<Target>(),
      }),
      flags: RcuMap.open(rcu, `flags ${side}`, {
        key: string,
        value: json<Flag>(),
      }),
      blocklist: RcuMap.open(rcu, `blocklist ${side}`, {
        key: string,
        value: u32,
      }),
    }));
    this.#current = RcuCell.open(rcu, "current", { value: u32, initial: 0 });
  }

  /** Finds this process's configurations. */
  static async connect(name: string): Promise<SharedConfig> {
    return new SharedConfig(await Rcu.connect(name, { capacity: 2 ** 27 }));
  }

  /** What one request gets to know. */
  decide(path: string, flag: string, domain: string): Decision {
    return this.#rcu.read(() => {
      const generation = this.#current.get();
      const side = this.#sides[generation & 1];
      return {
        generation,
        target: side.routes.get(path),
        flag: side.flags.get(flag),
        blocked: side.blocklist.get(domain),
      };
    });
  }

  /**
   * Replaces everything by the configuration after the current one. One thread at a time.
   *
   * @returns A promise that resolves when no thread uses an older one.
   */
  async reload(make: (generation: number) => Config): Promise<number> {
    const generation = this.#current.get() + 1;
    const { routes, flags, blocklist } = make(generation);
    const side = this.#sides[generation & 1];
    side.routes.replaceAll(routes);
    side.flags.replaceAll(flags);
    side.blocklist.replaceAll(
      blocklist.map((domain) => [domain, generation]),
    );
    // Publish: whoever loads the cell finds three maps that belong together.
    this.#current.set(generation);
    await this.#rcu.synchronize();
    return generation;
  }
}
