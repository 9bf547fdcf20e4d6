/**
 * Charts as SVG, made by Vega-Lite: it lays axes and legends out, and runs
 * without a browser, a canvas or a permission.
 *
 * Colours are variables of the page, so that one drawing does in light and in
 * dark. Nothing is told by colour alone: bars have their names beside them, and
 * lines differ in dash and symbol.
 */
import * as vega from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import type { Axis, Chart } from "./_experiment.ts";
import { short } from "./_report.ts";

/** How many colours the page has to define, as `--series-1` and so on. */
export const COLORS = 8;

const FONT = "system-ui, sans-serif";
const FONT_SIZE = 13;
const BOLD = 600;
/** How much wider bold text is. */
const WIDER = 1.12;
/** Height of a bar, and of its name where that stands above it. */
const BAR = 16;
const NAME = 18;
const GAP = 6;
/** The least that names beside bars are to leave them: else they stand above. */
const FOR_BARS = 240;
/** Room for the value behind the longest bar. */
const FOR_VALUE = 56;

const COLOR_RANGE = range(COLORS, (n) => `var(--series-${n + 1})`);
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]];
const SHAPES = [
  "circle",
  "square",
  "triangle-up",
  "diamond",
  "triangle-down",
  "cross",
  "triangle-left",
];

// Vega asks a canvas how wide a text is; where there is none it takes 0.8 em for every letter, and
// leaves half of that empty.
const { textMetrics } = vega as unknown as {
  textMetrics: {
    width: (
      item: { fontSize?: number; fontWeight?: unknown },
      text?: unknown,
    ) => number;
  };
};
textMetrics.width = ({ fontSize = FONT_SIZE, fontWeight }, text) => {
  const em = Number(fontWeight) >= BOLD ? fontSize * WIDER : fontSize;
  return Math.ceil(widthOf(String(text ?? ""), em));
};

