/** Fetches the route table ahead of the benchmarks and shows how far it is. */
import { ProgressBar } from "@std/cli/unstable-progress-bar";
import { asnRanges, type Stage, toPrefixes } from "./_data.ts";

const STAGES: Record<Stage, string> = {
  fetch: "fetching @ip-location-db/asn, 18 MiB",
  read: "reading 21 MB of it",
  parse: "parsing",
};

/** Fetches the table where it isn't cached yet. */
export async function fetchRoutes(): Promise<void> {
  let doing = "";
  const bar = new ProgressBar({
    max: Object.keys(STAGES).length,
    barLength: 30,
    formatter: ({ styledTime, progressBar }) =>
      `[${styledTime}] [${progressBar}] ${doing}`,
  });
  try {
    const ranges = await asnRanges((stage) => {
      bar.value = Object.keys(STAGES).indexOf(stage);
      doing = STAGES[stage];
    });
    const { address } = toPrefixes(ranges);
    bar.value = bar.max;
    doing = `${address.length.toLocaleString("en")} routes from ${
      ranges.start.length.toLocaleString("en")
    } ranges`;
  } finally {
    await bar.stop();
  }
}

if (import.meta.main) await fetchRoutes();
