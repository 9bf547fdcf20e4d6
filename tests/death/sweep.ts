// Has a thread die before every step of every operation. Takes names of scenarios, or parts of them.

import { MAPS, OTHERS, SORTED_MAPS } from "./_scenarios.ts";
import { sweep } from "./_sweep.ts";

let failed = 0;
for (const scenario of [...OTHERS, ...MAPS, ...SORTED_MAPS]) {
  if (
    Deno.args.length > 0 &&
    !Deno.args.some((part) => scenario.name.includes(part))
  ) continue;
  const begin = performance.now();
  try {
    const steps = sweep(scenario);
    sweep(scenario, { tries: 100, buriers: 5 });
    const seconds = (performance.now() - begin) / 1000;
    console.log(`${scenario.name}: ${steps} steps, ${seconds.toFixed(1)} s`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${scenario.name}`);
    const { suppressed } = error as SuppressedError;
    console.log(suppressed ?? error);
  }
}
Deno.exit(failed === 0 ? 0 : 1);
