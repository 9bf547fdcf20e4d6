// Sweeps with planted faults: what is broken then ends with its thread.

import { FAULTS } from "./death/_faults.ts";
import { scenarioOf } from "./death/_scenarios.ts";
import { sweep } from "./death/_sweep.ts";
import { serve } from "./_workers.ts";

serve({
  /** What a sweep with a fault finds, or `undefined`. */
  find(fault: string): string | undefined {
    const { scenario, plant } = FAULTS[fault];
    const sound = scenarioOf(scenario);
    // Where what is missing would be waited for.
    const options = { ...sound.options, stallTimeout: 100 };
    using heals = new DisposableStack();
    plant(heals);
    try {
      sweep({ ...sound, options });
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  },
});
