/** String keys, as an experiment. */
import type {
  Bar,
  Chart,
  Experiment,
  Findings,
  RunOptions,
  Table,
} from "./_experiment.ts";
import { median, ratio } from "./_measure.ts";
import { count, met, short, spread } from "./_report.ts";
import { domains, routeTemplates } from "./_string_keys.ts";
import { FRESH, REPEATED, type StringFigures } from "./_strings_figures.ts";
import { inFreshWorker } from "./_workers.ts";

const FIGURES = import.meta.resolve("./_strings_figures.ts");
const REPEATED_BAR = 1.2;
const FRESH_BAR = 1;

/** Where keys come from. */
const SOURCES = {
  "route templates": routeTemplates,
  "domains": domains,
} as const;

/** Figures by source, with how many keys there are. */
export type StringResults = Record<
  string,
  { keys: string[]; figures: StringFigures }
>;

export const strings: Experiment = {
  name: "strings",
  title: "String keys that repeat, and fresh ones from the network",
  about:
    "RcuMap<string, json> beside a private Map: 811 real route templates " +
    "and 121,570 real domains, drawn by Zipf's law (which is made up); the " +
    "strings themselves, and bytes that have to be decoded first.",
  command: "deno task bench:all bench/strings_bench.ts",
  steps: () => Object.keys(SOURCES).length,
  async run(options) {
    return stringFindings(await measureStrings(options));
  },
};

/** Takes the figures. */
export async function measureStrings(
  { quick, onStep }: RunOptions,
): Promise<StringResults> {
  const results: StringResults = {};
  for (const [source, read] of Object.entries(SOURCES)) {
    onStep(source);
    const keys = await read();
    const figures = await inFreshWorker<StringFigures>(
      FIGURES,
      "lookUpStrings",
      { keys, quick },
    );
    results[source] = { keys, figures };
  }
  return results;
}

/** What they come to. */
export function stringFindings(results: StringResults): Findings {
  const bars = Object.entries(results).flatMap(([source, { figures }]) =>
    barsOf(source, figures)
  );
  return { bars, tables: [lookups(results)], charts: [times(results)] };
}

function barsOf(
  source: string,
  { repeated, fresh }: StringFigures,
): Bar[] {
  const again = ratio(repeated[REPEATED.rcuMap], repeated[REPEATED.map]);
  const anew = ratio(fresh[FRESH.utf8], fresh[FRESH.map]);
  return [
    {
      what: `get of repeated ${source}: RcuMap ÷ Map`,
      bar: `≤ ${REPEATED_BAR}`,
      measured: spread(again),
      met: again.median <= REPEATED_BAR,
    },
    {
      what: `fresh ${source} from bytes: getUtf8 ÷ decode and Map.get`,
      bar: `≤ ${FRESH_BAR}`,
      measured: spread(anew),
      met: anew.median <= FRESH_BAR,
    },
  ];
}

function lookups(results: StringResults): Table {
  const rows = Object.entries(results).flatMap(
    ([source, { keys, figures: { repeated, fresh } }]) => {
      const [again, anew] = barsOf(source, { repeated, fresh });
      const row = (
        name: string,
        series: number[],
        base: number[],
        bar?: Bar,
      ): string[] => [
        name,
        short(median(base)),
        short(median(series)),
        spread(ratio(series, base)),
        bar?.bar ?? "",
        bar === undefined ? "" : met(bar.met),
      ];
      return [
        row(
          `${count(keys.length)} ${source}, repeated: get`,
          repeated[REPEATED.rcuMap],
          repeated[REPEATED.map],
          again,
        ),
        row(
          "  fresh bytes: getUtf8",
          fresh[FRESH.utf8],
          fresh[FRESH.map],
          anew,
        ),
        row(
          "  fresh bytes: decode, then get",
          fresh[FRESH.rcuMap],
          fresh[FRESH.map],
        ),
      ];
    },
  );
  return {
    title: "String keys",
    head: ["string → json, ns a lookup", "Map", "RcuMap", "ratio", "bar", ""],
    rows,
    notes:
      `Medians of rounds in which all took turns, with the quartiles of the ratios. Keys are drawn
beforehand by Zipf's law over a random order. Fresh bytes: the private map decodes each key with a
TextDecoder and looks the string up; getUtf8 takes the bytes themselves.`,
  };
}

function times(results: StringResults): Chart {
  return {
    title: "Time of a lookup",
    kind: "bar",
    x: { title: "how", unit: "" },
    y: { title: "median time", unit: "ns" },
    series: Object.entries(results).map((
      [source, { figures: { repeated, fresh } }],
    ) => ({
      name: source,
      points: [
        [REPEATED.map, median(repeated[REPEATED.map])],
        [REPEATED.rcuMap, median(repeated[REPEATED.rcuMap])],
        ...Object.values(FRESH).map((name): [string, number] => [
          name,
          median(fresh[name]),
        ]),
      ],
    })),
  };
}
