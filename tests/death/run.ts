// Has threads die: before every step of every operation, simulated and for real, and at random.

import { MAPS, SORTED_MAPS } from "./_map_scenarios.ts";
import { OTHERS, SCENARIOS } from "./_scenarios.ts";
import { sweep } from "./_sweep.ts";
import { dieAtRandom, dieAtSteps } from "./_threads.ts";

/** Deaths at random, and how many of them in one domain. */
const RANDOM = 1_000;
const IN_A_ROW = 100;

/** Real deaths in one scenario: each takes a worker. */
const REAL = 60;

/** In which an error may end a thread: acts that call code of their caller's, or allocate. */
const THROWING = [...OTHERS.slice(0, 4), ...MAPS, ...SORTED_MAPS];

const HELP =
  `Has threads die before every step of every operation, simulated and for real,
and at random, and looks each time whether all is whole.

deno task death [NAME]...

  NAME    a scenario, or a part of its name (default: all of them)
  --help  this text

Scenarios: ${SCENARIOS.map(({ name }) => name).join("; ")};
each also with ", and its buriers", those of cells and maps with ", by an error", those of maps
with ", for real"; random deaths.
The exit code is 0, 1 if something was wrong, or 2 if no scenario has such a name.`;

let attempted = 0;
let failed = 0;

if (Deno.args.includes("--help") || Deno.args.includes("-h")) {
  console.log(HELP);
  Deno.exit(0);
}

async function attempt(
  name: string,
  act: () => string | Promise<string>,
): Promise<void> {
  const { args } = Deno;
  if (args.length > 0 && !args.some((part) => name.includes(part))) return;
  attempted++;
  const begin = performance.now();
  try {
    const what = await act();
    const seconds = (performance.now() - begin) / 1000;
    console.log(`${name}: ${what}, ${seconds.toFixed(1)} s`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${name}`);
    console.log((error as SuppressedError).suppressed ?? error);
  }
}

for (const scenario of SCENARIOS) {
  await attempt(scenario.name, () => `${sweep(scenario)} steps`);
  await attempt(`${scenario.name}, and its buriers`, () => {
    sweep(scenario, { tries: 100, buriers: 5 });
    return "100 steps";
  });
}
for (const scenario of THROWING) {
  await attempt(
    `${scenario.name}, by an error`,
    () => `${sweep(scenario, { unwinds: true })} steps`,
  );
}
for (const scenario of [...MAPS, ...SORTED_MAPS]) {
  await attempt(`${scenario.name}, for real`, async () => {
    let died = 0;
    // Densely at first, then ever further on.
    const steps = Array.from(
      { length: REAL },
      (_, i) => i < REAL / 2 ? i : Math.floor(i * 1.08 ** (i - REAL / 2)),
    );
    died += await dieAtSteps(scenario, steps);
    return `${died} deaths`;
  });
}
for (let done = 0; done < RANDOM; done += IN_A_ROW) {
  await attempt(`random deaths ${done} to ${done + IN_A_ROW}`, async () => {
    await dieAtRandom(IN_A_ROW);
    return "all whole";
  });
}
if (attempted === 0) {
  console.error(
    `Cannot run anything as a scenario must have such a name: received ${
      Deno.args.join(" ")
    }`,
  );
  console.error(HELP);
  Deno.exit(2);
}
Deno.exit(failed === 0 ? 0 : 1);
