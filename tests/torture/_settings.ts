// The domains that are tortured: every detector with every callback policy, and some in debug mode.

import type { RcuOptions } from "../../mod.ts";

/** A kind of domain. */
export interface Setting {
  detector: string;
  callbacks: string;
  /** Whether in debug mode; else with the classes that are there without it, and poison. */
  debug: boolean;
  options: Pick<RcuOptions, "detector" | "callbacks">;
}

/** Name → the option. */
export const DETECTORS: Record<
  string,
  NonNullable<RcuOptions["detector"]>
> = {
  "scan": "scan",
  "classic": "classic",
  "tree-2": { type: "tree", fanout: 2 },
  "tree-16": { type: "tree", fanout: 16 },
};

/** Name → the option. */
export const CALLBACKS: Record<
  string,
  NonNullable<RcuOptions["callbacks"]>
> = {
  "immediate": { mode: "immediate" },
  "throttled-1": { mode: "throttled", maxBatch: 1 },
  "throttled-16": { mode: "throttled", maxBatch: 16 },
  "offloaded-0": { mode: "offloaded", delay: 0 },
  "offloaded-10": { mode: "offloaded", delay: 10 },
  "offloaded-realtime": { mode: "offloaded", realTime: true },
};

/**
 * The settings of some detectors and policies, in an order in which detectors
 * change fastest, so that a short run has seen them all; and then each of the
 * detectors in debug mode, with one of the policies.
 *
 * @param detectors Names, separated by commas, each in full or up to a dash; all if none is given.
 * @param callbacks The same of policies.
 * @returns The settings.
 * @throws {RangeError} If there is no such thing; says what there is.
 */
export function settingsOf(detectors?: string, callbacks?: string): Setting[] {
  const chosen = namesOf("--detector", DETECTORS, detectors);
  const policies = namesOf("--callbacks", CALLBACKS, callbacks);
  const all = Object.keys(DETECTORS);
  return [
    ...policies.flatMap((policy) =>
      chosen.map((detector) => settingOf(detector, policy, false))
    ),
    ...chosen.map((detector) => {
      const policy = policies[all.indexOf(detector) % policies.length];
      return settingOf(detector, policy, true);
    }),
  ];
}

function settingOf(
  detector: string,
  callbacks: string,
  debug: boolean,
): Setting {
  const options = {
    detector: DETECTORS[detector],
    callbacks: CALLBACKS[callbacks],
  };
  return { detector, callbacks, debug, options };
}

function namesOf(
  flag: string,
  all: Record<string, unknown>,
  wanted: string | undefined,
): string[] {
  const known = Object.keys(all);
  if (wanted === undefined) return known;
  const names = wanted.split(",");
  const isMeant = (name: string, known: string) =>
    known === name || (name !== "" && known.startsWith(`${name}-`));
  for (const name of names) {
    if (known.some((one) => isMeant(name, one))) continue;
    throw new RangeError(
      `Cannot choose as ${flag} must name some of ${known.join(", ")}: ` +
        `received ${name || "nothing"}`,
    );
  }
  return known.filter((one) => names.some((name) => isMeant(name, one)));
}