/** About how wide a text is in a wide sans-serif font. */
function widthOf(text: string, size = FONT_SIZE): number {
  let em = 0;
  for (const letter of text) {
    if (/[ijl.,:;'|!()[\] ]/.test(letter)) em += 0.36;
    else if (/[A-Zmw÷×≤≥→%–]/.test(letter)) em += 0.82;
    else em += 0.62;
  }
  return em * size;
}

/** Breaks a bold text into lines that are at most so wide. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(`${last} ${word}`) * WIDER <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}

function range<T>(length: number, of: (n: number) => T): T[] {
  return Array.from({ length }, (_, n) => of(n));
}

/** Draws a chart that is about so wide, in CSS pixels. */
export async function draw(chart: Chart, width: number): Promise<string> {
  const { spec } = compile(specOf(chart, width));
  const view = new vega.View(vega.parse(spec), { renderer: "none" });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}

/** An axis's title with the unit of its numbers, or that they have none. */
export function axisTitle({ title, unit, log }: Axis): string {
  const scale = log ? ", logarithmic" : "";
  return `${title} (${unit === "" ? "no unit" : unit}${scale})`;
}

/** What Vega-Lite makes a chart of. */
export function specOf(chart: Chart, width: number): TopLevelSpec {
  const spec = chart.kind === "line" ? lines(chart, width) : bars(chart, width);
  return { ...COMMON, ...spec } as TopLevelSpec;
}

const COMMON = {
  $schema: "https://vega.github.io/schema/vega-lite/v6.json",
  background: "transparent",
  padding: 4,
  config: {
    aria: false,
    font: FONT,
    view: { stroke: null },
    axis: {
      labelColor: "currentColor",
      titleColor: "currentColor",
      domainColor: "var(--axis)",
      tickColor: "var(--axis)",
      gridColor: "var(--grid)",
      labelFontSize: FONT_SIZE,
      titleFontSize: FONT_SIZE,
      titleFontWeight: BOLD,
      titlePadding: 10,
      labelLimit: 0,
      titleLimit: 0,
    },
    header: {
      labelColor: "currentColor",
      titleColor: "currentColor",
      labelFontSize: FONT_SIZE,
      titleFontSize: FONT_SIZE,
      titleFontWeight: BOLD,
      labelFontWeight: BOLD,
      labelLimit: 0,
    },
    legend: {
      labelColor: "currentColor",
      titleColor: "currentColor",
      labelFontSize: FONT_SIZE,
      labelLimit: 0,
    },
    text: { color: "currentColor", fontSize: FONT_SIZE },
  },
} as const;

/** Numbers that an axis shows: those that are, and can be shown on it. */
function isShown(value: number, { log }: Axis): boolean {
  return Number.isFinite(value) && (!log || value > 0);
}

/** Large numbers with a letter, others in full. */
const TICK = "datum.value >= 1e4 ? format(datum.value, '~s') : " +
  "format(datum.value, ',~r')";

/** Where a logarithmic axis of some numbers starts and ends, and its ticks. */
function logarithmic(
  numbers: number[],
): { domain: [number, number]; values: number[] } {
  if (numbers.length === 0) return { domain: [1, 10], values: [1, 10] };
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const first = Math.floor(Math.log10(low)) - 1;
  const powers = range(
    Math.ceil(Math.log10(high)) + 2 - first,
    (n) => first + n,
  );
  const steps = powers.flatMap((power) =>
    [1, 2, 5].map((step) => Number(`${step}e${power}`))
  );
  // The least number is not to stand on the edge: its bar would have no length.
  const domain: [number, number] = [
    steps.findLast((step) => step < low)!,
    steps.find((step) => step >= high)!,
  ];
  const within = steps.filter((step) => step >= domain[0] && step <= domain[1]);
  const tens = within.filter((step) => Math.log10(step) % 1 === 0);
  if (tens.length < 3) return { domain, values: within };
  const every = Math.ceil(tens.length / 6);
  return { domain, values: tens.filter((_, n) => n % every === 0) };
}

/** The scale of the numbers that bars show, with room for text behind the longest. */
function barScale(axis: Axis, numbers: number[], plot: number) {
  const room = plot / (plot - FOR_VALUE);
  if (!axis.log) {
    const high = Math.max(...numbers, 0) || 1;
    return { base: 0, scale: { domain: [0, high * room], nice: false } };
  }
  const { domain: [low, high], values } = logarithmic(numbers);
  const domain = [low, low * (high / low) ** room];
  return { base: low, scale: { type: "log", domain, nice: false }, values };
}

// Bars: names from top to bottom, and where there are several series, theirs below each.

function bars({ x, y, series: all }: Chart, width: number): object {
  // One of which nothing could be measured would only be in the way.
  const some = all.filter(({ points }) =>
    points.some(([, value]) => isShown(value, y))
  );
  const series = some.length > 0 ? some : all;
  const grouped = all.length > 1;
  const rows = series.flatMap((of) =>
    of.points.map(([group, value]) => ({
      group,
      name: grouped ? of.name : String(group),
      series: of.name,
      value: isShown(value, y) ? value : null,
      label: isShown(value, y) ? short(value) : "not measured",
    }))
  );
  const longest = Math.max(0, ...rows.map(({ name }) => widthOf(name)));
  const beside = longest <= width - Math.max(FOR_BARS, 0.6 * width);
  const plot = Math.round(width - 24 - (beside ? longest : 0));
  const lines = (group: unknown) => wrapped(String(group), plot).join("\n");
  const numbers = rows.flatMap(({ value }) => value ?? []);
  const { base, scale, values } = barScale(y, numbers, plot);
  const position = {
    type: "quantitative",
    scale,
    axis: {
      title: wrapped(axisTitle(y), plot),
      titleAnchor: "start",
      labelExpr: TICK,
      labelOverlap: true,
      tickCount: Math.max(2, Math.floor(plot / 90)),
      ...(values === undefined ? {} : { values }),
    },
  };
  const below = beside ? 0 : NAME / 2;
  const view = {
    width: plot,
    height: { step: BAR + GAP + (beside ? 0 : NAME) },
    encoding: {
      y: {
        field: "name",
        type: "nominal",
        sort: null,
        scale: { padding: 0 },
        axis: {
          title: grouped ? null : x.title,
          titleAngle: 0,
          titleAlign: beside ? "right" : "left",
          titleBaseline: "bottom",
          titleX: beside ? -8 : 0,
          titleY: -6,
          labels: beside,
          labelPadding: 8,
          ticks: false,
        },
      },
    },
    layer: [
      {
        mark: { type: "bar", height: BAR, yOffset: below },
        encoding: {
          x: { field: "value", ...position },
          x2: { datum: base },
          color: {
            field: "series",
            type: "nominal",
            scale: {
              domain: all.map(({ name }) => name),
              range: COLOR_RANGE,
            },
            legend: null,
          },
        },
      },
      {
        transform: [{
          calculate: `isValid(datum.value) ? datum.value : ${base}`,
          as: "end",
        }],
        mark: text({ dx: 5, yOffset: below }),
        encoding: {
          x: { field: "end", ...position },
          text: { field: "label", type: "nominal" },
        },
      },
      ...(beside ? [] : [{
        mark: text({ dx: 5, yOffset: -BAR / 2 }),
        encoding: {
          x: { datum: base, ...position },
          text: { field: "name", type: "nominal" },
        },
      }]),
    ],
  };
  if (!grouped) return { data: { values: rows }, ...view };
  return {
    data: {
      values: rows.map((row) => ({ ...row, group: lines(row.group) })),
    },
    facet: {
      row: {
        field: "group",
        type: "nominal",
        sort: [...new Set(rows.map(({ group }) => lines(group)))],
        header: {
          title: x.title,
          titleOrient: "top",
          titleAnchor: "start",
          labelOrient: "top",
          labelAnchor: "start",
          labelExpr: "split(datum.value, '\\n')",
          labelPadding: 4,
        },
      },
    },
    spacing: 10,
    spec: view,
  };
}

function text(options: object): object {
  return { type: "text", align: "left", baseline: "middle", ...options };
}

// Lines: told apart by dash and symbol too.

function lines({ x, y, series }: Chart, width: number): object {
  const values = series.flatMap(({ name, points }) =>
    points.filter(([at, value]) => isShown(Number(at), x) && isShown(value, y))
      .map(([at, value]) => ({ series: name, x: Number(at), y: value }))
  );
  const names = series.map(({ name }) => name);
  const widest = Math.max(0, ...names.map((name) => widthOf(name)));
  const height = Math.round(Math.min(0.7 * width, 340));
  const legend = {
    orient: "top",
    columns: Math.max(1, Math.floor(width / (widest + 60))),
    symbolSize: 120,
    symbolStrokeWidth: 0,
  };
  const by = { field: "series", type: "nominal", title: null, legend };
  const domain = names;
  return {
    data: { values },
    width,
    height,
    autosize: { type: "fit-x", contains: "padding" },
    mark: {
      type: "line",
      strokeWidth: 2,
      point: { size: 70, filled: true },
    },
    encoding: {
      x: {
        field: "x",
        ...lineScale(x, values.map(({ x }) => x), {
          length: width - 60,
          ticks: Math.floor(width / 90),
          own: true,
        }),
      },
      y: {
        field: "y",
        ...lineScale(y, values.map(({ y }) => y), { length: height, ticks: 6 }),
      },
      color: { ...by, scale: { domain, range: COLOR_RANGE } },
      strokeDash: { ...by, scale: { domain, range: DASHES } },
      shape: { ...by, scale: { domain, range: SHAPES } },
    },
  };
}

/** A number's place in a line chart. Few numbers can be the axis's `own` ticks. */
function lineScale(
  axis: Axis,
  numbers: number[],
  { length, ticks, own = false }: {
    length: number;
    ticks: number;
    own?: boolean;
  },
): object {
  const distinct = [...new Set(numbers)];
  // Of numbers that a logarithmic axis cannot show, such as 0, nothing logarithmic can be told.
  const log = axis.log ? logarithmic(numbers) : undefined;
  return {
    type: "quantitative",
    scale: log === undefined
      ? { zero: true }
      : { type: "log", domain: log.domain, nice: false },
    axis: {
      title: wrapped(axisTitle(axis), length),
      labelExpr: TICK,
      labelOverlap: true,
      tickCount: ticks,
      ...(log === undefined ? {} : { values: log.values }),
      ...(own && distinct.length <= ticks ? { values: distinct } : {}),
    },
  };
}
