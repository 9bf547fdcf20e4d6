// Faults, planted in the prototypes of the package and in what it calls: what explorations must find.

import { PERIOD_FAULTS } from "./_faults_in_periods.ts";
import { RECLAIMING_FAULTS } from "./_faults_in_reclaiming.ts";
import { UPDATE_FAULTS } from "./_faults_in_updates.ts";
import type { Planted } from "./_plant.ts";

/** Every fault, by what it does. */
export const FAULTS = {
  ...PERIOD_FAULTS,
  ...UPDATE_FAULTS,
  ...RECLAIMING_FAULTS,
} satisfies Record<string, Planted>;

/** The name of a fault. */
export type Fault = keyof typeof FAULTS;

/** Whether a fault takes seconds to find. */
export function isRare(fault: Fault): boolean {
  const { rare = false }: Planted = FAULTS[fault];
  return rare;
}

/**
 * Plants a fault in this thread.
 *
 * @param fault Which one.
 * @returns Takes it back.
 */
export function plant(fault: Fault): () => void {
  const heals = new DisposableStack();
  FAULTS[fault].plant(heals);
  return () => heals.dispose();
}
